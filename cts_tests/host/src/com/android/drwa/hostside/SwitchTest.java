// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeFalse;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.Rule;
import org.junit.Test;

/** What switches DRWA off and on again while the device runs. */
public class SwitchTest extends DrwaHostTestCase {
    private static final String SETTING = "drwa_enabled";
    private static final String FLAG = "tethering drwa";

    /** What a phone may be busy with otherwise; how soon knobs follow is e2e's to measure. */
    private static final long TIMEOUT_S = 10;

    private static final long POLL_MS = 100;

    @Rule public final KeptValue setting = new KeptValue(this, "settings", "global " + SETTING);

    @Rule public final KeptValue flag = new KeptValue(this, "device_config", FLAG);

    /** What all knobs hold, read at once. */
    private Map<String, Integer> getKnobs() throws Exception {
        final Map<String, Integer> found = new TreeMap<>();
        for (String line : shell("grep -H . " + CONF + "*/" + KNOB).split("\n")) {
            final String[] parts = line.substring(CONF.length()).split("/" + KNOB + ":");
            found.put(parts[0], Integer.parseInt(parts[1]));
        }
        return found;
    }

    /** Runs a command, and waits until all knobs hold what they are to. */
    private void assertKnobsAfter(String command, Map<String, Integer> wanted) throws Exception {
        shell(command);
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (!getKnobs().equals(wanted) && System.nanoTime() < end) Thread.sleep(POLL_MS);
        assertEquals(command, wanted, getKnobs());
    }

    private void assertSwitches(String off, String on, String reason) throws Exception {
        final Map<String, Integer> settings = getSettings();
        final Map<String, Integer> before = getKnobs();
        final Map<String, Integer> allOff = new TreeMap<>(before);
        allOff.replaceAll((iface, lambda) -> 0);
        assumeFalse("no network of this device is on", before.equals(allOff));

        assertKnobsAfter(off, allOff);
        assertTrue(getDump(), getDump().startsWith("DRWA: off: " + reason + "\n"));
        assertKnobsAfter(on, before);
        assertTrue(getDump(), getDump().startsWith("DRWA: enabled\n"));
        assertEquals(settings, getSettings());
    }

    @Test
    public void settingSwitchesAtOnce() throws Exception {
        assertSwitches(
                "settings put global " + SETTING + " 0",
                "settings delete global " + SETTING,
                "Settings.Global " + SETTING);
    }

    @Test
    public void otherValuesOfTheSettingLeaveItToTheCarrier() throws Exception {
        assertSwitches(
                "settings put global " + SETTING + " 0",
                "settings put global " + SETTING + " 1",
                "Settings.Global " + SETTING);
    }

    @Test
    public void flagSwitchesAtOnce() throws Exception {
        assertSwitches(
                "device_config put " + FLAG + " -1",
                "device_config delete " + FLAG,
                "DeviceConfig " + FLAG.replace(' ', '/'));
    }
}
