// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.net.INetd;
import android.system.ErrnoException;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** The module's BPF programs and their maps, beside {@link FakeNetd}'s interfaces. */
public class FakeBpf extends DrwaBpfKnobs.Dependencies {
    private final FakeNetd mNetd;

    /** Null if the maps can be opened. */
    public ErrnoException problem;

    /** That of egress is there, too, unless the kernel has refused it. */
    public boolean hasEgress = true;

    public final FakeBpfMap<DrwaBpfKnobs.Queue> queues =
            new FakeBpfMap<>(DrwaBpfKnobs.Queue.class, DrwaBpfKnobs.PLACES, new Unobserved<>());

    public final FakeBpfMap<DrwaBpfKnobs.Counts> counts =
            new FakeBpfMap<>(DrwaBpfKnobs.Counts.class, DrwaBpfKnobs.PLACES, new Unobserved<>());

    /** The connections that the programs know. */
    public final FakeFlows flows = new FakeFlows();

    /** Null if their map can be opened. */
    public ErrnoException flowsProblem;

    public long nowUs;

    /** What /proc/net/dev has, or null if it cannot be read. */
    public List<String> interfaceCounters = List.of();

    /** In the order in which they began. */
    public static final class FakeFlows
            implements IBpfMap<DrwaBpfClients.Key, DrwaBpfClients.Flow> {
        private final List<DrwaBpfClients.Key> mKeys = new ArrayList<>();
        private final List<DrwaBpfClients.Flow> mFlows = new ArrayList<>();

        /** Null where one ends while it is read. */
        public void add(DrwaBpfClients.Flow flow) {
            final ByteBuffer digest = ByteBuffer.allocate(DrwaBpfClients.KEY_BYTES);
            mKeys.add(new DrwaBpfClients.Key(digest.putInt(mKeys.size()).array()));
            mFlows.add(flow);
        }

        @Override
        public void updateEntry(DrwaBpfClients.Key key, DrwaBpfClients.Flow value) {
            throw new AssertionError("the programs' own");
        }

        @Override
        public boolean deleteEntry(DrwaBpfClients.Key key) {
            throw new AssertionError("the programs' own");
        }

        @Override
        public DrwaBpfClients.Key getNextKey(DrwaBpfClients.Key key) {
            // As the kernel does where that one is gone
            if (mFlows.get(mKeys.indexOf(key)) == null) return getFirstKey();
            final int next = mKeys.indexOf(key) + 1;
            return next == mKeys.size() ? null : mKeys.get(next);
        }

        @Override
        public DrwaBpfClients.Key getFirstKey() {
            return mKeys.isEmpty() ? null : mKeys.get(0);
        }

        @Override
        public DrwaBpfClients.Flow getValue(DrwaBpfClients.Key key) {
            return mFlows.get(mKeys.indexOf(key));
        }
    }

    public FakeBpf(FakeNetd netd) {
        mNetd = netd;
    }

    /** Those of a module with these programs. */
    public static DrwaController.Dependencies makeModule(FakeNetd netd) {
        final FakeBpf bpf = new FakeBpf(netd);
        return new Machine(netd) {
            @Override
            DrwaKnobs makeBpfKnobs(INetd unused, DrwaWriteLog log) {
                return new DrwaBpfKnobs(bpf, log);
            }
        };
    }

    /** Those of a host beside the module. */
    public static DrwaController.Dependencies makePlatform(FakeNetd netd) {
        return new Machine(netd);
    }

    /**
     * This netd's: it knows no interface of the machine that this runs on, and would say nothing of
     * the kernel.
     */
    private static class Machine extends DrwaController.Dependencies {
        private final FakeNetd mNetd;

        Machine(FakeNetd netd) {
            mNetd = netd;
        }

        @Override
        List<String> getInterfaceNames() {
            return new ArrayList<>(mNetd.getKnobs().keySet());
        }
    }

    /** As the programs do of what comes by an interface. */
    public void count(int slot, long bytes) {
        final DrwaBpfKnobs.Counts former = counts.getAll().get(slot);
        counts.put(
                slot,
                new DrwaBpfKnobs.Counts(
                        former.came + bytes,
                        former.sent,
                        former.notTcp,
                        former.unknown,
                        former.mptcp,
                        former.isSigned,
                        former.flows,
                        former.rounds,
                        former.capped,
                        former.delayUs,
                        former.rttUs,
                        former.began,
                        former.udpFlows,
                        former.udpDropped,
                        former.udpDeaf,
                        former.udpTunnels,
                        former.clients,
                        former.before));
    }

    private static final class Unobserved<V extends Struct> implements FakeBpfMap.Observer<V> {
        @Override
        public void onRead(int key) {}

        @Override
        public void beforeWrite(int key) {}

        @Override
        public void afterWrite(int key, V former, V value) {}
    }

    @Override
    IBpfMap<Struct.S32, DrwaBpfKnobs.Dev> openDevs() throws ErrnoException {
        if (problem != null) throw problem;
        return mNetd.getDevs();
    }

    @Override
    IBpfMap<Struct.S32, DrwaBpfKnobs.Queue> openQueues() {
        return queues;
    }

    @Override
    IBpfMap<Struct.S32, DrwaBpfKnobs.Counts> openCounts() {
        return counts;
    }

    @Override
    IBpfMap<DrwaBpfClients.Key, DrwaBpfClients.Flow> openFlows() throws ErrnoException {
        if (flowsProblem != null) throw flowsProblem;
        return flows;
    }

    @Override
    long getNowUs() {
        return nowUs;
    }

    @Override
    List<String> readInterfaceCounters() throws IOException {
        if (interfaceCounters == null) throw new IOException("a reason");
        return interfaceCounters;
    }

    @Override
    boolean hasProgram(boolean ingress) {
        return ingress || hasEgress;
    }

    @Override
    int getIndex(String iface) {
        return mNetd.getIndex(iface);
    }

    @Override
    String getName(int index) {
        return mNetd.getName(index);
    }

    @Override
    boolean isEthernet(String iface) {
        return iface.startsWith("wlan") || iface.startsWith("eth");
    }

    @Override
    void addClsact(int index) throws ErrnoException {
        mNetd.addClsact(mNetd.getName(index));
    }

    @Override
    void addFilter(int index, boolean ingress) throws ErrnoException {
        mNetd.addFilter(mNetd.getName(index), ingress);
    }

    @Override
    void deleteFilter(int index, boolean ingress) throws ErrnoException {
        final String iface = mNetd.getName(index);
        if (ingress && mNetd.hasEgress(iface)) {
            throw new AssertionError("egress is alone: it writes windows that nobody renews");
        }
        mNetd.deleteFilter(iface, ingress);
    }
}
