/*
 * Copyright (C) 2026 The DRWA for Android Authors
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

package com.android.server.connectivity;

import static android.system.OsConstants.E2BIG;

import android.annotation.NonNull;
import android.annotation.Nullable;
import android.os.Build;
import android.system.ErrnoException;
import android.system.Os;
import android.util.ArrayMap;
import android.util.ArraySet;
import com.android.internal.annotations.VisibleForTesting;
import com.android.net.module.util.BpfMap;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The maps of the BPF programs that govern connections on a kernel without knobs of its own.
 *
 * <ul>
 *   <li>{@code drwa_devs}: λ and queue of interfaces, by their index. An interface that is off has
 *       no entry. That of {@link #UNKNOWN_INDEX} is for connections whose interface is not known
 *       yet, and is there while any interface is on.
 *   <li>{@code drwa_stats}: what the programs have counted at interfaces, by their index.
 *   <li>{@code drwa_attached}: 1 once netd has attached all programs, which it does when it starts.
 * </ul>
 *
 * <p>Entries outlive both the interface and the system server, and an index may be another
 * interface's one day. So what belongs to no interface is deleted, at the start and whenever one is
 * gone.
 *
 * <p>It is the only writer, and keeps what it has written. SingleWriterBpfMap, which is for that,
 * came after Android 14, and forgets an entry that it could not write.
 *
 * @hide
 */
public final class DrwaBpfKnobs implements DrwaKnobs {
    /** Where the module's loader pins maps that the system server writes, and netd does not. */
    @VisibleForTesting static final String PATH = "/sys/fs/bpf/netd_readonly/map_drwa_";

    @VisibleForTesting static final String DEVS = "drwa_devs";
    @VisibleForTesting static final String STATS = "drwa_stats";
    @VisibleForTesting static final String ATTACHED = "drwa_attached";

    /** No interface has this one. */
    @VisibleForTesting static final int UNKNOWN_INDEX = 0;

    /** As in the programs. */
    @VisibleForTesting static final int BINS = 14;

    /** More keys than any of the maps has room for: one that changes may be read in circles. */
    private static final int MAX_KEYS = 1024;

    @NonNull private final Dependencies mDeps;
    @NonNull private final DrwaWriteLog mLog;
    @NonNull private final IBpfMap<Struct.S32, Dev> mDevs;
    @NonNull private final IBpfMap<Struct.S32, Stats> mStats;

    /** The entries of interfaces that exist, as far as is known. */
    private final ArrayMap<String, Entry> mEntries = new ArrayMap<>();

    /** Indices of interfaces that are gone and whose entries are not. */
    private final ArraySet<Integer> mGone = new ArraySet<>();

    /** What the entry of {@link #UNKNOWN_INDEX} holds: see {@link Entry#mDev}. */
    @NonNull private Entry mUnknown = new Entry(UNKNOWN_INDEX, null);

    private boolean mStarted;

    /** {@code struct drwa_dev}: what is wanted of an interface. */
    public static class Dev extends Struct {
        /** Hundredths, 100 to 1000, or 0 for off. */
        @Field(order = 0, type = Type.U32)
        public final long lambda;

        /** The same for those that share a queue, or 0 for one of its own. */
        @Field(order = 1, type = Type.U32)
        public final long queue;

        public Dev(final long lambda, final long queue) {
            this.lambda = lambda;
            this.queue = queue;
        }
    }

    /** {@code struct drwa_stats}: what was counted at an interface since it first was on. */
    public static class Stats extends Struct {
        /** Bytes of the packets that came to sockets. */
        @Field(order = 0, type = Type.U63)
        public final long came;

        /** Connections that became governed. */
        @Field(order = 1, type = Type.U63)
        public final long sockets;

        /** Rounds of the law. */
        @Field(order = 2, type = Type.U63)
        public final long rounds;

        /** Windows that were set. */
        @Field(order = 3, type = Type.U63)
        public final long clamps;

        /** Of these, those that the kernel refused. */
        @Field(order = 4, type = Type.U63)
        public final long refused;

