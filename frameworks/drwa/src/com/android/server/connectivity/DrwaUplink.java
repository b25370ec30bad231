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
import android.net.INetd;
import android.util.ArrayMap;
import com.android.internal.annotations.VisibleForTesting;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What keeps the queue short that uploads build up in the modem: a qdisc that netd puts at the root
 * of an interface, see DrwaUplink.h there.
 *
 * <p>netd takes the target as if it were one of the kernel's knobs, though no such file exists:
 * {@link INetd#setProcSysNet} is the only call of that frozen interface that has room for it. A
 * netd without DRWA looks for the file, and says ENOENT; one with DRWA says so of a kernel without
 * the qdisc.
 *
 * <p>Belongs to one thread, except for {@link #isMissing} and {@link #describeMissing}. What netd
 * throws is logged, tried again, and told by {@link #describe}.
 *
 * @hide
 */
final class DrwaUplink {
    /** How long packets may wait in the modem, in ms, or {@link #OFF}. */
    @VisibleForTesting static final String TARGET = "drwa_uplink_target_ms";

    /** The target that leaves an interface's qdiscs alone. */
    static final int OFF = 0;

    @NonNull private final DrwaParameter mTarget;

    /** The targets that interfaces could not have because of somebody else's qdisc. */
    private final ArrayMap<String, Integer> mRefused = new ArrayMap<>();

    /** What there is to tell of the interfaces that are to have a target. */
    private final ArrayMap<String, String> mDescriptions = new ArrayMap<>();

    private boolean mStarted;

    /**
     * @param interfaces lists those that exist, or gives null if they cannot be listed
     */
    DrwaUplink(
            @NonNull INetd netd,
            @NonNull Supplier<List<String>> interfaces,
            @NonNull DrwaWriteLog log) {
        mTarget =
                new DrwaParameter(
                        netd,
                        interfaces,
                        log,
                        TARGET,
                        "No uplink: this netd has no " + TARGET + ", or the kernel no drwa_up",
                        DrwaKnobs.Result.NO_UPLINK,
                        DrwaKnobs.Result.UPLINK_FAILED);
    }

    /** Whether netd or the kernel lacked it when last looked for, see {@link #refresh}. */
    boolean isMissing() {
        return mTarget.isMissing();
    }

    /** For people, of what {@link #isMissing}. */
    @NonNull
    String describeMissing() {
        return mTarget.describeMissing();
    }

    /** Whether no interface has a target, as far as is known. */
    boolean isOff() {
        return mTarget.getInterfacesNotOff().isEmpty();
    }

    /**
     * Finds out what all interfaces have. Does nothing once that is done.
     *
     * @return false if it is worth another try later
     */
    boolean start() {
        mStarted = mStarted || mTarget.refreshAll();
        return mStarted;
    }

    /** Takes notice that an interface may be another one, or be gone, or have what was missing. */
    void refresh(@NonNull String iface) {
        mRefused.remove(iface);
        mTarget.refresh(iface);
    }

    /**
     * Gives interfaces their targets, and takes away those of all others. Where somebody else's
     * qdisc is in the way, tries again only once the interface may be another one, or is to have
     * another target, or had none in between.
     *
     * @param targets in ms, by interface; none is {@link #OFF}
     * @return false if it is worth another try later
     */
    boolean set(@NonNull Map<String, Integer> targets) {
        mDescriptions.clear();
        mRefused.retainAll(targets.keySet());
        boolean settled = true;
        for (String iface : mTarget.getInterfacesNotOff()) {
            if (!targets.containsKey(iface)) settled &= isSettled(set(iface, OFF));
        }
        for (Map.Entry<String, Integer> target : targets.entrySet()) {
            final DrwaKnobs.Result result = set(target.getKey(), target.getValue());
            settled &= isSettled(result);
            mDescriptions.put(
                    target.getKey(),
                    describe(target.getValue())
                            + (result == DrwaKnobs.Result.DONE ? "" : ", not set: " + result));
        }
        return settled;
    }

    private DrwaKnobs.Result set(String iface, int targetMs) {
        final Integer refused = mRefused.get(iface);
        if (refused != null && refused == targetMs) return DrwaKnobs.Result.BUSY;
        mRefused.remove(iface);
        final DrwaKnobs.Result result = mTarget.set(iface, targetMs, describe(targetMs));
        if (result == DrwaKnobs.Result.BUSY) mRefused.put(iface, targetMs);
        return isMissing() ? DrwaKnobs.Result.NO_UPLINK : result;
    }

    /** Time changes nothing of a vendor's qdisc, nor of what is missing. */
    private boolean isSettled(DrwaKnobs.Result result) {
        return result == DrwaKnobs.Result.DONE || result == DrwaKnobs.Result.BUSY || isMissing();
    }

    private static String describe(int targetMs) {
        return targetMs == OFF ? "uplink off" : "uplink held to " + targetMs + " ms";
    }

    /** As in "uplink held to 20 ms"; the empty string of an interface that is to have no target. */
    @NonNull
    String describe(@NonNull String iface) {
        return mDescriptions.getOrDefault(iface, "");
    }
}
