// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;

import android.os.ParcelFileDescriptor;
import androidx.test.platform.app.InstrumentationRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What DRWA does on this device, as a shell sees it. */
final class Drwa {
    /** The value of a knob that is off. */
    static final int OFF = 0;

    /** What an interface has that shares its queue with no other. */
    static final int OWN_QUEUE = 0;

    private static final String CONF = "/proc/sys/net/ipv4/conf/";
    private static final String KNOB = "tcp_drwa_lambda";
    private static final String QUEUE = "tcp_drwa_queue";
    private static final Pattern ENTRY =
            Pattern.compile("^ *(\\S+) lambda=(\\d+) queue=(\\d+)", Pattern.MULTILINE);
    private static final Pattern UPLINK =
            Pattern.compile("^ *(\\S+) uplink=(\\d+)ms ", Pattern.MULTILINE);
    private static final String THROUGH_NETD = "Knobs: BPF, through netd";
    private static final String TITLE = "DRWA: ";
    private static final long TIMEOUT_S = 5;
    private static final long POLL_MS = 20;

    private Drwa() {}

    /** The output of a command of the shell's, without what it says to stderr. */
    static String shell(String command) {
        final ParcelFileDescriptor out =
                InstrumentationRegistry.getInstrumentation()
                        .getUiAutomation()
                        .executeShellCommand(command);
        try (InputStream in = new ParcelFileDescriptor.AutoCloseInputStream(out)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new AssertionError(command, e);
        }
    }

    /** Whether an interface has the knob, or BPF programs are there in its place. */
    static boolean isInKernel() {
        return exists(KNOB) || arePrograms();
    }

    /** Whether the kernel, or the programs, can be told which interfaces share a queue. */
    static boolean areQueuesInKernel() {
        return exists(QUEUE) || arePrograms();
    }

    /** The shell cannot read their maps; their owner, the policy or netd, tells what they hold. */
    static boolean arePrograms() {
        return !exists(KNOB) && findDump().contains("\nKnobs: BPF");
    }

    private static boolean exists(String name) {
        return !shell("find " + CONF + " -name " + name).isEmpty();
    }

    /** The file of an interface's knob. */
    static String getPath(String iface) {
        return CONF + iface + "/" + KNOB;
    }

    /** λ of an interface in hundredths of a bandwidth-delay product, or {@link #OFF}. */
    static int getKnob(String iface) {
        if (arePrograms()) return getEntry(iface, 2);
        return Integer.parseInt(shell("cat " + getPath(iface)).trim());
    }

    /** The id of an interface's queue, or {@link #OWN_QUEUE}. */
    static int getQueue(String iface) {
        if (arePrograms()) return getEntry(iface, 3);
        return Integer.parseInt(shell("cat " + CONF + iface + "/" + QUEUE).trim());
    }

    /** λ or the queue of the map's entry of an interface; what is off has none. */
    private static int getEntry(String iface, int group) {
        final boolean netds = dump().contains("\n" + THROUGH_NETD);
        final Matcher entry = ENTRY.matcher(netds ? shell("dumpsys netd") : dump());
        while (entry.find()) {
            if (entry.group(1).equals(iface)) return Integer.parseInt(entry.group(group));
        }
        return OFF;
    }

    /** Whether netd and the kernel can hold an uplink, as far as the policy knows. */
    static boolean areUplinksPossible() {
        return !dump().contains("\nNo uplink: ");
    }

    /** The target in ms of the qdisc that netd has put at an interface's root, or {@link #OFF}. */
    static int getUplink(String iface) {
        final Matcher uplink = UPLINK.matcher(shell("dumpsys netd"));
        while (uplink.find()) {
            if (uplink.group(1).equals(iface)) return Integer.parseInt(uplink.group(2));
        }
        return OFF;
    }

    /** Waits until an interface has this target, or {@link #OFF}. */
    static void assertUplink(String iface, int targetMs) {
        await(iface + " uplink " + targetMs + " ms", () -> getUplink(iface) == targetMs);
    }

    /** What the policy says of itself, whichever of its hosts it runs in. */
    static String dump() {
        final String dump = findDump();
        if (dump.isEmpty()) fail("Neither drwa nor connectivity dumps DRWA's state");
        return dump;
    }

    /** Whether the policy's host is ConnectivityService, and not a service of its own. */
    static boolean isInConnectivityService() {
        return !shell("dumpsys drwa").startsWith(TITLE);
    }

    private static String findDump() {
        final String ofService = shell("dumpsys drwa");
        if (ofService.startsWith(TITLE)) return ofService;
        final String ofConnectivity = shell("dumpsys connectivity");
        final int start = ofConnectivity.indexOf(TITLE);
        return start < 0 ? "" : ofConnectivity.substring(start);
    }

    /**
     * What the policy has decided on an interface, e.g. "off: wifi", or "" if no network has it.
     */
    static String getSetting(String iface) {
        for (String line : dump().split("\n")) {
            if (line.startsWith(iface + " ")) return line.substring(iface.length() + 1);
        }
        return "";
    }

    /**
     * Waits until the policy has decided on an interface, which it says once it has written, and
     * checks the knob.
     *
     * @param lambda in hundredths of a bandwidth-delay product
     */
    static void assertOn(String iface, int lambda) {
        // In digits that the dump has in any language
        final String start = String.format(Locale.ROOT, "λ=%d.%02d: ", lambda / 100, lambda % 100);
        await(iface + " " + start, () -> getSetting(iface).startsWith(start));
        assertEquals(iface, lambda, getKnob(iface));
    }

    /**
     * Waits as {@link #assertOn} does for an interface that is stacked on another one. Programs
     * govern its packets at the one below, and leave it alone.
     */
    static void assertStackedOn(String iface, String below, int lambda) {
        assertOn(below, lambda);
        if (arePrograms()) {
            assertOff(iface, "governed at " + below);
        } else {
            assertOn(iface, lambda);
        }
    }

    /** Waits as {@link #assertOn} does for an interface that has to be off for a reason. */
    static void assertOff(String iface, String reason) {
        final String start = "off: " + reason;
        await(iface + " " + start, () -> getSetting(iface).startsWith(start));
        assertEquals(iface, OFF, getKnob(iface));
    }

    /** Waits until no network has an interface, which still exists, and checks its knob. */
    static void assertReset(String iface) {
        await(iface + " without a network", () -> getSetting(iface).isEmpty());
        assertEquals(iface, OFF, getKnob(iface));
    }

    /** Waits for something that another process has to do first; fails if it does not. */
    static void await(String what, Callable<Boolean> condition) {
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        try {
            while (!condition.call()) {
                if (System.nanoTime() > end) fail("Not in time: " + what + "\n" + dump());
                Thread.sleep(POLL_MS);
            }
        } catch (Exception e) {
            throw new AssertionError(what, e);
        }
    }
}
