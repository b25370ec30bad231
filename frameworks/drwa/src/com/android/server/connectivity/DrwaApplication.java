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
import android.net.INetd;
import android.os.Handler;
import android.os.RemoteException;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Applies {@link DrwaDecision}s: chooses the {@link DrwaKnobs}, writes what differs, and has what
 * could not be written decided and written again, after {@link #MIN_RETRY_DELAY_MS}, and then at
 * twice the delay each time, up to {@link #MAX_RETRY_DELAY_MS}.
 *
 * <p>Except where noted, methods run on the handler's thread.
 *
 * @hide
 */
final class DrwaApplication {
    // By which logs are found
    private static final String TAG = DrwaController.class.getSimpleName();

    @VisibleForTesting static final int MIN_RETRY_DELAY_MS = 50;
    @VisibleForTesting static final int MAX_RETRY_DELAY_MS = 60_000;

    @NonNull private final Handler mHandler;
    @NonNull private final DrwaController.Dependencies mDeps;
    @NonNull private final INetd mNetd;
    @NonNull private final DrwaInterfaceListener mInterfaceListener;
    @NonNull private final DrwaUplink mUplink;
    @NonNull private final Runnable mDecide;
    @NonNull private final Runnable mRetry = this::retry;
    @NonNull private final DrwaWriteLog mLog = new DrwaWriteLog();

    private boolean mListening;

    /** Whether BPF is known to be missing. */
    private boolean mNoBpf;

    private int mRetryDelayMs = MIN_RETRY_DELAY_MS;

    /** Whether any interface is to be on, or to have its uplink held. */
    private boolean mWanted;

    /** The interfaces that are on, and not only to be. */
    @NonNull private Set<String> mGoverned = Collections.emptySet();

    /** Called when those change; null if the host does not replace the static limit. */
    @Nullable private Runnable mOnReceiveMaximum;

    // Written on the handler's thread alone, read by others too.

    /** Those of the kernel until they are known to be missing. */
    @NonNull private volatile DrwaKnobs mKnobs;

    /** Knobs for a kernel without its own, or null if there are none, or not looked for yet. */
    @Nullable private volatile DrwaKnobs mBpfKnobs;

    /** Why there are none, for people who read a dump. */
    @Nullable private volatile String mReasonNoBpf;

    /** Whether all knobs are missing, as far as is known. */
    private volatile boolean mNoKnobs;

    @NonNull private volatile List<String> mDescription = Collections.emptyList();

    /**
     * @param listener what netd is to tell of interfaces
     * @param decide called on the handler's thread to have {@link #apply} called again
     */
    DrwaApplication(
            @NonNull Handler handler,
            @NonNull INetd netd,
            @NonNull DrwaController.Dependencies deps,
            @NonNull DrwaInterfaceListener listener,
            @NonNull Runnable decide) {
        mHandler = handler;
        mNetd = netd;
        mDeps = deps;
        mInterfaceListener = listener;
        mDecide = decide;
        mKnobs = new DrwaSysctlKnobs(netd, deps::getInterfaceNames, mLog);
        mUplink = new DrwaUplink(netd, deps::getInterfaceNames, mLog);
    }

    /**
     * Whether there is nothing that could be set, unless {@link #lookAgain} finds something.
     * Callable from any thread.
     */
    boolean isIdle() {
        return mNoKnobs && mUplink.isMissing();
    }

    /**
     * Looks at an interface for what was missing: a module of the kernel's may have been loaded.
     * Programs that govern stay.
     */
    void lookAgain(@NonNull String iface) {
        if (mNoKnobs && mKnobs.refresh(iface) == DrwaKnobs.Result.DONE) mNoKnobs = false;
        if (mUplink.isMissing()) mUplink.refresh(iface);
    }

    /**
     * @param onReceiveMaximum called when {@link #governs} may have come to another result, or null
     *     if the static limits are not the host's to replace
     */
    void setOnReceiveMaximum(@Nullable Runnable onReceiveMaximum) {
        mOnReceiveMaximum = onReceiveMaximum;
    }

    /** Whether the connections over a network are governed, at the device that they cross. */
    boolean governs(@NonNull DrwaNetwork network) {
        return !network.mInterfaces.isEmpty() && mGoverned.contains(network.mInterfaces.get(0));
    }

    /** Whether what is stacked on an interface is governed there. */
    boolean reachStacked() {
        return mKnobs.reachStacked();
    }

    /** Takes notice that an interface has joined a network or left one. */
    void onNetworkOf(@NonNull String iface) {
        mKnobs.onNetworkOf(iface);
    }

    /**
     * Takes notice that the interface of this name may be another one, or be gone.
     *
     * @return whether something may have to be written
     */
    boolean onInterfaceChanged(@NonNull String iface) {
        // Then every knob holds 0, and whatever comes does
        if (!mWanted && mKnobs.getInterfacesNotOff().isEmpty() && mUplink.isOff()) return false;
        if (isIdle()) return false;
        mKnobs.refresh(iface);
        mUplink.refresh(iface);
        mNoKnobs &= mKnobs.isMissing();
        return true;
    }

    /** Sets one interface, whatever was decided. */
    @NonNull
    DrwaKnobs.Result set(@NonNull String iface, @NonNull DrwaSetting setting, int queue) {
        final DrwaKnobs.Result result = mKnobs.refresh(iface);
        mNoKnobs &= mKnobs.isMissing();
        return result == DrwaKnobs.Result.DONE ? mKnobs.set(iface, setting, queue) : result;
    }

    /** Begins to hear of interfaces, unless that is done. */
    void listen() {
        if (mListening) return;
        try {
            mNetd.registerUnsolicitedEventListener(mInterfaceListener);
            mListening = true;
        } catch (RemoteException | RuntimeException e) {
            mLog.onError("Cannot listen to netd", e);
        }
    }

    /** Writes what differs. */
    void apply(@NonNull DrwaDecision decision) {
        final Set<String> governed = mGoverned;
        final boolean looked = lookForBpf();
        // Only if netd tells of them, or what changes meanwhile would go unnoticed
        final boolean uplinkStarted = mListening && mUplink.start();
        final boolean uplinkSettled = mUplink.set(decision.uplinks) && uplinkStarted;
        boolean started = mListening && mKnobs.start();
        boolean written = write(decision);
        if (mKnobs.isMissing() && !mNoKnobs && looked) {
            if (mBpfKnobs == null) {
                mNoKnobs = true;
                Log.i(TAG, "No BPF either, so λ stays off: " + mReasonNoBpf);
            } else {
                mKnobs = mBpfKnobs;
                Log.i(TAG, "Knobs are " + mKnobs.describe());
                // Before anything is written, or what was left would not be known
                started = mKnobs.start();
                written = write(decision);
            }
        }
        mWanted |= !decision.uplinks.isEmpty();
        boolean settled = looked && mListening && started && written && uplinkSettled;
        if (isIdle()) {
            mDescription = Collections.emptyList();
            settled = true;
        }
        final boolean cleared = clearOtherKnobs();
        scheduleRetry(settled && cleared);
        if (mOnReceiveMaximum != null && !mGoverned.equals(governed)) mOnReceiveMaximum.run();
    }

    private void retry() {
        mRetryDelayMs = Math.min(2 * mRetryDelayMs, MAX_RETRY_DELAY_MS);
        mDecide.run();
    }

    /**
     * @return false if it is worth another try later
     */
    private boolean lookForBpf() {
        if (mBpfKnobs != null || mNoBpf) return true;
        try {
            mBpfKnobs = mDeps.makeBpfKnobs(mNetd, mLog);
            mReasonNoBpf = null;
        } catch (UnsupportedOperationException e) {
            mReasonNoBpf = e.getMessage();
            mNoBpf = true;
        } catch (RemoteException | RuntimeException e) {
            mReasonNoBpf = "netd failed, and is asked again";
            mLog.onError("Cannot look for BPF", e);
        }
        return mBpfKnobs != null || mNoBpf;
    }

    /**
     * Never two governors: an earlier system server may have had no choice but the other knobs.
     *
     * @return whether the knobs that are not used hold nothing
     */
    private boolean clearOtherKnobs() {
        final DrwaKnobs other = mBpfKnobs;
        if (other == null || other == mKnobs) return true;
        final boolean started = other.start();
        final boolean off = switchOffBut(Collections.emptySet(), other);
        final boolean cleaned = other.clean() == DrwaKnobs.Result.DONE;
        return started && off && cleaned;
    }

    /**
     * @return whether all interfaces but these are off
     */
    private static boolean switchOffBut(Set<String> ifaces, DrwaKnobs knobs) {
        final DrwaSetting unused = DrwaSetting.off("unused");
        boolean done = true;
        for (String iface : knobs.getInterfacesNotOff()) {
            if (ifaces.contains(iface)) continue;
            done &= knobs.set(iface, unused, DrwaKnobs.OWN_QUEUE) == DrwaKnobs.Result.DONE;
        }
        return done;
    }

    /**
     * Writes what differs, and describes all.
     *
     * @return whether it is written
     */
    private boolean write(DrwaDecision decision) {
        final ArrayMap<String, DrwaSetting> settings = decision.getSettings(mKnobs.reachStacked());
        boolean settled = switchOffBut(settings.keySet(), mKnobs);
        final List<String> description = new ArrayList<>(settings.size());
        final TreeMap<String, Integer> queues = findQueues(settings, decision.queues);
        final Set<String> governed = new ArraySet<>();
        mWanted = !queues.isEmpty();
        for (int i = 0; i < settings.size(); i++) {
            final String iface = settings.keyAt(i);
            final DrwaSetting setting = settings.valueAt(i);
            final int queue = queues.getOrDefault(iface, DrwaKnobs.OWN_QUEUE);
            DrwaKnobs.Result result = mKnobs.set(iface, setting, queue);
            settled &= result == DrwaKnobs.Result.DONE;
            final boolean missing = setting.isOn() && mKnobs.isMissing();
            if (missing) result = DrwaKnobs.Result.NO_LAMBDA;
            if (setting.isOn() && result.isGoverned()) governed.add(iface);
            final StringBuilder text = new StringBuilder(iface + " " + setting);
            if (result != DrwaKnobs.Result.DONE) {
                text.append(", not written: ").append(mKnobs.explain(iface, result));
            }
            if (setting.isOn() && !missing) {
                text.append("\n  ").append(describeQueue(iface, queues));
                text.append("\n  ")
                        .append(
                                DrwaLimit.describe(
                                        decision.limits.get(iface),
                                        mOnReceiveMaximum != null,
                                        mKnobs.supersedeLimit()));
            }
            final String uplink = mUplink.describe(iface);
            if (!uplink.isEmpty()) text.append("\n  ").append(uplink);
            description.add(text.toString());
        }
        Collections.sort(description);
        mDescription = description;
        mGoverned = governed;
        final boolean cleaned = mKnobs.clean() == DrwaKnobs.Result.DONE;
        return settled && cleaned;
    }

    /** The queues of all interfaces that are on. */
    private static TreeMap<String, Integer> findQueues(
            ArrayMap<String, DrwaSetting> settings, ArrayMap<String, Integer> queues) {
        final TreeMap<String, Integer> ofThoseOn = new TreeMap<>();
        for (int i = 0; i < settings.size(); i++) {
            final String iface = settings.keyAt(i);
            if (!settings.valueAt(i).isOn()) continue;
            ofThoseOn.put(iface, queues.getOrDefault(iface, DrwaKnobs.OWN_QUEUE));
        }
        return ofThoseOn;
    }

    private String describeQueue(String iface, TreeMap<String, Integer> queues) {
        if (!mKnobs.hasQueues()) return DrwaKnobs.describeQueue(DrwaKnobs.OWN_QUEUE);
        final int queue = queues.get(iface);
        final List<String> others = new ArrayList<>();
        for (Map.Entry<String, Integer> other : queues.entrySet()) {
            if (other.getValue() == queue && !other.getKey().equals(iface)) {
                others.add(other.getKey());
            }
        }
        final boolean shared = queue != DrwaKnobs.OWN_QUEUE && !others.isEmpty();
        return DrwaKnobs.describeQueue(queue)
                + (shared ? ", shared with " + String.join(", ", others) : "");
    }

    private void scheduleRetry(boolean settled) {
        mHandler.removeCallbacks(mRetry);
        if (settled) {
            mRetryDelayMs = MIN_RETRY_DELAY_MS;
        } else {
            mHandler.postDelayed(mRetry, mRetryDelayMs);
        }
    }

    /** Prints what was set, and how each of it went. Callable from any thread. */
    void dumpSettings(@NonNull PrintWriter pw) {
        for (String line : mDescription) pw.println(line);
    }

    /** Prints which knobs these are, why not the others, and what was written. */
    void dumpKnobs(@NonNull PrintWriter pw) {
        final DrwaKnobs knobs = mKnobs;
        final boolean isBpf = knobs == mBpfKnobs;
        final String reasonNoBpf = mReasonNoBpf;
        if (isBpf || mNoKnobs) pw.println("This kernel has no " + DrwaSysctlKnobs.LAMBDA);
        if (reasonNoBpf != null) pw.println("No BPF: " + reasonNoBpf);
        if (!isBpf && mBpfKnobs != null) pw.println("No BPF: the kernel has knobs of its own");
        pw.println("Knobs: " + (mNoKnobs ? "none, so λ stays off" : knobs.describe()));
        if (!mNoKnobs) knobs.dump(pw);
        if (mUplink.isMissing()) pw.println(mUplink.describeMissing());
        mLog.dump(pw);
    }
}
