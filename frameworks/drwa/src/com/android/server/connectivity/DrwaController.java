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
import android.content.Context;
import android.net.INetd;
import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Build;
import android.os.Handler;
import android.os.HandlerThread;
import android.os.RemoteException;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.Log;
import android.util.SparseArray;
import com.android.internal.annotations.GuardedBy;
import java.io.PrintWriter;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * Decides for each network whether the kernel's dynamic receive window adjustment (DRWA) governs
 * its TCP connections, and sets the {@link DrwaKnobs} of each of its interfaces: the kernel's own
 * if it has them, else those of BPF programs if there are any, else none.
 *
 * <ul>
 *   <li>A cellular network with internet access, or that a hotspot's clients have it by, gets what
 *       its subscription's carrier wants, see {@link DrwaCarrierConfig}.
 *   <li>A network that runs over others, a VPN or a VCN, is on only if all of them are, with the
 *       least of their targets.
 *   <li>Every other network is off.
 *   <li>Networks may share an interface, as when one replaces another. It is on while any of them
 *       is, with the least of their targets.
 *   <li>The interfaces of a network share one queue of the radio's, and so does a network that runs
 *       over it alone. The kernel is told, see {@link DrwaDecision#queues}.
 *   <li>Interfaces that no network uses are off. At the start, that includes what an earlier system
 *       server left behind.
 *   <li>An interface that comes again under its name, as after a restart of the modem, gets its
 *       setting again. netd tells.
 *   <li>The queue that uploads build up in the modem is held short where a network's carrier wants
 *       it, see {@link DrwaUplink}: at the network's own device, which packets of the interfaces
 *       that are stacked on it, and of VPNs over it, leave by as well. λ has no say in that.
 *   <li>Everything is off while {@link DrwaSwitch} says so.
 * </ul>
 *
 * <p>The static receive buffer limits stay ConnectivityService's to write. It asks {@link
 * #replaceReceiveMaximum} what to put in the place of the default network's. A host outside of it
 * leaves them as they are.
 *
 * <p>Except where noted, methods must run on the thread of the handler, or they throw
 * IllegalStateException. They throw nothing else: what netd or telephony refuse is logged, and what
 * could not be written is tried again at any change, and by itself. Without any knobs and without
 * an uplink that can be set, they do no more than to look for these when a network comes.
 *
 * <p>It takes notice of events. {@link DrwaDecision} says what follows from them, {@link
 * DrwaApplication} writes that, {@link DrwaShell} has the commands of developers.
 *
 * @hide
 */
public class DrwaController {
    private static final String TAG = DrwaController.class.getSimpleName();

    private static final String LOOPBACK = "lo";

    private static final String TOO_OLD = "it needs Android 14";

    @NonNull private final Handler mHandler;
    @NonNull private final DrwaSwitch mSwitch;
    @NonNull private final DrwaRateLimit mRateLimit;
    @NonNull private final DrwaCarrierConfig mCarrierConfig;
    @NonNull private final DrwaApplication mApplication;
    @NonNull private final DrwaShell mShell;

    /** Live networks, by netId. */
    private final SparseArray<DrwaNetwork> mNetworks = new SparseArray<>();

    /** Targets set from the shell, by interface. */
    private final ArrayMap<String, DrwaSetting> mOverrides = new ArrayMap<>();

    /**
     * What netd has told of, and the handler has not looked at yet: a link that goes up and down
     * makes more events than there is to see.
     */
    @GuardedBy("mChangedInterfaces")
    private final ArraySet<String> mChangedInterfaces = new ArraySet<>();

    private boolean mStarted;

    /** Whether a property keeps all of it off until the system server starts again. */
    private boolean mNeverOn;

    /** Whether changes of carrier configurations are heard of. */
    private boolean mListens;

    /** Written on the handler's thread alone, read by others too. */
    private volatile int mUnchangedEvents;

    /** What lies outside of this class's reach in a test. */
    public static class Dependencies {
        /**
         * The knobs for a kernel without its own: outside of the module that has programs, those
         * that netd has.
         *
         * @throws UnsupportedOperationException with the reason, if they cannot be had
         * @throws RemoteException or what else netd fails with, if it is worth another try later
         */
        @NonNull
        DrwaKnobs makeBpfKnobs(@NonNull INetd netd, @NonNull DrwaWriteLog log)
                throws UnsupportedOperationException, RemoteException {
            return new DrwaNetdKnobs(netd, this::getInterfaceNames, log);
        }

        /**
         * The names of the interfaces that exist, but for the loopback's, which has no knob; null
         * if they cannot be listed now.
         */
        @Nullable
        List<String> getInterfaceNames() {
            final List<String> names = new ArrayList<>();
            try {
                final Enumeration<NetworkInterface> ifaces =
                        NetworkInterface.getNetworkInterfaces();
                while (ifaces != null && ifaces.hasMoreElements()) {
                    final String name = ifaces.nextElement().getName();
                    if (!name.equals(LOOPBACK)) names.add(name);
                }
            } catch (SocketException e) {
                Log.e(TAG, "Cannot list the interfaces", e);
                return null;
            }
            return names;
        }

        boolean isDebuggable() {
            return !Build.TYPE.equals("user");
        }

        /** What carrier configurations are read by, on a thread that may have to wait. */
        @NonNull
        Executor makeReader() {
            final HandlerThread thread = new HandlerThread(DrwaCarrierConfig.class.getSimpleName());
            thread.start();
            return new Handler(thread.getLooper())::post;
        }
    }

    /**
     * @param handler of the thread that all events come on
     * @param deps what the host has within its reach
     */
    public DrwaController(
            @NonNull Context context,
            @NonNull Handler handler,
            @NonNull INetd netd,
            @NonNull Dependencies deps) {
        mHandler = handler;
        mSwitch = new DrwaSwitch(context);
        mRateLimit = new DrwaRateLimit(context, handler, this::update);
        mCarrierConfig = new DrwaCarrierConfig(context, handler, deps.makeReader(), this::update);
        mApplication =
                new DrwaApplication(
                        handler,
                        netd,
                        deps,
                        new DrwaInterfaceListener(this::postInterfaceChanged),
                        this::update);
        mShell = new DrwaShell(handler, deps::isDebuggable, new Commands());
    }

    /** As the other one, for hosts that cannot replace the static limits. */
    public void start() {
        start(null);
    }

    /**
     * Starts writing, once telephony's services exist. Callable from any thread.
     *
     * @param onReceiveMaximum called on the handler's thread whenever {@link
     *     #replaceReceiveMaximum} may have come to another result, or null if the host does not ask
     */
    public void start(@Nullable Runnable onReceiveMaximum) {
        if (isTooOld()) {
            Log.i(TAG, "DRWA is off: " + TOO_OLD);
            return;
        }
        mHandler.post(
                () -> {
                    mStarted = true;
                    mApplication.setOnReceiveMaximum(onReceiveMaximum);
                    mNeverOn = !mSwitch.start(mHandler, this::update);
                    if (!mNeverOn) mRateLimit.start();
                    update();
                });
    }

    /**
     * Takes notice of a network that has connected, or whose properties may have changed.
     *
     * @param nc with the underlying networks resolved if the network is a VPN, as
     *     ConnectivityService stores it
     */
    public void onNetworkChanged(
            int netId, @NonNull NetworkCapabilities nc, @NonNull LinkProperties lp) {
        ensureRunningOnHandlerThread();
        if (isTooOld()) return;
        final DrwaNetwork state = new DrwaNetwork(nc, lp);
        final DrwaNetwork old = mNetworks.get(netId);
        if (state.equals(old)) {
            // What is not written yet has its own time: signal strengths come every few seconds
            mUnchangedEvents++;
            return;
        }
        mNetworks.put(netId, state);
        if (old == null) {
            state.mInterfaces.forEach(mApplication::onNetworkOf);
            state.mInterfaces.forEach(mApplication::lookAgain);
        } else {
            forgetUnusedSubscription(old.mSubId);
        }
        update();
    }

    /** Takes notice of a network that is gone. Does nothing if it was unknown. */
    public void onNetworkDestroyed(int netId) {
        ensureRunningOnHandlerThread();
        final DrwaNetwork old = mNetworks.get(netId);
        if (old == null) return;
        mNetworks.remove(netId);
        forgetUnusedSubscription(old.mSubId);
        old.mInterfaces.forEach(mApplication::onNetworkOf);
        update();
    }

    /**
     * Puts DRWA's own receive maximum in the place of a network's while the network is governed,
     * and leaves all as it is while it is not.
     *
     * @param sizes minimum, default and maximum in bytes for receiving, then for sending, to be set
     *     while this is the default network
     */
    public void replaceReceiveMaximum(int netId, @NonNull String[] sizes) {
        ensureRunningOnHandlerThread();
        final DrwaNetwork state = mNetworks.get(netId);
        if (state == null || !mApplication.governs(state)) return;
        sizes[DrwaLimit.RECEIVE_MAXIMUM] = DrwaLimit.raise(sizes[DrwaLimit.RECEIVE_MAXIMUM]);
    }

    /**
     * Takes notice that the developers' limit of the download rate has changed, before anything
     * follows from that. A host that cannot say so need not: the policy observes the limit too.
     */
    public void onIngressRateLimitChanged() {
        ensureRunningOnHandlerThread();
        if (mStarted && !mNeverOn) mRateLimit.onChange();
    }

    /** Called on netd's behalf, on any thread. */
    private void postInterfaceChanged(String iface) {
        if (mApplication.isIdle()) return;
        synchronized (mChangedInterfaces) {
            if (mChangedInterfaces.isEmpty()) mHandler.post(this::onInterfacesChanged);
            mChangedInterfaces.add(iface);
        }
    }

    /** The interfaces of these names may be other ones, or be gone. */
    private void onInterfacesChanged() {
        final ArraySet<String> ifaces;
        synchronized (mChangedInterfaces) {
            // Before they are looked at: what changes meanwhile is looked at again
            ifaces = new ArraySet<>(mChangedInterfaces);
            mChangedInterfaces.clear();
        }
        boolean changed = false;
        for (String iface : ifaces) changed |= mApplication.onInterfaceChanged(iface);
        if (changed) update();
    }

    /** Prints the state and what led to it. Callable from any thread. */
    public void dump(@NonNull PrintWriter pw) {
        final String reasonOff = isTooOld() ? TOO_OLD : mSwitch.getReasonOff();
        pw.println("DRWA: " + (reasonOff == null ? "enabled" : "off: " + reasonOff));
        mApplication.dumpSettings(pw);
        pw.println("Events without a change: " + mUnchangedEvents);
        mApplication.dumpKnobs(pw);
    }

    /**
     * Runs a command of a developer's, see {@link DrwaShell}. Refused by user builds. Waits for the
     * handler, so it must not run on the handler's thread.
     *
     * @param args what follows the command's name
     * @return 0, or -1 if refused or wrong, which {@code pw} then explains
     */
    public int handleShellCommand(@NonNull PrintWriter pw, @NonNull String[] args) {
        return mShell.run(pw, args);
    }

    private final class Commands implements DrwaShell.Policy {
        @Override
        public void dump(PrintWriter pw) {
            DrwaController.this.dump(pw);
        }

        @Override
        public String clearOverrides() {
            mOverrides.clear();
            update();
            return null;
        }

        @Override
        public String override(String iface, int lambda) {
            if (!mStarted) return "DRWA has not started";
            final String reasonOff = mSwitch.getReasonOff();
            if (reasonOff != null) return "DRWA is off: " + reasonOff;
            final String below = DrwaDecision.findBelow(mNetworks, iface);
            if (mApplication.reachStacked()) {
                if (below != null) {
                    return "Set " + below + ", which the packets of " + iface + " cross";
                }
                final String reasonProgramsOff = mRateLimit.getReasonOff();
                if (reasonProgramsOff != null) return "Programs are off: " + reasonProgramsOff;
            }
            final DrwaSetting setting =
                    new DrwaSetting(
                            lambda,
                            DrwaCarrierConfig.DEFAULT_AQM,
                            DrwaCarrierConfig.DEFAULT_TETHERING,
                            "shell");
            final DrwaKnobs.Result result =
                    mApplication.set(iface, setting, DrwaDecision.findQueue(mNetworks, iface));
            if (result == DrwaKnobs.Result.DONE) mOverrides.put(iface, setting);
            update();
            return result == DrwaKnobs.Result.DONE ? null : "Cannot set " + iface + ": " + result;
        }
    }

    /** ConnectivityService's module has older platforms too, which lack calls of telephony's. */
    private static boolean isTooOld() {
        return Build.VERSION.SDK_INT < Build.VERSION_CODES.UPSIDE_DOWN_CAKE;
    }

    // HandlerUtils of ConnectivityService's module has the same, but host B has no such class.
    private void ensureRunningOnHandlerThread() {
        if (mHandler.getLooper().getThread() != Thread.currentThread()) {
            throw new IllegalStateException(
                    "Not running on "
                            + mHandler.getLooper().getThread().getName()
                            + ": "
                            + Thread.currentThread().getName());
        }
    }

    private void forgetUnusedSubscription(int subId) {
        for (int i = 0; i < mNetworks.size(); i++) {
            if (mNetworks.valueAt(i).mSubId == subId) return;
        }
        mCarrierConfig.forget(subId);
    }

    /** Decides anew on all interfaces and writes what differs. */
    private void update() {
        // Too old is never started, but check-api sees no further than this method.
        if (isTooOld() || !mStarted || mApplication.isIdle()) return;
        mApplication.listen();
        mApplication.apply(
                new DrwaDecision(
                        mNetworks,
                        mCarrierConfig,
                        mSwitch.getReasonOff(),
                        mRateLimit.getReasonOff(),
                        mOverrides));
        if (mListens || mNeverOn || mApplication.isIdle()) return;
        mCarrierConfig.start();
        mListens = true;
    }
}
