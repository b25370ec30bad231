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
import android.net.INetdUnsolicitedEventListener;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.util.ArrayMap;
import android.util.LocalLog;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * The kernel's knob for DRWA, {@code /proc/sys/net/ipv4/conf/<interface>/tcp_drwa_lambda}, written
 * through netd. In spite of its place it governs IPv4 and IPv6 connections.
 *
 * <p>Knows what every interface's knob holds, so that it writes nothing twice. A new interface
 * starts with 0, a knob disappears with its interface, and keeps its value when that changes its
 * name. Whoever hears of any of these says so by {@link #refresh}, because a name alone does not
 * tell whether it is the same interface still.
 *
 * <p>Belongs to one thread, except for {@link #dump} and {@link #isMissing}. No method throws what
 * netd throws.
 *
 * @hide
 */
final class DrwaKnob {
    private static final String TAG = DrwaKnob.class.getSimpleName();

    /** The value that leaves an interface to the kernel's own receive window. */
    static final int OFF = 0;

    @VisibleForTesting static final String KNOB = "tcp_drwa_lambda";

    /** Every interface has this one, whatever the kernel. */
    @VisibleForTesting static final String ANY_KERNEL_HAS = "forwarding";

    private static final int UNKNOWN = -1;
    private static final int MAX_LOG_LINES = 100;

    /** What became of a try, for people who read it. */
    enum Result {
        DONE("done"),
        NO_INTERFACE("no such interface"),
        NO_KNOB("no " + KNOB),
        FAILED("netd failed");

        @NonNull private final String mText;

        Result(@NonNull String text) {
            mText = text;
        }

        @Override
        public String toString() {
            return mText;
        }
    }

    @NonNull private final INetd mNetd;
    @NonNull private final Supplier<List<String>> mInterfaces;
    @NonNull private final LocalLog mLog = new LocalLog(MAX_LOG_LINES);

    /** What the knobs hold; interfaces that are not here hold 0. */
    private final ArrayMap<String, Integer> mValues = new ArrayMap<>();

    private boolean mSeen;

    // Written by the owning thread alone, read by others too.
    private volatile boolean mMissing;
    private volatile int mWrites;
    private volatile int mErrors;

    /**
     * @param interfaces lists those that exist
     */
    DrwaKnob(@NonNull INetd netd, @NonNull Supplier<List<String>> interfaces) {
        mNetd = netd;
        mInterfaces = interfaces;
    }

    /** Whether this kernel is known to lack DRWA. Once true, it stays true. From any thread. */
    boolean isMissing() {
        return mMissing;
    }

    /** The interfaces whose knobs hold something else than 0, or may do so. */
    @NonNull
    List<String> getInterfacesNotOff() {
        return new ArrayList<>(mValues.keySet());
    }

    /**
     * Has netd tell of interfaces from now on, and finds out what the knobs of all of them hold,
     * and whether the kernel has any.
     *
     * @return whether that is done: false means that it is worth another try later
     */
    boolean start(@NonNull INetdUnsolicitedEventListener listener) {
        try {
            mNetd.registerUnsolicitedEventListener(listener);
        } catch (RemoteException | RuntimeException e) {
            onError("Cannot listen to netd", e);
            return false;
        }
        // Only now, or what changes meanwhile would go unnoticed
        refreshAll(false);
        return true;
    }

    /**
     * @param lacking whether an interface is known to have no knob
     */
    private void refreshAll(boolean lacking) {
        for (String iface : mInterfaces.get()) lacking |= refresh(iface) == Result.NO_KNOB;
        if (lacking && !mSeen) {
            mMissing = true;
            mValues.clear();
            Log.i(TAG, "This kernel has no " + KNOB + ", so DRWA stays off");
        }
    }

    /** Finds out what the knob of an interface holds, and {@link Result#DONE} if it has one. */
    @NonNull
    Result refresh(@NonNull String iface) {
        try {
            final int value = Integer.parseInt(getProcSysNet(iface, KNOB));
            mSeen = true;
            remember(iface, value);
            return Result.DONE;
        } catch (RemoteException | RuntimeException e) {
            return onError("read", iface, e);
        }
    }

    /** Writes the setting of an interface unless its knob holds it already. */
    @NonNull
    Result set(@NonNull String iface, @NonNull DrwaSetting setting) {
        if (mValues.getOrDefault(iface, OFF) == setting.lambda || mMissing) return Result.DONE;
        try {
            mNetd.setProcSysNet(
                    INetd.IPV4, INetd.CONF, iface, KNOB, Integer.toString(setting.lambda));
        } catch (RemoteException | RuntimeException e) {
            final Result result = onError("write", iface, e);
            // One interface without a knob says little of the kernel
            if (result == Result.NO_KNOB && !mSeen) refreshAll(true);
            // Without its interface a knob is off
            final boolean isOff = result != Result.FAILED && !setting.isOn();
            return mMissing || isOff ? Result.DONE : result;
        }
        mSeen = true;
        mWrites++;
        mLog.log(iface + " " + setting);
        remember(iface, setting.lambda);
        return Result.DONE;
    }

    /** Prints counters and recent writes. Callable from any thread. */
    void dump(@NonNull PrintWriter pw) {
        if (mMissing) pw.println("This kernel has no " + KNOB);
        pw.println("Writes: " + mWrites + ", errors: " + mErrors);
        pw.println("Recent writes:");
        mLog.reverseDump(pw);
    }

    private void remember(String iface, int value) {
        if (value == OFF) {
            mValues.remove(iface);
        } else {
            mValues.put(iface, value);
        }
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

    private Result onError(String what, String iface, Exception e) {
        if (e instanceof ServiceSpecificException
                && ((ServiceSpecificException) e).errorCode == ENOENT) {
            mValues.remove(iface);
            return exists(iface, ANY_KERNEL_HAS) ? Result.NO_KNOB : Result.NO_INTERFACE;
        }
        // netd may have written before it failed, and the interface may go before the next try
        mValues.put(iface, UNKNOWN);
        onError("Cannot " + what + " " + KNOB + " of " + iface, e);
        return Result.FAILED;
    }

    private void onError(String what, Exception e) {
        mErrors++;
        final String message = what + ": " + e;
        Log.e(TAG, message);
        mLog.log(message);
    }
}
