// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.os.PersistableBundle;
import android.system.ErrnoException;
import android.system.OsConstants;
import android.util.Log;
import com.android.net.module.util.Struct;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Before;
import org.junit.Test;

/**
 * All that {@link DrwaControllerTest} has, on a kernel whose knobs are the maps of BPF programs,
 * and what only these have.
 */
public class DrwaControllerBpfTest extends DrwaControllerTest {
    private static final int GONE = 7777;

    @Before
    @Override
    public void setUp() {
        mNetd.replaceKnobsByBpf();
        super.setUp();
    }

    private Set<Integer> keys() {
        return mNetd.getDevs().getAll().keySet();
    }

    private void assertGoverned(String... ifaces) {
        final List<Integer> wanted = new ArrayList<>();
        for (String iface : ifaces) wanted.add(mNetd.getIndex(iface));
        wanted.sort(null);
        assertEquals(wanted, new ArrayList<>(keys()));
        for (String iface : mNetd.getKnobs().keySet()) {
            final boolean governed = List.of(ifaces).contains(iface);
            assertEquals(
                    iface, governed ? List.of(false, true) : List.of(), mNetd.getFilters(iface));
        }
    }

    // What differs from the kernel's knobs

    /** λ and the queue are one entry. */
    @Override
    int getKnobs() {
        return 1;
    }

    /** 464xlat is governed below. */
    @Override
    int getGoverned() {
        return 2;
    }

    @Override
    String getRmnets() {
        return "rmnet_data2";
    }

