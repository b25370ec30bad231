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

import android.annotation.NonNull;
import android.system.ErrnoException;
import android.util.ArraySet;
import android.util.SparseArray;
import com.android.internal.annotations.VisibleForTesting;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Set;

/**
 * How many connections of clients, which the phone forwards, the programs know at an interface.
 *
 * <p>Where hardware forwards, the kernel sees a connection's handshake, of some the first packets,
 * and then nothing of it any more. So a client's connection of which nothing came for {@link
 * #SILENT_MS} is idle, or not governed: drwa-bpf has the same rule. Whose connections these are,
 * nobody is told.
 *
 * @hide
 */
public final class DrwaBpfClients {
    /** SILENT_US of drwa-bpf. */
    @VisibleForTesting static final long SILENT_MS = 5000;

    /** {@code drwa_digest()} */
    @VisibleForTesting static final int KEY_BYTES = 8;

    /** {@code struct drwa_flow}, and where its members are that matter here. */
    @VisibleForTesting static final int FLOW_BYTES = 320;

    @VisibleForTesting static final int CAME_US_AT = 116;
    @VisibleForTesting static final int ANSWERED_AT = 142;
    @VisibleForTesting static final int FIN_CAME_AT = 143;
    @VisibleForTesting static final int IFINDEX_AT = 176;
    @VisibleForTesting static final int FORWARDED_AT = 188;
    @VisibleForTesting static final int FIN_SENT_AT = 189;
    @VisibleForTesting static final int ASIDE_AT = 190;

    /** DRWA_RST: no packet answers a reset, so that the programs keep the connection. */
    @VisibleForTesting static final int RST = 4;

    /** As many as the programs keep. */
    @VisibleForTesting static final int FLOWS = 4096;

    final int connections;

    /** Those of them that hardware may forward. */
    final int silent;

    private DrwaBpfClients(int connections, int silent) {
        this.connections = connections;
        this.silent = silent;
    }

    /** A digest of a connection's addresses and ports, which are read by nobody. */
    public static class Key extends Struct {
        @Field(order = 0, type = Type.ByteArray, arraysize = KEY_BYTES)
        public final byte[] digest;

        public Key(final byte[] digest) {
            this.digest = digest;
        }
    }

    /** What the programs keep of a connection. */
    public static class Flow extends Struct {
        @Field(order = 0, type = Type.ByteArray, arraysize = FLOW_BYTES)
        public final byte[] state;

        public Flow(final byte[] state) {
            this.state = state;
        }

        private int getInt(int at) {
            return ByteBuffer.wrap(state).order(ByteOrder.nativeOrder()).getInt(at);
        }

        /**
         * @param nowUs by the programs' clock, of which they keep 32 bits
         */
        private boolean isSilent(long nowUs) {
            final long ageUs = (nowUs - getInt(CAME_US_AT)) & 0xFFFFFFFFL;
            // Those that are aside, as MPTCP's, are not governed anyway
            return state[ANSWERED_AT] != 0 && state[ASIDE_AT] == 0 && ageUs > SILENT_MS * 1000;
        }

        private boolean isOver() {
            if ((state[FIN_CAME_AT] & RST) != 0) return true;
            return state[FIN_CAME_AT] != 0 && state[FIN_SENT_AT] != 0;
        }
    }

    /**
     * Counts them at each interface that has some, by its index.
     *
     * @param nowUs by the programs' clock, CLOCK_MONOTONIC
     */
    @NonNull
    static SparseArray<DrwaBpfClients> count(@NonNull IBpfMap<Key, Flow> flows, long nowUs)
            throws ErrnoException {
        final SparseArray<DrwaBpfClients> counts = new SparseArray<>();
        final Set<Key> seen = new ArraySet<>();
        Key key = flows.getFirstKey();
        // The kernel begins anew where a connection ends meanwhile
        for (int i = 0; i < FLOWS && key != null && seen.add(key); i++) {
            final Flow flow = flows.getValue(key);
            key = flows.getNextKey(key);
            if (flow == null || flow.state[FORWARDED_AT] == 0 || flow.isOver()) continue;
            final int index = flow.getInt(IFINDEX_AT);
            final DrwaBpfClients others = counts.get(index, new DrwaBpfClients(0, 0));
            counts.put(
                    index,
                    new DrwaBpfClients(
                            others.connections + 1,
                            others.silent + (flow.isSilent(nowUs) ? 1 : 0)));
        }
        return counts;
    }

    /** As in "clients: 3 connections", with what hardware may do. */
    @Override
    public String toString() {
        final String text = "clients: " + connections + " connections";
        if (silent == 0) return text;
        return text
                + ("; of " + silent + " nothing came for " + SILENT_MS / 1000)
                + " s: idle, or forwarded by hardware";
    }
}