        /** Histogram of queueing delays: {@link #BINS} counters, see {@link #appendBins}. */
        @Field(order = 5, type = Type.ByteArray, arraysize = BINS * Long.BYTES)
        public final byte[] delayUs;

        /** The same of RTTs without these delays. */
        @Field(order = 6, type = Type.ByteArray, arraysize = BINS * Long.BYTES)
        public final byte[] rttUs;

        public Stats(
                final long came,
                final long sockets,
                final long rounds,
                final long clamps,
                final long refused,
                final byte[] delayUs,
                final byte[] rttUs) {
            this.came = came;
            this.sockets = sockets;
            this.rounds = rounds;
            this.clamps = clamps;
            this.refused = refused;
            this.delayUs = delayUs;
            this.rttUs = rttUs;
        }

        /** As /proc/net/tcp_drwa has it, of a kernel with knobs of its own. */
        @Override
        public String toString() {
            final StringBuilder text = new StringBuilder();
            text.append("sockets=").append(sockets);
            text.append(" rounds=").append(rounds);
            text.append(" clamps=").append(clamps);
            text.append(" refused=").append(refused);
            text.append(" came=").append(came);
            appendBins(text, " delay_us=", delayUs);
            appendBins(text, " rtt_us=", rttUs);
            return text.toString();
        }

        /** Bins are below 2^10 µs, below 2^11 µs, and so on; the last one has all that is above. */
        private static void appendBins(StringBuilder text, String key, byte[] bins) {
            final ByteBuffer buffer = ByteBuffer.wrap(bins).order(ByteOrder.nativeOrder());
            String separator = key;
            while (buffer.hasRemaining()) {
                text.append(separator).append(buffer.getLong());
                separator = ",";
            }
        }
    }

    private static final class Entry {
        static final Dev NONE = new Dev(OFF, OWN_QUEUE);

        final int mIndex;

        /** What the map holds, {@link #NONE} if nothing, null if that is not known. */
        @Nullable final Dev mDev;

        Entry(int index, @Nullable Dev dev) {
            mIndex = index;
            mDev = dev;
        }
    }

    /** What lies outside of this class's reach in a test. */
    @VisibleForTesting
    static class Dependencies {
        /**
         * @throws ErrnoException if there is none, or it may not be written
         */
        @NonNull
        IBpfMap<Struct.S32, Dev> openDevs() throws ErrnoException {
            return open(DEVS, BpfMap.BPF_F_RDWR, Dev.class);
        }

        /**
         * @throws ErrnoException if there is none, or it may not be read
         */
        @NonNull
        IBpfMap<Struct.S32, Stats> openStats() throws ErrnoException {
            return open(STATS, BpfMap.BPF_F_RDONLY, Stats.class);
        }

        /**
         * @throws ErrnoException if there is none, or it may not be read
         */
        @NonNull
        IBpfMap<Struct.S32, Struct.U32> openAttached() throws ErrnoException {
            return open(ATTACHED, BpfMap.BPF_F_RDONLY, Struct.U32.class);
        }

        private static <V extends Struct> IBpfMap<Struct.S32, V> open(
                String map, int mode, Class<V> value) throws ErrnoException {
            // netd's programs are in the module since then
            if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) {
                throw new UnsupportedOperationException("older than Android 13");
            }
            return new BpfMap<>(PATH + map, mode, Struct.S32.class, value);
        }

        /**
         * @return 0 if there is no such interface
         */
        int getIndex(@NonNull String iface) {
            return Os.if_nametoindex(iface);
        }

