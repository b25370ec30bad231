// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.shell;
import static org.junit.Assert.assertEquals;

import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;

/** What switches DRWA off on the whole device, and on again, while networks are connected. */
public class SwitchTest extends DrwaTestCase {
    private static final int LAMBDA = 150;
    private static final String SETTING = "drwa_enabled";
    private static final String SETTING_OFF = "Settings.Global drwa_enabled";
    private static final String FLAG = "tethering drwa";
    private static final String FLAG_OFF = "DeviceConfig tethering/drwa";

    @Rule public final KeptValue setting = new KeptValue("settings", "global " + SETTING);

    @Rule public final KeptValue flag = new KeptValue("device_config", FLAG);

    @Before
    public void setUp() {
        mCarrier.override(true, LAMBDA);
    }

    private static String getState() {
        return Drwa.dump().split("\n")[0];
    }

    @Test
    public void settingSwitchesALiveNetwork() {
        final String iface = connectCellular().getInterface();
        assertOn(iface, LAMBDA);
        shell("settings put global " + SETTING + " 0");
        assertOff(iface, SETTING_OFF);
        assertEquals("DRWA: off: " + SETTING_OFF, getState());
        shell("settings delete global " + SETTING);
        assertOn(iface, LAMBDA);
        assertEquals("DRWA: enabled", getState());
    }

    @Test
    public void otherValuesOfTheSettingLeaveItToTheCarrier() {
        final String iface = connectCellular().getInterface();
        shell("settings put global " + SETTING + " 0");
        assertOff(iface, SETTING_OFF);
        shell("settings put global " + SETTING + " 1");
        assertOn(iface, LAMBDA);
        mCarrier.override(false, LAMBDA);
        assertOff(iface, "carrier");
    }

    @Test
    public void networkThatConnectsMeanwhileIsOff() {
        shell("settings put global " + SETTING + " 0");
        final String iface = connectCellular().getInterface();
        assertOff(iface, SETTING_OFF);
        shell("settings delete global " + SETTING);
        assertOn(iface, LAMBDA);
    }

    @Test
    public void flagSwitchesALiveNetwork() {
        final String iface = connectCellular().getInterface();
        assertOn(iface, LAMBDA);
        shell("device_config put " + FLAG + " -1");
        assertOff(iface, FLAG_OFF);
        shell("device_config delete " + FLAG);
        assertOn(iface, LAMBDA);
    }

    @Test
    public void eitherSwitchLeavesItOff() {
        final String iface = connectCellular().getInterface();
        shell("settings put global " + SETTING + " 0");
        shell("device_config put " + FLAG + " -1");
        assertOff(iface, SETTING_OFF);
        shell("settings delete global " + SETTING);
        assertOff(iface, FLAG_OFF);
        shell("device_config delete " + FLAG);
        assertOn(iface, LAMBDA);
    }
}
