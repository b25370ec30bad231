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

    public final FakeBpfMap<DrwaBpfKnobs.Stats> stats =
            new FakeBpfMap<>(DrwaBpfKnobs.Stats.class, 64, new ReadOnly<>());

    public final FakeBpfMap<Struct.U32> attached =
            new FakeBpfMap<>(Struct.U32.class, 1, new ReadOnly<>());

    public FakeBpf(FakeNetd netd) {
        mNetd = netd;
        attached.put(0, new Struct.U32(1));
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

    private static final class ReadOnly<V extends Struct> implements FakeBpfMap.Observer<V> {
        @Override
        public void onRead(int key) {}

        @Override
        public void beforeWrite(int key) {
            throw new AssertionError("This one is the programs' or netd's");
        }

        @Override
        public void afterWrite(int key, V former, V value) {}
    }

    @Override
    IBpfMap<Struct.S32, DrwaBpfKnobs.Dev> openDevs() throws ErrnoException {
        if (problem != null) throw problem;
        return mNetd.getDevs();
    }

    @Override
    IBpfMap<Struct.S32, DrwaBpfKnobs.Stats> openStats() {
        return stats;
    }

    @Override
    IBpfMap<Struct.S32, Struct.U32> openAttached() {
        return attached;
    }

    @Override
    int getIndex(String iface) {
        return mNetd.getIndex(iface);
    }

    @Override
    String getName(int index) {
        return mNetd.getName(index);
    }
}
