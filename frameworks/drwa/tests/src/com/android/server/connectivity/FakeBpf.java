// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.system.ErrnoException;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import java.io.IOException;

/** The module's BPF programs and their maps, beside {@link FakeNetd}'s interfaces. */
public class FakeBpf extends DrwaBpfKnobs.Dependencies {
    private final FakeNetd mNetd;

    public final FakeBpfMap<DrwaBpfKnobs.Stats> stats;

    public int programId = 45;

    /** Null if the maps can be opened. */
    public ErrnoException problem;

    public FakeBpf(FakeNetd netd) {
        mNetd = netd;
        stats =
                new FakeBpfMap<>(
                        DrwaBpfKnobs.Stats.class,
                        64,
                        new FakeBpfMap.Observer<>() {
                            @Override
                            public void onRead(int index) {}

                            @Override
                            public void beforeWrite(int index) {
                                throw new AssertionError("The counters are the programs'");
                            }

                            @Override
                            public void afterWrite(
                                    int index,
                                    DrwaBpfKnobs.Stats former,
                                    DrwaBpfKnobs.Stats value) {}
                        });
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
    int getSockopsProgramId() throws IOException {
        if (programId < 0) throw new IOException("no cgroup");
        return programId;
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
