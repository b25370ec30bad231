// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.NET_CAPABILITY_MMS;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_RESTRICTED;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_TEST;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.cellularFor;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vcn;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.util.Log;
import java.util.ArrayList;
import java.util.List;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** What the policy does with uplinks, and that λ has no say in it. */
@RunWith(RobolectricTestRunner.class)
public class DrwaControllerUplinkTest extends DrwaControllerTestCase {
    private static final int UPLINK_MS = 20;
    private static final int UPLINK2_MS = 40;

    private void configure(int subId, boolean enabled, int uplinkMs) {
        mTelephony.setConfig(subId, enabled, LAMBDA, uplinkMs);
        mTelephony.announceConfig(subId);
        idle();
    }

    private void startWithUplink() {
        start();
        configure(SUB, false, UPLINK_MS);
        connect(CELL, cellular(SUB), link(RMNET));
        assertUplinks(UPLINK_MS, RMNET);
    }

    /** These have the target, and no other interface has any. */
    private void assertUplinks(int targetMs, String... ifaces) {
        for (String iface : mNetd.getKnobs().keySet()) {
            final int wanted = List.of(ifaces).contains(iface) ? targetMs : 0;
            assertEquals(iface + "\n" + dump(), wanted, mNetd.getUplink(iface));
        }
    }

    private List<String> writtenUplinks() {
        final List<String> written = new ArrayList<>(mNetd.written);
        written.removeIf(line -> !line.contains(DrwaUplink.TARGET));
        return written;
    }

