// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Stands in for the class of ConnectivityService's module, as {@link Struct} does: by iproute2 in
 * place of a native part.
 */
public class TcUtils {
    private static final String ARPHRD_ETHER = "1";

    public static boolean isEthernet(String iface) throws IOException {
        final Path type = Path.of("/sys/class/net", iface, "type");
        return Files.readString(type).strip().equals(ARPHRD_ETHER);
    }

    public static void tcQdiscAddDevClsact(int ifIndex) throws IOException {
        run("qdisc", "add", "dev", "if" + ifIndex, "clsact");
    }

    public static void tcFilterAddDevBpf(
            int ifIndex, boolean ingress, short prio, short proto, String bpfProgPath)
            throws IOException {
        final List<String> command = filter("add", ifIndex, ingress, prio, proto);
        command.addAll(List.of("bpf", "object-pinned", bpfProgPath, "direct-action"));
        run(command.toArray(new String[0]));
    }

    public static void tcFilterDelDev(int ifIndex, boolean ingress, short prio, short proto)
            throws IOException {
        run(filter("del", ifIndex, ingress, prio, proto).toArray(new String[0]));
    }

    private static List<String> filter(
            String what, int ifIndex, boolean ingress, short prio, short proto) {
        return new ArrayList<>(
                List.of(
                        "filter",
                        what,
                        "dev",
                        "if" + ifIndex,
                        ingress ? "ingress" : "egress",
                        "prio",
                        Short.toString(prio),
                        "protocol",
                        Short.toString(proto)));
    }

    private static void run(String... arguments) throws IOException {
        final List<String> command = new ArrayList<>(List.of("tc"));
        command.addAll(List.of(arguments));
        final Process tc = new ProcessBuilder(command).redirectErrorStream(true).start();
        final byte[] said = tc.getInputStream().readAllBytes();
        try {
            if (tc.waitFor() != 0) {
                throw new IOException(new String(said, StandardCharsets.UTF_8).strip());
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}
