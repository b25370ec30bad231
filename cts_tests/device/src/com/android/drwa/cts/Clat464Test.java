// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertStackedOn;

import android.net.NetworkCapabilities;
import org.junit.Before;
import org.junit.Test;

/**
 * 464xlat, which gives the IPv4 connections of an IPv6-only network an interface of their own. The
 * knob of that one is what governs them.
 */
public class Clat464Test extends DrwaTestCase {
    private static final String CLAT_PREFIX = "v4-";
    private static final int LAMBDA = 150;
    private static final int LAMBDA2 = 200;

    @Before
    public void override() {
        mCarrier.override(true, LAMBDA);
    }

    private TestNetwork connectIpv6Only(NetworkCapabilities capabilities) {
        final TestNetwork network = mNetworks.connect(capabilities, mNetworks.createIpv6OnlyLink());
        Drwa.await(
                "464xlat",
                () ->
                        network.getLinkProperties()
                                .getAllInterfaceNames()
                                .contains(CLAT_PREFIX + network.getInterface()));
        return network;
    }

    @Test
    public void itsInterfaceIsSetWithTheNetwork() {
        final String iface =
                connectIpv6Only(TestNetworks.cellular(mCarrier.getSubId())).getInterface();
        assertStackedOn(CLAT_PREFIX + iface, iface, LAMBDA);
        mCarrier.override(true, LAMBDA2);
        assertStackedOn(CLAT_PREFIX + iface, iface, LAMBDA2);
        mCarrier.override(false, LAMBDA2);
        assertOff(CLAT_PREFIX + iface, "");
    }

    @Test
    public void onWifiItIsOff() {
        final String iface = connectIpv6Only(TestNetworks.transport(TRANSPORT_WIFI)).getInterface();
        assertOff(CLAT_PREFIX + iface, "wifi");
    }

    @Test
    public void vpnAboveIsSetLikeTheNetwork() {
        final TestNetwork cellular = connectIpv6Only(TestNetworks.cellular(mCarrier.getSubId()));
        assertOn(connectVpn(cellular).getInterface(), LAMBDA);
    }
}
