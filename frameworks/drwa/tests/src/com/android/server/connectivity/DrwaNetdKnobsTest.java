// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.net.NetworkCapabilities;
import android.os.PersistableBundle;
import java.util.List;
import java.util.Map;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** The policy on a kernel without knobs, with programs that netd owns. */
@RunWith(RobolectricTestRunner.class)
public class DrwaNetdKnobsTest extends DrwaControllerTestCase {
    private static final String ON = LAMBDA + " " + CELL + " 0 1";

    @Before
    public void setUpPrograms() {
        mNetd.removeDrwaFromKernel();
        mNetd.addPrograms();
    }

    private void startGoverned() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
        assertGoverned(RMNET);
    }

    /** These have both filters, and no other interface has any. */
    private void assertGoverned(String... ifaces) {
        for (String iface : mNetd.getKnobs().keySet()) {
            final List<Boolean> wanted =
                    List.of(ifaces).contains(iface) ? List.of(false, true) : List.of();
            assertEquals(iface + "\n" + dump(), wanted, mNetd.getFilters(iface));
        }
    }

    @Test
    public void networksAreGoverned() {
        startGoverned();
        connect(OTHER, internet(NetworkCapabilities.TRANSPORT_WIFI), link(WLAN));
        assertGoverned(RMNET);
        mController.onNetworkDestroyed(CELL);
        idle();
        assertEquals(Map.of(), mNetd.getPrograms());
        assertGoverned();
        assertEquals(0, mNetd.redundantWrites);
    }

    @Test
    public void dumpSaysWhatItIs() {
        startGoverned();
        assertDumped("This kernel has no tcp_drwa_lambda");
        assertDumped("Knobs: BPF, through netd");
        assertDumped("Counters: dumpsys netd");
        assertTrue(dump(), dump().contains("stays below the static receive maximum"));
    }

    @Test
    public void aqmAndClientsAreTold() {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(DrwaCarrierConfig.KEY_ENABLED, true);
        config.putInt(DrwaCarrierConfig.KEY_LAMBDA, LAMBDA);
        config.putBoolean(DrwaCarrierConfig.KEY_AQM, true);
        config.putBoolean(DrwaCarrierConfig.KEY_TETHERING, false);
        mTelephony.setConfig(SUB, config);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Map.of(RMNET, LAMBDA + " " + CELL + " 1 0"), mNetd.getPrograms());
    }

    /** Its packets cross the interface below. */
    @Test
    public void stackedInterfacesHaveNoProgram() {
        start();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertGoverned(RMNET);
    }

    @Test
    public void withoutProgramsThePolicyIsIdleAndSaysWhy() {
        mNetd.programsProblem = "Cannot open /sys/fs/bpf/map_drwa_drwa_devs";
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Map.of(), mNetd.getPrograms());
        assertTrue(
                dump(),
                dump().contains(
                                "No BPF: netd has none: Cannot open"
                                        + " /sys/fs/bpf/map_drwa_drwa_devs"));
        assertDumped("Knobs: none, so λ stays off");
    }

    @Test
    public void netdWithoutDrwaHasNone() {
        final UnsupportedOperationException thrown =
                assertThrows(
                        UnsupportedOperationException.class,
                        () ->
                                new DrwaController.Dependencies()
                                        .makeBpfKnobs(new FakeNetd(), new DrwaWriteLog()));
        assertTrue(thrown.getMessage(), thrown.getMessage().startsWith("netd has none: "));
    }

    @Test
    public void leftoversAreSwitchedOff() throws Exception {
        mNetd.setProcSysNet(4, 1, RMNET2, DrwaNetdKnobs.PROGRAMS, "200 7 0 1");
        startGoverned();
        assertGoverned(RMNET);
    }

    @Test
    public void leftoversAreSwitchedOffOnceInterfacesCanBeListed() throws Exception {
        mNetd.setProcSysNet(4, 1, RMNET2, DrwaNetdKnobs.PROGRAMS, "200 7 0 1");
        // What the kernel lacks was seen at a network's interface.
        mDeps.mCannotList = true;
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertTrue(mNetd.getPrograms().containsKey(RMNET2));
        mDeps.mCannotList = false;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
    }

    /** As where init has just restarted it. */
    @Test
    public void netdThatIsGoneIsAskedAgain() {
        for (FakeNetd.Fault fault :
                List.of(FakeNetd.Fault.DEAD, FakeNetd.Fault.IO_ERROR, FakeNetd.Fault.SECURITY)) {
            makeController();
            mNetd.fault = fault;
            start();
            connect(CELL, cellular(SUB), link(RMNET));
            assertDumped("No BPF: netd failed, and is asked again");
            mNetd.fault = FakeNetd.Fault.NONE;
            idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
            assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
            assertGoverned(RMNET);
            assertFalse(dump(), dump().contains("No BPF"));
        }
    }

    /** Files win, and what an earlier system server had no choice but to set goes. */
    @Test
    public void filesOfTheKernelWin() throws Exception {
        mNetd.setProcSysNet(4, 1, RMNET2, DrwaNetdKnobs.PROGRAMS, "200 7 0 1");
        mNetd.addDrwaToKernel();
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertEquals(Map.of(), mNetd.getPrograms());
        assertGoverned();
    }

    @Test
    public void filtersComeBackWithANetwork() {
        startGoverned();
        mController.onNetworkDestroyed(CELL);
        idle();
        mNetd.removeClsact(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertGoverned(RMNET);
        // One network in place of another, for which netd takes the qdisc away
        connect(OTHER, cellular(SUB), link(RMNET));
        mNetd.removeClsact(RMNET);
        mController.onNetworkDestroyed(CELL);
        idle();
        assertGoverned(RMNET);
        // What is wanted stays the same when the other one leaves
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
        mNetd.removeClsact(RMNET);
        mController.onNetworkDestroyed(OTHER);
        idle();
        assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
        assertGoverned(RMNET);
    }

    @Test
    public void priorityOfAnothersIsTold() {
        mNetd.addPolice(RMNET);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertGoverned();
        assertTrue(mNetd.hasPolice(RMNET));
        assertTrue(
                dump(),
                dump().contains(
                                "not written: the BPF programs cannot be attached: Priority 1 at "
                                        + RMNET
                                        + "'s ingress is another's, a filter of kind matchall"));
        mNetd.removeClsact(RMNET);
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertGoverned(RMNET);
        assertFalse(dump(), dump().contains("not written"));
    }

    /** ConnectivityService may be done with the change before the policy hears of it, or later. */
    @Test
    public void filtersComeBackWhenARateLimitHasGone() throws Exception {
        startGoverned();
        mNetd.deleteFilter(RMNET, true);
        putRateLimit(-1);
        assertGoverned();
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertGoverned(RMNET);
        putRateLimit(1000);
        assertEquals(Map.of(), mNetd.getPrograms());
        assertDumped("rmnet_data2 off: Settings.Global ingress_rate_limit_bytes_per_second");
        mNetd.addPolice(RMNET);
        putRateLimit(-1);
        mNetd.deleteFilter(RMNET, true);
        assertFalse(mNetd.hasPolice(RMNET));
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertGoverned(RMNET);
        assertEquals(0, mNetd.redundantWrites);
    }

    @Test
    public void netdFailsAndIsAskedAgain() {
        for (FakeNetd.Fault fault :
                List.of(
                        FakeNetd.Fault.DEAD,
                        FakeNetd.Fault.DIES_AFTER_WRITE,
                        FakeNetd.Fault.IO_ERROR,
                        FakeNetd.Fault.SECURITY)) {
            startGoverned();
            mNetd.faults.put(RMNET, fault);
            mController.onNetworkDestroyed(CELL);
            idle();
            mNetd.faults.clear();
            idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
            assertEquals(Map.of(), mNetd.getPrograms());
            assertGoverned();
            makeController();
        }
    }

    @Test
    public void interfaceThatComesAgainIsGoverned() {
        startGoverned();
        mNetd.removeInterface(RMNET);
        idle();
        assertEquals(Map.of(), mNetd.getPrograms());
        mNetd.addInterface(RMNET);
        idle();
        assertEquals(Map.of(RMNET, ON), mNetd.getPrograms());
        assertGoverned(RMNET);
    }

    @Test
    public void switchTakesAllAway() {
        startGoverned();
        putSetting("0");
        assertEquals(Map.of(), mNetd.getPrograms());
        assertGoverned();
        putSetting("1");
        assertGoverned(RMNET);
    }
}
