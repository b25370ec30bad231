// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** A kernel without DRWA, as a generic system image may meet: networks work, nothing is written. */
@KernelWithoutDrwa
public class KernelWithoutDrwaTest extends DrwaTestCase {
    private static final int LAMBDA = 150;

    private static void assertInert() {
        Drwa.await(
                "notice of the kernel", () -> Drwa.dump().contains("Knobs: none, so λ stays off"));
        final String dump = Drwa.dump();
        assertTrue(dump, dump.contains("Writes: 0, errors: 0"));
    }

    @Test
    public void nothingIsWritten() {
        mCarrier.override(true, LAMBDA);
        final TestNetwork cellular = connectCellular();
        assertInert();
        // If uplinks can be held, the policy goes on
        final String setting = Drwa.getSetting(cellular.getInterface());
        assertTrue(setting, setting.isEmpty() || setting.contains(", not written: "));
    }

    @Test
    public void networksComeAndGo() {
        mCarrier.override(true, LAMBDA);
        final TestNetwork cellular = connectCellular();
        assertInert();
        final TestNetwork vpn = connectVpn(cellular);
        mNetworks.connect(TestNetworks.transport(TRANSPORT_WIFI));
        mCarrier.override(true, LAMBDA + 1);
        vpn.disconnect();
        cellular.disconnect();
        assertInert();
    }
}
