// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;
import static org.junit.Assume.assumeFalse;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;

/**
 * The uplinks of this device's cellular networks: that the kernel has the qdiscs that the policy
 * tells of, and what switches and restarts make of them.
 */
public class UplinkTest extends DrwaHostTestCase {
    private static final String SETTING = "drwa_enabled";
    private static final Pattern INTERFACE = Pattern.compile("(\\S+) (?:λ=|off: ).*");
    private static final Pattern TARGET = Pattern.compile("  uplink held to (\\d+) ms");
    private static final Pattern HELD =
            Pattern.compile("^ *(\\S+) uplink=(\\d+)ms root=(drwa_up|mq) ", Pattern.MULTILINE);
    private static final long TIMEOUT_S = 60;
    private static final long POLL_MS = 500;

    @Rule public final KeptValue setting = new KeptValue(this, "settings", "global " + SETTING);

    /** What this device's policy tells before a test. */
    private Map<String, Integer> mTargets;

    @Before
    public void findUplinks() throws Exception {
        assumeFalse("this netd or kernel has no uplink", getDump().contains("\nNo uplink: "));
        mTargets = getTargets();
        assumeFalse("no uplink of this device is held", mTargets.isEmpty());
    }

    /** By interface, in ms, as the policy tells of those that it has set. */
    private Map<String, Integer> getTargets() throws Exception {
        final Map<String, Integer> targets = new TreeMap<>();
        String iface = "";
        for (String line : getDump().split("\n")) {
            // Recent writes come after it
            if (line.startsWith("Events without")) break;
            final Matcher named = INTERFACE.matcher(line);
            if (named.matches()) iface = named.group(1);
            final Matcher target = TARGET.matcher(line);
            if (target.matches()) targets.put(iface, Integer.parseInt(target.group(1)));
        }
        return targets;
    }

    /** By interface, in ms, as netd reads them from the kernel. */
    private Map<String, Integer> getHeld() throws Exception {
        final Map<String, Integer> held = new TreeMap<>();
        final Matcher matcher = HELD.matcher(shell("dumpsys netd"));
        while (matcher.find()) held.put(matcher.group(1), Integer.parseInt(matcher.group(2)));
        return held;
    }

    private void assertHeldSoon(Map<String, Integer> targets) throws Exception {
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (!getHeld().equals(targets)) {
            if (System.nanoTime() > end) fail("Not in time: " + targets + "\n" + getDump());
            Thread.sleep(POLL_MS);
        }
    }

    @Test
    public void kernelHasWhatThePolicyTells() throws Exception {
        assertEquals(mTargets, getHeld());
    }

    @Test
    public void settingTakesThemAway() throws Exception {
        shell("settings put global " + SETTING + " 0");
        assertHeldSoon(Map.of());
        shell("settings delete global " + SETTING);
        assertHeldSoon(mTargets);
        assertEquals(mTargets, getTargets());
    }

    @Test
    public void restartOfNetdStartsAnew() throws Exception {
        // init restarts the system server with it, which it does not after "stop" and "start".
        shell("setprop ctl.restart netd");
        getDevice().waitForDeviceAvailable();
        assertHeldSoon(mTargets);
    }
}
