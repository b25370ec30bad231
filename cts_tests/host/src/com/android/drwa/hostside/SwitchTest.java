// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeFalse;

import java.util.Map;
import java.util.TreeMap;
import org.junit.After;
import org.junit.Test;

/** What switches DRWA off and on again while the device runs, and how soon the knobs follow. */
public class SwitchTest extends DrwaHostTestCase {
    private static final String SETTING = "drwa_enabled";
    private static final String FLAG = "tethering drwa";

    /** How long the knobs have after the command, in seconds of the device. */
    private static final String DELAY_S = "0.1";

    @After
    public void switchOn() throws Exception {
        run("settings delete global " + SETTING);
        run("device_config delete " + FLAG);
    }

    /** What all knobs hold soon after a command. */
    private Map<String, Integer> getKnobsAfter(String command) throws Exception {
        final String knobs =
                shell(command + "; sleep " + DELAY_S + "; grep -H . " + CONF + "*/" + KNOB);
        final Map<String, Integer> found = new TreeMap<>();
        for (String line : knobs.split("\n")) {
            final String[] parts = line.substring(CONF.length()).split("/" + KNOB + ":");
            // The command may say something, too
            if (parts.length == 2) found.put(parts[0], Integer.parseInt(parts[1]));
        }
        return found;
    }

    private void assertSwitches(String off, String on, String reason) throws Exception {
        final Map<String, Integer> settings = getSettings();
        final Map<String, Integer> before = getKnobsAfter("true");
        final Map<String, Integer> allOff = new TreeMap<>(before);
        allOff.replaceAll((iface, lambda) -> 0);
        assumeFalse("no network of this device is on", before.equals(allOff));

        assertEquals(allOff, getKnobsAfter(off));
        assertTrue(getDump(), getDump().startsWith("DRWA: off: " + reason + "\n"));
        assertEquals(before, getKnobsAfter(on));
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