    @Test
    @Override
    public void everyInterfaceOfANetworkIsSet() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertEquals(LAMBDA, mNetd.getKnob(CLAT));
        assertGoverned(RMNET);
    }

    @Test
    @Override
    public void interfacesOfANetworkShareItsQueue() {
        startOnCellular();
        assertQueues(CELL, RMNET);
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertQueues(CELL, RMNET, CLAT);
        assertDumped("  queue 100");
    }

    @Test
    @Override
    public void limitIsShownWhereItIsOn() {
        startOnCellular();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        final String limit = "stays below the static receive maximum";
        final String text = dump();
        assertTrue(text, text.contains("queue 100\n  " + limit));
        assertEquals(text, text.indexOf(limit), text.lastIndexOf(limit));
    }

    @Test
    @Override
    public void interfaceThatFailsHoldsUpNoOther() {
        start();
        for (String failing : List.of(RMNET, RMNET2)) {
            mNetd.faults.put(failing, FakeNetd.Fault.IO_ERROR);
            connect(CELL, cellular(SUB), link(RMNET));
            connect(OTHER, cellular(SUB), link(RMNET2));
            assertGoverned(failing.equals(RMNET) ? RMNET2 : RMNET);
            mNetd.faults.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertGoverned(RMNET, RMNET2);

            mNetd.faults.put(failing, FakeNetd.Fault.IO_ERROR);
            mController.onNetworkDestroyed(CELL);
            mController.onNetworkDestroyed(OTHER);
            assertGoverned(failing);
            mNetd.faults.clear();
            idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
            assertGoverned();
        }
    }

    /** The programs do not reach the buffer. */
    @Override
    String describeLeft(String limit) {
        return "stays below" + limit;
    }

    @Test
    @Override
    public void queueIsThereAsLongAsLambda() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(List.of("rmnet_data2 150 100", "rmnet_data2 deleted"), mNetd.written);
        assertTrue(dump(), dump().contains("- rmnet_data2 λ=1.50: carrier 1989, queue 100\n"));
        assertTrue(dump(), dump().contains("- rmnet_data2 off: unused\n"));
        assertDumped("Writes: 2, errors: 0");
    }

    /** λ and the queue are written together. */
    @Test
    @Override
    public void queueThatFailsHoldsUpNeitherLambdaNorOthers() {
        startOnCellular();
        mNetd.faults.put(RMNET, FakeNetd.Fault.IO_ERROR);
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET2));
        assertQueues(OTHER, RMNET2);
        connect(CELL, cellular(SUB2), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertQueues(CELL, RMNET);
    }

    @Test
    @Override
    public void kernelThatKnowsLambdaAloneIsToldNoQueues() {}

    @Test
    @Override
    public void kernelThatKnowsLambdaAloneIsFoundOutAtTheFirstWrite() {}

    @Test
    @Override
    public void leftoversAreSwitchedOff() {
        mNetd.setKnob(RMNET, 200);
        mNetd.setKnob(WLAN, 125);
        mNetd.setQueue(RMNET, 107);
        mNetd.setQueue(TUN, 107);
        mNetd.getDevs().put(GONE, FakeNetd.makeDev(300, 0));
        start();
        assertGoverned();
        assertEquals(4, mNetd.written.size());
        assertEquals(0, mNetd.redundantWrites);
        assertTrue(dump(), dump().contains("- index 7777 off: left\n"));
    }

    @Test
    @Override
    public void kernelWithoutDrwaIsLeftAlone() {
        mNetd.removeUplinkFromNetd();
        mBpf.problem = new ErrnoException("nativeBpfFdGet", OsConstants.EACCES);
        start();
        final int calls = mNetd.calls;
        // Looks for λ and for the uplink, once
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.addInterface("rmnet_data4");
        idle();
        mController.onNetworkDestroyed(CELL);
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(calls + 2, mNetd.calls);
        assertEquals(2, countLogged("DrwaKnobs", Log.INFO));
        assertEquals(1, countLogged("DrwaController", Log.INFO));
        assertDumped("This kernel has no tcp_drwa_lambda");
        final String reason = "cannot use /sys/fs/bpf/net_shared/map_drwa_drwa_devs: ";
        assertTrue(
                dump(), dump().contains("\nNo BPF: " + reason + "nativeBpfFdGet failed: EACCES"));
        assertDumped("Knobs: none, so λ stays off");
    }

    @Test
    @Override
    public void kernelWithoutDrwaIsFoundOutWhenTheStartCouldNotTell() {
        mNetd.fault = FakeNetd.Fault.DEAD;
        start();
        assertEquals(Set.of(), keys());
        mNetd.fault = FakeNetd.Fault.NONE;
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertGoverned(RMNET);
    }

    @Test
    @Override
    public void failedWriteIsTriedAgainSoon() {
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: the BPF map failed");
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989");
        assertGoverned(RMNET);
    }

    @Test
    @Override
    public void interfaceThatLacksTheKnobHoldsUpNoOther() {}

    @Test
    @Override
    public void firstInterfaceThatLacksTheKnobIsNotTheKernel() {}

    @Test
    @Override
    public void failureIsCountedAndShown() {
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("Writes: 0, errors: 1");
        assertTrue(dump(), dump().contains("Cannot write drwa_devs of rmnet_data2"));
        assertTrue(dump(), dump().contains("Cannot read the BPF maps: "));
    }

    @Test
    @Override
    public void recentWritesAreShownWithTheirReasons() {
        startOnCellular();
        mController.onNetworkDestroyed(CELL);
        assertTrue(dump(), dump().contains("rmnet_data2 λ=1.50: carrier 1989"));
        assertTrue(dump(), dump().contains("rmnet_data2 off: unused"));
        assertDumped("Writes: 2, errors: 0");
    }

    @Test
    @Override
    public void shellTellsWhyNothingIsSet() throws Exception {
        startOnCellular();
        assertShellSays("Cannot set nosuch0: no such interface", "set", "nosuch0", "150");
        mNetd.faults.put(TUN, FakeNetd.Fault.IO_ERROR);
        assertShellSays("Cannot set tun0: the BPF map failed", "set", TUN, "150");
        mNetd.faults.clear();
        assertFalse(dump(), dump().contains("shell"));
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertGoverned(RMNET);
    }

    // What only the maps have

    @Test
    public void dumpTellsThatNothingWasLoaded() {
        mBpf.problem = new ErrnoException("nativeBpfFdGet", OsConstants.ENOENT);
        start();
        final String reason = "cannot use /sys/fs/bpf/net_shared/map_drwa_drwa_devs: ";
        assertTrue(dump(), dump().contains("\nNo BPF: " + reason));
        assertTrue(dump(), dump().contains(DrwaBpfKnobs.NOT_LOADED + "\n"));
        assertDumped("Knobs: none, so λ stays off");
    }

    @Test
    public void dumpTellsWhichProgramTheKernelHasRefused() {
        mBpf.hasEgress = false;
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Set.of(), keys());
        final String path = "/sys/fs/bpf/net_shared/prog_drwa_schedcls_egress_drwa";
        assertDumped("No BPF: cannot use " + path + ": not there" + DrwaBpfKnobs.NOT_LOADED);
        assertDumped("Knobs: none, so λ stays off");
    }

    @Test
    public void dumpTellsWhatGoverns() {
        start();
        assertDumped("This kernel has no tcp_drwa_lambda");
        assertDumped("Knobs: BPF, /sys/fs/bpf/net_shared/map_drwa_drwa_devs");
        assertFalse(dump(), dump().contains("No BPF"));
    }

    @Test
    public void whatIsStackedIsGovernedBelow() throws Exception {
        start();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertGoverned();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertGoverned(RMNET);
        assertDumped("v4-rmnet_data2 off: governed at rmnet_data2");
        assertShellSays(
                "Set rmnet_data2, which the packets of v4-rmnet_data2 cross", "set", CLAT, "150");
        assertGoverned(RMNET);
        connect(CELL, cellular(SUB), link(CLAT));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertGoverned(CLAT, TUN);
        connect(CELL, cellular(SUB), link(RMNET2));
        assertGoverned(RMNET2, TUN);
        mController.onNetworkDestroyed(CELL);
        assertGoverned();
    }

    private DrwaBpfKnobs.Dev getDev(String iface) {
        return mNetd.getDevs().getAll().get(mNetd.getIndex(iface));
    }

    private void setAqm(boolean aqm) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(DrwaCarrierConfig.KEY_ENABLED, true);
        config.putInt(DrwaCarrierConfig.KEY_LAMBDA, LAMBDA);
        config.putBoolean(DrwaCarrierConfig.KEY_AQM, aqm);
        mTelephony.setConfig(SUB, config);
        mTelephony.announceConfig(SUB);
        idle();
    }

    @Test
    public void udpIsHeldAsTheCarrierSays() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(0, getDev(RMNET).aqm);
        for (boolean aqm : new boolean[] {true, false}) {
            setAqm(aqm);
            assertEquals(aqm ? 1 : 0, getDev(RMNET).aqm);
            assertEquals(aqm ? 1 : 0, getDev(TUN).aqm);
            assertEquals(DrwaBpfKnobs.NO_ECHO, getDev(RMNET).echo);
            assertGoverned(RMNET, TUN);
        }
    }

    @Test
    public void clientsAreGovernedAsTheCarrierSays() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertEquals(0, getDev(RMNET).local);
        for (boolean tethering : new boolean[] {false, true}) {
            final PersistableBundle config = new PersistableBundle();
            config.putBoolean(DrwaCarrierConfig.KEY_ENABLED, true);
            config.putInt(DrwaCarrierConfig.KEY_LAMBDA, LAMBDA);
            config.putBoolean(DrwaCarrierConfig.KEY_TETHERING, tethering);
            mTelephony.setConfig(SUB, config);
            mTelephony.announceConfig(SUB);
            idle();
            assertEquals(tethering ? 0 : 1, getDev(RMNET).local);
            assertEquals(tethering ? 0 : 1, getDev(TUN).local);
            assertDumped(
                    tethering
                            ? "rmnet_data2 λ=1.50: carrier 1989"
                            : "rmnet_data2 λ=1.50, clients left alone: carrier 1989");
            assertGoverned(RMNET, TUN);
        }
    }

    @Test
    public void interfacesOfOneQueueShareItsPlace() {
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        connect(OTHER, cellular(SUB2), link(RMNET2));
        final DrwaBpfKnobs.Dev cell = getDev(RMNET);
        final DrwaBpfKnobs.Dev tun = getDev(TUN);
        final DrwaBpfKnobs.Dev other = getDev(RMNET2);
        assertEquals(cell.queue, tun.queue);
        assertEquals(3, Set.of(cell.slot, tun.slot, other.slot).size());
        assertNotEquals(cell.queue, other.queue);
        // Its place goes on with the one that stays
        mController.onNetworkDestroyed(OTHER);
        final byte[] full = new byte[DrwaBpfKnobs.QUEUE_BYTES];
        Arrays.fill(full, (byte) 7);
        mBpf.queues.put((int) cell.queue, new DrwaBpfKnobs.Queue(full));
        connect(CELL, cellular(SUB), link(RMNET2));
        assertEquals(cell.queue, getDev(TUN).queue);
        assertEquals(cell.queue, getDev(RMNET2).queue);
        // Which is not emptied for the newcomer
        assertArrayEquals(full, mBpf.queues.getAll().get((int) cell.queue).state);
    }

    /** The place of the first one's, which the other keeps with what it knows. */
    @Test
    public void firstInterfaceOfAQueueLeavesIt() throws Exception {
        final DrwaBpfKnobs knobs = new DrwaBpfKnobs(mBpf, new DrwaWriteLog());
        assertTrue(knobs.start());
        final DrwaSetting setting = new DrwaSetting(LAMBDA, false, true, "test");
        for (String each : List.of(RMNET, TUN)) {
            mNetd.addClsact(each);
            assertEquals(DrwaKnobs.Result.DONE, knobs.set(each, setting, CELL));
        }
        final long shared = getDev(RMNET).queue;
        assertEquals(shared, getDev(TUN).queue);
        final byte[] full = new byte[DrwaBpfKnobs.QUEUE_BYTES];
        Arrays.fill(full, (byte) 7);
        for (int i = 0; i < 2; i++) mBpf.queues.put(i, new DrwaBpfKnobs.Queue(full));
        for (int queue : new int[] {OTHER, DrwaKnobs.OWN_QUEUE, OTHER}) {
            mBpf.counts.put((int) getDev(RMNET).slot, makeCounts(1));
            final long before = getDev(RMNET).queue;
            assertEquals(DrwaKnobs.Result.DONE, knobs.set(RMNET, setting, queue));
            assertEquals(shared, getDev(TUN).queue);
            final int own = (int) getDev(RMNET).queue;
            assertNotEquals(shared, own);
            // Alone, it keeps its own
            if (before != shared) assertEquals(before, own);
            final byte[] state = before == shared ? new byte[DrwaBpfKnobs.QUEUE_BYTES] : full;
            assertArrayEquals(state, mBpf.queues.getAll().get(own).state);
            mBpf.queues.put(own, new DrwaBpfKnobs.Queue(full));
            // Nothing passes unseen
            final int slot = (int) getDev(RMNET).slot;
            assertEquals(1, mBpf.counts.getAll().get(slot).began);
        }
        assertArrayEquals(full, mBpf.queues.getAll().get((int) shared).state);
        assertGoverned(RMNET, TUN);
    }

    /** Before anything takes away what was left. */
    @Test
    public void leftoverThatIsOnAtOnceIsAttachedOnce() {
        mNetd.setKnob(RMNET, LAMBDA);
        final DrwaBpfKnobs knobs = new DrwaBpfKnobs(mBpf, new DrwaWriteLog());
        assertTrue(knobs.start());
        final DrwaSetting setting = new DrwaSetting(LAMBDA, false, true, "test");
        assertEquals(DrwaKnobs.Result.DONE, knobs.set(RMNET, setting, CELL));
        assertEquals(DrwaKnobs.Result.DONE, knobs.clean());
        assertGoverned(RMNET);
    }

    @Test
    public void interfacesWithoutANumberShareNoQueue() {
        startOnCellular();
        connect(OTHER, cellular(SUB2), link(RMNET2));
        mNetd.addInterface("tun1");
        connect(VPN, vpn(List.of(CELL, OTHER), TRANSPORT_CELLULAR), link(TUN));
        connect(VPN + 1, vpn(List.of(CELL, OTHER), TRANSPORT_CELLULAR), link("tun1"));
        assertEquals(0, getDev(TUN).number);
        assertEquals(0, getDev("tun1").number);
        assertNotEquals(getDev(TUN).queue, getDev("tun1").queue);
    }

    @Test
    public void placeIsEmptyWhenItIsTaken() {
        final byte[] full = new byte[DrwaBpfKnobs.QUEUE_BYTES];
        Arrays.fill(full, (byte) 7);
        mBpf.queues.put(0, new DrwaBpfKnobs.Queue(full));
        mBpf.counts.put(0, makeCountsOfBefore());
        startOnCellular();
        assertArrayEquals(new byte[DrwaBpfKnobs.QUEUE_BYTES], mBpf.queues.getAll().get(0).state);
        final String text = dump();
        assertTrue(text, text.contains("queue=100 flows=0 rounds=0 capped=0 came=0 sent=0"));
        assertEquals(0, mBpf.counts.getAll().get(0).began);
    }

    @Test
    public void headerIsThatOfTheLink() {
        startOnCellular();
        assertEquals(0, getDev(RMNET).l2);
        mNetd.addInterface("eth1");
        connect(OTHER, cellular(SUB2), link("eth1"));
        assertEquals(14, getDev("eth1").l2);
    }

    @Test
    public void filtersComeBackWhenADevelopersRateLimitHasGone() throws Exception {
        startOnCellular();
        // As ConnectivityService does, which takes all of the priority at ingress
        mNetd.deleteFilter(RMNET, true);
        putRateLimit(-1);
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertGoverned(RMNET);

        putRateLimit(1000);
        assertGoverned();
        assertDumped("rmnet_data2 off: Settings.Global ingress_rate_limit_bytes_per_second");
        final StringWriter text = new StringWriter();
        assertEquals(-1, shell(text, "set", RMNET, "150"));
        assertEquals(
                "Programs are off: Settings.Global ingress_rate_limit_bytes_per_second\n",
                text.toString());
        mNetd.addPolice(RMNET);
        putRateLimit(2000);
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertTrue(mNetd.hasPolice(RMNET));
        putRateLimit(-1);
        assertGoverned();
        mNetd.deleteFilter(RMNET, true);
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertGoverned(RMNET);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    /** Or its filter could not be attached. */
    @Test
    public void developersRateLimitFindsItsPriorityFree() {
        startOnCellular();
        // ConnectivityService may hear of it before the policy's own observer does
        mController.onIngressRateLimitChanged();
        assertGoverned();
        putRateLimit(1000);
        idleFor(DrwaRateLimit.CHANGE_MS);
        assertGoverned();
    }

    @Test
    public void developersRateLimitOfBeforeTheStartKeepsItsPriority() {
        putRateLimit(0);
        start();
        mNetd.addPolice(RMNET);
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(0, mNetd.getKnob(RMNET));
        assertEquals(0, countLogged("DrwaKnobs", Log.ERROR));
    }

    /** As when netd has taken the programs' with the qdisc, and made a new one. */
    @Test
    public void developersRateLimitOutlastsTheSwitch() {
        startOnCellular();
        mNetd.removeClsact(RMNET);
        mNetd.addPolice(RMNET);
        putSetting("0");
        assertTrue(mNetd.hasPolice(RMNET));
        assertGoverned();
    }

    @Test
    public void developersRateLimitKeepsItsPriority() {
        mNetd.addPolice(RMNET);
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertTrue(mNetd.hasPolice(RMNET));
        assertEquals(List.of(), mNetd.getFilters(RMNET));
        assertDumped(
                "rmnet_data2 λ=1.50: carrier 1989, not written: the BPF programs cannot be"
                        + " attached: EINVAL, as if another filter had priority 1, which an ingress"
                        + " rate limit has (settings put global"
                        + " ingress_rate_limit_bytes_per_second -1)");
        final String text = dump();
        assertTrue(text, text.contains("Cannot attach the programs to rmnet_data2: "));
        assertTrue(text, text.contains("EINVAL"));
        // It goes on where the limit is not
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertEquals(LAMBDA2, mNetd.getKnob(RMNET2));
        // Off takes the entry away, nothing of others, and looks for no filter
        final int calls = mNetd.calls;
        mController.onNetworkDestroyed(CELL);
        assertTrue(mNetd.hasPolice(RMNET));
        assertEquals(calls + 1, mNetd.calls);
        assertGoverned(RMNET2);
    }

    @Test
    public void qdiscIsMadeWhereNetdMakesNone() throws Exception {
        mNetd.addClsact(RMNET);
        startOnCellular();
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertGoverned(RMNET, TUN);
        assertDumped("Writes: 2, errors: 0");
    }

    /** As when one network replaces another on the same interface. */
    @Test
    public void programsThatWentWithTheQdiscComeAgain() {
        startOnCellular();
        mNetd.removeClsact(RMNET);
        connect(OTHER, cellular(SUB), link(RMNET));
        assertGoverned(RMNET);
        mNetd.removeClsact(RMNET);
        mController.onNetworkDestroyed(CELL);
        assertGoverned(RMNET);
        mNetd.removeClsact(RMNET);
        mController.onNetworkDestroyed(OTHER);
        assertGoverned();
        assertDumped("Writes: 3, errors: 0");
    }

    /** Or an offer from before would be taken for the last one, and the right edge moved back. */
    @Test
    public void programsThatComeAgainBeginAnew() {
        startOnCellular();
        mBpf.counts.put(0, makeCountsOfBefore());
        final String shown = mBpf.counts.getAll().get(0).toString();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(10, mBpf.counts.getAll().get(0).began);
        connect(OTHER, cellular(SUB), link(RMNET));
        final DrwaBpfKnobs.Counts counts = mBpf.counts.getAll().get(0);
        assertEquals(0, counts.began);
        assertEquals(shown, counts.toString());
        assertArrayEquals(makeBefore(), counts.before);
    }

    @Test
    public void programsThatCannotBeDetachedAreTriedAgain() {
        startOnCellular();
        mNetd.faults.put(RMNET, FakeNetd.Fault.IO_ERROR);
        mController.onNetworkDestroyed(CELL);
        assertGoverned(RMNET);
        mNetd.faults.clear();
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertGoverned();
    }

    /** Whether the map has lost the entry, or the filters are gone alone, is not known. */
    @Test
    public void programsThatWereTakenAwayInPartComeAgain() {
        startOnCellular();
        for (FakeNetd.Fault fault : FakeNetd.Fault.values()) {
            mNetd.faults.put(RMNET, fault);
            mController.onNetworkDestroyed(CELL);
            mNetd.faults.clear();
            connect(CELL, cellular(SUB), link(RMNET));
            assertGoverned(RMNET);
        }
    }

    @Test
    public void entryGoesWithItsInterface() {
        startOnCellular();
        final int former = mNetd.getIndex(RMNET);
        mNetd.removeInterface(RMNET);
        idle();
        assertFalse(keys().contains(former));
        mNetd.addInterface(RMNET);
        idle();
        assertGoverned(RMNET);
        // No faster than netd tells of it
        mNetd.removeInterface(RMNET);
        mNetd.addInterface(RMNET);
        idle();
        assertGoverned(RMNET);
        mNetd.removeInterface(RMNET);
        mController.onNetworkDestroyed(CELL);
        idle();
        assertGoverned();
    }

    @Test
    public void entryOfAnInterfaceThatIsGoneIsDeletedInTheEnd() {
        startOnCellular();
        final int former = mNetd.getIndex(RMNET);
        mNetd.removeInterface(RMNET);
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        idle();
        assertTrue(keys().contains(former));
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(2 * DrwaApplication.MIN_RETRY_DELAY_MS);
        assertGoverned();
    }

    @Test
    public void entryFollowsTheDeviceThroughNames() {
        startOnCellular();
        mNetd.renameInterface(RMNET, "rmnet9");
        idle();
        assertGoverned();
        mNetd.renameInterface("rmnet9", RMNET);
        idle();
        assertGoverned(RMNET);
        // Before netd tells of the new name
        mNetd.renameInterface(RMNET, "rmnet9");
        connect(OTHER, cellular(SUB2), link("rmnet9"));
        assertGoverned("rmnet9");
        assertEquals(LAMBDA2, mNetd.getKnob("rmnet9"));
    }

    @Test
    public void entryThatCannotBeReadHoldsUpNoOther() {
        mNetd.setKnob(WLAN, LAMBDA);
        mNetd.setKnob(RMNET, LAMBDA);
        mNetd.faults.put(WLAN, FakeNetd.Fault.IO_ERROR);
        start();
        assertEquals(Set.of(mNetd.getIndex(WLAN)), keys());
        mNetd.faults.clear();
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertGoverned();
    }

    @Test
    public void leftoverOfALiveNetworkIsTakenOver() {
        mNetd.setKnob(RMNET, LAMBDA);
        mNetd.setQueue(RMNET, CELL);
        mNetd.getDevs().put(GONE, FakeNetd.makeDev(300, 0));
        mTelephony.announceConfig(SUB);
        connect(CELL, cellular(SUB), link(RMNET));
        start();
        assertGoverned(RMNET);
        assertEquals(0, mNetd.redundantWrites);
    }

    @Test
    public void mapThatIsFullSaysSo() {
        start();
        for (int i = 0; i < 64; i++) {
            mNetd.getDevs().put(GONE + i, FakeNetd.makeDev(100, 0));
        }
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: the BPF map is full");
        for (int i = 0; i < 64; i++) mNetd.getDevs().remove(GONE + i);
        idleFor(DrwaApplication.MIN_RETRY_DELAY_MS);
        assertGoverned(RMNET);
    }

    @Test
    public void kernelWithKnobsIsGovernedByNothingElse() {
        mNetd.addDrwaToKernel();
        mNetd.getDevs().put(mNetd.getIndex(RMNET), FakeNetd.makeDev(100, 0));
        mNetd.getDevs().put(GONE, FakeNetd.makeDev(100, 0));
        startOnCellular();
        assertEquals(Set.of(), keys());
        assertDumped("Knobs: the kernel's, through netd");
        assertDumped("No BPF: the kernel has knobs of its own");
    }

    @Test
    public void leftoversBesideKnobsAreClearedInTheEnd() {
        mNetd.addDrwaToKernel();
        mNetd.getDevs().put(GONE, FakeNetd.makeDev(100, 0));
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        start();
        assertEquals(Set.of(GONE), keys());
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaApplication.MAX_RETRY_DELAY_MS);
        assertEquals(Set.of(), keys());
    }

    private static byte[] makeBefore() {
        final byte[] before = new byte[DrwaBpfKnobs.BEFORE_BYTES];
        Arrays.fill(before, (byte) 16);
        return before;
    }

    private static DrwaBpfKnobs.Counts makeCountsOfBefore() {
        final byte[] before = makeBefore();
        return new DrwaBpfKnobs.Counts(
                1, 2, 3, 4, 5, 6, 7, 8, 9, bins(1), bins(2), 10, 11, 12, 13, 14, 15, before);
    }

    private static byte[] bins(long... counts) {
        final ByteBuffer buffer = ByteBuffer.allocate(DrwaBpfKnobs.BINS * Long.BYTES);
        buffer.order(ByteOrder.nativeOrder());
        for (long count : counts) buffer.putLong(count);
        return buffer.array();
    }

    @Test
    public void countersAreShownForEachInterface() {
        startOnCellular();
        mBpf.counts.put(
                0,
                new DrwaBpfKnobs.Counts(
                        1500,
                        70,
                        4,
                        5,
                        6,
                        7,
                        3,
                        40,
                        30,
                        bins(1, 2),
                        bins(0, 0, 1L << 40),
                        9,
                        2,
                        8,
                        1,
                        0,
                        11,
                        new byte[DrwaBpfKnobs.BEFORE_BYTES]));
        assertDumped("Counters, with histograms below 2^10 µs, below 2^11 µs, and so on:");
        assertDumped(
                "rmnet_data2 lambda=150 queue=100 flows=3 rounds=40 capped=30 came=1500 sent=70"
                        + " not_tcp=4 unknown=5 mptcp=6 signed=7 clients=11"
                        + " udp_flows=2 udp_dropped=8 udp_deaf=1 udp_tunnels=0"
                        + " delay_us=1,2,0,0,0,0,0,0,0,0,0,0,0,0"
                        + " rtt_us=0,0,1099511627776,0,0,0,0,0,0,0,0,0,0,0");
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertTrue(dump(), dump().contains("rmnet_data3 lambda=300 queue=101 flows=0"));
    }

    private static DrwaBpfKnobs.Queue makeQueue(int delayUs, long setUs) {
        final ByteBuffer state = ByteBuffer.allocate(DrwaBpfKnobs.QUEUE_BYTES);
        state.order(ByteOrder.nativeOrder());
        state.putInt(DrwaBpfKnobs.DELAY_US_AT, delayUs);
        state.putInt(DrwaBpfKnobs.DELAY_SET_US_AT, (int) setUs);
        return new DrwaBpfKnobs.Queue(state.array());
    }

    @Test
    public void delayThatUdpIsJudgedByIsShown() {
        startOnCellular();
        // 32 bits of the clock wrap around meanwhile
        mBpf.nowUs = (1L << 32) - 1;
        connect(OTHER, cellular(SUB2), link(RMNET2));
        final int queue = (int) getDev(RMNET).queue;
        assertNotEquals(queue, getDev(RMNET2).queue);
        mBpf.queues.put(queue, makeQueue(12_345, mBpf.nowUs));
        assertFalse(dump(), dump().contains("udp_queue_ms"));
        setAqm(true);
        assertDumped("  udp_queue_ms=12.3");
        assertEquals(dump(), dump().indexOf("udp_queue"), dump().lastIndexOf("udp_queue"));
        mBpf.nowUs += DrwaBpfKnobs.DELAY_OLD_US - 1;
        assertDumped("  udp_queue_ms=12.3");
        mBpf.nowUs++;
        assertDumped("  udp_queue_ms=unknown");
        mBpf.queues.put(queue, makeQueue(-1, mBpf.nowUs));
        assertDumped("  udp_queue_ms=4294967.3");
        // Since nobody told it yet
        mBpf.nowUs = 0;
        mBpf.queues.put(queue, makeQueue(0, 0));
        assertDumped("  udp_queue_ms=unknown");
    }

    private DrwaBpfClients.Flow makeFlow(String iface, boolean forwarded, long cameUs) {
        final ByteBuffer state = ByteBuffer.allocate(DrwaBpfClients.FLOW_BYTES);
        state.order(ByteOrder.nativeOrder());
        state.putInt(DrwaBpfClients.IFINDEX_AT, mNetd.getIndex(iface));
        state.putInt(DrwaBpfClients.CAME_US_AT, (int) cameUs);
        state.put(DrwaBpfClients.ANSWERED_AT, (byte) 1);
        state.put(DrwaBpfClients.FORWARDED_AT, (byte) (forwarded ? 1 : 0));
        return new DrwaBpfClients.Flow(state.array());
    }

    @Test
    public void clientsThatHardwareMayForwardAreCounted() {
        startOnCellular();
        assertFalse(dump(), dump().contains("clients:"));
        // 32 bits of the clock wrap around meanwhile
        mBpf.nowUs = (1L << 32) - 1;
        mBpf.flows.add(makeFlow(RMNET, false, mBpf.nowUs));
        mBpf.flows.add(makeFlow(RMNET2, true, mBpf.nowUs));
        mBpf.flows.add(makeFlow(RMNET, true, mBpf.nowUs + 1));
        mBpf.flows.add(makeFlow(RMNET, true, mBpf.nowUs));
        final DrwaBpfClients.Flow unanswered = makeFlow(RMNET, true, mBpf.nowUs);
        unanswered.state[DrwaBpfClients.ANSWERED_AT] = 0;
        mBpf.flows.add(unanswered);
        final DrwaBpfClients.Flow aside = makeFlow(RMNET, true, mBpf.nowUs);
        aside.state[DrwaBpfClients.ASIDE_AT] = 1;
        mBpf.flows.add(aside);
        mBpf.nowUs += DrwaBpfClients.SILENT_MS * 1000;
        assertDumped("  clients: 4 connections");
        mBpf.nowUs++;
        assertDumped(
                "  clients: 4 connections; of 1 nothing came for 5 s: idle, or forwarded by"
                        + " hardware");
        mBpf.nowUs++;
        assertTrue(dump(), dump().contains("  clients: 4 connections; of 2 nothing came "));
        // One that ends, where the kernel begins anew
        mBpf.flows.add(null);
        assertTrue(dump(), dump().contains("  clients: 4 connections; "));
    }

    /** The programs keep those that were reset until they need the place. */
    @Test
    public void clientsThatAreOverAreNotCounted() {
        startOnCellular();
        final byte[][] ends = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {DrwaBpfClients.RST, 0}};
        for (byte[] each : ends) {
            final DrwaBpfClients.Flow flow = makeFlow(RMNET, true, mBpf.nowUs);
            flow.state[DrwaBpfClients.FIN_CAME_AT] = each[0];
            flow.state[DrwaBpfClients.FIN_SENT_AT] = each[1];
            mBpf.flows.add(flow);
        }
        assertDumped("  clients: 3 connections");
    }

    @Test
    public void connectionsThatCannotBeReadAreSaidSo() {
        startOnCellular();
        mBpf.flowsProblem = new ErrnoException("bpf", OsConstants.EACCES);
        final String said = "Cannot read /sys/fs/bpf/net_shared/map_drwa_drwa_flows: bpf failed";
        assertTrue(dump(), dump().contains(said));
        assertTrue(dump(), dump().contains("rmnet_data2 lambda=150 queue=100 flows=0"));
    }

    private void receive(long bytes, long packets, long came) {
        mBpf.interfaceCounters =
                List.of(
                        "Inter-|   Receive                  |  Transmit",
                        " face |bytes packets errs drop fifo|bytes",
                        "rmnet_data20: 9 9 9 9 9 9",
                        RMNET + ":" + bytes + " " + packets + " 0 0 0 0");
        mBpf.counts.put(0, makeCounts(came));
    }

    private static DrwaBpfKnobs.Counts makeCounts(long came) {
        final byte[] before = new byte[DrwaBpfKnobs.BEFORE_BYTES];
        return new DrwaBpfKnobs.Counts(
                came, 0, 0, 0, 0, 0, 0, 0, 0, bins(), bins(), 1, 0, 0, 0, 0, 0, before);
    }

    @Test
    public void whatCamePastTheProgramsIsTold() {
        receive(500_000_000, 400_000, 0);
        startOnCellular();
        final long headers = 2000 * DrwaBpfKnobs.HEADER_BYTES;
        receive(510_000_000, 402_000, 10_000_000 - headers);
        assertFalse(dump(), dump().contains("past"));
        receive(510_000_000, 402_000, 10_000_000 - headers - DrwaBpfKnobs.PAST_BYTES + 1);
        assertFalse(dump(), dump().contains("past"));
        receive(510_000_000, 402_000, 10_000_000 - headers - DrwaBpfKnobs.PAST_BYTES);
        assertDumped("  past the programs came 1000000 bytes or more");
        mBpf.interfaceCounters = null;
        assertDumped("  Cannot read what came: a reason");
        mBpf.interfaceCounters = List.of(RMNET + ": many few");
        assertDumped("  Cannot read what came: rmnet_data2: many few");
        mBpf.interfaceCounters = List.of();
        assertFalse(dump(), dump().contains("past"));
    }

    @Test
    public void interfaceThatCannotBeReadBeforeIsGoverned() {
        mBpf.interfaceCounters = null;
        startOnCellular();
        assertGoverned(RMNET);
        receive(510_000_000, 402_000, 0);
        assertFalse(dump(), dump().contains("past the programs"));
        assertTrue(dump(), dump().contains("Cannot read what came by rmnet_data2: "));
    }

    @Test
    public void structuresAreThoseOfThePrograms() throws Exception {
        final String header =
                Files.readString(Path.of(System.getProperty("drwa.top"), "kernel/bpf/drwa.h"));
        assertTrue(header, header.contains("#define DRWA_BINS\t" + DrwaBpfKnobs.BINS + "\n"));
        assertTrue(header, header.contains("#define DRWA_DEVS\t" + DrwaBpfKnobs.PLACES + "\n"));
        assertEquals(
                List.of(
                        "__u32 lambda",
                        "__u32 number",
                        "__u32 slot",
                        "__u32 queue",
                        "__u32 l2",
                        "__u16 priority",
                        "__u8 clsact",
                        "__u8 local",
                        "__u32 aqm",
                        "__u32 echo"),
                findMembers(header, "drwa_dev"));
        assertEquals(
                List.of(
                        "__u64 came",
                        "__u64 sent",
                        "__u64 not_tcp",
                        "__u64 unknown",
                        "__u64 mptcp",
                        "__u64 is_signed",
                        "__u64 flows",
                        "__u64 rounds",
                        "__u64 capped",
                        "__u64 delay_us[DRWA_BINS]",
                        "__u64 rtt_us[DRWA_BINS]",
                        "__u32 began_us",
                        "__u32 joined",
                        "__u64 udp_flows",
                        "__u64 udp_dropped",
                        "__u64 udp_deaf",
                        "__u64 udp_tunnels",
                        "__u64 clients",
                        "__u64 came_before",
                        "__u64 sent_before"),
                findMembers(header, "drwa_counts"));
        final Path bpf = Path.of(System.getProperty("drwa.top"), "kernel/bpf");
        final String programs = Files.readString(bpf.resolve("drwa.bpf.c"));
        final String bytes = "#define DRWA_HEADER_BYTES\t" + DrwaBpfKnobs.HEADER_BYTES + "\n";
        assertTrue(bytes, programs.contains(bytes));
        final String loader = Files.readString(bpf.resolve("drwa-bpf.c"));
        final String silent = "#define SILENT_US\t" + DrwaBpfClients.SILENT_MS + "000\n";
        assertTrue(silent, loader.contains(silent));
        final ByteBuffer raw = ByteBuffer.allocate(45 * Long.BYTES).order(ByteOrder.nativeOrder());
        for (int i = 0; i < 45; i++) raw.putLong(i);
        raw.flip();
        assertEquals(raw.capacity(), Struct.getSize(DrwaBpfKnobs.Counts.class));
        assertEquals(
                "flows=6 rounds=7 capped=8 came=0 sent=1 not_tcp=2 unknown=3 mptcp=4 signed=5"
                        + " clients=42 udp_flows=38 udp_dropped=39 udp_deaf=40 udp_tunnels=41"
                        + " delay_us=9,10,11,12,13,14,15,16,17,18,19,20,21,22"
                        + " rtt_us=23,24,25,26,27,28,29,30,31,32,33,34,35,36",
                Struct.parse(DrwaBpfKnobs.Counts.class, raw).toString());
        final ByteBuffer dev =
                ByteBuffer.wrap(
                        new DrwaBpfKnobs.Dev(150, 100, 3, 2, 14, 1, (short) 4, (short) 5, 1, 7)
                                .writeToBytes());
        dev.order(ByteOrder.nativeOrder());
        assertEquals(32, dev.capacity());
        for (int each : new int[] {150, 100, 3, 2, 14}) assertEquals(each, dev.getInt());
        assertEquals(1, dev.getShort());
        assertEquals(4, dev.get());
        assertEquals(5, dev.get());
        assertEquals(1, dev.getInt());
        assertEquals(7, dev.getInt());
    }

    /** What is read by offsets, or is empty bytes here, is where the compiler puts it. */
    @Test
    public void offsetsAreThoseOfThePrograms() throws Exception {
        final Path top = Path.of(System.getProperty("drwa.top"), "kernel");
        final Path source = Files.createTempFile("queue", ".c");
        Files.writeString(
                source,
                "#include <stdbool.h>\n#include <stddef.h>\n#include <linux/types.h>\n"
                        + "typedef __u8 u8;\ntypedef __u16 u16;\ntypedef __u32 u32;\n"
                        + "typedef __s32 s32;\ntypedef __u64 u64;\n#include \"drwa.h\"\n"
                        + "#define AT(f, at) _Static_assert(offsetof(struct drwa_flow, f) == at)\n"
                        + ("_Static_assert(sizeof(struct drwa_queue) == ")
                        + (DrwaBpfKnobs.QUEUE_BYTES + ");\n")
                        + "#define Q_AT(q, at) "
                        + "_Static_assert(offsetof(struct drwa_queue, q) == at)\n"
                        + ("Q_AT(delay_us, " + DrwaBpfKnobs.DELAY_US_AT + ");\n")
                        + ("Q_AT(delay_set_us, " + DrwaBpfKnobs.DELAY_SET_US_AT + ");\n")
                        + ("_Static_assert(DRWA_SECOND_US == " + DrwaBpfKnobs.DELAY_OLD_US)
                        + ");\n"
                        + ("_Static_assert(sizeof(drwa_digest(0)) == ")
                        + (DrwaBpfClients.KEY_BYTES + ");\n")
                        + ("_Static_assert(sizeof(struct drwa_flow) == ")
                        + (DrwaBpfClients.FLOW_BYTES + ");\n")
                        + ("AT(came_us, " + DrwaBpfClients.CAME_US_AT + ");\n")
                        + ("AT(answered, " + DrwaBpfClients.ANSWERED_AT + ");\n")
                        + ("AT(fin_came, " + DrwaBpfClients.FIN_CAME_AT + ");\n")
                        + ("AT(ifindex, " + DrwaBpfClients.IFINDEX_AT + ");\n")
                        + ("AT(forwarded, " + DrwaBpfClients.FORWARDED_AT + ");\n")
                        + ("AT(fin_sent, " + DrwaBpfClients.FIN_SENT_AT + ");\n")
                        + ("AT(aside, " + DrwaBpfClients.ASIDE_AT + ");\n")
                        + ("_Static_assert(DRWA_RST == " + DrwaBpfClients.RST + ");\n")
                        + ("_Static_assert(DRWA_FLOWS == " + DrwaBpfClients.FLOWS + ");\n"));
        final Process compiler =
                new ProcessBuilder(
                                "gcc",
                                "-fsyntax-only",
                                "-I" + top.resolve("bpf"),
                                "-I" + top.resolve("src/include"),
                                "-idirafter",
                                top.resolve("tests/include").toString(),
                                source.toString())
                        .redirectErrorStream(true)
                        .start();
        final String said = new String(compiler.getInputStream().readAllBytes());
        assertEquals(said, 0, compiler.waitFor());
        Files.delete(source);
    }

    private static List<String> findMembers(String header, String struct) {
        final Matcher body =
                Pattern.compile("\nstruct " + struct + " \\{\n(.*?)\n\\};", Pattern.DOTALL)
                        .matcher(header);
        assertTrue(struct, body.find());
        final List<String> members = new ArrayList<>();
        for (String line : Arrays.asList(body.group(1).split("\n"))) {
            members.add(line.strip().replaceAll("\\s+", " ").replace(";", ""));
        }
        return members;
    }

    @Test
    public void modulesMapsAreLookedForWhereTheLoaderPinsThem() throws Exception {
        final DrwaBpfKnobs.Dependencies deps = new DrwaBpfKnobs.Dependencies();
        assertThrows(ErrnoException.class, deps::openDevs);
        assertThrows(ErrnoException.class, deps::openQueues);
        assertThrows(ErrnoException.class, deps::openCounts);
        assertThrows(ErrnoException.class, deps::openFlows);
        assertTrue(deps.readInterfaceCounters().toString().contains(" lo:"));
        final long nowUs = deps.getNowUs();
        assertTrue(nowUs <= deps.getNowUs());
        assertFalse(deps.hasProgram(true));
        assertFalse(deps.hasProgram(false));
        final UnsupportedOperationException thrown =
                assertThrows(
                        UnsupportedOperationException.class,
                        () -> new DrwaBpfDependencies().makeBpfKnobs(mNetd, new DrwaWriteLog()));
        assertTrue(
                thrown.getMessage(),
                thrown.getMessage().startsWith("cannot use /sys/fs/bpf/net_shared/"));
        assertEquals(
                "/sys/fs/bpf/net_shared/prog_drwa_schedcls_ingress_drwa",
                DrwaBpfKnobs.programPath(true));
        assertEquals(
                "/sys/fs/bpf/net_shared/prog_drwa_schedcls_egress_drwa",
                DrwaBpfKnobs.programPath(false));
    }
}