        /**
         * @return null if there is no such interface
         */
        @Nullable
        String getName(int index) {
            return Os.if_indextoname(index);
        }
    }

    /**
     * @throws UnsupportedOperationException with the reason, if the programs are not attached, or
     *     their maps are not there or may not be used
     */
    DrwaBpfKnobs(@NonNull Dependencies deps, @NonNull DrwaWriteLog log)
            throws UnsupportedOperationException {
        mDeps = deps;
        mLog = log;
        String map = DEVS;
        final Struct.U32 attached;
        try {
            mDevs = deps.openDevs();
            map = STATS;
            mStats = deps.openStats();
            map = ATTACHED;
            attached = deps.openAttached().getValue(new Struct.S32(0));
        } catch (ErrnoException e) {
            throw new UnsupportedOperationException(
                    "cannot use " + PATH + map + ": " + e.getMessage(), e);
        }
        if (attached == null || attached.val == 0) {
            throw new UnsupportedOperationException("netd has not attached the programs");
        }
    }

    @Override
    public boolean isMissing() {
        return false;
    }

    @Override
    public boolean hasQueues() {
        return true;
    }

    @Override
    public boolean supersedeLimit() {
        // Programs set the window, and have no say in the buffer.
        return false;
    }

    @Override
    public String describe() {
        return "BPF, " + PATH + DEVS;
    }

    @Override
    public Set<String> getInterfacesNotOff() {
        return new ArraySet<>(mEntries.keySet());
    }

    @Override
    public boolean start() {
        if (mStarted) return true;
        final Set<Integer> indices;
        try {
            indices = readKeys(mDevs);
        } catch (ErrnoException e) {
            mLog.onError("Cannot read " + DEVS, e);
            return false;
        }
        mEntries.clear();
        mGone.clear();
        mUnknown = new Entry(UNKNOWN_INDEX, Entry.NONE);
        for (int index : indices) {
            final String iface = mDeps.getName(index);
            if (index == UNKNOWN_INDEX) {
                mUnknown = read("index " + index, index);
            } else if (iface == null) {
                mGone.add(index);
            } else {
                remember(iface, read(iface, index));
            }
        }
        mStarted = true;
        return true;
    }

    @Override
    public Result refresh(String iface) {
        final int index = mDeps.getIndex(iface);
        final Entry known = mEntries.get(iface);
        if (known != null && known.mIndex != index) {
            mEntries.remove(iface);
            mGone.add(known.mIndex);
        }
        if (index == UNKNOWN_INDEX) return Result.NO_INTERFACE;
        final Entry entry = read(iface, index);
        remember(iface, entry);
        return entry.mDev == null ? Result.MAP_FAILED : Result.DONE;
    }

    /** One that cannot be read is not known, and written when it is set. */
    private Entry read(String iface, int index) {
        try {
            final Dev dev = mDevs.getValue(new Struct.S32(index));
            return new Entry(index, dev == null ? Entry.NONE : dev);
        } catch (ErrnoException e) {
            onError("read", iface, e);
            return new Entry(index, null);
        }
    }

    @Override
    public Result set(String iface, DrwaSetting setting, int queue) {
        final Entry known = mEntries.get(iface);
        if (!setting.isOn()) {
            return known == null ? Result.DONE : write(iface, known, Entry.NONE, setting);
        }
        final int index = known == null ? mDeps.getIndex(iface) : known.mIndex;
        if (index == UNKNOWN_INDEX) return Result.NO_INTERFACE;
        // First, or a connection in between would offer all that its buffer has room for
        final Result unknown = setUnknown(DrwaCarrierConfig.MIN_LAMBDA);
        final Entry former = known == null ? new Entry(index, Entry.NONE) : known;
        final Result result = write(iface, former, new Dev(setting.lambda, queue), setting);
        return result == Result.DONE ? unknown : result;
    }

    @Override
    public Result clean() {
        Result result = Result.DONE;
        for (int i = mGone.size() - 1; i >= 0; i--) {
            final int index = mGone.valueAt(i);
            try {
                mDevs.deleteEntry(new Struct.S32(index));
                mLog.onWritten("index " + index + " off: gone");
                mGone.removeAt(i);
            } catch (ErrnoException e) {
                result = onError("delete", "index " + index, e);
            }
        }
        if (!mEntries.isEmpty() || !mGone.isEmpty()) return result;
        final Result unknown = setUnknown(OFF);
        return result == Result.DONE ? unknown : result;
    }

    /**
     * @param lambda in hundredths; the programs only ask whether it is 0
     */
    private Result setUnknown(int lambda) {
        final Dev dev = new Dev(lambda, OWN_QUEUE);
        final Dev former = mUnknown.mDev;
        if (former != null && (former.lambda == OFF) == (lambda == OFF)) return Result.DONE;
        try {
            put(UNKNOWN_INDEX, dev);
            mUnknown = new Entry(UNKNOWN_INDEX, dev);
            return Result.DONE;
        } catch (ErrnoException e) {
            mUnknown = new Entry(UNKNOWN_INDEX, null);
            return onError("write", "index " + UNKNOWN_INDEX, e);
        }
    }

    private Result write(String iface, Entry former, Dev dev, DrwaSetting setting) {
        if (dev.equals(former.mDev)) return Result.DONE;
        try {
            put(former.mIndex, dev);
        } catch (ErrnoException e) {
            remember(iface, new Entry(former.mIndex, null));
            return onError("write", iface, e);
        }
        final String queue = setting.isOn() ? ", " + DrwaKnobs.describeQueue((int) dev.queue) : "";
        mLog.onWritten(iface + " " + setting + queue);
        remember(iface, new Entry(former.mIndex, dev));
        return Result.DONE;
    }

    private void put(int index, Dev dev) throws ErrnoException {
        final Struct.S32 key = new Struct.S32(index);
        if (dev.lambda == OFF) {
            mDevs.deleteEntry(key);
        } else {
            mDevs.updateEntry(key, dev);
        }
    }

    private void remember(String iface, Entry entry) {
        mGone.remove(entry.mIndex);
        // Of an interface that has changed its name, only the new one is told
        for (int i = mEntries.size() - 1; i >= 0; i--) {
            if (mEntries.valueAt(i).mIndex == entry.mIndex) mEntries.removeAt(i);
        }
        if (!Entry.NONE.equals(entry.mDev)) mEntries.put(iface, entry);
    }

    private Result onError(String what, String iface, ErrnoException e) {
        mLog.onError("Cannot " + what + " " + DEVS + " of " + iface, e);
        return e.errno == E2BIG ? Result.MAP_FULL : Result.MAP_FAILED;
    }

    /** All keys of a map. What changes meanwhile may be among them or not. */
    private static Set<Integer> readKeys(IBpfMap<Struct.S32, ?> map) throws ErrnoException {
        final Set<Integer> keys = new TreeSet<>();
        Struct.S32 key = map.getFirstKey();
        for (int i = 0; i < MAX_KEYS && key != null; i++) {
            keys.add(key.val);
            key = map.getNextKey(key);
        }
        return keys;
    }

    private static <V extends Struct> Map<Integer, V> read(IBpfMap<Struct.S32, V> map)
            throws ErrnoException {
        final Map<Integer, V> entries = new TreeMap<>();
        for (int key : readKeys(map)) {
            final V value = map.getValue(new Struct.S32(key));
            if (value != null) entries.put(key, value);
        }
        return entries;
    }

    /** Prints what the maps hold now, whoever wrote it, and what the programs have counted. */
    @Override
    public void dump(PrintWriter pw) {
        try {
            final Map<Integer, Dev> devs = read(mDevs);
            final Map<Integer, Stats> stats = read(mStats);
            devs.remove(UNKNOWN_INDEX);
            final Set<Integer> indices = new TreeSet<>(devs.keySet());
            indices.addAll(stats.keySet());
            pw.println("Counters, with histograms below 2^10 µs, below 2^11 µs, and so on:");
            for (int index : indices) {
                final Dev dev = devs.getOrDefault(index, Entry.NONE);
                final String name = mDeps.getName(index);
                pw.println(
                        (name == null ? "index " + index : name)
                                + (" lambda=" + dev.lambda + " queue=" + dev.queue)
                                + (stats.containsKey(index) ? " " + stats.get(index) : ""));
            }
        } catch (ErrnoException e) {
            pw.println("Cannot read the BPF maps: " + e.getMessage());
        }
    }
}
