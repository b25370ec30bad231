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

import static android.net.NetworkCapabilities.NET_CAPABILITY_DUN;
import static android.net.NetworkCapabilities.NET_CAPABILITY_INTERNET;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING;
import static android.net.NetworkCapabilities.TRANSPORT_BLUETOOTH;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_ETHERNET;
import static android.net.NetworkCapabilities.TRANSPORT_TEST;
import static android.net.NetworkCapabilities.TRANSPORT_VPN;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static android.telephony.SubscriptionManager.INVALID_SUBSCRIPTION_ID;

import android.annotation.NonNull;
import android.annotation.Nullable;
import android.content.Context;
import android.net.INetd;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkSpecifier;
import android.net.TelephonyNetworkSpecifier;
import android.os.Build;
import android.os.Handler;
import android.os.HandlerThread;
import android.os.RemoteException;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.Log;
import android.util.SparseArray;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

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
 *       over it alone. The kernel is told, see {@link #findQueue(String)}.
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
 * <p>The static receive buffer limits stay ConnectivityService's business. It applies them on any
 * network as ever, and where DRWA is on, the kernel takes no notice of them.
 *
 * <p>Except where noted, methods must run on the thread of the handler, or they throw
 * IllegalStateException. They throw nothing else: what netd or telephony refuse is logged, and what
 * could not be written is tried again at any event, after {@link #MIN_RETRY_DELAY_MS}, and then at
 * twice the delay each time, up to {@link #MAX_RETRY_DELAY_MS}. Without any knobs and without an
 * uplink that can be set, they do nothing.
 *
 * @hide
 */
public class DrwaController {
    private static final String TAG = DrwaController.class.getSimpleName();

    private static final String LOOPBACK = "lo";

    /** A VPN over a VCN over cellular; an app could declare its own VPN to lie under itself. */
    private static final int MAX_STACKED_NETWORKS = 3;

    private static final int SHELL_COMMAND_TIMEOUT_S = 5;

    private static final String LAMBDA_RANGE =
            "in hundredths from "
                    + DrwaCarrierConfig.MIN_LAMBDA
                    + " to "
                    + DrwaCarrierConfig.MAX_LAMBDA
                    + ", or 0 for off";

    @VisibleForTesting static final int MIN_RETRY_DELAY_MS = 50;
    @VisibleForTesting static final int MAX_RETRY_DELAY_MS = 60_000;

    @NonNull private final Handler mHandler;
    @NonNull private final Dependencies mDeps;
    @NonNull private final INetd mNetd;
    @NonNull private final DrwaWriteLog mLog = new DrwaWriteLog();
    @NonNull private final DrwaSwitch mSwitch;
    @NonNull private final DrwaCarrierConfig mCarrierConfig;
    @NonNull private final DrwaInterfaceListener mInterfaceListener;
    @NonNull private final DrwaUplink mUplink;
    @NonNull private final Runnable mRetry = this::retry;

    /** Live networks, by netId. */
    private final SparseArray<NetworkState> mNetworks = new SparseArray<>();

    /** Targets set from the shell, by interface. */
    private final ArrayMap<String, DrwaSetting> mOverrides = new ArrayMap<>();

    private boolean mStarted;
    private boolean mListening;

    /** Whether all that had to be written is. */
    private boolean mSettled = true;

    private int mRetryDelayMs = MIN_RETRY_DELAY_MS;

    /** Whether any interface is to be on, or to have its uplink held. */
    private boolean mWanted;

    // Written on the handler's thread alone, read by others too.

    /** Those of the kernel until they are known to be missing. */
    @NonNull private volatile DrwaKnobs mKnobs;

    /** Knobs for a kernel without its own, or null if there are none, or not looked for yet. */
    @Nullable private volatile DrwaKnobs mBpfKnobs;

    /** Why there are none, for people who read a dump. */
    @Nullable private volatile String mReasonNoBpf;

    /** Whether all knobs are missing. Once true, it stays true. */
    private volatile boolean mNoKnobs;

    @NonNull private volatile List<String> mDescription = Collections.emptyList();
    private volatile int mUnchangedEvents;

    /** What lies outside of this class's reach in a test. */
    public static class Dependencies {
        /**
         * The knobs for a kernel without its own.
         *
         * @throws UnsupportedOperationException with the reason, if they cannot be had
         */
        @NonNull
        DrwaKnobs makeBpfKnobs(@NonNull DrwaWriteLog log) throws UnsupportedOperationException {
            throw new UnsupportedOperationException("not within reach outside of the module");
        }

        /** The names of the interfaces that exist, but for the loopback's, which has no knob. */
        @NonNull
        List<String> getInterfaceNames() {
            final List<String> names = new ArrayList<>();
            try {
                for (NetworkInterface iface :
                        Collections.list(NetworkInterface.getNetworkInterfaces())) {
                    if (!iface.getName().equals(LOOPBACK)) names.add(iface.getName());
                }
            } catch (SocketException e) {
                Log.e(TAG, "Cannot list the interfaces", e);
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

    /** The part of a network's state that decisions depend on. */
    private static final class NetworkState {
        /** Why the network must be off, whatever the carrier and the networks below say. */
        @Nullable final String mReasonOff;

        /** Whose carrier decides, or INVALID_SUBSCRIPTION_ID if none does. */
        final int mSubId;

        final boolean mRoams;

        /** What the network runs over, or null if it is no VPN or VCN. */
        @Nullable final List<Network> mUnderlyingNetworks;

        @NonNull final List<String> mInterfaces;

        /** The static limits that ConnectivityService sets while this is the default network. */
        @Nullable final String mTcpBufferSizes;

        NetworkState(@NonNull NetworkCapabilities nc, @NonNull LinkProperties lp) {
            mInterfaces = lp.getAllInterfaceNames();
            mTcpBufferSizes = lp.getTcpBufferSizes();
            mRoams = !nc.hasCapability(NET_CAPABILITY_NOT_ROAMING);
            mUnderlyingNetworks = nc.getUnderlyingNetworks();
            mReasonOff = mUnderlyingNetworks == null ? getReasonOff(nc) : null;
            final boolean carrierDecides = mUnderlyingNetworks == null && mReasonOff == null;
            mSubId = carrierDecides ? getSubId(nc) : INVALID_SUBSCRIPTION_ID;
        }

        @Nullable
        private static String getReasonOff(NetworkCapabilities nc) {
            // Checked first, because a VPN also has the transports of what it runs over
            if (nc.hasTransport(TRANSPORT_VPN)) return "vpn over unknown networks";
            boolean cellular = false;
            boolean test = false;
            for (int transport : nc.getTransportTypes()) {
                if (transport == TRANSPORT_CELLULAR) {
                    cellular = true;
                } else if (transport == TRANSPORT_TEST) {
                    test = true;
                } else {
                    return nameOf(transport);
                }
            }
            if (!cellular) return "unknown transport";
            // ConnectivityService takes the capabilities away from tests' networks
            if (!test
                    && !nc.hasCapability(NET_CAPABILITY_INTERNET)
                    && !nc.hasCapability(NET_CAPABILITY_DUN)) {
                return "no internet access";
            }
            if (getSubId(nc) == INVALID_SUBSCRIPTION_ID) return "no subscription";
            return null;
        }

        private static String nameOf(int transport) {
            switch (transport) {
                case TRANSPORT_WIFI:
                    return "wifi";
                case TRANSPORT_BLUETOOTH:
                    return "bluetooth";
                case TRANSPORT_ETHERNET:
                    return "ethernet";
                default:
                    return "transport " + transport;
            }
        }

        /** Telephony sets the specifier on every network of its own. */
        private static int getSubId(NetworkCapabilities nc) {
            final NetworkSpecifier specifier = nc.getNetworkSpecifier();
            return specifier instanceof TelephonyNetworkSpecifier
                    ? ((TelephonyNetworkSpecifier) specifier).getSubscriptionId()
                    : INVALID_SUBSCRIPTION_ID;
        }

        /** Whether both lie over the same device, on which interfaces may be stacked. */
        boolean hasSameDevice(NetworkState other) {
            return !mInterfaces.isEmpty()
                    && !other.mInterfaces.isEmpty()
                    && mInterfaces.get(0).equals(other.mInterfaces.get(0));
        }

        @Override
        public boolean equals(Object o) {
            if (!(o instanceof NetworkState)) return false;
            final NetworkState other = (NetworkState) o;
            return mSubId == other.mSubId
                    && mRoams == other.mRoams
                    && mInterfaces.equals(other.mInterfaces)
                    && Objects.equals(mTcpBufferSizes, other.mTcpBufferSizes)
                    && Objects.equals(mReasonOff, other.mReasonOff)
                    && Objects.equals(mUnderlyingNetworks, other.mUnderlyingNetworks);
        }

        @Override
        public int hashCode() {
            return Objects.hash(
                    mSubId, mRoams, mInterfaces, mTcpBufferSizes, mReasonOff, mUnderlyingNetworks);
        }
    }

    /** As the other one, for hosts without BPF programs. */
    public DrwaController(@NonNull Context context, @NonNull Handler handler, @NonNull INetd netd) {
        this(context, handler, netd, new Dependencies());
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
        mDeps = deps;
        mNetd = netd;
        mKnobs = new DrwaSysctlKnobs(netd, deps::getInterfaceNames, mLog);
        mUplink = new DrwaUplink(netd, deps::getInterfaceNames, mLog);
        mSwitch = new DrwaSwitch(context);
        mCarrierConfig = new DrwaCarrierConfig(context, handler, deps.makeReader(), this::update);
        mInterfaceListener = new DrwaInterfaceListener(this::postInterfaceChanged);
    }

    /** Starts writing, once telephony's services exist. Callable from any thread. */
    public void start() {
        mHandler.post(
                () -> {
                    mStarted = true;
                    final boolean neverOn = !mSwitch.start(mHandler, this::update);
                    update();
                    if (!neverOn && !isIdle()) mCarrierConfig.start();
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
        if (isIdle()) return;
        final NetworkState state = new NetworkState(nc, lp);
        final NetworkState old = mNetworks.get(netId);
        if (state.equals(old) && mSettled) {
            mUnchangedEvents++;
            return;
        }
        mNetworks.put(netId, state);
        if (old != null) forgetUnusedSubscription(old.mSubId);
        if (old == null) state.mInterfaces.forEach(mKnobs::onNetworkOf);
        update();
    }

    /** Takes notice of a network that is gone. Does nothing if it was unknown. */
    public void onNetworkDestroyed(int netId) {
        ensureRunningOnHandlerThread();
        final NetworkState old = mNetworks.get(netId);
        if (old == null && mSettled) return;
        mNetworks.remove(netId);
        if (old != null) forgetUnusedSubscription(old.mSubId);
        if (old != null) old.mInterfaces.forEach(mKnobs::onNetworkOf);
        update();
    }

    /** Called on netd's behalf, on any thread. */
    private void postInterfaceChanged(String iface) {
        if (!isIdle()) mHandler.post(() -> onInterfaceChanged(iface));
    }

    /** The interface of this name may be another one, or be gone. */
    private void onInterfaceChanged(String iface) {
        // Then every knob holds 0, and whatever comes does
        if (!mWanted && mKnobs.getInterfacesNotOff().isEmpty() && mUplink.isOff()) return;
        if (isIdle()) return;
        mKnobs.refresh(iface);
        mUplink.refresh(iface);
        update();
    }

    /** Whether there is nothing that could ever be set. */
    private boolean isIdle() {
        return mNoKnobs && mUplink.isMissing();
    }

    /** Prints the state and what led to it. Callable from any thread. */
    public void dump(@NonNull PrintWriter pw) {
        final String reasonOff = mSwitch.getReasonOff();
        pw.println("DRWA: " + (reasonOff == null ? "enabled" : "off: " + reasonOff));
        for (String line : mDescription) pw.println(line);
        pw.println("Events without a change: " + mUnchangedEvents);
        dumpKnobs(pw);
        mLog.dump(pw);
    }

    /** Prints which knobs these are, and why not the others. */
    private void dumpKnobs(PrintWriter pw) {
        final DrwaKnobs knobs = mKnobs;
        final boolean isBpf = knobs == mBpfKnobs;
        final String reasonNoBpf = mReasonNoBpf;
        if (isBpf || mNoKnobs) pw.println("This kernel has no " + DrwaSysctlKnobs.LAMBDA);
        if (reasonNoBpf != null) pw.println("No BPF: " + reasonNoBpf);
        if (!isBpf && mBpfKnobs != null) pw.println("No BPF: the kernel has knobs of its own");
        pw.println("Knobs: " + (mNoKnobs ? "none, so λ stays off" : knobs.describe()));
        if (!mNoKnobs) knobs.dump(pw);
        if (mUplink.isMissing()) pw.println(mUplink.describeMissing());
    }

    /**
     * Runs a command of a developer's: no argument or "show" prints what {@link #dump} does, "set
     * INTERFACE LAMBDA" overrides the policy, "clear" ends all overrides. Refused by user builds.
     * Waits for the handler, so it must not run on the handler's thread.
     *
     * @param args what follows the command's name
     * @return 0, or -1 if refused or wrong, which {@code pw} then explains
     */
    public int handleShellCommand(@NonNull PrintWriter pw, @NonNull String[] args) {
        if (!mDeps.isDebuggable()) {
            pw.println("Only debuggable builds have this command");
            return -1;
        }
        final String command = args.length == 0 ? "show" : args[0];
        if (command.equals("show") && args.length <= 1) {
            dump(pw);
            return 0;
        }
        if (command.equals("clear") && args.length == 1) {
            return runOnHandlerThread(pw, this::clearOverrides);
        }
        if (command.equals("set") && args.length == 3) {
            final Integer lambda = parseLambda(args[2]);
            if (lambda != null) return runOnHandlerThread(pw, () -> override(args[1], lambda));
            pw.println("Not " + LAMBDA_RANGE + ": " + args[2]);
            return -1;
        }
        pw.println("Usage: drwa [show | set INTERFACE LAMBDA | clear], LAMBDA " + LAMBDA_RANGE);
        return -1;
    }

    @Nullable
    private static Integer parseLambda(String text) {
        try {
            final int lambda = Integer.parseInt(text);
            return lambda == DrwaKnobs.OFF || DrwaCarrierConfig.isValidLambda(lambda)
                    ? lambda
                    : null;
        } catch (NumberFormatException e) {
            return null;
        }
    }

    /**
     * @return what went wrong, or null
     */
    @Nullable
    private String clearOverrides() {
        mOverrides.clear();
        update();
        return null;
    }

    /**
     * @return what went wrong, or null
     */
    @Nullable
    private String override(String iface, int lambda) {
        final String reasonOff = mSwitch.getReasonOff();
        if (reasonOff != null) return "DRWA is off: " + reasonOff;
        final String below = mKnobs.reachStacked() ? findBelow(iface) : null;
        if (below != null) return "Set " + below + ", which the packets of " + iface + " cross";
        final DrwaSetting setting =
                new DrwaSetting(
                        lambda,
                        DrwaCarrierConfig.DEFAULT_AQM,
                        DrwaCarrierConfig.DEFAULT_TETHERING,
                        "shell");
        DrwaKnobs.Result result = mKnobs.refresh(iface);
        if (result == DrwaKnobs.Result.DONE) result = mKnobs.set(iface, setting, findQueue(iface));
        if (result == DrwaKnobs.Result.DONE) mOverrides.put(iface, setting);
        update();
        return result == DrwaKnobs.Result.DONE ? null : "Cannot set " + iface + ": " + result;
    }

    private int runOnHandlerThread(PrintWriter pw, Callable<String> command) {
        final FutureTask<String> task = new FutureTask<>(command);
        mHandler.post(task);
        String problem;
        try {
            problem = task.get(SHELL_COMMAND_TIMEOUT_S, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            problem = e.toString();
        }
        if (problem == null) return 0;
        pw.println(problem);
        return -1;
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

    private void retry() {
        mRetryDelayMs = Math.min(2 * mRetryDelayMs, MAX_RETRY_DELAY_MS);
        update();
    }

    /** Decides anew on all interfaces and writes what differs. */
    private void update() {
        if (!mStarted) return;
        if (!mListening) mListening = listen();
        final String reasonOff = mSwitch.getReasonOff();
        final ArrayMap<String, DrwaSetting> settings = new ArrayMap<>();
        final ArrayMap<String, String> limits = new ArrayMap<>();
        final ArrayMap<String, Integer> uplinks = new ArrayMap<>();
        for (int i = 0; i < mNetworks.size(); i++) {
            final NetworkState state = mNetworks.valueAt(i);
            final DrwaSetting setting =
                    reasonOff == null
                            ? decide(state, MAX_STACKED_NETWORKS)
                            : DrwaSetting.off(reasonOff);
            for (String iface : state.mInterfaces) {
                settings.merge(iface, setting, DrwaController::share);
                if (state.mTcpBufferSizes != null) limits.put(iface, state.mTcpBufferSizes);
            }
            final int uplinkMs = reasonOff == null ? decideUplinkMs(state) : DrwaUplink.OFF;
            if (uplinkMs != DrwaUplink.OFF) {
                uplinks.merge(state.mInterfaces.get(0), uplinkMs, Math::min);
            }
        }
        if (reasonOff == null) settings.putAll(mOverrides);

        lookForBpf();
        // Only if netd tells of them, or what changes meanwhile would go unnoticed
        if (mListening) mUplink.start();
        final boolean uplinkSettled = mUplink.set(uplinks);
        boolean settled = mListening && mKnobs.start();
        settled &= write(settings, limits);
        if (mKnobs.isMissing() && !mNoKnobs) {
            if (mBpfKnobs == null) {
                mNoKnobs = true;
                Log.i(TAG, "No BPF either, so λ stays off: " + mReasonNoBpf);
            } else {
                mKnobs = mBpfKnobs;
                Log.i(TAG, "Knobs are " + mKnobs.describe());
                settled = mListening & mKnobs.start() & write(settings, limits);
            }
        }
        settled &= uplinkSettled;
        mWanted |= !uplinks.isEmpty();
        if (isIdle()) {
            mNetworks.clear();
            mDescription = Collections.emptyList();
            settled = true;
        }
        scheduleRetry(settled & clearOtherKnobs());
    }

    private boolean listen() {
        try {
            mNetd.registerUnsolicitedEventListener(mInterfaceListener);
            return true;
        } catch (RemoteException | RuntimeException e) {
            mLog.onError("Cannot listen to netd", e);
            return false;
        }
    }

    private void lookForBpf() {
        if (mBpfKnobs != null || mReasonNoBpf != null) return;
        try {
            mBpfKnobs = mDeps.makeBpfKnobs(mLog);
        } catch (UnsupportedOperationException e) {
            mReasonNoBpf = e.getMessage();
        }
    }

    /**
     * Never two governors: an earlier system server may have had no choice but the other knobs.
     *
     * @return whether the knobs that are not used hold nothing
     */
    private boolean clearOtherKnobs() {
        final DrwaKnobs other = mBpfKnobs;
        if (other == null || other == mKnobs) return true;
        return other.start()
                & switchOffBut(Collections.emptySet(), other)
                & other.clean() == DrwaKnobs.Result.DONE;
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
    private boolean write(ArrayMap<String, DrwaSetting> settings, ArrayMap<String, String> limits) {
        if (mKnobs.reachStacked()) switchOffStacked(settings);
        boolean settled = switchOffBut(settings.keySet(), mKnobs);
        final List<String> description = new ArrayList<>(settings.size());
        final TreeMap<String, Integer> queues = findQueues(settings);
        mWanted = !queues.isEmpty();
        for (int i = 0; i < settings.size(); i++) {
            final String iface = settings.keyAt(i);
            final DrwaSetting setting = settings.valueAt(i);
            final int queue = queues.getOrDefault(iface, DrwaKnobs.OWN_QUEUE);
            DrwaKnobs.Result result = mKnobs.set(iface, setting, queue);
            settled &= result == DrwaKnobs.Result.DONE;
            final boolean missing = setting.isOn() && mKnobs.isMissing();
            if (missing) result = DrwaKnobs.Result.NO_LAMBDA;
            final StringBuilder text = new StringBuilder(iface + " " + setting);
            if (result != DrwaKnobs.Result.DONE) text.append(", not written: ").append(result);
            if (setting.isOn() && !missing) {
                text.append("\n  ").append(describeQueue(iface, queues));
                text.append("\n  ").append(describeLimit(limits.get(iface)));
            }
            final String uplink = mUplink.describe(iface);
            if (!uplink.isEmpty()) text.append("\n  ").append(uplink);
            description.add(text.toString());
        }
        Collections.sort(description);
        mDescription = description;
        return settled & mKnobs.clean() == DrwaKnobs.Result.DONE;
    }

    private void switchOffStacked(ArrayMap<String, DrwaSetting> settings) {
        for (int i = 0; i < settings.size(); i++) {
            final String below = findBelow(settings.keyAt(i));
            if (below == null || !settings.valueAt(i).isOn()) continue;
            settings.setValueAt(i, DrwaSetting.off("governed at " + below));
        }
    }

    /** The interface that this one is stacked on, or null. */
    @Nullable
    private String findBelow(String iface) {
        for (int i = 0; i < mNetworks.size(); i++) {
            final int depth = mNetworks.valueAt(i).mInterfaces.indexOf(iface);
            if (depth > 0) return mNetworks.valueAt(i).mInterfaces.get(0);
        }
        return null;
    }

    /** The queues of all interfaces that are on. */
    private TreeMap<String, Integer> findQueues(ArrayMap<String, DrwaSetting> settings) {
        final TreeMap<String, Integer> queues = new TreeMap<>();
        for (int i = 0; i < settings.size(); i++) {
            final String iface = settings.keyAt(i);
            if (settings.valueAt(i).isOn()) queues.put(iface, findQueue(iface));
        }
        return queues;
    }

    /**
     * The id of the radio's queue that an interface's packets come out of, by which the kernel
     * knows who shares it, or {@link DrwaKnobs#OWN_QUEUE} if the interface's networks do not agree
     * on one.
     *
     * <p>A queue has the netId of its network: an int above 0, which no other live network has,
     * which stays with the network, and by which the rest of Android names it. Networks of two
     * SIMs, and two of one SIM, have queues of their own.
     */
    private int findQueue(String iface) {
        final ArraySet<Integer> queues = new ArraySet<>();
        for (int i = 0; i < mNetworks.size(); i++) {
            if (mNetworks.valueAt(i).mInterfaces.contains(iface)) {
                queues.add(findQueue(mNetworks.keyAt(i), MAX_STACKED_NETWORKS));
            }
        }
        return queues.size() == 1 ? queues.valueAt(0) : DrwaKnobs.OWN_QUEUE;
    }

    private int findQueue(int netId, int maxStacked) {
        final NetworkState state = mNetworks.get(netId);
        if (state == null || maxStacked == 0) return DrwaKnobs.OWN_QUEUE;
        if (state.mUnderlyingNetworks != null) {
            if (state.mUnderlyingNetworks.size() != 1) return DrwaKnobs.OWN_QUEUE;
            return findQueue(state.mUnderlyingNetworks.get(0).getNetId(), maxStacked - 1);
        }
        // Networks over one device share its queue, as while one replaces another
        for (int i = 0; i < mNetworks.size(); i++) {
            if (mNetworks.valueAt(i).hasSameDevice(state)) return mNetworks.keyAt(i);
        }
        return netId;
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

    /**
     * Says which static limit the kernel takes no notice of, or still does, in all its names.
     *
     * @param tcpBufferSizes minimum, default and maximum in bytes for receiving, then for sending,
     *     with commas between them, or null if the network has none of its own
     */
    private String describeLimit(@Nullable String tcpBufferSizes) {
        final String[] sizes = tcpBufferSizes == null ? new String[0] : tcpBufferSizes.split(",");
        return (mKnobs.supersedeLimit() ? "supersedes" : "stays below")
                + " the static receive maximum"
                + (sizes.length == 6 ? " of " + sizes[2].trim() + " bytes" : "")
                + " (net.tcp.buffersize, config_tcp_buffers, tcp_rmem)";
    }

    private void scheduleRetry(boolean settled) {
        mSettled = settled;
        mHandler.removeCallbacks(mRetry);
        if (settled) {
            mRetryDelayMs = MIN_RETRY_DELAY_MS;
        } else {
            mHandler.postDelayed(mRetry, mRetryDelayMs);
        }
    }

    /** The setting of an interface that two networks use. */
    private static DrwaSetting share(DrwaSetting a, DrwaSetting b) {
        if (!a.isOn()) return b;
        return b.isOn() && b.lambda < a.lambda ? b : a;
    }

    /** The target of the device that a network's packets leave by, whoever they come from. */
    private int decideUplinkMs(NetworkState state) {
        final boolean isBelowOthers = state.mReasonOff == null && state.mUnderlyingNetworks == null;
        return isBelowOthers && !state.mInterfaces.isEmpty()
                ? mCarrierConfig.getUplinkMs(state.mSubId, state.mRoams)
                : DrwaUplink.OFF;
    }

    private DrwaSetting decide(NetworkState state, int maxStacked) {
        if (state.mReasonOff != null) return DrwaSetting.off(state.mReasonOff);
        if (state.mUnderlyingNetworks == null) {
            return mCarrierConfig.get(state.mSubId, state.mRoams);
        }
        if (maxStacked == 1) return DrwaSetting.off("too many stacked networks");

        DrwaSetting least = null;
        for (Network network : state.mUnderlyingNetworks) {
            final NetworkState underlying = mNetworks.get(network.getNetId());
            final DrwaSetting setting =
                    underlying == null
                            ? DrwaSetting.off("unknown")
                            : decide(underlying, maxStacked - 1);
            if (least == null || setting.lambda < least.lambda) {
                least =
                        new DrwaSetting(
                                setting.lambda,
                                setting.aqm,
                                setting.tethering,
                                "over network " + network + " (" + setting.reason + ")");
            }
        }
        return least == null ? DrwaSetting.off("over no network") : least;
    }
}
