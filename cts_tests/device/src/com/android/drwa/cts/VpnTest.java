// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;

import java.util.List;
import org.junit.Before;
import org.junit.Test;

/** VPNs, which are on only where all that they run over is. */
public class VpnTest extends DrwaTestCase {
    private static final int LAMBDA = 150;
    private static final int LAMBDA2 = 300;

    private TestNetwork mCellular;
    private TestNetwork mWifi;

    @Before
    public void connect() {
        mCarrier.override(true, LAMBDA);
        mCellular = connectCellular();
        mWifi = mNetworks.connect(TestNetworks.transport(TRANSPORT_WIFI));
    }

    @Test
    public void overCellularItIsOn() {
        final String tun = connectVpn(mCellular).getInterface();
        assertOn(tun, LAMBDA);
        mCarrier.override(true, LAMBDA2);
        assertOn(tun, LAMBDA2);
    }

    @Test
    public void overWifiItIsOff() {
        assertOff(connectVpn(mWifi).getInterface(), "over network");
    }

    @Test
    public void overBothItIsOff() {
        assertOff(connectVpn(mCellular, mWifi).getInterface(), "over network");
    }

    @Test
    public void overNothingItIsOff() {
        assertOff(connectVpn().getInterface(), "");
    }

    @Test
    public void itFollowsWhatItRunsOver() {
        final TestNetwork vpn = connectVpn(mCellular);
        assertOn(vpn.getInterface(), LAMBDA);
        vpn.setUnderlyingNetworks(List.of(mWifi));
        assertOff(vpn.getInterface(), "over network");
        vpn.setUnderlyingNetworks(List.of(mCellular));
        assertOn(vpn.getInterface(), LAMBDA);
    }

    @Test
    public void itIsOffOnceTheNetworkBelowIsGone() {
        final String tun = connectVpn(mCellular).getInterface();
        assertOn(tun, LAMBDA);
        mCellular.disconnect();
        assertOff(tun, "");
    }

    @Test
    public void disconnectionResets() {
        final TestNetwork vpn = connectVpn(mCellular);
        assertOn(vpn.getInterface(), LAMBDA);
        vpn.disconnect();
        assertReset(vpn.getInterface());
        assertOn(mCellular.getInterface(), LAMBDA);
    }
}
