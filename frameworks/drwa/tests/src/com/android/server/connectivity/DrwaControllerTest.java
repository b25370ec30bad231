// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.NET_CAPABILITY_IMS;
import static android.net.NetworkCapabilities.NET_CAPABILITY_MMS;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_RESTRICTED;
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
import static org.robolectric.Shadows.shadowOf;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Build;
import android.os.Handler;
import android.os.Looper;
import android.os.PersistableBundle;
import android.os.Process;
import android.util.Log;
import com.sun.management.ThreadMXBean;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLog;
import org.robolectric.shadows.ShadowSystemProperties;

@RunWith(RobolectricTestRunner.class)
public class DrwaControllerTest {
    private static final int CELL = 100;
    private static final int OTHER = 101;
    private static final int VPN = 102;
    private static final int VCN = 103;

    private static final int SUB = 1;
    private static final int SUB2 = 2;
    private static final int LAMBDA = 150;
    private static final int LAMBDA2 = 300;

    private static final String RMNET = "rmnet_data2";
    private static final String RMNET2 = "rmnet_data3";
    private static final String CLAT = "v4-rmnet_data2";
    private static final String WLAN = "wlan0";
    private static final String TUN = "tun0";

    private final FakeNetd mNetd = new FakeNetd();
    private final FakeTelephony mTelephony = new FakeTelephony(RuntimeEnvironment.getApplication());
    private final TestDependencies mDeps = new TestDependencies();
    private DrwaController mController;

    private class TestDependencies extends DrwaController.Dependencies {
        boolean mDebuggable = true;

        boolean mDisabledByProperty;

        /** What the system lists although it is gone when netd is asked for it. */
        List<String> mGone = List.of();

        @Override
        List<String> getInterfaceNames() {
            final List<String> names = new ArrayList<>(mNetd.getKnobs().keySet());
            names.addAll(mGone);
            return names;
        }

        @Override
        boolean isDebuggable() {
            return mDebuggable;
        }

        @Override
        boolean isDisabledByProperty() {
            return mDisabledByProperty;
        }
    }

    @Before
    public void setUp() {
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.addInterface(iface);
        mTelephony.setConfig(SUB, true, LAMBDA);
        mTelephony.setCarrierId(SUB, 1989);
        mTelephony.setConfig(SUB2, true, LAMBDA2);
        mTelephony.setCarrierId(SUB2, 1839);
        makeController(true);
    }

    private void makeController(boolean enabled) {
        mController =
                new DrwaController(
                        RuntimeEnvironment.getApplication(),
                        new Handler(Looper.getMainLooper()),
                        mNetd,
                        enabled,
                        mDeps);
    }

    private void start() {
        mController.start();
        idle();
    }

    private static void idle() {
        shadowOf(Looper.getMainLooper()).idle();
    }

    private void connect(int netId, NetworkCapabilities nc, LinkProperties lp) {
        mController.onNetworkChanged(netId, nc, lp);
    }

    private void startOnCellular() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    private String dump() {
        final StringWriter text = new StringWriter();
        mController.dump(new PrintWriter(text, true));
        return text.toString();
    }

    private void assertDumped(String line) {
        assertTrue(dump(), List.of(dump().split("\n")).contains(line));
    }

