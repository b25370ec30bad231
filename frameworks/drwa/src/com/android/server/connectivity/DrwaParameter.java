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

import static android.system.OsConstants.EBUSY;
import static android.system.OsConstants.ENODEV;
import static android.system.OsConstants.ENOENT;

import android.annotation.NonNull;
import android.net.INetd;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.util.ArrayMap;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;

/**
 * A number that every interface has, set and read by {@link INetd#setProcSysNet} and {@link
 * INetd#getProcSysNet}, and 0 on an interface that is new.
 *
 * <p>Belongs to one thread, except for {@link #isMissing} and {@link #describeMissing}.
 *
 * @hide
 */
final class DrwaParameter {
    private static final String TAG = DrwaKnobs.class.getSimpleName();

    /** Every interface has this one, whatever the kernel. */
    @VisibleForTesting static final String ANY_KERNEL_HAS = "forwarding";

    /** What a new interface holds. */
    private static final int DEFAULT = 0;

    private static final int UNKNOWN = -1;

    @NonNull private final INetd mNetd;
    @NonNull private final Supplier<List<String>> mInterfaces;
    @NonNull private final DrwaWriteLog mLog;
    @NonNull private final String mName;
    @NonNull private final String mMissingText;
    @NonNull private final DrwaKnobs.Result mLacking;
    @NonNull private final DrwaKnobs.Result mFailed;

    /** What interfaces hold; those that are not here hold {@link #DEFAULT}. */
    private final ArrayMap<String, Integer> mValues = new ArrayMap<>();

    private boolean mSeen;

    /** Written by the owning thread alone. */
    private volatile boolean mMissing;

    /**
     * @param interfaces lists those that exist, or gives null if they cannot be listed
     * @param missingText what to say where it is missing on all interfaces
     * @param lacking what a try comes to at an interface that lacks it
     * @param failed what a try comes to when netd fails
     */
    DrwaParameter(
            @NonNull INetd netd,
            @NonNull Supplier<List<String>> interfaces,
            @NonNull DrwaWriteLog log,
            @NonNull String name,
            @NonNull String missingText,
            @NonNull DrwaKnobs.Result lacking,
            @NonNull DrwaKnobs.Result failed) {
        mNetd = netd;
        mInterfaces = interfaces;
        mLog = log;
        mName = name;
        mMissingText = missingText;
        mLacking = lacking;
        mFailed = failed;
    }

    /** Whether it was missing on all interfaces when last looked for, see {@link #refresh}. */
    boolean isMissing() {
        return mMissing;
    }

    /** For people, of what {@link #isMissing}. */
    @NonNull
    String describeMissing() {
        return mMissingText;
    }

    /** The interfaces that do not hold 0, or may not. */
    @NonNull
    Set<String> getInterfacesNotOff() {
        return new TreeSet<>(mValues.keySet());
    }

    /**
     * Finds out what all interfaces hold. What cannot be read is tried when it is set.
     *
     * @return false if it is worth another try later
     */
    boolean refreshAll() {
        return refreshAll(false);
    }

    /**
     * @param lacking whether an interface is known to lack it
     */
    private boolean refreshAll(boolean lacking) {
        final List<String> ifaces = mInterfaces.get();
        if (ifaces == null) return false;
        for (String iface : ifaces) lacking |= refresh(iface) == mLacking;
        if (lacking && !mSeen) {
            mMissing = true;
            mValues.clear();
            Log.i(TAG, mMissingText);
        }
        return true;
    }

    /**
     * Finds out what an interface holds, and {@link DrwaKnobs.Result#DONE} if it can be set. What
     * was missing may be there by now, as when a module of the kernel's was loaded.
     */
    @NonNull
    DrwaKnobs.Result refresh(@NonNull String iface) {
        try {
            final int value = Integer.parseInt(get(iface, mName));
            mSeen = true;
            remember(iface, value);
        } catch (RemoteException | RuntimeException e) {
            return mMissing ? mLacking : onError("read", iface, e);
        }
        if (mMissing) {
            mMissing = false;
            Log.i(TAG, mName + " is there now");
            refreshAll();
        }
        return DrwaKnobs.Result.DONE;
    }

    /**
     * Writes what an interface is to hold, unless it does.
     *
     * @param reason for people, printed if the value was written
     */
    @NonNull
    DrwaKnobs.Result set(@NonNull String iface, int value, @NonNull Object reason) {
        if (mValues.getOrDefault(iface, DEFAULT) == value || mMissing) {
            return DrwaKnobs.Result.DONE;
        }
        try {
            mNetd.setProcSysNet(INetd.IPV4, INetd.CONF, iface, mName, Integer.toString(value));
        } catch (RemoteException | RuntimeException e) {
            final DrwaKnobs.Result result = onError("write", iface, e);
            // One interface without it says little of the others
            if (result == mLacking && !mSeen) refreshAll(true);
            // Without its interface it holds the default
            final boolean isSo = result != mFailed && value == DEFAULT;
            return mMissing || isSo ? DrwaKnobs.Result.DONE : result;
        }
        mSeen = true;
        mLog.onWritten(iface + " " + reason);
        remember(iface, value);
        return DrwaKnobs.Result.DONE;
    }

    private void remember(String iface, int value) {
        if (value == DEFAULT) {
            mValues.remove(iface);
        } else {
            mValues.put(iface, value);
        }
    }

    private DrwaKnobs.Result onError(String what, String iface, Exception e) {
        final int error =
                e instanceof ServiceSpecificException
                        ? ((ServiceSpecificException) e).errorCode
                        : 0;
        if (error == ENODEV || error == ENOENT) {
            mValues.remove(iface);
            final boolean lacks = error == ENOENT && exists(iface);
            return lacks ? mLacking : DrwaKnobs.Result.NO_INTERFACE;
        }
        final String problem = "Cannot " + what + " " + mName + " of " + iface;
        if (error == EBUSY) {
            mLog.onRefused(problem, e);
            mValues.remove(iface);
            return DrwaKnobs.Result.BUSY;
        }
        mLog.onError(problem, e);
        // netd may have written before it failed, and the interface may go before the next try
        mValues.put(iface, UNKNOWN);
        return mFailed;
    }

    private boolean exists(String iface) {
        try {
            get(iface, ANY_KERNEL_HAS);
            return true;
        } catch (RemoteException | RuntimeException e) {
            return false;
        }
    }

    private String get(String iface, String parameter) throws RemoteException {
        return mNetd.getProcSysNet(INetd.IPV4, INetd.CONF, iface, parameter);
    }
}
