// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** Modules of the kernel's that are loaded or unloaded while the policy runs. */
@RunWith(RobolectricTestRunner.class)
public class DrwaControllerModuleTest extends DrwaControllerTestCase {
    private static final int UPLINK_MS = 20;

    private void assertLambda(int lambda, String... ifaces) {
        for (String iface : ifaces) assertEquals(dump(), lambda, mNetd.getKnob(iface));
    }

    @Test
    public void moduleThatIsLoadedLaterIsFoundWithTheNextNetwork() {
        mNetd.removeDrwaFromKernel();
        mNetd.removeUplinkFromNetd();
        start();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mNetd.addDrwaToKernel();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        announceSims();
        assertLambda(LAMBDA, RMNET, CLAT);
        assertEquals(CELL, mNetd.getQueue(CLAT));
        assertDumped("Knobs: the kernel's, through netd");
        assertFalse(dump(), dump().contains("This kernel has no"));
        mController.onNetworkDestroyed(CELL);
        assertLambda(0, RMNET, CLAT);
    }

    @Test
    public void moduleThatIsLoadedLaterIsFoundBesideAnUplink() {
        mNetd.removeDrwaFromKernel();
        start();
        mNetd.addDrwaToKernel();
        connect(CELL, cellular(SUB), link(RMNET));
        assertLambda(LAMBDA, RMNET);
        assertFalse(dump(), dump().contains("This kernel has no"));
    }

    @Test
    public void moduleThatIsUnloadedIsMissedUntilItIsLoadedAgain() {
        startOnCellular();
        mNetd.unloadDrwaFromKernel();
        mController.onNetworkDestroyed(CELL);
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: no tcp_drwa_lambda");
        mNetd.addDrwaToKernel();
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertLambda(LAMBDA, RMNET);
        // Nobody has looked in between
        mNetd.unloadDrwaFromKernel();
        mNetd.addDrwaToKernel();
        mController.onNetworkDestroyed(CELL);
        connect(CELL, cellular(SUB), link(RMNET));
        assertLambda(LAMBDA, RMNET);
    }

    @Test
    public void qdiscThatIsLoadedLaterIsFoundWithTheNextNetwork() {
        mNetd.removeUplinkFromKernel();
        mTelephony.setConfig(SUB, false, LAMBDA, UPLINK_MS);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.addUplinkToKernel();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(dump(), UPLINK_MS, mNetd.getUplink(RMNET));
        assertFalse(dump(), dump().contains("No uplink"));
    }

    @Test
    public void phoneWithoutLambdaAndQdiscFindsTheQdisc() {
        mNetd.removeDrwaFromKernel();
        mNetd.removeUplinkFromKernel();
        mTelephony.setConfig(SUB, false, LAMBDA, UPLINK_MS);
        start();
        mNetd.addUplinkToKernel();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(dump(), UPLINK_MS, mNetd.getUplink(RMNET));
        assertDumped("Knobs: none, so λ stays off");
    }
}
