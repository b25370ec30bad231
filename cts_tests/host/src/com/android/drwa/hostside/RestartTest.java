// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.Map;
import org.junit.Test;

/** What is left of λ when the device, or netd and with it the system server, starts again. */
public class RestartTest extends DrwaHostTestCase {
    /** No policy's choice. */
    private static final String STRAY = "333";

    private static final String DISABLE = "persist.drwa.disable";

    private void reboot() throws Exception {
        getDevice().reboot();
        getDevice().enableAdbRoot();
    }

    /** Puts something else into every knob, behind the policy's back. */
    private void disturb() throws Exception {
        for (String iface : getInterfaces()) shell("echo " + STRAY + " >" + getPath(iface));
    }

    @Test
    public void rebootStartsAnew() throws Exception {
        final Map<String, Integer> settings = getSettings();
        disturb();
        reboot();
        assertSettingsComeBack(settings);
    }

    @Test
    public void restartOfNetdStartsAnew() throws Exception {
        final Map<String, Integer> settings = getSettings();
        disturb();
        // init restarts the system server with it, which it does not after "stop" and "start".
        shell("setprop ctl.restart netd");
        getDevice().waitForDeviceAvailable();
        assertSettingsComeBack(settings);
    }

    @Test
    public void killSwitchOutlastsReboots() throws Exception {
        final Map<String, Integer> settings = getSettings();
        final String before = shell("getprop " + DISABLE).trim();
        try {
            shell("setprop " + DISABLE + " true");
            reboot();
            assertTrue(getDump(), getDump().startsWith("DRWA: off: " + DISABLE + "\n"));
            for (String iface : getInterfaces()) assertEquals(iface, 0, getKnob(iface));
        } finally {
            shell("setprop " + DISABLE + " '" + before + "'");
            reboot();
        }
        assertSettingsComeBack(settings);
    }
}
