// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.NET_CAPABILITY_DUN;
import static android.net.NetworkCapabilities.NET_CAPABILITY_IMS;
import static android.net.NetworkCapabilities.NET_CAPABILITY_MMS;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_RESTRICTED;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING;
import static android.net.NetworkCapabilities.TRANSPORT_BLUETOOTH;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_ETHERNET;
import static android.net.NetworkCapabilities.TRANSPORT_TEST;
import static android.net.NetworkCapabilities.TRANSPORT_USB;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.cellularFor;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vcn;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Build;
import android.os.PersistableBundle;
import android.os.Process;
import android.util.Log;
import com.sun.management.ThreadMXBean;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowSystemProperties;
import org.robolectric.util.ReflectionHelpers;

@RunWith(RobolectricTestRunner.class)
public class DrwaControllerTest extends DrwaControllerTestCase {
    @Test
    public void cellularGetsTheCarriersTarget() {
        startOnCellular();
        assertEquals(1, mNetd.writes);
        assertDumped("rmnet_data2 λ=1.50: carrier 1989");
    }

    @Test
    public void cellularIsOffWhereTheCarrierWantsNone() {
        mTelephony.setConfig(SUB, false, LAMBDA);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 off: carrier 1989");
    }

    @Test
    public void otherTransportsAreOff() {
        start();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertDumped("wlan0 off: wifi");
        connect(OTHER, internet(TRANSPORT_ETHERNET), link(WLAN));
        assertDumped("wlan0 off: ethernet");
        connect(OTHER, internet(TRANSPORT_BLUETOOTH), link(WLAN));
        assertDumped("wlan0 off: bluetooth");
        connect(OTHER, internet(TRANSPORT_USB), link(WLAN));
        assertDumped("wlan0 off: transport 8");
        connect(OTHER, internet(TRANSPORT_TEST), link(WLAN));
        assertDumped("wlan0 off: unknown transport");
        connect(OTHER, internet(), link(WLAN));
        assertDumped("wlan0 off: unknown transport");
        connect(OTHER, internet(TRANSPORT_CELLULAR, TRANSPORT_WIFI), link(WLAN));
        assertDumped("wlan0 off: wifi");
        assertEquals(0, mNetd.writes);
    }

