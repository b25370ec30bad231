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
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * The kernel's own knobs, in {@code /proc/sys/net/ipv4/conf/<interface>/}, written through netd. In
 * spite of their place they govern IPv4 and IPv6 connections.
 *
 * <ul>
 *   <li>{@code tcp_drwa_lambda}: the target in hundredths, or 0 for off.
 *   <li>{@code tcp_drwa_queue}: interfaces that hold the same number, but for 0, lie before one
 *       queue, and the kernel learns of it from the connections of all of them. Older series of the
 *       kernel lack it; every interface has a queue of its own there.
 * </ul>
 *
 * @hide
 */
final class DrwaSysctlKnobs implements DrwaKnobs {
    @VisibleForTesting static final String LAMBDA = "tcp_drwa_lambda";
    @VisibleForTesting static final String QUEUE = "tcp_drwa_queue";

    @NonNull private final DrwaParameter mLambda;
    @NonNull private final DrwaParameter mQueue;

    private boolean mStarted;

    /**
     * @param interfaces lists those that exist, or gives null if they cannot be listed
     */
    DrwaSysctlKnobs(
            @NonNull INetd netd,
            @NonNull Supplier<List<String>> interfaces,
            @NonNull DrwaWriteLog log) {
        mLambda =
                new DrwaParameter(
                        netd,
                        interfaces,
                        log,
                        LAMBDA,
                        "This kernel has no " + LAMBDA,
                        Result.NO_LAMBDA,
                        Result.FAILED);
        mQueue =
                new DrwaParameter(
                        netd,
                        interfaces,
                        log,
                        QUEUE,
                        "This kernel has no "
                                + QUEUE
                                + ", so every interface has a queue of its own",
                        Result.NO_QUEUE,
                        Result.QUEUE_FAILED);
    }

    @Override
    public boolean isMissing() {
        return mLambda.isMissing();
    }

    @Override
    public boolean hasQueues() {
        return !mQueue.isMissing();
    }

    @Override
    public boolean supersedeLimit() {
        return true;
    }

    @Override
    public void onNetworkOf(String iface) {}

    @Override
    public boolean reachStacked() {
        return false;
    }

    @Override
    public String describe() {
        return "the kernel's, through netd";
    }

    @Override
    public Set<String> getInterfacesNotOff() {
        // A queue without λ is of no consequence, and not written any more
        if (isMissing()) return Collections.emptySet();
        final Set<String> ifaces = mLambda.getInterfacesNotOff();
        ifaces.addAll(mQueue.getInterfacesNotOff());
        return ifaces;
    }

    /** Finds out which knobs the kernel has, too. What cannot be read is tried when it is set. */
    @Override
    public boolean start() {
        if (mStarted) return true;
        mStarted = mLambda.refreshAll() && (isMissing() || mQueue.refreshAll());
        return mStarted;
    }

    @Override
    public Result refresh(String iface) {
        if (!isMissing()) mQueue.refresh(iface);
        return mLambda.refresh(iface);
    }

    /** Sets λ even where the queue cannot be set. */
    @Override
    public Result set(String iface, DrwaSetting setting, int queue) {
        if (isMissing()) return Result.DONE;
        // While λ is on, connections learn from their queue, and it from them: it has to be theirs
        if (setting.isOn()) {
            final Result queued = setQueue(iface, queue);
            final Result on = mLambda.set(iface, setting.lambda, setting);
            return on == Result.DONE ? queued : on;
        }
        final Result off = mLambda.set(iface, OFF, setting);
        return off == Result.DONE ? setQueue(iface, OWN_QUEUE) : off;
    }

    @Override
    public Result clean() {
        return Result.DONE;
    }

    private Result setQueue(String iface, int queue) {
        return mQueue.set(iface, queue, DrwaKnobs.describeQueue(queue));
    }

    @Override
    public void dump(PrintWriter pw) {
        if (mQueue.isMissing()) pw.println(mQueue.describeMissing());
    }
}
