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
import android.annotation.Nullable;
import com.android.internal.annotations.VisibleForTesting;

/**
 * The static limit of a receive buffer, which ConnectivityService sets for the whole phone by the
 * default network's TCP buffer sizes, and what DRWA puts in its place.
 *
 * @hide
 */
final class DrwaLimit {
    /** Where the maximum is among TCP buffer sizes. */
    static final int RECEIVE_MAXIMUM = 2;

    /** How many sizes there are: three for receiving, three for sending. */
    private static final int SIZES = 6;

    /**
     * DRWA's own maximum in bytes, where the law bounds what may be in flight, and the buffer must
     * not. It is TCP_DRWA_RMEM_MAX of the kernel's series, which has the derivation: a governed
     * connection may have the same room by programs at the interface as by the series.
     */
    @VisibleForTesting static final int OWN_MAXIMUM = 16 << 20;

    /** All the names that people know it by. */
    private static final String NAMES = " (net.tcp.buffersize, config_tcp_buffers, tcp_rmem)";

    private DrwaLimit() {}

    /** The greater of a maximum and DRWA's own, which takes no room away. */
    @NonNull
    static String raise(@NonNull String maximum) {
        return isBelow(maximum) ? String.valueOf(OWN_MAXIMUM) : maximum;
    }

    /** Whether a maximum is below DRWA's own; one that is no number is not for us to judge. */
    private static boolean isBelow(String maximum) {
        try {
            return Long.parseLong(maximum.trim()) < OWN_MAXIMUM;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /**
     * Says what becomes of the static limit of a network that is governed.
     *
     * @param tcpBufferSizes as LinkProperties has them, or null if the network has none of its own
     * @param replaced whether the host replaces it while the network is the default one
     * @param superseded whether the kernel takes no notice of it on this interface
     */
    @NonNull
    static String describe(@Nullable String tcpBufferSizes, boolean replaced, boolean superseded) {
        final String[] sizes = tcpBufferSizes == null ? new String[0] : tcpBufferSizes.split(",");
        final String maximum = sizes.length == SIZES ? sizes[RECEIVE_MAXIMUM].trim() : null;
        final String limit =
                " the static receive maximum"
                        + (maximum == null ? "" : " of " + maximum + " bytes")
                        + NAMES;
        if (!replaced) {
            return superseded ? "supersedes" + limit + ", which stays" : "stays below" + limit;
        }
        // Without sizes, ConnectivityService has some of its own, which are small
        return maximum == null || isBelow(maximum)
                ? "replaces" + limit + " by " + OWN_MAXIMUM + " on the default network"
                : "keeps" + limit + ", which leaves DRWA its " + OWN_MAXIMUM;
    }
}
