// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import android.system.Os;
import android.system.OsConstants;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;

/**
 * The indices of interfaces as the guest's kernel has them, which Robolectric's Os does not ask.
 */
@Implements(Os.class)
public class KernelInterfaces {
    private static final Path FOLDER = Path.of("/sys/class/net");

    /**
     * @return 0 if there is no such interface
     */
    @Implementation(methodName = "if_nametoindex")
    protected static int getIndex(String name) {
        try {
            return Integer.parseInt(Files.readString(FOLDER.resolve(name + "/ifindex")).trim());
        } catch (IOException e) {
            return 0;
        }
    }

    /** Of those errors that the policy tells apart, as bionic and glibc have it. */
    @Implementation(methodName = "strerror")
    protected static String describe(int errno) {
        if (errno == OsConstants.EINVAL) return "Invalid argument";
        if (errno == OsConstants.ENODEV) return "No such device";
        if (errno == OsConstants.ENOENT) return "No such file or directory";
        return "errno " + errno;
    }

    /**
     * @return null if there is no such interface
     */
    @Implementation(methodName = "if_indextoname")
    protected static String getName(int index) {
        try (DirectoryStream<Path> interfaces = Files.newDirectoryStream(FOLDER)) {
            for (Path each : interfaces) {
                final String name = each.getFileName().toString();
                if (getIndex(name) == index) return name;
            }
            return null;
        } catch (IOException e) {
            return null;
        }
    }
}
