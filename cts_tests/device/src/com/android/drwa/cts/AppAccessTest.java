// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeFalse;
import static org.junit.Assume.assumeTrue;

import android.os.Build;
import android.os.IBinder;
import android.os.ParcelFileDescriptor;
import android.os.ResultReceiver;
import android.os.ServiceManager;
import android.os.ShellCallback;
import androidx.test.ext.junit.runners.AndroidJUnit4;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import org.junit.Test;
import org.junit.runner.RunWith;

/** What an app without any permission can do to DRWA: nothing. */
@RunWith(AndroidJUnit4.class)
public class AppAccessTest {
    /** What a service shows to dumpsys when the caller may not see it. */
    private static final String DENIAL = "Permission Denial";

    private static boolean isRobolectric() {
        return "robolectric".equals(Build.FINGERPRINT);
    }

    @Test
    public void knobCannotBeWritten() throws Exception {
        assumeFalse("a JVM has no app's user id and no SELinux", isRobolectric());
        for (NetworkInterface iface : Collections.list(NetworkInterface.getNetworkInterfaces())) {
            final String path = Drwa.getPath(iface.getName());
            final FileNotFoundException e =
                    assertThrows(
                            path,
                            FileNotFoundException.class,
                            () -> new FileOutputStream(path).close());
            // Not ENOENT
            assertTrue(e.getMessage(), e.getMessage().contains("EACCES"));
        }
    }

    @Test
    public void netdCannotBeFound() {
        assumeFalse("a JVM has no service manager that asks SELinux", isRobolectric());
        assertNull(ServiceManager.getService("netd"));
    }

    private static IBinder findService() {
        final IBinder service = ServiceManager.getService("drwa");
        assumeTrue("host A has no service, and SELinux hides host B's", service != null);
        return service;
    }

    @Test
    public void serviceTakesNoCommand() throws Exception {
        final IBinder service = findService();
        final String[] args = {"set", "default", "100"};
        assertThrows(
                SecurityException.class,
                () ->
                        service.shellCommand(
                                FileDescriptor.in,
                                FileDescriptor.out,
                                FileDescriptor.err,
                                args,
                                new ShellCallback(),
                                new ResultReceiver(null)));
    }

    @Test
    public void serviceTellsNothing() throws Exception {
        final IBinder service = findService();
        final ParcelFileDescriptor[] pipe = ParcelFileDescriptor.createPipe();
        try (FileInputStream in = new ParcelFileDescriptor.AutoCloseInputStream(pipe[0])) {
            service.dump(pipe[1].getFileDescriptor(), new String[0]);
            pipe[1].close();
            final String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(text, text.contains(DENIAL));
        }
    }
}