    @Test
    public void testNetworkThatSaysToBeCellularIsCellular() {
        start();
        final NetworkCapabilities nc =
                new NetworkCapabilities.Builder(cellular(SUB, TRANSPORT_TEST))
                        .removeCapability(NET_CAPABILITY_NOT_RESTRICTED)
                        .build();
        // As ConnectivityService does, which leaves no internet access
        nc.restrictCapabilitiesForTestNetwork(Process.SHELL_UID);
        connect(CELL, nc, link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
    }

    @Test
    public void cellularWithoutInternetIsOff() {
        mController.start();
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        connect(OTHER, cellularFor(NET_CAPABILITY_IMS, SUB), link(RMNET2));
        assertEquals(0, mNetd.writes);
        assertEquals(0, mTelephony.reads);
        assertDumped("rmnet_data2 off: no internet access");
    }

    @Test
    public void networkOfAHotspotsClientsIsOn() {
        start();
        connect(CELL, cellularFor(NET_CAPABILITY_DUN, SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void roamingSwitchesWhereTheCarrierWantsIt() {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(DrwaCarrierConfig.KEY_ENABLED, true);
        config.putInt(DrwaCarrierConfig.KEY_LAMBDA, LAMBDA);
        config.putBoolean(DrwaCarrierConfig.KEY_ROAMING, false);
        mTelephony.setConfig(SUB, config);
        mController.start();
        final NetworkCapabilities roaming = cellular(SUB);
        final NetworkCapabilities home =
                new NetworkCapabilities.Builder(roaming)
                        .addCapability(NET_CAPABILITY_NOT_ROAMING)
                        .build();
        connect(CELL, roaming, link(RMNET));
        assertDumped("rmnet_data2 off: roaming");
        connect(CELL, home, link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        connect(CELL, roaming, link(RMNET));
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void cellularWithoutSubscriptionIsOff() {
        start();
        connect(CELL, internet(TRANSPORT_CELLULAR), link(RMNET));
        assertEquals(0, mNetd.writes);
        assertDumped("rmnet_data2 off: no subscription");
    }

    @Test
    public void capabilitiesThatComeAndGoSwitch() {
        start();
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void everyInterfaceOfANetworkIsSet() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.getKnob(CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void networkWithoutInterfaceIsHarmless() {
        start();
        connect(CELL, cellular(SUB), new LinkProperties());
        assertEquals(0, mNetd.writes);
    }

    @Test
    public void networkThatMovesTakesItsTargetAlong() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET2));
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET2));
    }

    @Test
    public void destroyedNetworkLeavesItsInterfacesOff() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mController.onNetworkDestroyed(CELL);
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.getKnob(CLAT));
        assertFalse(dump(), dump().startsWith("DRWA: enabled\nrmnet"));
    }

    @Test
    public void interfaceThatGoesBeforeItsNetworkIsHarmless() {
        startOnCellular();
        mNetd.removeInterface(RMNET);
        mController.onNetworkDestroyed(CELL);
        assertEquals(0, countLogged("DrwaKnobs", Log.ERROR));

        mNetd.addInterface(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void interfaceThatIsLateIsSetAtTheNextEvent() {
        start();
        mNetd.removeInterface(CLAT);
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mNetd.addInterface(CLAT);
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
    }

    @Test
    public void replacedNetworkHandsItsInterfaceOverUntouched() {
        startOnCellular();
        connect(OTHER, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(1, mNetd.writes);
        mController.onNetworkDestroyed(OTHER);
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void sharedInterfaceTakesTheLeastTarget() {
        startOnCellular();
        connect(OTHER, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        connect(VCN, cellular(SUB2), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void handoverToWifiChangesNothingOnEither() {
        startOnCellular();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.getKnob(WLAN));
        assertEquals(1, mNetd.writes);
    }

    @Test
    public void vpnFollowsWhatItRunsOver() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        assertDumped("tun0 λ=1.50: over network 100 (carrier 1989)");

        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        connect(VPN, vpn(List.of(OTHER), TRANSPORT_WIFI), link(TUN));
        assertEquals(0, mNetd.getKnob(TUN));
        assertDumped("tun0 off: over network 101 (wifi)");
    }

    @Test
    public void vpnIsOnOnlyIfAllNetworksBelowAre() {
        startOnCellular();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        connect(VPN, vpn(List.of(CELL, OTHER), TRANSPORT_CELLULAR, TRANSPORT_WIFI), link(TUN));
        assertEquals(0, mNetd.getKnob(TUN));

        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        connect(VPN, vpn(List.of(OTHER, CELL), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        connect(VPN, vpn(List.of(OTHER), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(LAMBDA2, mNetd.getKnob(TUN));
    }

    @Test
    public void vpnOverNothingKnownIsOff() {
        startOnCellular();
        connect(VPN, vpn(null, TRANSPORT_CELLULAR), link(TUN));
        assertDumped("tun0 off: vpn over unknown networks");
        connect(VPN, vpn(List.of(), TRANSPORT_CELLULAR), link(TUN));
        assertDumped("tun0 off: over no network");
        connect(VPN, vpn(List.of(OTHER), TRANSPORT_CELLULAR), link(TUN));
        assertDumped("tun0 off: over network 101 (unknown)");
        assertEquals(1, mNetd.writes);
    }

    @Test
    public void vpnGoesOffWithTheNetworkBelow() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        mController.onNetworkDestroyed(CELL);
        assertEquals(0, mNetd.getKnob(TUN));
    }

    @Test
    public void vpnDeclaredToRunOverItselfIsOff() {
        startOnCellular();
        connect(VPN, vpn(List.of(VPN), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(0, mNetd.getKnob(TUN));
    }

    @Test
    public void vcnFollowsWhatItRunsOver() {
        startOnCellular();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        connect(VCN, vcn(SUB, List.of(OTHER)), link(TUN));
        assertEquals(0, mNetd.getKnob(TUN));
        connect(VCN, vcn(SUB, List.of(CELL)), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
    }

    @Test
    public void vpnOverVcnOverCellularIsOn() {
        startOnCellular();
        mNetd.addInterface("ipsec0");
        connect(VCN, vcn(SUB, List.of(CELL)), link("ipsec0"));
        connect(VPN, vpn(List.of(VCN), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
    }

    @Test
    public void twoSimsHaveTheirOwnTargets() {
        startOnCellular();
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET2));
    }

    protected void assertQueues(int queue, String... ifaces) {
        for (String iface : ifaces) assertEquals(iface, queue, mNetd.getQueue(iface));
    }

    @Test
    public void interfacesOfANetworkShareItsQueue() {
        startOnCellular();
        assertQueues(CELL, RMNET);
        assertDumped("  queue 100");
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertQueues(CELL, RMNET, CLAT);
        assertDumped("  queue 100, shared with v4-rmnet_data2");
        assertDumped("  queue 100, shared with rmnet_data2");
        connect(CELL, cellular(SUB), link(RMNET));
        assertQueues(CELL, RMNET);
        assertQueues(0, CLAT);
    }

    @Test
    public void queueIsThereAsLongAsLambda() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(
                List.of(
                        "rmnet_data2 tcp_drwa_queue=100",
                        "rmnet_data2 tcp_drwa_lambda=150",
                        "rmnet_data2 tcp_drwa_lambda=0",
                        "rmnet_data2 tcp_drwa_queue=0"),
                mNetd.written);
        assertTrue(dump(), dump().contains("- rmnet_data2 queue 100\n"));
        assertTrue(dump(), dump().contains("- rmnet_data2 queue of its own\n"));
        assertDumped("Writes: 4, errors: 0");
    }

    @Test
    public void networkThatIsOffHasNoQueue() {
        start();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        assertFalse(dump(), dump().contains("queue"));
        connect(CELL, cellular(SUB), link(RMNET));
        mTelephony.setConfig(SUB, false, LAMBDA);
        mTelephony.announceConfig(SUB);
        idle();
        assertQueues(0, WLAN, RMNET);
        putSetting("0");
        mTelephony.setConfig(SUB, true, LAMBDA);
        mTelephony.announceConfig(SUB);
        idle();
        assertQueues(0, RMNET);
        putSetting("1");
        assertQueues(CELL, RMNET);
    }

    @Test
    public void twoSimsShareNoQueue() {
        startOnCellular();
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertQueues(CELL, RMNET);
        assertQueues(OTHER, RMNET2);
        assertFalse(dump(), dump().contains("shared with"));
    }

    @Test
    public void twoNetworksOfASimShareNoQueue() {
        startOnCellular();
        connect(OTHER, cellular(SUB), link(RMNET2));
        assertQueues(CELL, RMNET);
        assertQueues(OTHER, RMNET2);
    }

    @Test
    public void vpnSharesTheQueueOfTheOnlyNetworkBelow() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertQueues(CELL, RMNET, CLAT, TUN);
        assertDumped("  queue 100, shared with " + getRmnets());
        connect(OTHER, cellular(SUB2), link(RMNET2));
        connect(VPN, vpn(List.of(OTHER), TRANSPORT_CELLULAR), link(TUN));
        assertQueues(CELL, RMNET, CLAT);
        assertQueues(OTHER, RMNET2, TUN);
        connect(VPN, vpn(List.of(CELL, OTHER), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        assertQueues(0, TUN);
        assertDumped("  queue of its own");
        mController.onNetworkDestroyed(VPN);
        assertQueues(0, TUN);
    }

    @Test
    public void vpnOverVcnSharesTheQueueAtTheBottom() {
        startOnCellular();
        mNetd.addInterface("ipsec0");
        connect(VCN, vcn(SUB, List.of(CELL)), link("ipsec0"));
        connect(VPN, vpn(List.of(VCN), TRANSPORT_CELLULAR), link(TUN));
        assertQueues(CELL, RMNET, "ipsec0", TUN);
    }

    @Test
    public void networksThatReplaceEachOtherShareTheQueueOfTheDevice() {
        startOnCellular();
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        assertQueues(0, RMNET);
        connect(OTHER, cellular(SUB), link(RMNET, CLAT));
        connect(VPN, vpn(List.of(OTHER), TRANSPORT_CELLULAR), link(TUN));
        assertQueues(CELL, RMNET, CLAT, TUN);
        mController.onNetworkDestroyed(CELL);
        assertQueues(OTHER, RMNET, CLAT, TUN);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void networksWithoutInterfacesShareNothing() {
        start();
        connect(CELL, cellular(SUB), new LinkProperties());
        connect(OTHER, cellular(SUB2), new LinkProperties());
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        connect(VCN, vcn(SUB, List.of(OTHER)), link(WLAN));
        assertQueues(CELL, TUN);
        assertQueues(OTHER, WLAN);
    }

    @Test
    public void interfaceThatTwoQueuesFeedHasOneOfItsOwn() {
        startOnCellular();
        connect(OTHER, cellular(SUB2), link(RMNET2));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        connect(VCN, vcn(SUB2, List.of(OTHER)), link(TUN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        assertQueues(0, TUN);
        mController.onNetworkDestroyed(VPN);
        assertQueues(OTHER, TUN);
    }

    @Test
    public void queueThatFailsHoldsUpNeitherLambdaNorOthers() {
        start();
        for (FakeNetd.Fault fault :
                List.of(FakeNetd.Fault.IO_ERROR, FakeNetd.Fault.DIES_AFTER_WRITE)) {
            mNetd.faultsOfQueues.put(RMNET, fault);
            connect(CELL, cellular(SUB), link(RMNET, CLAT));
            for (String iface : List.of(RMNET, CLAT)) {
                assertEquals(LAMBDA, mNetd.getKnob(iface));
            }
            assertQueues(CELL, CLAT);
            assertDumped(
                    "rmnet_data2 λ=1.50: carrier 1989, not written: netd failed to set"
                            + " tcp_drwa_queue");
            mNetd.faultsOfQueues.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertQueues(CELL, RMNET, CLAT);
            assertDumped("rmnet_data2 λ=1.50: carrier 1989");

            mNetd.faultsOfQueues.put(RMNET, fault);
            mController.onNetworkDestroyed(CELL);
            for (String iface : List.of(RMNET, CLAT)) assertEquals(0, mNetd.getKnob(iface));
            mNetd.faultsOfQueues.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertQueues(0, RMNET, CLAT);
        }
    }

    @Test
    public void lambdaThatCannotBeSwitchedOffKeepsItsQueue() {
        startOnCellular();
        mNetd.faults.put(RMNET, FakeNetd.Fault.IO_ERROR);
        mNetd.faultsOfQueues.put(RMNET, FakeNetd.Fault.NONE);
        mController.onNetworkDestroyed(CELL);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertQueues(CELL, RMNET);
        mNetd.faults.clear();
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(0, mNetd.getKnob(RMNET));
        assertQueues(0, RMNET);
    }

    @Test
    public void kernelThatKnowsLambdaAloneIsToldNoQueues() {
        mNetd.removeQueuesFromKernel();
        start();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(OTHER, cellular(SUB2), link(RMNET2));
        for (String iface : List.of(RMNET, CLAT)) assertEquals(LAMBDA, mNetd.getKnob(iface));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET2));
        assertEquals(1, countLogged("DrwaKnobs", Log.INFO));
        assertEquals(0, countLogged("DrwaKnobs", Log.ERROR));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989");
        assertDumped("  queue of its own");
        assertDumped(
                "This kernel has no tcp_drwa_queue, so every interface has a queue of its own");
        final int calls = mNetd.calls;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls, mNetd.calls);

        mNetd.removeInterface(RMNET);
        mNetd.addInterface(RMNET);
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void kernelThatKnowsLambdaAloneIsFoundOutAtTheFirstWrite() {
        mNetd.removeQueuesFromKernel();
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.removeInterface(iface);
        start();
        mNetd.addInterface(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989");
        final int calls = mNetd.calls;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls, mNetd.calls);
    }

    @Test
    public void changedConfigurationReachesLiveNetworks() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        mTelephony.setConfig(SUB, true, 125);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(125, mNetd.getKnob(RMNET));
        assertEquals(125, mNetd.getKnob(TUN));
        mTelephony.setConfig(SUB, false, 125);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.getKnob(TUN));
    }

    @Test
    public void configurationIsReadWhenTelephonyTellsOfIt() {
        start();
        assertEquals(2, mTelephony.reads);
        connect(CELL, cellular(SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(OTHER, cellular(SUB), link(RMNET2));
        assertEquals(2, mTelephony.reads);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(3, mTelephony.reads);
    }

    @Test
    public void knownSubscriptionIsSetBeforeItsFirstPacket() {
        start();
        mController.onNetworkChanged(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void subscriptionThatTelephonyDidNotTellOfIsReadOnce() {
        mController.start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier of subscription 1");
        connect(OTHER, cellular(SUB), link(RMNET2));
        mController.onNetworkDestroyed(CELL);
        connect(OTHER, cellular(SUB), link(RMNET2, CLAT));
        assertEquals(1, mTelephony.reads);
    }

    @Test
    public void subscriptionThatIsNeitherUsedNorToldOfIsReadAgain() {
        mController.start();
        connect(CELL, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        mTelephony.setConfig(SUB, true, 125);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(125, mNetd.getKnob(RMNET));

        connect(CELL, cellular(SUB2), link(RMNET));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET));
        mTelephony.setConfig(SUB, true, 200);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(200, mNetd.getKnob(RMNET));
    }

    @Test
    public void slowPhoneProcessHoldsUpNothing() {
        mDeps.mReader.slow = true;
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertDumped("rmnet_data2 off: carrier configuration not read yet");
        assertDumped("wlan0 off: wifi");
        mDeps.mReader.answer();
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void answerThatIsLateChangesNothingThatIsGone() {
        mController.start();
        idle();
        mDeps.mReader.slow = true;
        connect(CELL, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        mDeps.mReader.answer();
        idle();
        assertEquals(0, mNetd.writes);
    }

    @Test
    public void leftoversAreSwitchedOff() {
        mNetd.setKnob(RMNET, 200);
        mNetd.setKnob(WLAN, 125);
        mNetd.setQueue(RMNET, 107);
        mNetd.setQueue(TUN, 107);
        start();
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.getKnob(WLAN));
        assertQueues(0, RMNET, TUN);
        assertEquals(4, mNetd.written.size());
    }

    @Test
    public void leftoverIsOffUntilTheCarrierIsKnown() {
        mNetd.setKnob(RMNET, 200);
        mDeps.mReader.slow = true;
        connect(CELL, cellular(SUB), link(RMNET));
        start();
        assertEquals(0, mNetd.getKnob(RMNET));
        mDeps.mReader.answer();
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void leftoversAreSwitchedOffOnceNetdAnswers() {
        mNetd.setKnob(RMNET, 200);
        mNetd.fault = FakeNetd.Fault.DEAD;
        start();
        mNetd.fault = FakeNetd.Fault.NONE;
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void leftoversAreSwitchedOffOnceInterfacesCanBeListed() {
        mNetd.setKnob(RMNET2, 200);
        mNetd.setUplink(RMNET2, 20);
        mDeps.mCannotList = true;
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        mDeps.mCannotList = false;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(0, mNetd.getKnob(RMNET2));
        assertEquals(0, mNetd.getUplink(RMNET2));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void nothingIsDoneOnAnOlderPlatform() throws Exception {
        final int sdk = Build.VERSION.SDK_INT;
        ReflectionHelpers.setStaticField(Build.VERSION.class, "SDK_INT", 33);
        try {
            start();
            connect(CELL, cellular(SUB), link(RMNET));
            mNetd.addInterface("rmnet_data4");
            mController.onNetworkDestroyed(CELL);
            assertShellSays("DRWA has not started", "set", WLAN, "150");
            assertEquals(0, mNetd.calls);
            assertEquals(0, mTelephony.reads);
            assertEquals(1, countLogged("DrwaController", Log.INFO));
            assertDumped("DRWA: off: it needs Android 14");
        } finally {
            ReflectionHelpers.setStaticField(Build.VERSION.class, "SDK_INT", sdk);
        }
    }

    @Test
    public void configurationThatChangesAtTheStartIsRead() {
        mController.onNetworkChanged(CELL, cellular(SUB), link(RMNET));
        mTelephony.beforeListening = () -> mTelephony.setConfig(SUB, true, LAMBDA2);
        mController.start();
        idle();
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET));
        assertEquals(1, mTelephony.reads);
    }

    @Test
    public void nothingIsDoneBeforeTheStart() {
        announceSims();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.calls);
        assertEquals(0, mTelephony.reads);
        start();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    private static void putFlag(String value) {
        TestSwitches.putFlag(RuntimeEnvironment.getApplication(), value);
        idle();
    }

    private void connectCellularWithVpn() {
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
    }

    private void assertAll(int lambda) {
        for (String iface : List.of(RMNET, CLAT, TUN)) {
            assertEquals(iface, lambda, mNetd.getKnob(iface));
        }
    }

    private void assertSwitchedOff(String reason) {
        assertAll(0);
        assertDumped("DRWA: off: " + reason);
        assertDumped("rmnet_data2 off: " + reason);
        assertDumped("tun0 off: " + reason);
    }

    @Test
    public void propertySwitchesOffUntilTheNextStart() {
        ShadowSystemProperties.override(DrwaSwitch.PROPERTY, "true");
        makeController();
        mNetd.setKnob(RMNET, 200);
        start();
        assertEquals(0, mNetd.getKnob(RMNET));
        connectCellularWithVpn();
        announceSims();
        assertEquals(1, mNetd.writes);
        assertEquals(0, mTelephony.reads);
        assertSwitchedOff("persist.drwa.disable");

        ShadowSystemProperties.override(DrwaSwitch.PROPERTY, "false");
        putSetting("1");
        putFlag("1");
        assertSwitchedOff("persist.drwa.disable");
    }

    @Test
    public void settingSwitchesAtOnce() {
        start();
        connectCellularWithVpn();
        assertAll(LAMBDA);
        putSetting("0");
        assertSwitchedOff("Settings.Global drwa_enabled");
        putSetting("1");
        assertAll(LAMBDA);
        assertDumped("DRWA: enabled");
        putSetting("0");
        assertAll(0);
        putSetting(null);
        assertAll(LAMBDA);
        assertEquals(5 * getGoverned(), mNetd.writes);
    }

    /** Whom a VPN over a cellular network with 464xlat shares its queue with. */
    String getRmnets() {
        return "rmnet_data2, v4-rmnet_data2";
    }

    /** How many interfaces are set, of a cellular network with 464xlat, and a VPN over it. */
    int getGoverned() {
        return 3;
    }

    @Test
    public void settingThatIsNoNumberLeavesItToTheCarrier() {
        start();
        connectCellularWithVpn();
        putSetting("off");
        assertAll(LAMBDA);
    }

    @Test
    public void flagSwitchesAtOnce() {
        start();
        connectCellularWithVpn();
        putFlag("-1");
        assertSwitchedOff("DeviceConfig tethering/drwa");
        putFlag("0");
        assertAll(LAMBDA);
        putFlag("-1");
        putFlag("1");
        assertAll(LAMBDA);
    }

    @Test
    public void bothSwitchesHaveToBeOn() {
        putSetting("0");
        putFlag("-1");
        start();
        connectCellularWithVpn();
        assertSwitchedOff("Settings.Global drwa_enabled");
        assertEquals(0, mNetd.writes);
        putSetting("1");
        assertSwitchedOff("DeviceConfig tethering/drwa");
        putFlag("0");
        assertAll(LAMBDA);
    }

    @Test
    public void switchedOffIsWhatTheShellSetToo() throws Exception {
        startOnCellular();
        assertEquals(0, shell(new StringWriter(), "set", WLAN, "200"));
        putSetting("0");
        assertEquals(0, mNetd.getKnob(WLAN));
        final StringWriter text = new StringWriter();
        assertEquals(-1, shell(text, "set", RMNET, "200"));
        assertEquals("DRWA is off: Settings.Global drwa_enabled\n", text.toString());
        putSetting("1");
        assertEquals(200, mNetd.getKnob(WLAN));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void networksThatComeWhileSwitchedOffAreKnown() {
        start();
        putSetting("0");
        connectCellularWithVpn();
        mTelephony.setConfig(SUB, true, 125);
        mTelephony.announceConfig(SUB);
        idle();
        assertAll(0);
        putSetting("1");
        assertAll(125);
    }

    @Test
    public void kernelWithoutDrwaIsLeftAlone() {
        mNetd.removeDrwaFromKernel();
        mNetd.removeUplinkFromNetd();
        start();
        final int calls = mNetd.calls;
        // Looks for λ and for the uplink, once
        connect(CELL, cellular(SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mTelephony.announceConfig(SUB);
        mNetd.addInterface("rmnet_data4");
        idle();
        mController.onNetworkDestroyed(CELL);
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls + 2, mNetd.calls);
        assertEquals(0, mTelephony.reads);
        assertEquals(2, countLogged("DrwaKnobs", Log.INFO));
        assertDumped("Knobs: none, so λ stays off");
        assertDumped("No uplink: this netd has no drwa_uplink_target_ms, or the kernel no drwa_up");
    }

    @Test
    public void kernelWithoutDrwaIsFoundOutWhenTheStartCouldNotTell() {
        mNetd.removeDrwaFromKernel();
        mNetd.fault = FakeNetd.Fault.DEAD;
        start();
        mNetd.fault = FakeNetd.Fault.NONE;
        connect(CELL, cellular(SUB), link(RMNET));
        final int calls = mNetd.calls;
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(calls, mNetd.calls);
        assertEquals(1, countLogged("DrwaKnobs", Log.INFO));
    }

    @Test
    public void kernelIsNotBlamedForAnInterfaceThatIsGone() {
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.removeInterface(iface);
        mDeps.mGone = List.of(WLAN);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.addInterface(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void writesThatFailAreTriedAgainAtTheNextChange() {
        for (FakeNetd.Fault fault :
                List.of(
                        FakeNetd.Fault.DEAD,
                        FakeNetd.Fault.DIES_AFTER_WRITE,
                        FakeNetd.Fault.IO_ERROR,
                        FakeNetd.Fault.SECURITY)) {
            setUp();
            start();
            mNetd.fault = fault;
            connect(CELL, cellular(SUB), link(RMNET));
            mNetd.fault = FakeNetd.Fault.NONE;
            connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
            assertEquals(fault.name(), LAMBDA, mNetd.getKnob(RMNET));

            mNetd.fault = fault;
            mController.onNetworkDestroyed(CELL);
            mNetd.fault = FakeNetd.Fault.NONE;
            mController.onNetworkDestroyed(OTHER);
            assertEquals(fault.name(), 0, mNetd.getKnob(RMNET));
        }
        assertTrue(countLogged("DrwaKnobs", Log.ERROR) >= 8);
    }

    @Test
    public void failedWriteIsTriedAgainSoon() {
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: netd failed");
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989");
    }

    @Test
    public void failedWriteIsTriedAgainLessAndLessOften() {
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        final int before = mNetd.calls;
        // At 50, 150, 350, ..., 51150 ms, whatever is told again meanwhile
        for (int i = 0; i < 100; i++) {
            idleFor(DrwaApplication.MAX_RETRY_DELAY_MS / 100);
            connect(CELL, cellular(SUB), link(RMNET));
            mController.onNetworkDestroyed(OTHER);
        }
        assertEquals(getKnobs() * 10, mNetd.calls - before);
        idleFor(10 * DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(getKnobs() * 20, mNetd.calls - before);

        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        final int settled = mNetd.calls;
        idleFor(10 * DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(settled, mNetd.calls);

        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        mController.onNetworkDestroyed(CELL);
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    /** How many things are written of an interface: λ and its queue. */
    int getKnobs() {
        return 2;
    }

    /** Whichever of its interfaces it is, for all orders in which they are written. */
    @Test
    public void interfaceThatFailsHoldsUpNoOther() {
        final List<String> all = List.of(RMNET, RMNET2, CLAT);
        start();
        for (String failing : all) {
            mNetd.faults.put(failing, FakeNetd.Fault.IO_ERROR);
            connect(CELL, cellular(SUB), link(RMNET, RMNET2, CLAT));
            for (String iface : all) {
                assertEquals(iface, iface.equals(failing) ? 0 : LAMBDA, mNetd.getKnob(iface));
            }
            mNetd.faults.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            for (String iface : all) assertEquals(iface, LAMBDA, mNetd.getKnob(iface));

            mNetd.faults.put(failing, FakeNetd.Fault.IO_ERROR);
            mController.onNetworkDestroyed(CELL);
            for (String iface : all) {
                assertEquals(iface, iface.equals(failing) ? LAMBDA : 0, mNetd.getKnob(iface));
            }
            mNetd.faults.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            for (String iface : all) assertEquals(iface, 0, mNetd.getKnob(iface));
        }
    }

    @Test
    public void interfaceThatLacksTheKnobHoldsUpNoOther() {
        for (String lacking : List.of(RMNET, WLAN)) {
            mNetd.removeKnob(lacking);
            mNetd.removeKnob(RMNET2);
            makeController();
            startOnOtherCellular();
            assertFalse(dump(), dump().contains("This kernel has no"));
            connect(OTHER, cellular(SUB), link(RMNET2));
            assertDumped("rmnet_data3 λ=1.50: carrier 1989, not written: no tcp_drwa_lambda");
            mController.onNetworkDestroyed(OTHER);
            mController.onNetworkDestroyed(CELL);
        }
    }

    private void startOnOtherCellular() {
        start();
        connect(CELL, cellular(SUB), link(CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
    }

    @Test
    public void firstInterfaceThatLacksTheKnobIsNotTheKernel() {
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.removeInterface(iface);
        start();
        // Nothing has had a knob yet when the one without is written
        mNetd.addInterface(CLAT);
        mNetd.removeKnob(RMNET);
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
        assertFalse(dump(), dump().contains("This kernel has no"));
    }

    @Test
    public void startWithoutInterfacesSaysNothingOfTheKernel() {
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.removeInterface(iface);
        start();
        mNetd.addInterface(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void interfaceThatComesAgainIsSetAgain() {
        startOnCellular();
        mNetd.removeInterface(RMNET);
        idle();
        mNetd.addInterface(RMNET);
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertQueues(CELL, RMNET);
        // No faster than netd tells of it
        mNetd.removeInterface(RMNET);
        mNetd.addInterface(RMNET);
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void interfaceIsLookedAtWheneverNetdTellsOfIt() {
        startOnCellular();
        for (FakeNetd.Event event :
                List.<FakeNetd.Event>of(
                        listener -> listener.onInterfaceAdded(RMNET),
                        listener -> listener.onInterfaceRemoved(RMNET),
                        listener -> listener.onInterfaceLinkStateChanged(RMNET, false),
                        listener -> listener.onInterfaceLinkStateChanged(RMNET, true))) {
            mNetd.setKnob(RMNET, 0);
            mNetd.announce(event);
            assertEquals(0, mNetd.getKnob(RMNET));
            idle();
            assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        }
    }

    @Test
    public void eventsThatWaitAreLookedAtOnce() {
        startOnCellular();
        connect(OTHER, cellular(SUB2), link(RMNET2));
        final int calls = mNetd.calls;
        mNetd.announce(listener -> listener.onInterfaceLinkStateChanged(RMNET, true));
        idle();
        final int ofOneEvent = mNetd.calls - calls;
        for (int i = 0; i < 100; i++) {
            final boolean up = i % 2 == 1;
            mNetd.announce(listener -> listener.onInterfaceLinkStateChanged(RMNET, up));
            mNetd.announce(listener -> listener.onInterfaceLinkStateChanged(RMNET2, up));
        }
        mNetd.setKnob(RMNET, 0);
        mNetd.setKnob(RMNET2, 0);
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET2));
        // Both interfaces once, and two writes
        final int calledSince = mNetd.calls - calls - ofOneEvent;
        assertTrue(calledSince + " calls", calledSince <= 2 * ofOneEvent + 2);
    }

    @Test
    public void knobThatComesAfterItsInterfaceIsSet() {
        startOnCellular();
        mNetd.removeInterface(RMNET);
        idle();
        mNetd.announce(listener -> listener.onInterfaceAdded(RMNET));
        idle();
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: no such interface");
        mNetd.setKnob(RMNET, 0);
        idleFor(2 * DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void renamedInterfaceLosesItsSettingAndItsHeirGetsIt() {
        startOnCellular();
        mNetd.renameInterface(RMNET, "rmnet9");
        idle();
        assertEquals(0, mNetd.getKnob("rmnet9"));
        assertQueues(0, "rmnet9");
        mNetd.renameInterface(WLAN, RMNET);
        idle();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void renamedInterfaceThatItsNetworkFollowsIsWrittenOnce() {
        startOnCellular();
        mNetd.renameInterface(RMNET, "rmnet9");
        mController.onNetworkChanged(CELL, cellular(SUB), link("rmnet9"));
        idle();
        assertEquals(LAMBDA, mNetd.getKnob("rmnet9"));
    }

    @Test
    public void interfacesAreNobodysBusinessWhileAllIsOff() {
        start();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        final int calls = mNetd.calls;
        mNetd.removeInterface(WLAN);
        mNetd.addInterface(WLAN);
        idle();
        assertEquals(calls, mNetd.calls);
    }

    @Test
    public void netdThatTakesNoListenerIsAskedAgain() {
        for (FakeNetd.Fault fault : List.of(FakeNetd.Fault.DEAD, FakeNetd.Fault.SECURITY)) {
            mNetd.forgetListeners();
            makeController();
            mNetd.fault = fault;
            start();
            mNetd.setKnob(WLAN, 200);
            mNetd.fault = FakeNetd.Fault.NONE;
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertEquals(1, mNetd.countListeners());
            assertEquals(0, mNetd.getKnob(WLAN));
        }
    }

    @Test
    public void netdIsListenedToOnce() {
        startOnCellular();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(1, mNetd.countListeners());
    }

    private static LinkProperties limited(String sizes) {
        final LinkProperties lp = link(RMNET, CLAT);
        lp.setTcpBufferSizes(sizes);
        return lp;
    }

    /** What λ does to the static limit where the host leaves it. */
    String describeLeft(String limit) {
        return "supersedes" + limit + ", which stays";
    }

    @Test
    public void limitIsShownWhereItIsOn() {
        final String names = " (net.tcp.buffersize, config_tcp_buffers, tcp_rmem)";
        start();
        connect(CELL, cellular(SUB), limited("2097152,6291456,16777216,512000,2097152,8388608"));
        final String superseded =
                "\n  "
                        + describeLeft(" the static receive maximum of 16777216 bytes" + names)
                        + "\n";
        final String start = "λ=1.50: carrier 1989\n  queue 100, shared with ";
        assertTrue(dump(), dump().contains("rmnet_data2 " + start + CLAT + superseded));
        assertTrue(dump(), dump().contains("v4-rmnet_data2 " + start + RMNET + superseded));
        connect(CELL, cellular(SUB), limited("1,2,3,4,5,6"));
        assertTrue(dump(), dump().contains("maximum of 3 bytes" + names));
        for (String unclear : new String[] {null, "", "1,2,3"}) {
            connect(CELL, cellular(SUB), limited(unclear));
            assertTrue(dump(), dump().contains("static receive maximum" + names));
        }
        putSetting("0");
        assertFalse(dump(), dump().contains("static receive maximum"));
    }

    private static final String LTE_SIZES = "524288,1048576,2097152,262144,524288,1048576";

    /** What ConnectivityService sets while a network is the default one. */
    private String getSizes(int netId, String sizes) {
        final String[] values = sizes.split(",");
        mController.replaceReceiveMaximum(netId, values);
        return String.join(",", values);
    }

    private String getSizes(int netId) {
        return getSizes(netId, LTE_SIZES);
    }

    /** As {@link #start}, in a host that replaces the static limits. */
    private List<String> startAsConnectivityService() {
        final List<String> told = new ArrayList<>();
        mController.start(() -> told.add(getSizes(CELL)));
        idle();
        announceSims();
        return told;
    }

    @Test
    public void receiveMaximumIsReplacedWhileTheNetworkIsGoverned() {
        final String replaced = "524288,1048576,16777216,262144,524288,1048576";
        final List<String> told = startAsConnectivityService();
        assertEquals(LTE_SIZES, getSizes(CELL));
        connect(CELL, cellular(SUB), limited(LTE_SIZES));
        assertEquals(List.of(replaced), told);
        assertEquals(replaced, getSizes(CELL));

        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertEquals(LTE_SIZES, getSizes(OTHER));
        assertEquals(LTE_SIZES, getSizes(VPN));
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(CELL, cellular(SUB), limited(LTE_SIZES));
        assertEquals(replaced, getSizes(CELL));

        putSetting("0");
        assertEquals(LTE_SIZES, getSizes(CELL));
        assertEquals(LTE_SIZES, told.get(told.size() - 1));
        putSetting("1");
        assertEquals(replaced, told.get(told.size() - 1));
        mController.onNetworkDestroyed(CELL);
        assertEquals(LTE_SIZES, getSizes(CELL));
        assertEquals(LTE_SIZES, told.get(told.size() - 1));
    }

    @Test
    public void receiveMaximumStaysUntilItsInterfaceIsOn() {
        final List<String> told = startAsConnectivityService();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), limited(LTE_SIZES));
        assertEquals(LTE_SIZES, getSizes(CELL));
        assertEquals(List.of(), told);
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(List.of(getSizes(CELL)), told);
        assertTrue(told.toString(), told.get(0).contains(",16777216,"));
    }

    @Test
    public void receiveMaximumIsNeverLowered() {
        startAsConnectivityService();
        connect(CELL, cellular(SUB), link(RMNET));
        for (String sizes : new String[] {"1,2,33554432,4,5,6", "1,2,x,4,5,6", "1,2,,4,5,6"}) {
            assertEquals(sizes, getSizes(CELL, sizes));
        }
        assertEquals("1,2,16777216,4,5,6", getSizes(CELL, "1,2, 3,4,5,6"));
    }

    @Test
    public void limitThatTheHostReplacesIsShown() {
        final String names = " (net.tcp.buffersize, config_tcp_buffers, tcp_rmem)";
        startAsConnectivityService();
        connect(CELL, cellular(SUB), limited(LTE_SIZES));
        assertDumped(
                "  replaces the static receive maximum of 2097152 bytes"
                        + names
                        + " by 16777216 on the default network");
        connect(CELL, cellular(SUB), limited("1,2,16777216,4,5,6"));
        assertDumped(
                "  keeps the static receive maximum of 16777216 bytes"
                        + names
                        + ", which leaves DRWA its 16777216");
        connect(CELL, cellular(SUB), limited(null));
        assertDumped(
                "  replaces the static receive maximum"
                        + names
                        + " by 16777216 on the default network");
    }

    @Test
    public void ownReceiveMaximumIsThatOfTheKernelsSeries() throws Exception {
        final Path header =
                Path.of(System.getProperty("drwa.top"), "kernel/src/include/net/tcp_drwa.h");
        final Matcher bound =
                Pattern.compile("#define TCP_DRWA_RMEM_MAX\t\\((\\d+) << (\\d+)\\)")
                        .matcher(Files.readString(header));
        assertTrue(bound.find());
        assertEquals(
                Integer.parseInt(bound.group(1)) << Integer.parseInt(bound.group(2)),
                DrwaLimit.OWN_MAXIMUM);
    }

    @Test
    public void interfaceThatReturnsAfterAFailedWriteIsSet() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.fault = FakeNetd.Fault.NONE;
        mNetd.removeInterface(CLAT);
        mNetd.addInterface(CLAT);
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
    }

    @Test
    public void failureIsCountedAndShown() {
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("Writes: 0, errors: 2");
        assertTrue(dump(), dump().contains("Cannot write tcp_drwa_lambda of rmnet_data2"));
    }

    @Test
    public void eventWithoutAChangeCallsNobody() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        final int calls = mNetd.calls;
        final int reads = mTelephony.reads;
        connect(CELL, cellular(SUB), link(RMNET));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        mController.onNetworkDestroyed(OTHER);
        assertEquals(calls, mNetd.calls);
        assertEquals(reads, mTelephony.reads);
        assertDumped("Events without a change: 2");
    }

    @Test
    public void eventWithoutAChangeAllocatesLittle() {
        startOnCellular();
        final NetworkCapabilities nc = cellular(SUB);
        final LinkProperties lp = link(RMNET, CLAT);
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final int events = 10_000;
        long leastB = Long.MAX_VALUE;
        // The first rounds warm up
        for (int round = 0; round < 5; round++) {
            final long beforeB = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < events; i++) mController.onNetworkChanged(CELL, nc, lp);
            leastB = Math.min(leastB, threads.getCurrentThreadAllocatedBytes() - beforeB);
        }
        assertTrue(leastB / events + " B", leastB / events <= 512);
    }

    @Test
    public void eventsOnAnotherThreadThrow() throws Exception {
        start();
        final AtomicReference<Throwable> thrown = new AtomicReference<>();
        final Thread thread =
                new Thread(
                        () -> {
                            assertThrows(
                                    IllegalStateException.class,
                                    () -> connect(CELL, cellular(SUB), link(RMNET)));
                            assertThrows(
                                    IllegalStateException.class,
                                    () -> mController.onNetworkDestroyed(CELL));
                        });
        thread.setUncaughtExceptionHandler((t, e) -> thrown.set(e));
        thread.start();
        thread.join();
        assertEquals(null, thrown.get());
        assertEquals(0, mNetd.writes);
    }

    @Test
    public void recentWritesAreShownWithTheirReasons() {
        startOnCellular();
        mController.onNetworkDestroyed(CELL);
        assertTrue(dump(), dump().contains("rmnet_data2 λ=1.50: carrier 1989"));
        assertTrue(dump(), dump().contains("rmnet_data2 off: unused"));
        assertDumped("Writes: 4, errors: 0");
    }

    final int shell(StringWriter text, String... args) throws Exception {
        final Thread main = Thread.currentThread();
        final int[] result = new int[1];
        final Thread binder =
                new Thread(
                        () ->
                                result[0] =
                                        mController.handleShellCommand(
                                                new PrintWriter(text, true), args));
        binder.start();
        while (binder.isAlive()) {
            idle();
            binder.join(1 /* ms */);
        }
        assertEquals(main, Thread.currentThread());
        return result[0];
    }

    @Test
    public void shellOverridesThePolicy() throws Exception {
        startOnCellular();
        assertEquals(0, shell(new StringWriter(), "set", WLAN, "200"));
        assertEquals(200, mNetd.getKnob(WLAN));
        assertDumped("wlan0 λ=2.00: shell");
        assertQueues(0, WLAN);
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertQueues(OTHER, WLAN);
        assertEquals(0, shell(new StringWriter(), "set", RMNET, "0"));
        assertEquals(0, mNetd.getKnob(RMNET));
        assertQueues(0, RMNET);
        assertEquals(0, shell(new StringWriter(), "clear"));
        assertEquals(0, mNetd.getKnob(WLAN));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void shellShowsTheState() throws Exception {
        startOnCellular();
        final StringWriter text = new StringWriter();
        assertEquals(0, shell(text, "show"));
        assertEquals(dump(), text.toString());
        final StringWriter again = new StringWriter();
        assertEquals(0, shell(again));
        assertEquals(dump(), again.toString());
    }

    protected void assertShellSays(String line, String... args) throws Exception {
        final StringWriter text = new StringWriter();
        assertEquals(String.join(" ", args), -1, shell(text, args));
        assertEquals(line + "\n", text.toString());
    }

    @Test
    public void shellExplainsItself() throws Exception {
        startOnCellular();
        final String range = "in hundredths from 100 to 1000, or 0 for off";
        for (String lambda : List.of("99", "1001", "-1", "fast")) {
            assertShellSays("Not " + range + ": " + lambda, "set", RMNET, lambda);
        }
        final String usage = "Usage: drwa [show | set INTERFACE LAMBDA | clear], LAMBDA ";
        for (String line : List.of("set", "set x", "set x 200 now", "clear x", "show x", "help")) {
            assertShellSays(usage + range, line.split(" "));
        }
        assertEquals(1, mNetd.writes);
    }

    @Test
    public void shellTellsWhyNothingIsSet() throws Exception {
        startOnCellular();
        assertShellSays("Cannot set nosuch0: no such interface", "set", "nosuch0", "150");
        assertShellSays("Cannot set nosuch0: no such interface", "set", "nosuch0", "0");
        mNetd.removeKnob(WLAN);
        assertShellSays("Cannot set wlan0: no tcp_drwa_lambda", "set", WLAN, "150");
        mNetd.faults.put(TUN, FakeNetd.Fault.IO_ERROR);
        assertShellSays("Cannot set tun0: netd failed", "set", TUN, "150");
        mNetd.faults.clear();
        assertFalse(dump(), dump().contains("shell"));
        mNetd.faultsOfQueues.put(TUN, FakeNetd.Fault.IO_ERROR);
        assertShellSays("Cannot set tun0: netd failed to set tcp_drwa_queue", "set", TUN, "150");
        mNetd.faultsOfQueues.clear();
        idle();
        assertEquals(0, mNetd.getKnob(TUN));
        mNetd.addInterface("nosuch0");
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(0, mNetd.getKnob("nosuch0"));
    }

    @Test
    public void userBuildRefusesTheShell() throws Exception {
        mDeps.mDebuggable = false;
        startOnCellular();
        final StringWriter text = new StringWriter();
        assertEquals(-1, shell(text, "set", WLAN, "200"));
        assertEquals(-1, shell(text, "show"));
        assertEquals(0, mNetd.getKnob(WLAN));
        assertFalse(text.toString(), text.toString().contains("rmnet"));
    }

    @Test
    public void commandThatWasGivenUpTakesNoEffectLater() throws Exception {
        startOnCellular();
        final StringWriter text = new StringWriter();
        final String[] args = {"set", WLAN, "200"};
        final FutureTask<Integer> command =
                new FutureTask<>(
                        () -> {
                            Thread.currentThread().interrupt();
                            return mController.handleShellCommand(new PrintWriter(text), args);
                        });
        new Thread(command).start();
        assertEquals(-1, (int) command.get());
        idle();
        assertEquals(0, mNetd.getKnob(WLAN));
    }

    @Test
    public void machinesInterfacesAreListedWithoutLoopback() {
        final List<String> names = new DrwaController.Dependencies().getInterfaceNames();
        assertFalse(names.toString(), names.contains("lo"));
    }

    @Test
    public void buildTypeIsThePlatforms() {
        assertEquals(!Build.TYPE.equals("user"), new DrwaController.Dependencies().isDebuggable());
    }

    @Test
    public void missingConfigurationLeavesTheNetworkOff() {
        mTelephony.setConfig(SUB, new PersistableBundle());
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.writes);
    }
}