    @Test
    public void uplinkIsLeftAloneByDefault() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mController.onNetworkDestroyed(CELL);
        assertEquals(List.of(), writtenUplinks());
        assertFalse(dump(), dump().contains("plink"));
    }

    @Test
    public void cellularHasTheCarriersTarget() {
        startWithUplink();
        assertEquals(0, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 off: carrier 1989");
        assertDumped("  uplink held to 20 ms");
        assertTrue(dump(), dump().contains("- rmnet_data2 uplink held to 20 ms\n"));
        mController.onNetworkDestroyed(CELL);
        assertUplinks(0);
        assertTrue(dump(), dump().contains("- rmnet_data2 uplink off\n"));
        assertEquals(
                List.of(
                        "rmnet_data2 drwa_uplink_target_ms=20",
                        "rmnet_data2 drwa_uplink_target_ms=0"),
                mNetd.written);
    }

    @Test
    public void lambdaAndUplinkGoTogether() {
        startWithUplink();
        configure(SUB, true, UPLINK_MS);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertUplinks(UPLINK_MS, RMNET);
        configure(SUB, true, 0);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertUplinks(0);
        configure(SUB, false, 0);
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(2, writtenUplinks().size());
    }

    @Test
    public void changedTargetReachesLiveNetworks() {
        startWithUplink();
        configure(SUB, false, UPLINK2_MS);
        assertUplinks(UPLINK2_MS, RMNET);
        assertDumped("  uplink held to 40 ms");
    }

    @Test
    public void stackedInterfaceLeavesByTheOneBelow() {
        startWithUplink();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertUplinks(UPLINK_MS, RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(1, writtenUplinks().size());
    }

    @Test
    public void networksOverOthersHaveNone() {
        startWithUplink();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        connect(VCN, vcn(SUB, List.of(CELL)), link(RMNET2));
        assertUplinks(UPLINK_MS, RMNET);
    }

    @Test
    public void otherNetworksHaveNone() {
        startWithUplink();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        connect(VCN, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET2));
        assertUplinks(UPLINK_MS, RMNET);
        mController.onNetworkDestroyed(CELL);
        assertUplinks(0);
    }

    @Test
    public void testNetworkThatSaysToBeCellularHasIt() {
        start();
        configure(SUB, false, UPLINK_MS);
        final NetworkCapabilities nc =
                new NetworkCapabilities.Builder(cellular(SUB, TRANSPORT_TEST))
                        .removeCapability(NET_CAPABILITY_NOT_RESTRICTED)
                        .build();
        connect(CELL, nc, link(TUN));
        assertUplinks(UPLINK_MS, TUN);
    }

    @Test
    public void networkWithoutInterfaceIsHarmless() {
        start();
        configure(SUB, false, UPLINK_MS);
        connect(CELL, cellular(SUB), new LinkProperties());
        assertUplinks(0);
    }

    @Test
    public void networksOfOneDeviceShareItsUplink() {
        startWithUplink();
        configure(SUB2, false, UPLINK2_MS);
        connect(OTHER, cellular(SUB2), link(RMNET));
        connect(VCN, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        assertUplinks(UPLINK_MS, RMNET);
        mController.onNetworkDestroyed(CELL);
        assertUplinks(UPLINK2_MS, RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertUplinks(UPLINK_MS, RMNET);
        mController.onNetworkDestroyed(CELL);
        mController.onNetworkDestroyed(OTHER);
        assertUplinks(0);
    }

    @Test
    public void replacedNetworkHandsItsUplinkOverUntouched() {
        startWithUplink();
        connect(OTHER, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertUplinks(UPLINK_MS, RMNET);
        assertEquals(1, writtenUplinks().size());
    }

    @Test
    public void networkThatMovesTakesItsTargetAlong() {
        startWithUplink();
        connect(CELL, cellular(SUB), link(RMNET2));
        assertUplinks(UPLINK_MS, RMNET2);
    }

    @Test
    public void killSwitchTakesItAway() {
        startWithUplink();
        putSetting("0");
        assertUplinks(0);
        assertFalse(dump(), dump().contains("uplink held to 20 ms\nEvents"));
        putSetting(null);
        assertUplinks(UPLINK_MS, RMNET);
    }

    @Test
    public void interfaceThatComesAgainHasItAgain() {
        startWithUplink();
        mNetd.removeInterface(RMNET);
        idle();
        assertDumped("  uplink held to 20 ms, not set: no such interface");
        mNetd.addInterface(RMNET);
        idle();
        assertUplinks(UPLINK_MS, RMNET);
        assertEquals(0, countLogged("DrwaKnobs", Log.ERROR));
    }

    @Test
    public void renamedInterfaceLosesIt() {
        startWithUplink();
        mNetd.renameInterface(RMNET, "rmnet9");
        idle();
        assertUplinks(0);
        mNetd.renameInterface(WLAN, RMNET);
        idle();
        assertUplinks(UPLINK_MS, RMNET);
    }

    @Test
    public void leftoversAreTakenAway() {
        mNetd.setUplink(WLAN, UPLINK_MS);
        mNetd.setUplink(RMNET, UPLINK2_MS);
        start();
        assertUplinks(0);
        assertEquals(2, writtenUplinks().size());
    }

    @Test
    public void vendorsQdiscStays() {
        mNetd.addVendorQdisc(RMNET);
        start();
        configure(SUB, true, UPLINK_MS);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertUplinks(0);
        assertTrue(mNetd.hasVendorQdisc(RMNET));
        assertDumped("  uplink held to 20 ms, not set: another qdisc was put there, which stays");
        assertEquals(1, countLogged("DrwaKnobs", Log.INFO));
        assertTrue(dump(), dump().contains("errors: 0"));
        // Nothing is to be expected of time
        final int calls = mNetd.calls;
        connect(CELL, cellular(SUB), link(RMNET));
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(calls, mNetd.calls);
        mController.onNetworkDestroyed(CELL);
        assertTrue(mNetd.hasVendorQdisc(RMNET));
    }

    @Test
    public void vendorsQdiscThatIsGoneIsFoundOut() {
        mNetd.addVendorQdisc(RMNET);
        start();
        configure(SUB, false, UPLINK_MS);
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.removeVendorQdisc(RMNET);
        // When the network comes again
        mController.onNetworkDestroyed(CELL);
        connect(CELL, cellular(SUB), link(RMNET));
        assertUplinks(UPLINK_MS, RMNET);
        // When the carrier wants another target
        mNetd.addVendorQdisc(RMNET);
        configure(SUB, false, UPLINK2_MS);
        assertUplinks(0);
        mNetd.removeVendorQdisc(RMNET);
        configure(SUB, false, UPLINK_MS);
        assertUplinks(UPLINK_MS, RMNET);
        // When netd tells of the interface
        mNetd.addVendorQdisc(RMNET);
        configure(SUB, false, UPLINK2_MS);
        mNetd.removeVendorQdisc(RMNET);
        mNetd.announce(listener -> listener.onInterfaceLinkStateChanged(RMNET, true));
        idle();
        assertUplinks(UPLINK2_MS, RMNET);
    }

    /** Until netd tells of interfaces, one may come with a target that nobody hears of. */
    @Test
    public void uplinkThatComesBeforeTheListenerIsFound() {
        mNetd.faultOfListening = FakeNetd.Fault.SECURITY;
        start();
        mNetd.setUplink(WLAN, UPLINK_MS);
        mNetd.faultOfListening = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(1, mNetd.countListeners());
        assertUplinks(0);
    }

    @Test
    public void netdWithoutUplinkIsLeftAlone() {
        mNetd.removeUplinkFromNetd();
        checkIsLeftAlone();
    }

    @Test
    public void kernelWithoutTheQdiscIsLeftAlone() {
        mNetd.removeUplinkFromKernel();
        checkIsLeftAlone();
    }

    private void checkIsLeftAlone() {
        start();
        configure(SUB, true, UPLINK_MS);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(List.of(), writtenUplinks());
        assertEquals(1, countLogged("DrwaKnobs", Log.INFO));
        assertEquals(0, countLogged("DrwaKnobs", Log.ERROR));
        assertDumped("  uplink held to 20 ms, not set: no drwa_uplink_target_ms");
        assertDumped("No uplink: this netd has no drwa_uplink_target_ms, or the kernel no drwa_up");
        final int calls = mNetd.calls;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls, mNetd.calls);
    }

    @Test
    public void netdWithoutUplinkIsFoundOutAtTheFirstWrite() {
        mNetd.removeUplinkFromNetd();
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.removeInterface(iface);
        start();
        mNetd.addInterface(RMNET);
        configure(SUB, true, UPLINK_MS);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertDumped("No uplink: this netd has no drwa_uplink_target_ms, or the kernel no drwa_up");
    }

    @Test
    public void kernelWithoutLambdaHasUplinks() {
        mNetd.removeDrwaFromKernel();
        startWithUplink();
        configure(SUB, true, UPLINK_MS);
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: no tcp_drwa_lambda");
        assertDumped("  uplink held to 20 ms");
        assertDumped("Knobs: none, so λ stays off");
        assertFalse(dump(), dump().contains("static receive maximum"));
        final int calls = mNetd.calls;
        connect(CELL, cellular(SUB), link(RMNET));
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls, mNetd.calls);
        mNetd.removeInterface(RMNET);
        mNetd.addInterface(RMNET);
        idle();
        assertUplinks(UPLINK_MS, RMNET);
        mController.onNetworkDestroyed(CELL);
        assertUplinks(0);
    }

    @Test
    public void writesThatFailAreTriedAgain() {
        for (FakeNetd.Fault fault :
                List.of(
                        FakeNetd.Fault.DEAD,
                        FakeNetd.Fault.DIES_AFTER_WRITE,
                        FakeNetd.Fault.IO_ERROR,
                        FakeNetd.Fault.SECURITY)) {
            setUp();
            start();
            configure(SUB, true, UPLINK_MS);
            mNetd.faultsOfUplinks.put(RMNET, fault);
            connect(CELL, cellular(SUB), link(RMNET));
            assertEquals(LAMBDA, mNetd.getKnob(RMNET));
            assertDumped("rmnet_data2 λ=1.50: carrier 1989");
            assertDumped(
                    "  uplink held to 20 ms, not set: netd failed to set drwa_uplink_target_ms");
            mNetd.faultsOfUplinks.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertUplinks(UPLINK_MS, RMNET);

            mNetd.faultsOfUplinks.put(RMNET, fault);
            mController.onNetworkDestroyed(CELL);
            mNetd.faultsOfUplinks.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertUplinks(0);
        }
    }

    @Test
    public void interfaceThatFailsHoldsUpNoOther() {
        for (String failing : List.of(RMNET, RMNET2)) {
            setUp();
            start();
            configure(SUB, false, UPLINK_MS);
            mNetd.faultsOfUplinks.put(failing, FakeNetd.Fault.IO_ERROR);
            connect(CELL, cellular(SUB), link(RMNET));
            connect(OTHER, cellular(SUB), link(RMNET2));
            assertUplinks(UPLINK_MS, failing.equals(RMNET) ? RMNET2 : RMNET);
            mNetd.faultsOfUplinks.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertUplinks(UPLINK_MS, RMNET, RMNET2);
            mController.onNetworkDestroyed(CELL);
            mController.onNetworkDestroyed(OTHER);
        }
    }

    @Test
    public void uplinkIsOffUntilTheCarrierIsKnown() {
        mController.start();
        idle();
        mTelephony.setConfig(SUB, false, LAMBDA, UPLINK_MS);
        mDeps.mReader.slow = true;
        connect(CELL, cellular(SUB), link(RMNET));
        assertUplinks(0);
        mDeps.mReader.answer();
        idle();
        assertUplinks(UPLINK_MS, RMNET);
    }
}
