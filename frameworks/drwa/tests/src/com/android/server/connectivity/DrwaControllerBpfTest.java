// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.system.ErrnoException;
import android.system.OsConstants;
import android.util.Log;
import com.android.net.module.util.Struct;
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
        if (ifaces.length != 0) wanted.add(DrwaBpfKnobs.UNKNOWN_INDEX);
        for (String iface : ifaces) wanted.add(mNetd.getIndex(iface));
        wanted.sort(null);
        assertEquals(wanted, new ArrayList<>(keys()));
    }

    // What differs from the kernel's knobs

    /** The programs do not reach the buffer. */
    @Override
    String getRelation() {
        return "stays below";
    }

    @Test
    @Override
    public void queueIsThereAsLongAsLambda() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        connect(CELL, cellular(SUB), link(RMNET));
        mController.onNetworkDestroyed(CELL);
        assertEquals(
                List.of(
                        "unknown 100 0",
                        "rmnet_data2 150 100",
                        "rmnet_data2 deleted",
                        "unknown deleted"),
                mNetd.written);
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
        mNetd.getDevs().put(DrwaBpfKnobs.UNKNOWN_INDEX, new DrwaBpfKnobs.Dev(100, 0));
        mNetd.getDevs().put(GONE, new DrwaBpfKnobs.Dev(300, 0));
        start();
        assertEquals(Set.of(), keys());
        assertEquals(5, mNetd.written.size());
        assertEquals(0, mNetd.redundantWrites);
        assertTrue(dump(), dump().contains("- index 7777 off: gone\n"));
    }

    @Test
    @Override
    public void kernelWithoutDrwaIsLeftAlone() {
        mNetd.removeUplinkFromNetd();
        mBpf.problem = new ErrnoException("nativeBpfFdGet", OsConstants.EACCES);
        start();
        final int calls = mNetd.calls;
        connect(CELL, cellular(SUB), link(RMNET));
        mNetd.addInterface("rmnet_data4");
        idle();
        mController.onNetworkDestroyed(CELL);
        idleFor(DrwaController.MAX_RETRY_DELAY_MS);
        assertEquals(calls, mNetd.calls);
        assertEquals(2, countLogged("DrwaKnobs", Log.INFO));
        assertEquals(1, countLogged("DrwaController", Log.INFO));
        assertDumped("This kernel has no tcp_drwa_lambda");
        final String reason = "cannot use /sys/fs/bpf/netd_readonly/map_drwa_drwa_devs: ";
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
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
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
        assertDumped("Writes: 0, errors: 2");
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
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
        assertGoverned(RMNET);
    }

    // What only the maps have

    @Test
    public void dumpTellsWhatGoverns() {
        start();
        assertDumped("This kernel has no tcp_drwa_lambda");
        assertDumped("Knobs: BPF, /sys/fs/bpf/netd_readonly/map_drwa_drwa_devs");
        assertFalse(dump(), dump().contains("No BPF"));
    }

    @Test
    public void programsThatAreNotAttachedGovernNothing() {
        mBpf.attached.put(0, new Struct.U32(0));
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertGoverned();
        assertDumped("No BPF: netd has not attached the programs");
        assertDumped("Knobs: none, so λ stays off");
    }

    @Test
    public void unknownInterfaceIsGovernedWhileAnyIs() {
        start();
        assertGoverned();
        connect(OTHER, internet(TRANSPORT_WIFI), link(WLAN));
        assertGoverned();
        connect(CELL, cellular(SUB), link(RMNET, CLAT));
        assertGoverned(RMNET, CLAT);
        connect(CELL, cellular(SUB), link(CLAT));
        connect(VPN, vpn(List.of(CELL), TRANSPORT_CELLULAR), link(TUN));
        assertGoverned(CLAT, TUN);
        connect(CELL, cellular(SUB), link(RMNET2));
        assertGoverned(RMNET2, TUN);
        mController.onNetworkDestroyed(CELL);
        assertGoverned();
        assertEquals(1, mNetd.written.stream().filter("unknown deleted"::equals).count());
    }

    @Test
    public void unknownInterfaceThatFailsHoldsUpNoOther() {
        final FakeBpfMap<DrwaBpfKnobs.Dev> devs = mNetd.getDevs();
        start();
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        mNetd.onlyUnknownFails = true;
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(Set.of(mNetd.getIndex(RMNET)), devs.getAll().keySet());
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: the BPF map failed");
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
        assertGoverned(RMNET);

        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        mController.onNetworkDestroyed(CELL);
        assertEquals(Set.of(DrwaBpfKnobs.UNKNOWN_INDEX), devs.getAll().keySet());
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
        assertGoverned();
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
        idleFor(2 * DrwaController.MIN_RETRY_DELAY_MS);
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
        mNetd.getDevs().put(DrwaBpfKnobs.UNKNOWN_INDEX, new DrwaBpfKnobs.Dev(100, 0));
        mNetd.faults.put(WLAN, FakeNetd.Fault.IO_ERROR);
        start();
        assertEquals(
                Set.of(mNetd.getIndex(WLAN), DrwaBpfKnobs.UNKNOWN_INDEX),
                mNetd.getDevs().getAll().keySet());
        mNetd.faults.clear();
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
        assertGoverned();
    }

    @Test
    public void leftoverOfALiveNetworkIsTakenOver() {
        mNetd.setKnob(RMNET, LAMBDA);
        mNetd.setQueue(RMNET, CELL);
        mNetd.getDevs().put(DrwaBpfKnobs.UNKNOWN_INDEX, new DrwaBpfKnobs.Dev(100, 0));
        mNetd.getDevs().put(GONE, new DrwaBpfKnobs.Dev(300, 0));
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
            mNetd.getDevs().put(GONE + i, new DrwaBpfKnobs.Dev(100, 0));
        }
        connect(CELL, cellular(SUB), link(RMNET));
        assertDumped("rmnet_data2 λ=1.50: carrier 1989, not written: the BPF map is full");
        for (int i = 0; i < 64; i++) mNetd.getDevs().remove(GONE + i);
        idleFor(DrwaController.MIN_RETRY_DELAY_MS);
        assertGoverned(RMNET);
    }

    @Test
    public void kernelWithKnobsIsGovernedByNothingElse() {
        mNetd.addDrwaToKernel();
        mNetd.getDevs().put(DrwaBpfKnobs.UNKNOWN_INDEX, new DrwaBpfKnobs.Dev(100, 0));
        mNetd.getDevs().put(mNetd.getIndex(RMNET), new DrwaBpfKnobs.Dev(100, 0));
        mNetd.getDevs().put(GONE, new DrwaBpfKnobs.Dev(100, 0));
        startOnCellular();
        assertEquals(Set.of(), keys());
        assertDumped("Knobs: the kernel's, through netd");
        assertDumped("No BPF: the kernel has knobs of its own");
    }

    @Test
    public void leftoversBesideKnobsAreClearedInTheEnd() {
        mNetd.addDrwaToKernel();
        mNetd.getDevs().put(GONE, new DrwaBpfKnobs.Dev(100, 0));
        mNetd.fault = FakeNetd.Fault.IO_ERROR;
        start();
        assertEquals(Set.of(GONE), keys());
        mNetd.fault = FakeNetd.Fault.NONE;
        idleFor(DrwaController.MAX_RETRY_DELAY_MS);
        assertEquals(Set.of(), keys());
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
        final DrwaBpfKnobs.Stats stats =
                new DrwaBpfKnobs.Stats(1500, 3, 40, 30, 1, bins(1, 2), bins(0, 0, 1L << 40));
        mBpf.stats.put(mNetd.getIndex(RMNET), stats);
        mBpf.stats.put(GONE, stats);
        final String counters =
                "sockets=3 rounds=40 clamps=30 refused=1 came=1500"
                        + " delay_us=1,2,0,0,0,0,0,0,0,0,0,0,0,0"
                        + " rtt_us=0,0,1099511627776,0,0,0,0,0,0,0,0,0,0,0";
        assertDumped("Counters, with histograms below 2^10 µs, below 2^11 µs, and so on:");
        assertDumped("rmnet_data2 lambda=150 queue=100 " + counters);
        assertDumped("index 7777 lambda=0 queue=0 " + counters);
        connect(OTHER, cellular(SUB2), link(RMNET2));
        assertDumped("rmnet_data3 lambda=300 queue=101");
    }

    @Test
    public void structuresAreThoseOfThePrograms() throws Exception {
        final String header =
                Files.readString(Path.of(System.getProperty("drwa.top"), "kernel/bpf/drwa.h"));
        assertTrue(header, header.contains("#define DRWA_BINS\t" + DrwaBpfKnobs.BINS + "\n"));
        assertEquals(List.of("__u32 lambda", "__u32 queue"), findMembers(header, "drwa_dev"));
        assertEquals(
                List.of(
                        "__u64 came",
                        "__u64 sockets",
                        "__u64 rounds",
                        "__u64 clamps",
                        "__u64 refused",
                        "__u64 delay_us[DRWA_BINS]",
                        "__u64 rtt_us[DRWA_BINS]"),
                findMembers(header, "drwa_stats"));
        final ByteBuffer raw = ByteBuffer.allocate(33 * Long.BYTES).order(ByteOrder.nativeOrder());
        for (int i = 0; i < 33; i++) raw.putLong(i);
        raw.flip();
        assertEquals(raw.capacity(), Struct.getSize(DrwaBpfKnobs.Stats.class));
        assertEquals(
                "sockets=1 rounds=2 clamps=3 refused=4 came=0"
                        + " delay_us=5,6,7,8,9,10,11,12,13,14,15,16,17,18"
                        + " rtt_us=19,20,21,22,23,24,25,26,27,28,29,30,31,32",
                Struct.parse(DrwaBpfKnobs.Stats.class, raw).toString());
        final ByteBuffer dev = ByteBuffer.wrap(new DrwaBpfKnobs.Dev(150, 100).writeToBytes());
        dev.order(ByteOrder.nativeOrder());
        assertEquals(8, dev.capacity());
        assertEquals(150, dev.getInt());
        assertEquals(100, dev.getInt());
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
    public void modulesMapsAreLookedForWhereTheLoaderPinsThem() {
        final DrwaBpfKnobs.Dependencies deps = new DrwaBpfKnobs.Dependencies();
        assertThrows(ErrnoException.class, deps::openDevs);
        assertThrows(ErrnoException.class, deps::openStats);
        assertThrows(ErrnoException.class, deps::openAttached);
        final UnsupportedOperationException thrown =
                assertThrows(
                        UnsupportedOperationException.class,
                        () -> new DrwaBpfDependencies().makeBpfKnobs(new DrwaWriteLog()));
        assertTrue(
                thrown.getMessage(),
                thrown.getMessage().startsWith("cannot use /sys/fs/bpf/netd_readonly/"));
    }

    @Test
    public void hostOutsideOfTheModuleHasNone() {
        final UnsupportedOperationException thrown =
                assertThrows(
                        UnsupportedOperationException.class,
                        () -> new DrwaController.Dependencies().makeBpfKnobs(new DrwaWriteLog()));
        assertEquals("not within reach outside of the module", thrown.getMessage());
    }
}
