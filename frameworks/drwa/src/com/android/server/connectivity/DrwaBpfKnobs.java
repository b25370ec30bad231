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
import static android.system.OsConstants.EEXIST;
import static android.system.OsConstants.EINVAL;
import static android.system.OsConstants.EIO;
import static android.system.OsConstants.ENODEV;
import static android.system.OsConstants.ENOENT;

import android.annotation.NonNull;
import android.annotation.Nullable;
import android.os.Build;
import android.system.ErrnoException;
import android.system.Os;
import android.system.OsConstants;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.SparseArray;
import com.android.internal.annotations.VisibleForTesting;
import com.android.net.module.util.BpfMap;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import com.android.net.module.util.TcUtils;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The BPF programs that govern connections at interfaces, on a kernel without knobs of its own.
 *
 * <ul>
 *   <li>An interface that is on has an entry in {@code drwa_devs}, by its index, and the programs
 *       as filters of its clsact qdisc. One that is off has neither.
 *   <li>{@code drwa_counts} and {@code drwa_queues} have a place for each entry, which is empty
 *       when the entry is made. Interfaces with one queue have the queue's place of the first, and
 *       keep it when that one leaves.
 * </ul>
 *
 * <p>Entries outlive the system server and interfaces, and an index may be another interface's one
 * day. So what was left is taken away at the start, and what belongs to no interface whenever one
 * is gone. Filters may go sooner: netd takes away an interface's qdisc when it leaves a network,
 * and all of them when it starts. They are attached anew then, see {@link #onNetworkOf}.
 *
 * <p>It is the only writer, and keeps what it has written. SingleWriterBpfMap, which is for that,
 * came after Android 14, and forgets an entry that it could not write.
 *
 * @hide
 */
public final class DrwaBpfKnobs extends DrwaProgramKnobs {
    /** Where the module's loader pins what the system server uses, as it does clat's. */
    @VisibleForTesting static final String PATH = "/sys/fs/bpf/net_shared/";

    @VisibleForTesting static final String DEVS = "drwa_devs";
    @VisibleForTesting static final String QUEUES = "drwa_queues";
    @VisibleForTesting static final String COUNTS = "drwa_counts";
    @VisibleForTesting static final String FLOWS = "drwa_flows";

    /**
     * Before those of tethering and clat, which redirect what they take. The filter of a
     * developer's ingress rate limit has the same, see {@link DrwaRateLimit}.
     */
    @VisibleForTesting static final short PRIORITY = 1;

    /** ETH_P_ALL */
    @VisibleForTesting static final short ALL_PROTOCOLS = 3;

    /** Who knows more: the module's loader goes on without the programs, and logs why. */
    @VisibleForTesting
    static final String NOT_LOADED =
            "; for why, see NetBpfLoad or NetBpfLoader in the log of this boot";

    private static final int ETHER_HEADER_BYTES = 14;

    /** DRWA_HEADER_BYTES of the programs, which count what a packet has beyond that. */
    @VisibleForTesting static final int HEADER_BYTES = 72;

    /** What comes while the filters are put there, or just after, says nothing. */
    @VisibleForTesting static final long PAST_BYTES = 1_000_000;

    /** As in the programs. */
    @VisibleForTesting static final int BINS = 14;

    @VisibleForTesting static final int PLACES = 64;

    /** {@code struct drwa_queue}, and where its members are that matter here. */
    @VisibleForTesting static final int QUEUE_BYTES = 112;

    @VisibleForTesting static final int DELAY_US_AT = 68;
    @VisibleForTesting static final int DELAY_SET_US_AT = 72;

    /** DRWA_SECOND_US: what is older tells nothing of a queue, as in {@code drwa-bpf status}. */
    @VisibleForTesting static final int DELAY_OLD_US = 1 << 20;

    /** The members of {@code struct drwa_counts} that are read by nobody here. */
    @VisibleForTesting static final int BEFORE_BYTES = 2 * Long.BYTES;

    /** The qdisc does not go with the filters. */
    @VisibleForTesting static final short CLSACT_STAYS = 0;

    /** The programs hear of no answer to an echo. */
    @VisibleForTesting static final long NO_ECHO = 0;

    /** What {@link Os#if_nametoindex} says of an interface that is not there. */
    private static final int NO_INDEX = 0;

    /** More keys than any of the maps has room for: one that changes may be read in circles. */
    private static final int MAX_KEYS = 1024;

    @NonNull private final Dependencies mDeps;
    @NonNull private final DrwaWriteLog mLog;
    @NonNull private final IBpfMap<Struct.S32, Dev> mDevs;
    @NonNull private final IBpfMap<Struct.S32, Queue> mQueues;
    @NonNull private final IBpfMap<Struct.S32, Counts> mCounts;

    /** The entries of interfaces that exist, as far as is known. */
    private final ArrayMap<String, Entry> mEntries = new ArrayMap<>();

    /** Indices of entries that have to go, since their interface has or they were left. */
    private final ArraySet<Integer> mGone = new ArraySet<>();

    /** What the interfaces had received, by place, when they took it; null if nobody knows. */
    private final AtomicReferenceArray<Received> mBefore = new AtomicReferenceArray<>(PLACES);

    private boolean mStarted;

    /** What an interface has received in all. */
    @VisibleForTesting
    static final class Received {
        final long mBytes;
        final long mPackets;

        Received(long bytes, long packets) {
            mBytes = bytes;
            mPackets = packets;
        }
    }

    /** {@code struct drwa_dev}: what is wanted of an interface. */
    public static class Dev extends Struct {
        /** Hundredths, 100 to 1000. */
        @Field(order = 0, type = Type.U32)
        public final long lambda;

        /** The same for those that share a queue, or 0 for one of its own. */
        @Field(order = 1, type = Type.U32)
        public final long number;

        /** Its place in {@code drwa_counts}. */
        @Field(order = 2, type = Type.U32)
        public final long slot;

        /** Its queue's place in {@code drwa_queues}. */
        @Field(order = 3, type = Type.U32)
        public final long queue;

        /** Length of the link layer's header, bytes. */
        @Field(order = 4, type = Type.U32)
        public final long l2;

        /** Of the filters. */
        @Field(order = 5, type = Type.U16)
        public final int priority;

        /** Whether the qdisc goes with the filters: here it stays. */
        @Field(order = 6, type = Type.U8)
        public final short clsact;

        /** Whether what is forwarded is left alone, 0 or 1. */
        @Field(order = 7, type = Type.U8)
        public final short local;

        /** Whether UDP is held to a short queue as well, 0 or 1. */
        @Field(order = 8, type = Type.U32)
        public final long aqm;

        /** What answers to echoes begin with: here none are sent. */
        @Field(order = 9, type = Type.U32)
        public final long echo;

        public Dev(
                final long lambda,
                final long number,
                final long slot,
                final long queue,
                final long l2,
                final int priority,
                final short clsact,
                final short local,
                final long aqm,
                final long echo) {
            this.lambda = lambda;
            this.number = number;
            this.slot = slot;
            this.queue = queue;
            this.l2 = l2;
            this.priority = priority;
            this.clsact = clsact;
            this.local = local;
            this.aqm = aqm;
            this.echo = echo;
        }
    }

    /** {@code struct drwa_queue}: what the programs keep of a queue. */
    public static class Queue extends Struct {
        @Field(order = 0, type = Type.ByteArray, arraysize = QUEUE_BYTES)
        public final byte[] state;

        public Queue(final byte[] state) {
            this.state = state;
        }

        /**
         * @param nowUs by the programs' clock, of which they keep 32 bits
         */
        private String describeDelay(long nowUs) {
            final ByteBuffer members = ByteBuffer.wrap(state).order(ByteOrder.nativeOrder());
            final int setUs = members.getInt(DELAY_SET_US_AT);
            if (setUs == 0 || ((nowUs - setUs) & 0xFFFFFFFFL) >= DELAY_OLD_US) return "unknown";
            final long delayUs = Integer.toUnsignedLong(members.getInt(DELAY_US_AT));
            return String.format(Locale.ROOT, "%.1f", delayUs / 1000.0);
        }
    }

    /** {@code struct drwa_counts}: what was counted at an interface since it was on. */
    public static class Counts extends Struct {
        /** Bytes beyond headers that came. */
        @Field(order = 0, type = Type.U63)
        public final long came;

        /** Such bytes that were sent. */
        @Field(order = 1, type = Type.U63)
        public final long sent;

        /** Bytes of what is no TCP. */
        @Field(order = 2, type = Type.U63)
        public final long notTcp;

        /** Bytes of connections whose SYN was not seen. */
        @Field(order = 3, type = Type.U63)
        public final long unknown;

        /** Bytes of MPTCP. */
        @Field(order = 4, type = Type.U63)
        public final long mptcp;

        /** Bytes of connections whose headers are signed. */
        @Field(order = 5, type = Type.U63)
        public final long isSigned;

        /** Connections that became governed. */
        @Field(order = 6, type = Type.U63)
        public final long flows;

        /** Rounds of the law. */
        @Field(order = 7, type = Type.U63)
        public final long rounds;

        /** Segments that offered less than they would have. */
        @Field(order = 8, type = Type.U63)
        public final long capped;

        /** Histogram of queueing delays: {@link #BINS} counters, see {@link #appendBins}. */
        @Field(order = 9, type = Type.ByteArray, arraysize = BINS * Long.BYTES)
        public final byte[] delayUs;

        /** The same of RTTs without these delays. */
        @Field(order = 10, type = Type.ByteArray, arraysize = BINS * Long.BYTES)
        public final byte[] rttUs;

        /**
         * When the first packet crossed since then, or since the filters came back, and the place
         * of its queue: two members that the programs alone read.
         */
        @Field(order = 11, type = Type.U63)
        public final long began;

        /** Flows of UDP that are held to a short queue. */
        @Field(order = 12, type = Type.U63)
        public final long udpFlows;

        /** Packets of theirs that were dropped. */
        @Field(order = 13, type = Type.U63)
        public final long udpDropped;

        /** Those that did not react, and are left alone. */
        @Field(order = 14, type = Type.U63)
        public final long udpDeaf;

        /** Flows that are left alone, as they may be a VPN's. */
        @Field(order = 15, type = Type.U63)
        public final long udpTunnels;

        /** Bytes of TCP of clients that are left alone. */
        @Field(order = 16, type = Type.U63)
        public final long clients;

        /** How far the queue's counts were ahead then, which the programs alone read. */
        @Field(order = 17, type = Type.ByteArray, arraysize = BEFORE_BYTES)
        public final byte[] before;

        public Counts(
                final long came,
                final long sent,
                final long notTcp,
                final long unknown,
                final long mptcp,
                final long isSigned,
                final long flows,
                final long rounds,
                final long capped,
                final byte[] delayUs,
                final byte[] rttUs,
                final long began,
                final long udpFlows,
                final long udpDropped,
                final long udpDeaf,
                final long udpTunnels,
                final long clients,
                final byte[] before) {
            this.came = came;
            this.sent = sent;
            this.notTcp = notTcp;
            this.unknown = unknown;
            this.mptcp = mptcp;
            this.isSigned = isSigned;
            this.flows = flows;
            this.rounds = rounds;
            this.capped = capped;
            this.delayUs = delayUs;
            this.rttUs = rttUs;
            this.began = began;
            this.udpFlows = udpFlows;
            this.udpDropped = udpDropped;
            this.udpDeaf = udpDeaf;
            this.udpTunnels = udpTunnels;
            this.clients = clients;
            this.before = before;
        }

        /** As for programs that no packet has crossed. */
        Counts anew() {
            return new Counts(
                    came,
                    sent,
                    notTcp,
                    unknown,
                    mptcp,
                    isSigned,
                    flows,
                    rounds,
                    capped,
                    delayUs,
                    rttUs,
                    0 /* began */,
                    udpFlows,
                    udpDropped,
                    udpDeaf,
                    udpTunnels,
                    clients,
                    before);
        }

        /** In the names of {@code drwa-bpf status}. */
        @Override
        public String toString() {
            final StringBuilder text = new StringBuilder();
            text.append("flows=").append(flows);
            text.append(" rounds=").append(rounds);
            text.append(" capped=").append(capped);
            text.append(" came=").append(came);
            text.append(" sent=").append(sent);
            text.append(" not_tcp=").append(notTcp);
            text.append(" unknown=").append(unknown);
            text.append(" mptcp=").append(mptcp);
            text.append(" signed=").append(isSigned);
            text.append(" clients=").append(clients);
            text.append(" udp_flows=").append(udpFlows);
            text.append(" udp_dropped=").append(udpDropped);
            text.append(" udp_deaf=").append(udpDeaf);
            text.append(" udp_tunnels=").append(udpTunnels);
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
        final int mIndex;

        /** What is wanted of it, and was written unless {@link #mWritten} is false. */
        @NonNull final Dev mDev;

        /** Whether the map holds that, as far as is known. */
        final boolean mWritten;

        @NonNull final Filters mFilters;

        Entry(int index, @NonNull Dev dev, boolean written, @NonNull Filters filters) {
            mIndex = index;
            mDev = dev;
            mWritten = written;
            mFilters = filters;
        }

        Entry with(boolean written) {
            return new Entry(mIndex, mDev, written, mFilters);
        }

        Entry with(Filters filters) {
            return new Entry(mIndex, mDev, mWritten, filters);
        }
    }

    private enum Filters {
        /** One of the same priority would be another's. */
        NONE,
        /** They may have gone with the qdisc. The kernel would take them twice. */
        PERHAPS,
        ATTACHED
    }

    /** What lies outside of this class's reach in a test. */
    @VisibleForTesting
    static class Dependencies {
        /**
         * @throws ErrnoException if there is none, or it may not be written
         */
        @NonNull
        IBpfMap<Struct.S32, Dev> openDevs() throws ErrnoException {
            return open(DEVS, Dev.class);
        }

        /**
         * @throws ErrnoException if there is none, or it may not be written
         */
        @NonNull
        IBpfMap<Struct.S32, Queue> openQueues() throws ErrnoException {
            return open(QUEUES, Queue.class);
        }

        /**
         * @throws ErrnoException if there is none, or it may not be written
         */
        @NonNull
        IBpfMap<Struct.S32, Counts> openCounts() throws ErrnoException {
            return open(COUNTS, Counts.class);
        }

        /**
         * @throws ErrnoException if there is none, or it may not be read
         */
        @NonNull
        IBpfMap<DrwaBpfClients.Key, DrwaBpfClients.Flow> openFlows() throws ErrnoException {
            return new BpfMap<>(
                    mapPath(FLOWS),
                    BpfMap.BPF_F_RDONLY,
                    DrwaBpfClients.Key.class,
                    DrwaBpfClients.Flow.class);
        }

        /** CLOCK_MONOTONIC, which is the programs' clock. */
        long getNowUs() {
            return System.nanoTime() / 1000;
        }

        /** The kernel's own counters of interfaces, which the programs have no part in. */
        @NonNull
        List<String> readInterfaceCounters() throws IOException {
            return Files.readAllLines(Paths.get("/proc/net/dev"));
        }

        private static <V extends Struct> IBpfMap<Struct.S32, V> open(String map, Class<V> value)
                throws ErrnoException {
            // The system server attaches filters since then.
            if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) {
                throw new UnsupportedOperationException("older than Android 13");
            }
            return new BpfMap<>(mapPath(map), BpfMap.BPF_F_RDWR, Struct.S32.class, value);
        }

        /**
         * @return whether the module's loader has pinned it
         */
        boolean hasProgram(boolean ingress) {
            return new File(programPath(ingress)).exists();
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

        /**
         * @return false: packets begin with the header of IP
         * @throws ErrnoException if they do not begin with Ethernet's either
         */
        boolean isEthernet(@NonNull String iface) throws ErrnoException {
            try {
                return TcUtils.isEthernet(iface);
            } catch (IOException e) {
                throw toErrno("isEthernet", e);
            }
        }

        /**
         * @throws ErrnoException if there is one, too
         */
        void addClsact(int index) throws ErrnoException {
            try {
                TcUtils.tcQdiscAddDevClsact(index);
            } catch (IOException e) {
                throw toErrno("tc qdisc add", e);
            }
        }

        /**
         * @throws ErrnoException EINVAL if there is no clsact qdisc, or if the priority is another
         *     kind's; that the filter is there already is none
         */
        void addFilter(int index, boolean ingress) throws ErrnoException {
            try {
                TcUtils.tcFilterAddDevBpf(
                        index, ingress, PRIORITY, ALL_PROTOCOLS, programPath(ingress));
            } catch (IOException e) {
                throw toErrno("tc filter add", e);
            }
        }

        /**
         * @throws ErrnoException ENOENT if there is none, EINVAL if there is no clsact qdisc,
         *     ENODEV if there is no interface
         */
        void deleteFilter(int index, boolean ingress) throws ErrnoException {
            try {
                TcUtils.tcFilterDelDev(index, ingress, PRIORITY, ALL_PROTOCOLS);
            } catch (IOException e) {
                throw toErrno("tc filter del", e);
            }
        }

        /** TcUtils tells the error in words alone. */
        private static ErrnoException toErrno(String what, IOException e) {
            for (int errno : new int[] {EINVAL, EEXIST, ENODEV, ENOENT}) {
                if (String.valueOf(e.getMessage()).endsWith(Os.strerror(errno))) {
                    return new ErrnoException(what, errno, e);
                }
            }
            return new ErrnoException(what, EIO, e);
        }
    }

    @VisibleForTesting
    static String mapPath(String map) {
        return PATH + "map_drwa_" + map;
    }

    @VisibleForTesting
    static String programPath(boolean ingress) {
        return PATH + "prog_drwa_schedcls_" + (ingress ? "ingress" : "egress") + "_drwa";
    }

    /**
     * @throws UnsupportedOperationException with the reason, if the maps or the programs are not
     *     there or may not be used
     */
    DrwaBpfKnobs(@NonNull Dependencies deps, @NonNull DrwaWriteLog log)
            throws UnsupportedOperationException {
        mDeps = deps;
        mLog = log;
        String map = DEVS;
        try {
            mDevs = deps.openDevs();
            map = QUEUES;
            mQueues = deps.openQueues();
            map = COUNTS;
            mCounts = deps.openCounts();
        } catch (ErrnoException e) {
            final String hint = e.errno == ENOENT ? NOT_LOADED : "";
            throw new UnsupportedOperationException(
                    "cannot use " + mapPath(map) + ": " + e.getMessage() + hint, e);
        }
        // A kernel may have refused what uses the maps.
        for (boolean ingress : new boolean[] {true, false}) {
            if (deps.hasProgram(ingress)) continue;
            throw new UnsupportedOperationException(
                    "cannot use " + programPath(ingress) + ": not there" + NOT_LOADED);
        }
    }

    @Override
    public String describe() {
        return "BPF, " + mapPath(DEVS);
    }

    @Override
    public Set<String> getInterfacesNotOff() {
        return new TreeSet<>(mEntries.keySet());
    }

    /** Takes away what an earlier system server has left. */
    @Override
    public boolean start() {
        if (mStarted) return true;
        try {
            mGone.addAll(readKeys(mDevs));
        } catch (ErrnoException e) {
            mLog.onError("Cannot read " + DEVS, e);
            return false;
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
        if (index == NO_INDEX) return Result.NO_INTERFACE;
        final Entry entry = find(iface, index);
        if (entry != null) mEntries.put(iface, entry.with(isWritten(iface, entry)));
        return Result.DONE;
    }

    /** Its entry, also if it has changed its name, of which only the new one is told. */
    @Nullable
    private Entry find(String iface, int index) {
        for (int i = mEntries.size() - 1; i >= 0; i--) {
            if (mEntries.valueAt(i).mIndex == index) mEntries.put(iface, mEntries.removeAt(i));
        }
        return mEntries.get(iface);
    }

    private boolean isWritten(String iface, Entry entry) {
        try {
            return entry.mDev.equals(mDevs.getValue(new Struct.S32(entry.mIndex)));
        } catch (ErrnoException e) {
            onError("read", iface, e);
            return false;
        }
    }

    @Override
    public Result set(String iface, DrwaSetting setting, int queue) {
        mProblems.remove(iface);
        Entry known = mEntries.get(iface);
        if (!setting.isOn()) return known == null ? Result.DONE : setOff(iface, known, setting);
        final int index = known == null ? mDeps.getIndex(iface) : known.mIndex;
        if (index == NO_INDEX) return Result.NO_INTERFACE;
        known = find(iface, index);
        final Dev dev;
        try {
            dev = makeDev(iface, known, setting, queue);
        } catch (ErrnoException e) {
            return onError("prepare", iface, e);
        }
        if (dev == null) return Result.MAP_FULL;
        final Result written = write(iface, index, known, dev, setting);
        return written == Result.DONE ? attach(iface) : written;
    }

    /**
     * @return null if there is no place for it
     */
    @Nullable
    private Dev makeDev(String iface, @Nullable Entry known, DrwaSetting setting, int number)
            throws ErrnoException {
        final long aqm = setting.aqm ? 1 : 0;
        final short local = (short) (setting.tethering ? 0 : 1);
        if (known != null
                && known.mDev.lambda == setting.lambda
                && known.mDev.aqm == aqm
                && known.mDev.local == local
                && known.mDev.number == number) {
            return known.mDev;
        }
        final int slot = known == null ? takePlace(iface) : (int) known.mDev.slot;
        if (slot == PLACES) return null;
        final long l2 =
                known == null ? (mDeps.isEthernet(iface) ? ETHER_HEADER_BYTES : 0) : known.mDev.l2;
        final boolean keepsQueue = known != null && known.mDev.number == number;
        final long queue = keepsQueue ? known.mDev.queue : findQueue(iface, known, number);
        return new Dev(
                setting.lambda,
                number,
                slot,
                queue,
                l2,
                PRIORITY,
                CLSACT_STAYS,
                local,
                aqm,
                NO_ECHO);
    }

    /**
     * Finds and empties a place that no entry counts in.
     *
     * @return {@link #PLACES} if there is none
     */
    private int takePlace(String iface) throws ErrnoException {
        final Set<Long> taken = new ArraySet<>();
        for (int i = 0; i < mEntries.size(); i++) {
            taken.add(mEntries.valueAt(i).mDev.slot);
        }
        int place = 0;
        while (place < PLACES && taken.contains((long) place)) place++;
        if (place == PLACES) return place;
        final Struct.S32 key = new Struct.S32(place);
        final byte[] bins = new byte[BINS * Long.BYTES];
        final byte[] before = new byte[BEFORE_BYTES];
        mCounts.updateEntry(
                key, new Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, bins, bins, 0, 0, 0, 0, 0, 0, before));
        try {
            mBefore.set(place, readReceived(iface));
        } catch (IOException e) {
            mBefore.set(place, null);
            mLog.onRefused("Cannot read what came by " + iface, e);
        }
        return place;
    }

    /**
     * @return null if there is no such interface
     */
    @Nullable
    private Received readReceived(String iface) throws IOException {
        for (String line : mDeps.readInterfaceCounters()) {
            final String[] columns = line.trim().split("[:\\s]+");
            if (columns.length < 3 || !columns[0].equals(iface)) continue;
            try {
                return new Received(Long.parseLong(columns[1]), Long.parseLong(columns[2]));
            } catch (NumberFormatException e) {
                throw new IOException(line, e);
            }
        }
        return null;
    }

    /**
     * The place of the queue that others with this number are in, or one where no other is: its
     * own, or one that is emptied. There are as many as entries.
     */
    private long findQueue(String iface, @Nullable Entry known, int number) throws ErrnoException {
        final Set<Long> taken = new ArraySet<>();
        for (int i = 0; i < mEntries.size(); i++) {
            if (mEntries.keyAt(i).equals(iface)) continue;
            final Dev other = mEntries.valueAt(i).mDev;
            if (other.number == number && number != OWN_QUEUE) return other.queue;
            taken.add(other.queue);
        }
        if (known != null && !taken.contains(known.mDev.queue)) return known.mDev.queue;
        int place = 0;
        while (taken.contains((long) place)) place++;
        mQueues.updateEntry(new Struct.S32(place), new Queue(new byte[QUEUE_BYTES]));
        return place;
    }

    private Result write(
            String iface, int index, @Nullable Entry known, Dev dev, DrwaSetting setting) {
        if (known != null && known.mWritten && dev.equals(known.mDev)) return Result.DONE;
        final Filters left = mGone.remove(index) ? Filters.PERHAPS : Filters.NONE;
        final Entry entry = new Entry(index, dev, false, known == null ? left : known.mFilters);
        mEntries.put(iface, entry);
        try {
            mDevs.updateEntry(new Struct.S32(index), dev);
        } catch (ErrnoException e) {
            return onError("write", iface, e);
        }
        mLog.onWritten(iface + " " + setting + ", " + DrwaKnobs.describeQueue((int) dev.number));
        mEntries.put(iface, entry.with(true));
        return Result.DONE;
    }

    private Result attach(String iface) {
        final Entry entry = mEntries.get(iface);
        if (entry.mFilters == Filters.ATTACHED) return Result.DONE;
        try {
            if (entry.mFilters == Filters.PERHAPS) detach(entry.mIndex);
            mEntries.put(iface, entry.with(Filters.NONE));
            beginAnew((int) entry.mDev.slot);
            addFilter(entry.mIndex, true);
            mEntries.put(iface, entry.with(Filters.PERHAPS));
            addFilter(entry.mIndex, false);
        } catch (ErrnoException e) {
            mLog.onError("Cannot attach the programs to " + iface, e);
            mProblems.put(iface, describeAttachProblem(e.errno));
            return Result.ATTACH_FAILED;
        }
        mEntries.put(iface, entry.with(Filters.ATTACHED));
        return Result.DONE;
    }

    /** The kernel takes no filter where one of another kind has its priority. */
    private static String describeAttachProblem(int errno) {
        final String name = OsConstants.errnoName(errno);
        if (errno != EINVAL && errno != EEXIST) return name;
        return name
                + (", as if another filter had priority " + PRIORITY)
                + ", which an ingress rate limit has"
                + " (settings put global ingress_rate_limit_bytes_per_second -1)";
    }

    /**
     * What passed while the filters were away, the programs have not seen: they must take no offer
     * from before for the last one.
     */
    private void beginAnew(int slot) throws ErrnoException {
        final Struct.S32 key = new Struct.S32(slot);
        mCounts.updateEntry(key, mCounts.getValue(key).anew());
    }

    private void addFilter(int index, boolean ingress) throws ErrnoException {
        try {
            mDeps.addFilter(index, ingress);
        } catch (ErrnoException e) {
            if (e.errno != EINVAL) throw e;
            // netd makes the qdisc for networks that are no VPNs.
            try {
                mDeps.addClsact(index);
            } catch (ErrnoException thereIsOne) {
                throw e;
            }
            mDeps.addFilter(index, ingress);
        }
    }

    @Override
    public void onNetworkOf(String iface) {
        final Entry entry = mEntries.get(iface);
        if (entry == null || entry.mFilters != Filters.ATTACHED) return;
        mEntries.put(iface, entry.with(Filters.PERHAPS));
    }

    /**
     * Takes away both filters, but for those that netd has taken away, or that went with their
     * interface. Egress first: alone, it would write windows that nobody renews.
     */
    private void detach(int index) throws ErrnoException {
        for (boolean ingress : new boolean[] {false, true}) {
            try {
                // All of the priority goes. The kernel adds none of ours beside another kind's,
                // which stays.
                mDeps.addFilter(index, ingress);
                mDeps.deleteFilter(index, ingress);
            } catch (ErrnoException e) {
                if (e.errno != ENOENT && e.errno != EINVAL && e.errno != ENODEV) throw e;
            }
        }
    }

    /** Without an entry, a filter of this priority may be another's: so the entry goes last. */
    private Result setOff(String iface, Entry known, DrwaSetting setting) {
        try {
            // Whatever of it fails: what is switched on again then is neither attached nor written.
            if (known.mFilters != Filters.NONE) {
                mEntries.put(iface, known.with(Filters.PERHAPS));
                detach(known.mIndex);
            }
            mEntries.put(iface, known.with(Filters.NONE).with(false));
            mDevs.deleteEntry(new Struct.S32(known.mIndex));
        } catch (ErrnoException e) {
            return onError("take away", iface, e);
        }
        mEntries.remove(iface);
        mLog.onWritten(iface + " " + setting);
        return Result.DONE;
    }

    @Override
    public Result clean() {
        Result result = Result.DONE;
        for (int i = mGone.size() - 1; i >= 0; i--) {
            final int index = mGone.valueAt(i);
            final String iface = mDeps.getName(index);
            try {
                if (iface != null) detach(index);
                mDevs.deleteEntry(new Struct.S32(index));
                mLog.onWritten((iface == null ? "index " + index : iface) + " off: left");
                mGone.removeAt(i);
            } catch (ErrnoException e) {
                result = onError("take away", "index " + index, e);
            }
        }
        return result;
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

    /** Prints what the maps hold now, whoever wrote it, and what the programs have counted. */
    @Override
    public void dump(PrintWriter pw) {
        try {
            final Map<Integer, Dev> devs = new TreeMap<>();
            for (int index : readKeys(mDevs)) {
                final Dev dev = mDevs.getValue(new Struct.S32(index));
                if (dev != null) devs.put(index, dev);
            }
            pw.println("Counters, with histograms below 2^10 µs, below 2^11 µs, and so on:");
            final SparseArray<DrwaBpfClients> clients = countClients(pw);
            for (Map.Entry<Integer, Dev> entry : devs.entrySet()) {
                final Dev dev = entry.getValue();
                final Counts counts = mCounts.getValue(new Struct.S32((int) dev.slot));
                final String iface = mDeps.getName(entry.getKey());
                pw.println(
                        (iface == null ? "index " + entry.getKey() : iface)
                                + (" lambda=" + dev.lambda + " queue=" + dev.number + " ")
                                + counts);
                if (dev.aqm != 0) dumpDelay(pw, dev);
                if (counts != null) dumpPast(pw, iface, dev, counts);
                final DrwaBpfClients own = clients.get(entry.getKey());
                if (own != null) pw.println("  " + own);
            }
        } catch (ErrnoException e) {
            pw.println("Cannot read the BPF maps: " + e.getMessage());
        }
    }

    /** Prints the queueing delay that UDP is judged by, which tells why packets are dropped. */
    private void dumpDelay(PrintWriter pw, Dev dev) throws ErrnoException {
        final Queue queue = mQueues.getValue(new Struct.S32((int) dev.queue));
        if (queue == null) return;
        pw.println("  udp_queue_ms=" + queue.describeDelay(mDeps.getNowUs()));
    }

    private SparseArray<DrwaBpfClients> countClients(PrintWriter pw) {
        try {
            return DrwaBpfClients.count(mDeps.openFlows(), mDeps.getNowUs());
        } catch (ErrnoException e) {
            pw.println("Cannot read " + mapPath(FLOWS) + ": " + e.getMessage());
            return new SparseArray<>();
        }
    }

    /**
     * Prints how much came that no program saw, as where hardware forwards and the interface counts
     * it. The programs count what a packet has beyond {@link #HEADER_BYTES}, so that it is more
     * rather than less.
     */
    private void dumpPast(PrintWriter pw, @Nullable String iface, Dev dev, Counts counts) {
        final Received before = mBefore.get((int) dev.slot);
        if (iface == null || before == null) return;
        final Received now;
        try {
            now = readReceived(iface);
        } catch (IOException e) {
            pw.println("  Cannot read what came: " + e.getMessage());
            return;
        }
        if (now == null) return;
        final long headers = (now.mPackets - before.mPackets) * (HEADER_BYTES + dev.l2);
        final long past = now.mBytes - before.mBytes - counts.came - headers;
        if (past < PAST_BYTES) return;
        pw.println("  past the programs came " + past + " bytes or more");
    }
}
