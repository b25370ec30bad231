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

import static android.system.OsConstants.ENODEV;
import static android.system.OsConstants.ENOENT;
import static android.system.OsConstants.ENOSPC;
import static android.system.OsConstants.ENOSYS;
import static android.system.OsConstants.EPROTO;

import android.annotation.NonNull;
import android.net.INetd;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.util.ArrayMap;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;

/**
 * The BPF programs that govern connections at interfaces, on a kernel without knobs of its own,
 * where the platform's loader has pinned them and netd owns them: for hosts that cannot reach the
 * module's, see {@link DrwaController.Dependencies}.
 *
 * <p>They are set and read by {@link INetd#setProcSysNet} and {@link INetd#getProcSysNet}, in the
 * form of a file that does not exist. A netd without DRWA says so, as of any other file. The value
 * is {@link #OFF_VALUE}, or λ in hundredths, the queue, whether UDP is held to a short queue as
 * well, and whether what is forwarded is governed.
 *
 * <p>netd leaves no program where it was refused, or switched off.
 *
 * @hide
 */
final class DrwaNetdKnobs extends DrwaProgramKnobs {
    @VisibleForTesting static final String PROGRAMS = "drwa_programs";

    @VisibleForTesting static final String OFF_VALUE = "0";

    /** It has no program, but every netd with DRWA knows of it whether there are any. */
    private static final String LOOPBACK = "lo";

    /** What an interface holds after netd has failed. */
    private static final String UNKNOWN = "";

    @NonNull private final INetd mNetd;
    @NonNull private final Supplier<List<String>> mInterfaces;
    @NonNull private final DrwaWriteLog mLog;

    /** What interfaces hold; those that are not here hold {@link #OFF_VALUE}. */
    private final ArrayMap<String, String> mValues = new ArrayMap<>();

    private boolean mStarted;

    /**
     * @param interfaces lists those that exist, or gives null if they cannot be listed
     * @throws UnsupportedOperationException with the reason, if netd has no programs
     * @throws RemoteException or what else netd fails with, if that is not known
     */
    DrwaNetdKnobs(
            @NonNull INetd netd,
            @NonNull Supplier<List<String>> interfaces,
            @NonNull DrwaWriteLog log)
            throws UnsupportedOperationException, RemoteException {
        mNetd = netd;
        mInterfaces = interfaces;
        mLog = log;
        try {
            get(LOOPBACK);
        } catch (RemoteException | RuntimeException e) {
            final int error = errnoOf(e);
            // A kernel without BPF, no programs, or another version's: all else may pass.
            if (error != ENOSYS && error != ENOENT && error != EPROTO) throw e;
            throw new UnsupportedOperationException("netd has none: " + e.getMessage(), e);
        }
    }

    @Override
    public String describe() {
        return "BPF, through netd";
    }

    @Override
    public Set<String> getInterfacesNotOff() {
        return new TreeSet<>(mValues.keySet());
    }

    /** Finds out what an earlier system server has left. */
    @Override
    public boolean start() {
        if (mStarted) return true;
        final List<String> ifaces = mInterfaces.get();
        if (ifaces == null) return false;
        mStarted = true;
        // What cannot be read may be on, and is switched off
        for (String iface : ifaces) refresh(iface);
        return true;
    }

    /**
     * The qdisc is taken away when the interface leaves a network, by netd or from Android 17 on by
     * ConnectivityService, and the programs go with that.
     */
    @Override
    public void onNetworkOf(String iface) {
        if (mValues.containsKey(iface)) mValues.put(iface, UNKNOWN);
    }

    @Override
    public Result refresh(String iface) {
        try {
            remember(iface, get(iface));
            return Result.DONE;
        } catch (RemoteException | RuntimeException e) {
            return onError("read", iface, e);
        }
    }

    @Override
    public Result set(String iface, DrwaSetting setting, int queue) {
        final String value = setting.isOn() ? format(setting, queue) : OFF_VALUE;
        if (value.equals(mValues.getOrDefault(iface, OFF_VALUE))) return Result.DONE;
        try {
            mNetd.setProcSysNet(INetd.IPV4, INetd.CONF, iface, PROGRAMS, value);
        } catch (RemoteException | RuntimeException e) {
            final Result result = onError("set", iface, e);
            // Without its interface it is off
            return result == Result.NO_INTERFACE && !setting.isOn() ? Result.DONE : result;
        }
        mLog.onWritten(
                iface
                        + (" " + setting)
                        + (setting.isOn() ? ", " + DrwaKnobs.describeQueue(queue) : ""));
        remember(iface, value);
        return Result.DONE;
    }

    private static String format(DrwaSetting setting, int queue) {
        return setting.lambda
                + (" " + queue)
                + (setting.aqm ? " 1" : " 0")
                + (setting.tethering ? " 1" : " 0");
    }

    private void remember(String iface, String value) {
        mProblems.remove(iface);
        if (value.equals(OFF_VALUE)) {
            mValues.remove(iface);
        } else {
            mValues.put(iface, value);
        }
    }

    /** 0 unless netd has answered. */
    private static int errnoOf(Exception e) {
        return e instanceof ServiceSpecificException ? ((ServiceSpecificException) e).errorCode : 0;
    }

    private Result onError(String what, String iface, Exception e) {
        final int error = errnoOf(e);
        if (error == ENODEV) {
            mProblems.remove(iface);
            mValues.remove(iface);
            return Result.NO_INTERFACE;
        }
        mLog.onError("Cannot " + what + " " + PROGRAMS + " of " + iface, e);
        mProblems.put(iface, String.valueOf(e.getMessage()));
        mValues.put(iface, UNKNOWN);
        return error == ENOSPC ? Result.MAP_FULL : Result.ATTACH_FAILED;
    }

    @Override
    public Result clean() {
        return Result.DONE;
    }

    private String get(String iface) throws RemoteException {
        return mNetd.getProcSysNet(INetd.IPV4, INetd.CONF, iface, PROGRAMS);
    }

    @Override
    public void dump(PrintWriter pw) {
        pw.println("Counters: dumpsys netd");
    }
}
