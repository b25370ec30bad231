// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Stands in for the class of ConnectivityService's module, as {@link Struct} does, with {@link
 * BpfMap}'s native part.
 */
public class TcUtils {
    private static final String ARPHRD_ETHER = "1";

    static {
        if (System.getProperty("drwa.natives") != null) {
            System.load(System.getProperty("drwa.natives"));
        }
    }

    public static boolean isEthernet(String iface) throws IOException {
        final Path type = Path.of("/sys/class/net", iface, "type");
        return Files.readString(type).strip().equals(ARPHRD_ETHER);
    }

    public static void tcQdiscAddDevClsact(int ifIndex) throws IOException {
        check(addClsact(ifIndex));
    }

    public static void tcFilterAddDevBpf(
            int ifIndex, boolean ingress, short prio, short proto, String bpfProgPath)
            throws IOException {
        check(addFilter(ifIndex, ingress, prio, proto, bpfProgPath));
    }

    public static void tcFilterDelDev(int ifIndex, boolean ingress, short prio, short proto)
            throws IOException {
        check(deleteFilter(ifIndex, ingress, prio, proto));
    }

    private static void check(int result) throws IOException {
        if (result < 0) throw new IOException("tc error: : " + describe(-result));
    }

    private static native int addClsact(int index);

    private static native int addFilter(
            int index, boolean ingress, short priority, short protocol, String path);

    private static native int deleteFilter(
            int index, boolean ingress, short priority, short protocol);

    private static native String describe(int error);
}
