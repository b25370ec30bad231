// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.system.ErrnoException;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;

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

    public FakeBpf(FakeNetd netd) {
        mNetd = netd;
    }

    /** Those of a module with these programs. */
    public static DrwaController.Dependencies makeModule(FakeNetd netd) {
        final FakeBpf bpf = new FakeBpf(netd);
        return new DrwaController.Dependencies() {
            @Override
            DrwaKnobs makeBpfKnobs(DrwaWriteLog log) {
                return new DrwaBpfKnobs(bpf, log);
            }
        };
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
        mNetd.deleteFilter(mNetd.getName(index), ingress);
    }
}