    private static long countLogged(String tag, int priority) {
        return ShadowLog.getLogsForTag(tag).stream().filter(l -> l.type == priority).count();
    }

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
        start();
        connect(CELL, cellularFor(NET_CAPABILITY_MMS, SUB), link(RMNET));
        connect(OTHER, cellularFor(NET_CAPABILITY_IMS, SUB), link(RMNET2));
        assertEquals(0, mNetd.writes);
        assertEquals(0, mTelephony.reads);
        assertDumped("rmnet_data2 off: no internet access");
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
        assertEquals(0, countLogged("DrwaKnob", Log.ERROR));

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
    public void configurationIsReadOncePerSubscription() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        connect(OTHER, cellular(SUB), link(RMNET2));
        assertEquals(1, mTelephony.reads);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(2, mTelephony.reads);
    }

    @Test
    public void subscriptionThatNoNetworkUsesIsReadAgain() {
        startOnCellular();
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
    public void subscriptionThatAnotherNetworkUsesIsKept() {
        startOnCellular();
        connect(OTHER, cellular(SUB), link(RMNET2));
        mController.onNetworkDestroyed(CELL);
        connect(OTHER, cellular(SUB), link(RMNET2, CLAT));
        assertEquals(1, mTelephony.reads);
    }

    @Test
    public void leftoversAreSwitchedOff() {
        mNetd.setKnob(RMNET, 200);
        mNetd.setKnob(WLAN, 125);
        start();
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.getKnob(WLAN));
        assertEquals(2, mNetd.writes);
    }

    @Test
    public void leftoverThatIsWantedStays() {
        mNetd.setKnob(RMNET, LAMBDA);
        connect(CELL, cellular(SUB), link(RMNET));
        start();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(0, mNetd.writes);
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
    public void nothingIsDoneBeforeTheStart() {
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.calls);
        assertEquals(0, mTelephony.reads);
        start();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    private void assertDisabled() {
        mNetd.setKnob(RMNET, 200);
        start();
        assertEquals(0, mNetd.getKnob(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(1, mNetd.writes);
        assertEquals(0, mTelephony.reads);
        assertDumped("DRWA: disabled");
    }

    @Test
    public void flagSwitchesEverythingOff() {
        makeController(false);
        assertDisabled();
    }

    @Test
    public void propertySwitchesEverythingOff() {
        mDeps.mDisabledByProperty = true;
        makeController(true);
        assertDisabled();
    }

    @Test
    public void propertyIsTheSystems() {
        final DrwaController.Dependencies deps = new DrwaController.Dependencies();
        assertFalse(deps.isDisabledByProperty());
        ShadowSystemProperties.override(DrwaController.DISABLE_PROPERTY, "true");
        assertTrue(deps.isDisabledByProperty());
    }

    @Test
    public void kernelWithoutDrwaIsLeftAlone() {
        mNetd.removeDrwaFromKernel();
        start();
        final int calls = mNetd.calls;
        connect(CELL, cellular(SUB), link(RMNET));
        mTelephony.announceConfig(SUB);
        idle();
        mController.onNetworkDestroyed(CELL);
        assertEquals(calls, mNetd.calls);
        assertEquals(0, mTelephony.reads);
        assertEquals(1, countLogged("DrwaKnob", Log.INFO));
        assertDumped("This kernel has no tcp_drwa_lambda");
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
        assertEquals(1, countLogged("DrwaKnob", Log.INFO));
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
    public void writesThatFailAreTriedAgainAtTheNextEvent() {
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
            connect(CELL, cellular(SUB), link(RMNET));
            assertEquals(fault.name(), LAMBDA, mNetd.getKnob(RMNET));

            mNetd.fault = fault;
            mController.onNetworkDestroyed(CELL);
            mNetd.fault = FakeNetd.Fault.NONE;
            mController.onNetworkDestroyed(CELL);
            assertEquals(fault.name(), 0, mNetd.getKnob(RMNET));
        }
        assertTrue(countLogged("DrwaKnob", Log.ERROR) >= 8);
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
        assertDumped("Writes: 0, errors: 1");
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
        long allocatedB = 0;
        // The first round warms up
        for (int round = 0; round < 2; round++) {
            allocatedB = -threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < events; i++) connect(CELL, nc, lp);
            allocatedB += threads.getCurrentThreadAllocatedBytes();
        }
        assertTrue(allocatedB / events + " B", allocatedB / events <= 512);
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
        assertDumped("Writes: 2, errors: 0");
    }

    private int shell(StringWriter text, String... args) throws Exception {
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
        assertEquals(0, shell(new StringWriter(), "set", RMNET, "0"));
        assertEquals(0, mNetd.getKnob(RMNET));
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

    @Test
    public void shellExplainsItself() throws Exception {
        startOnCellular();
        for (String[] args :
                new String[][] {
                    {"set"},
                    {"set", RMNET},
                    {"set", RMNET, "99"},
                    {"set", RMNET, "1001"},
                    {"set", RMNET, "-1"},
                    {"set", RMNET, "fast"},
                    {"set", RMNET, "200", "now"},
                    {"clear", RMNET},
                    {"show", RMNET},
                    {"help"},
                }) {
            final StringWriter text = new StringWriter();
            assertEquals(String.join(" ", args), -1, shell(text, args));
            assertTrue(text.toString(), text.toString().contains("100 to 1000"));
        }
        assertEquals(1, mNetd.writes);
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
    public void machinesInterfacesAreListedWithoutLoopback() {
        final List<String> names = new DrwaController.Dependencies().getInterfaceNames();
        assertFalse(names.toString(), names.contains("lo"));
    }

    @Test
    public void buildTypeIsThePlatforms() {
        assertEquals(Build.isDebuggable(), new DrwaController.Dependencies().isDebuggable());
    }

    @Test
    public void missingConfigurationLeavesTheNetworkOff() {
        mTelephony.setConfig(SUB, new PersistableBundle());
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.writes);
    }
}
