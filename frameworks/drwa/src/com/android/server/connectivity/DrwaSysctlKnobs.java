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

import static android.system.OsConstants.ENOENT;

import android.annotation.NonNull;
import android.net.INetd;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
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
    private static final String TAG = DrwaKnobs.class.getSimpleName();

    @VisibleForTesting static final String LAMBDA = "tcp_drwa_lambda";
    @VisibleForTesting static final String QUEUE = "tcp_drwa_queue";

    /** Every interface has this one, whatever the kernel. */
    @VisibleForTesting static final String ANY_KERNEL_HAS = "forwarding";

    /** What all knobs of a new interface hold. */
    private static final int DEFAULT = 0;

    private static final int UNKNOWN = -1;

    @NonNull private final INetd mNetd;
    @NonNull private final Supplier<List<String>> mInterfaces;
    @NonNull private final DrwaWriteLog mLog;

    @NonNull private final Knob mLambda = new Knob(LAMBDA, "", Result.NO_LAMBDA, Result.FAILED);

    @NonNull
    private final Knob mQueue =
            new Knob(
                    QUEUE,
                    ", so every interface has a queue of its own",
                    Result.NO_QUEUE,
                    Result.QUEUE_FAILED);

    private boolean mStarted;

    /**
     * @param interfaces lists those that exist
     */
    DrwaSysctlKnobs(
            @NonNull INetd netd,
            @NonNull Supplier<List<String>> interfaces,
            @NonNull DrwaWriteLog log) {
        mNetd = netd;
        mInterfaces = interfaces;
        mLog = log;
    }

    @Override
    public boolean isMissing() {
        return mLambda.mMissing;
    }

    @Override
    public boolean hasQueues() {
        return !mQueue.mMissing;
    }

    @Override
    public boolean supersedeLimit() {
        return true;
    }

    @Override
    public String describe() {
        return "the kernel's, through netd";
    }

    @Override
    public Set<String> getInterfacesNotOff() {
        final ArraySet<String> ifaces = new ArraySet<>(mLambda.mValues.keySet());
        ifaces.addAll(mQueue.mValues.keySet());
        return ifaces;
    }

    /** Finds out which knobs the kernel has, too. What cannot be read is tried when it is set. */
    @Override
    public boolean start() {
        if (mStarted) return true;
        mStarted = true;
        mLambda.refreshAll(false);
        if (!isMissing()) mQueue.refreshAll(false);
        return true;
    }

    @Override
    public Result refresh(String iface) {
        mQueue.refresh(iface);
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
        if (mQueue.mMissing) pw.println(mQueue.describeMissing());
    }

    private boolean exists(String iface, String parameter) {
        try {
            getProcSysNet(iface, parameter);
            return true;
        } catch (RemoteException | RuntimeException e) {
            return false;
        }
    }

    private String getProcSysNet(String iface, String parameter) throws RemoteException {
        return mNetd.getProcSysNet(INetd.IPV4, INetd.CONF, iface, parameter);
    }

    /** One of the files that an interface has. */
    private final class Knob {
        @NonNull private final String mName;
        @NonNull private final String mWithout;
        @NonNull private final Result mLacking;
        @NonNull private final Result mFailed;

        /** What the files hold; interfaces that are not here hold {@link #DEFAULT}. */
        final ArrayMap<String, Integer> mValues = new ArrayMap<>();

        private boolean mSeen;

        /** Whether this kernel is known to lack it. Written by the owning thread alone. */
        volatile boolean mMissing;

        /**
         * @param without what follows for a kernel that lacks it, appended to a sentence
         * @param lacking what a try comes to at an interface that lacks it
         * @param failed what a try comes to when netd fails
         */
        Knob(
                @NonNull String name,
                @NonNull String without,
                @NonNull Result lacking,
                @NonNull Result failed) {
            mName = name;
            mWithout = without;
            mLacking = lacking;
            mFailed = failed;
        }

        String describeMissing() {
            return "This kernel has no " + mName + mWithout;
        }

        /**
         * @param lacking whether an interface is known to lack it
         */
        void refreshAll(boolean lacking) {
            for (String iface : mInterfaces.get()) lacking |= refresh(iface) == mLacking;
            if (lacking && !mSeen) {
                mMissing = true;
                mValues.clear();
                Log.i(TAG, describeMissing());
            }
        }

        Result refresh(String iface) {
            if (mMissing) return mLacking;
            try {
                final int value = Integer.parseInt(getProcSysNet(iface, mName));
                mSeen = true;
                remember(iface, value);
                return Result.DONE;
            } catch (RemoteException | RuntimeException e) {
                return onError("read", iface, e);
            }
        }

        /**
         * @param reason for people, printed if the value was written
         */
        Result set(String iface, int value, Object reason) {
            if (mValues.getOrDefault(iface, DEFAULT) == value || mMissing) return Result.DONE;
            try {
                mNetd.setProcSysNet(INetd.IPV4, INetd.CONF, iface, mName, Integer.toString(value));
            } catch (RemoteException | RuntimeException e) {
                final Result result = onError("write", iface, e);
                // One interface without a knob says little of the kernel
                if (result == mLacking && !mSeen) refreshAll(true);
                // Without its interface a knob holds the default
                final boolean isSo = result != mFailed && value == DEFAULT;
                return mMissing || isSo ? Result.DONE : result;
            }
            mSeen = true;
            mLog.onWritten(iface + " " + reason);
            remember(iface, value);
            return Result.DONE;
        }

        private void remember(String iface, int value) {
            if (value == DEFAULT) {
                mValues.remove(iface);
            } else {
                mValues.put(iface, value);
            }
        }

        private Result onError(String what, String iface, Exception e) {
            if (e instanceof ServiceSpecificException
                    && ((ServiceSpecificException) e).errorCode == ENOENT) {
                mValues.remove(iface);
                return exists(iface, ANY_KERNEL_HAS) ? mLacking : Result.NO_INTERFACE;
            }
            // netd may have written before it failed, and the interface may go before the next try
            mValues.put(iface, UNKNOWN);
            mLog.onError("Cannot " + what + " " + mName + " of " + iface, e);
            return mFailed;
        }
    }
}
