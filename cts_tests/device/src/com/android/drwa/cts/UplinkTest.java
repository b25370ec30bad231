// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_ETHERNET;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;
import static com.android.drwa.cts.Drwa.assertStackedOn;
import static com.android.drwa.cts.Drwa.assertUplink;
import static com.android.drwa.cts.Drwa.shell;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;

/** Which interfaces have their uplink held: whose packets leave by them, and λ has no say in it. */
public class UplinkTest extends DrwaTestCase {
    private static final int LAMBDA = 150;
    private static final int TARGET_MS = 20;
    private static final int TARGET2_MS = 200;
    private static final String CLAT_PREFIX = "v4-";

    @Rule public final KeptValue setting = new KeptValue("settings", "global drwa_enabled");

    @Before
    public void findUplink() {
        assumeTrue("this netd or kernel has no uplink to hold", Drwa.areUplinksPossible());
    }

    private String connectWithUplink() {
        mCarrier.override(false, LAMBDA, TARGET_MS);
        final String iface = connectCellular().getInterface();
        assertUplink(iface, TARGET_MS);
        return iface;
    }

    @Test
    public void isLeftAloneByDefault() {
        mCarrier.override(true, LAMBDA);
        final String iface = connectCellular().getInterface();
        assertOn(iface, LAMBDA);
        assertEquals(Drwa.OFF, Drwa.getUplink(iface));
    }

    @Test
    public void lambdaHasNoSay() {
        final String iface = connectWithUplink();
        assertOff(iface, "carrier");
        mCarrier.override(true, LAMBDA, TARGET_MS);
        assertOn(iface, LAMBDA);
        assertUplink(iface, TARGET_MS);
        mCarrier.override(true, LAMBDA, Drwa.OFF);
        assertUplink(iface, Drwa.OFF);
        assertOn(iface, LAMBDA);
    }

    @Test
    public void changeReachesALiveNetwork() {
        final String iface = connectWithUplink();
        for (int targetMs : new int[] {5, TARGET2_MS, TARGET_MS}) {
            mCarrier.override(false, LAMBDA, targetMs);
            assertUplink(iface, targetMs);
            assertTrue(Drwa.dump().contains("  uplink held to " + targetMs + " ms\n"));
        }
    }

    @Test
    public void wrongTargetsAreOff() {
        final String iface = connectWithUplink();
        for (int wrong : new int[] {-1, 1, 4, 201}) {
            mCarrier.override(false, LAMBDA, wrong);
            assertUplink(iface, Drwa.OFF);
            mCarrier.override(false, LAMBDA, TARGET_MS);
            assertUplink(iface, TARGET_MS);
        }
    }

    @Test
    public void endsWithTheNetwork() {
        mCarrier.override(true, LAMBDA, TARGET_MS);
        final TestNetwork network = connectCellular();
        assertUplink(network.getInterface(), TARGET_MS);
        network.disconnect();
        assertReset(network.getInterface());
        assertUplink(network.getInterface(), Drwa.OFF);
    }

    @Test
    public void otherNetworksHaveNone() {
        final String iface = connectWithUplink();
        for (int transport : new int[] {TRANSPORT_WIFI, TRANSPORT_ETHERNET}) {
            final String other =
                    mNetworks.connect(TestNetworks.transport(transport)).getInterface();
            assertOff(other, "");
            assertEquals(Drwa.OFF, Drwa.getUplink(other));
        }
        assertUplink(iface, TARGET_MS);
    }

    @Test
    public void packetsOfAVpnLeaveByTheNetworkBelow() {
        mCarrier.override(true, LAMBDA, TARGET_MS);
        final TestNetwork cellular = connectCellular();
        final String vpn = connectVpn(cellular).getInterface();
        assertOn(vpn, LAMBDA);
        assertUplink(cellular.getInterface(), TARGET_MS);
        assertEquals(Drwa.OFF, Drwa.getUplink(vpn));
    }

    @Test
    public void packetsOf464xlatLeaveByTheNetworksInterface() {
        mCarrier.override(true, LAMBDA, TARGET_MS);
        final TestNetwork network =
                mNetworks.connect(
                        TestNetworks.cellular(mCarrier.getSubId()), mNetworks.createIpv6OnlyLink());
        final String clat = CLAT_PREFIX + network.getInterface();
        Drwa.await(
                "464xlat", () -> network.getLinkProperties().getAllInterfaceNames().contains(clat));
        assertStackedOn(clat, network.getInterface(), LAMBDA);
        assertUplink(network.getInterface(), TARGET_MS);
        assertEquals(Drwa.OFF, Drwa.getUplink(clat));
    }

    @Test
    public void killSwitchTakesItAway() {
        final String iface = connectWithUplink();
        shell("settings put global drwa_enabled 0");
        assertUplink(iface, Drwa.OFF);
        shell("settings delete global drwa_enabled");
        assertUplink(iface, TARGET_MS);
    }
}
