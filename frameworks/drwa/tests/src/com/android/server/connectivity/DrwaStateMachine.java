// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.NET_CAPABILITY_DUN;
import static android.net.NetworkCapabilities.NET_CAPABILITY_MMS;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_ETHERNET;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.cellularFor;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vcn;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.net.INetd;
import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Handler;
import android.os.Looper;
import android.os.RemoteException;
import android.system.ErrnoException;
import android.telephony.SubscriptionManager;
import android.util.ArrayMap;
import android.util.SparseArray;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.RandomDistribution;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLooper;
import org.robolectric.util.ReflectionHelpers;

/**
 * Random lives of a phone. {@link #SOON_MS} after every step on which netd works, the knobs of all
 * interfaces hold what {@link Phone#expected} computes from the live networks, not a write too many
 * was made, and nothing of dead networks is left. {@link DrwaStateMachineTest} runs it.
 */
public class DrwaStateMachine {
    /** How many steps all runs made. */
    static int sSteps;

    private static final int SOON_MS = 100;
    private static final int SUBSCRIPTIONS = 3;
    private static final int NETWORKS = 6;
    private static final int[] LAMBDAS = {100, 125, 150, 300, 1000};
    private static final int[] UPLINKS_MS = {0, 5, 20, 200};

    /** What devices are called that lose their names to others. */
    private static final String[] STRAYS = {"stray0", "stray1"};

    private static final int NO_RATE_LIMIT = -1;

    /** More than the policy takes for none. */
    private static final long PAST_BYTES = 3 * DrwaBpfKnobs.PAST_BYTES;

    private static final int PACKETS = 100;

    private enum Kind {
        CELLULAR(true, "rmnet_data0", "rmnet_data1", "rmnet_data2"),
        /** What a hotspot's clients have the internet by, and the phone itself does not. */
        DUN(true, "rmnet_data1", "rmnet_data2"),
        MMS(true, "rmnet_data0", "rmnet_data3"),
        WIFI(true, "wlan0"),
        ETHERNET(true, "eth0"),
        VPN(false, "tun0", "tun1"),
        VCN(false, "ipsec0", "ipsec1");

        /** Whether the interfaces outlive their networks. */
        final boolean mPersistent;

        final String[] mInterfaces;

        Kind(boolean persistent, String... interfaces) {
            mPersistent = persistent;
            mInterfaces = interfaces;
        }

        boolean runsOverOthers() {
            return this == VPN || this == VCN;
        }

        boolean isCarriers() {
            return this == CELLULAR || this == DUN;
        }

        /** Whether ConnectivityService applies a developer's limit of the rate to it. */
        boolean isLimited() {
            return this != DUN && this != MMS;
        }
    }

    private enum Action {
        CONNECT,
        DISCONNECT,
        INTERFACE_GOES_FIRST,
        REPLACE,
        SIM_SWAP,
        CLAT_UP,
        CLAT_DOWN,
        RUN_OVER,
        REPEAT,
        DUN,
        CONFIG,
        TETHER,
        SIM_REMOVED,
        PHONE_PROCESS_STALLS,
        SWITCH,
        INTERFACE_COMES_AGAIN,
        INTERFACE_LOSES_ITS_NAME,
        INTERFACE_TAKES_ANOTHERS_NAME,
        INTERFACE_COMES_WITHOUT_KNOB,
        NETD_FAILS,
        NETD_FAILS_FOR_ONE,
        NETD_FAILS_FOR_A_QUEUE,
        NETD_FAILS_FOR_AN_UPLINK,
        VENDOR_SETS_A_QDISC,
        VENDOR_TAKES_IT_AWAY,
        RATE_LIMIT_COMES,
        RATE_LIMIT_GOES,
        POLICE_COMES,
        POLICE_GOES,
        TRAFFIC,
        OFFLOAD,
        RESTART
    }

    private enum Kernel {
        WITH_QUEUES,
        WITHOUT_QUEUES_AND_UPLINK,
        WITHOUT_LAMBDA,
        BPF,
        NETD_PROGRAMS
    }

    private record Step(Action action, int network, int choice, int detail) {}

    /** What an interface is to have, as far as its networks say. */
    private record Wanted(int lambda, boolean clients) {
        static final Wanted OFF = new Wanted(0, true);

        /**
         * Of networks below another all have to want it, and the first of the least has the say.
         */
        Wanted below(Wanted later) {
            return later.lambda < lambda ? later : this;
        }

        /** Of networks beside each other on an interface, any. */
        Wanted beside(Wanted later) {
            return lambda == 0 || later.lambda != 0 && later.lambda < lambda ? later : this;
        }
    }

    /** What is known of a live network. */
    private static class Live {
        Kind mKind;
        int mSubId;
        String mInterface;
        boolean mClat;

        /** netIds of what it runs over, or null if unknown. */
        List<Integer> mBelow;

        List<String> interfaces() {
            return mClat ? List.of(mInterface, clat()) : List.of(mInterface);
        }

        String clat() {
            return "v4-" + mInterface;
        }

        LinkProperties linkProperties() {
            return mClat ? link(mInterface, clat()) : link(mInterface);
        }

        NetworkCapabilities capabilities() {
            switch (mKind) {
                case CELLULAR:
                    return cellular(mSubId);
                case DUN:
                    return cellularFor(NET_CAPABILITY_DUN, mSubId);
                case MMS:
                    return cellularFor(NET_CAPABILITY_MMS, mSubId);
                case WIFI:
                    return internet(TRANSPORT_WIFI);
                case ETHERNET:
                    return internet(TRANSPORT_ETHERNET);
                case VPN:
                    return vpn(mBelow, TRANSPORT_CELLULAR);
                default:
                    return vcn(mSubId, mBelow);
            }
        }
    }

    /** What the policy knows of a subscription. */
    private static class Subscription {
        /** 0 for a carrier that wants none. */
        int mLambda;

        /** Whether a hotspot's clients are to be governed, too. */
        boolean mClients = true;

        /** 0 for a carrier that wants its uplink left alone. */
        int mUplinkMs;

        /** Whether telephony has told of it since the system server started. */
        boolean mAnnounced;

        /** Whether the policy has decided on a live network of its. */
        boolean mUsed;

        /** λ and clients as telephony has told them, or off if it did not answer yet. */
        Wanted mAnswer = Wanted.OFF;

        /** The uplink's target as telephony has told it, or 0. */
        int mUplinkAnswer;

        boolean isKnown() {
            return mAnnounced || mUsed;
        }
    }

    /** A phone under test, and all that its policy may depend on. */
    private static class Phone {
        final Application mContext = RuntimeEnvironment.getApplication();
        final FakeNetd mNetd = new FakeNetd();

        final FakeBpf mBpf =
                new FakeBpf(mNetd) {
                    @Override
                    List<String> readInterfaceCounters() {
                        return makeInterfaceCounters();
                    }
                };

        final FakeTelephony mTelephony = new FakeTelephony(mContext);
        final Map<Integer, Live> mLive = new TreeMap<>();
        final List<Subscription> mSubscriptions = new ArrayList<>();
        final ShadowLooper mLooper;

        DrwaController mController;
        Handler mHandler;
        FakeReader mReader = new FakeReader();

        boolean mOffBySetting;
        boolean mOffByFlag;

        /** The developers' limit of the rate, in the setting's unit. */
        int mRateLimit = NO_RATE_LIMIT;

        /** Whether that has just changed. */
        boolean mRateLimitChanges;

        /** Whether the priority of the programs may have been left, which nobody tells. */
        boolean mPriorityMayBeFree;

        /** By index, the packets that have come in all, and their bytes. */
        final Map<Integer, long[]> mCame = new TreeMap<>();

        /** By index, the bytes that no program has seen since it governs; null if nobody knows. */
        final Map<Integer, Long> mPast = new TreeMap<>();

        /** Whether a network has just come or gone. */
        boolean mNetworksChange;

        /** Steps that netd still fails. */
        int mFailures;

        /** Whether netd has failed since it last worked for a whole step. */
        boolean mUnsettled;

        final boolean mKernelHasQueues;
        final boolean mHasUplink;

        Phone(Kernel kernel) {
            mKernelHasQueues = kernel != Kernel.WITHOUT_QUEUES_AND_UPLINK;
            mHasUplink = kernel != Kernel.WITHOUT_QUEUES_AND_UPLINK;
            if (!mKernelHasQueues) mNetd.removeQueuesFromKernel();
            if (!mHasUplink) mNetd.removeUplinkFromNetd();
            if (kernel == Kernel.WITHOUT_LAMBDA) mNetd.removeDrwaFromKernel();
            if (kernel == Kernel.BPF) mNetd.replaceKnobsByBpf();
            if (kernel == Kernel.NETD_PROGRAMS) {
                mNetd.removeDrwaFromKernel();
                mNetd.addPrograms();
            }
            // jqwik shrinks on a thread of its own
            if (Looper.myLooper() == null) Looper.prepare();
            mLooper = shadowOf(Looper.myLooper());
            mHandler = new Handler(Looper.myLooper());
            mTelephony.neverCalls = Thread.currentThread();
            for (Kind kind : Kind.values()) {
                if (!kind.mPersistent) continue;
                for (String iface : kind.mInterfaces) mNetd.addInterface(iface);
            }
            putSwitches();
            for (int subId = 0; subId < SUBSCRIPTIONS; subId++) {
                mTelephony.setCarrierId(subId, 1000 + subId);
                mSubscriptions.add(new Subscription());
                configure(subId, 125, 20);
            }
            restart();
        }

        void configure(int subId, int lambda, int uplinkMs) {
            final Subscription subscription = mSubscriptions.get(subId);
            subscription.mLambda = lambda;
            subscription.mUplinkMs = uplinkMs;
            subscription.mAnnounced = true;
            mTelephony.setConfig(
                    subId,
                    lambda != 0,
                    lambda == 0 ? 125 : lambda,
                    uplinkMs,
                    subscription.mClients);
            mTelephony.announceConfig(subId);
        }

        void putSwitches() {
            TestSwitches.putSetting(mContext, mOffBySetting ? "0" : null);
            TestSwitches.putFlag(mContext, mOffByFlag ? "-1" : "0");
            TestSwitches.putRateLimit(mContext, mRateLimit);
        }

        /** Whether programs govern, wherever they are. */
        boolean hasPrograms() {
            return mNetd.hasBpf() || mNetd.hasPrograms();
        }

        /**
         * ConnectivityService puts a limit where the one before was. The policy's host may be told
         * first, or may hear of it later than ConnectivityService has.
         */
        void setRateLimit(int limit, boolean policyIsFirst) {
            final int former = mRateLimit;
            mRateLimit = limit;
            mRateLimitChanges = true;
            if (mNetd.hasBpf()) mController.onIngressRateLimitChanged();
            TestSwitches.putRateLimit(mContext, limit);
            if (policyIsFirst) mLooper.idle();
            for (Live live : mLive.values()) {
                if (!live.mKind.isLimited() || !mNetd.hasInterface(live.mInterface)) continue;
                if (former != NO_RATE_LIMIT) removePriority(live.mInterface);
                if (limit != NO_RATE_LIMIT) mNetd.addPolice(live.mInterface);
            }
        }

        private void removePriority(String iface) {
            try {
                mNetd.deleteFilter(iface, true);
            } catch (ErrnoException e) {
                // ConnectivityService logs it
            }
        }

        /** Those of /proc/net/dev. */
        List<String> makeInterfaceCounters() {
            final List<String> lines = new ArrayList<>();
            for (String iface : mNetd.getKnobs().keySet()) {
                final long[] came = mCame.getOrDefault(mNetd.getIndex(iface), new long[] {0, 0});
                lines.add(" " + iface + ": " + came[1] + " " + came[0] + " 0");
            }
            return lines;
        }

        /** Packets come by an interface, of which the programs see all or none. */
        void receive(String iface, long bytes, boolean seen) {
            final int index = mNetd.getIndex(iface);
            final long[] came = mCame.computeIfAbsent(index, key -> new long[] {0, 0});
            came[0] += PACKETS;
            came[1] += bytes + PACKETS * DrwaBpfKnobs.HEADER_BYTES;
            if (!mNetd.hasBpf()) return;
            final DrwaBpfKnobs.Dev dev = mNetd.getDevs().getAll().get(index);
            if (dev == null) return;
            if (seen && mNetd.getFilters(iface).size() == 2) {
                mBpf.count((int) dev.slot, bytes);
            } else {
                mPast.computeIfPresent(index, (key, past) -> past + bytes);
            }
        }

        void restart() {
            mHandler.removeCallbacksAndMessages(null);
            mHandler = new Handler(Looper.myLooper());
            final boolean stalls = mReader.slow;
            mReader = new FakeReader();
            TestSwitches.forgetObservers(mContext);
            mTelephony.forgetListeners();
            mNetd.forgetListeners();
            // It counts anew, and nobody does between the two
            mPast.clear();
            mNetworksChange = true;
            for (Subscription subscription : mSubscriptions) {
                subscription.mAnnounced = false;
                subscription.mUsed = false;
                subscription.mAnswer = Wanted.OFF;
                subscription.mUplinkAnswer = 0;
            }
            mController =
                    new DrwaController(
                            mContext,
                            mHandler,
                            mNetd,
                            new DrwaController.Dependencies() {
                                @Override
                                List<String> getInterfaceNames() {
                                    return new ArrayList<>(mNetd.getKnobs().keySet());
                                }

                                @Override
                                DrwaKnobs makeBpfKnobs(INetd netd, DrwaWriteLog log)
                                        throws RemoteException {
                                    if (mNetd.hasPrograms()) {
                                        return super.makeBpfKnobs(netd, log);
                                    }
                                    if (mNetd.hasBpf()) return new DrwaBpfKnobs(mBpf, log);
                                    throw new UnsupportedOperationException("no programs");
                                }

                                @Override
                                Executor makeReader() {
                                    return mReader;
                                }
                            });
            mController.start();
            mLooper.idle();
            // The registry, which it listens to, does not stall
            mReader.slow = stalls;
            mLive.keySet().forEach(this::announce);
        }

        void announce(int netId) {
            final Live live = mLive.get(netId);
            mController.onNetworkChanged(netId, live.capabilities(), live.linkProperties());
        }

        boolean isUsed(String iface) {
            return mLive.values().stream().anyMatch(live -> live.interfaces().contains(iface));
        }

        void removeUnused(Live dead) {
            for (String iface : dead.interfaces()) {
                final boolean persistent = dead.mKind.mPersistent && iface.equals(dead.mInterface);
                if (!persistent && !isUsed(iface)) mNetd.removeInterface(iface);
            }
        }

        void connect(int netId, Live live) {
            for (String iface : live.interfaces()) {
                if (!mNetd.hasInterface(iface)) mNetd.addInterface(iface);
            }
            // Until netd has told of it, the policy may write what the knob holds
            mLooper.idle();
            mLive.put(netId, live);
            if (mRateLimit != NO_RATE_LIMIT && live.mKind.isLimited()) {
                mNetd.addPolice(live.mInterface);
            }
            announce(netId);
            mNetworksChange = true;
        }

        void disconnect(int netId, boolean interfaceGoesFirst) {
            final Live dead = mLive.remove(netId);
            if (dead != null && interfaceGoesFirst) removeUnused(dead);
            if (dead != null) dead.interfaces().forEach(mNetd::removeClsact);
            mController.onNetworkDestroyed(netId);
            if (dead != null) removeUnused(dead);
            mNetworksChange = true;
        }

        /** The specification: what the knob of an interface must hold. */
        Wanted expected(String iface) {
            if (isGovernedBelow(iface)) return expected(below(iface));
            return hasPrograms() && mNetd.hasPolice(iface) ? Wanted.OFF : wanted(iface);
        }

        /** What an interface is to have, whether there is somebody else's filter or not. */
        Wanted wanted(String iface) {
            if (mOffBySetting || mOffByFlag || !mNetd.hasKnob(iface)) return Wanted.OFF;
            if (hasPrograms() && (mRateLimit != NO_RATE_LIMIT || isGovernedBelow(iface))) {
                return Wanted.OFF;
            }
            return mLive.values().stream()
                    .filter(live -> live.interfaces().contains(iface))
                    .map(live -> wanted(live, 1))
                    .reduce(Wanted.OFF, Wanted::beside);
        }

        /** Programs at an interface see the packets of what is stacked on it. */
        boolean isGovernedBelow(String iface) {
            return hasPrograms() && iface.startsWith("v4-");
        }

        static String below(String iface) {
            return iface.substring("v4-".length());
        }

        /** What a network is to have that is the highest but {@code level - 1} of its stack. */
        Wanted wanted(Live live, int level) {
            if (live.mKind.isCarriers()) return mSubscriptions.get(live.mSubId).mAnswer;
            if (!live.mKind.runsOverOthers() || live.mBelow == null || level == 3) {
                return Wanted.OFF;
            }
            return live.mBelow.stream()
                    .map(
                            id ->
                                    mLive.containsKey(id)
                                            ? wanted(mLive.get(id), level + 1)
                                            : Wanted.OFF)
                    .reduce(Wanted::below)
                    .orElse(Wanted.OFF);
        }

        /** The specification: what the knob of an interface's queue must hold. */
        int expectedQueue(String iface) {
            if (!mKernelHasQueues || expected(iface).lambda == 0) return 0;
            if (isGovernedBelow(iface)) return expectedQueue(below(iface));
            final Set<Integer> queues = new TreeSet<>();
            mLive.forEach(
                    (netId, live) -> {
                        if (live.interfaces().contains(iface)) queues.add(queue(netId, 1));
                    });
            return queues.size() == 1 ? queues.iterator().next() : 0;
        }

        /** The queue of a network that is the highest but {@code level - 1} of its stack. */
        int queue(int netId, int level) {
            final Live live = mLive.get(netId);
            if (live == null || level > 3) return 0;
            if (!live.mKind.runsOverOthers()) {
                return mLive.entrySet().stream()
                        .filter(other -> other.getValue().mInterface.equals(live.mInterface))
                        .map(Map.Entry::getKey)
                        .min(Integer::compare)
                        .orElseThrow();
            }
            if (live.mBelow == null || live.mBelow.size() != 1) return 0;
            return queue(live.mBelow.get(0), level + 1);
        }

        /** The specification: what an interface's uplink must be held to, in ms. */
        int expectedUplink(String iface) {
            final boolean can =
                    mHasUplink && mNetd.hasInterface(iface) && !mNetd.hasVendorQdisc(iface);
            if (mOffBySetting || mOffByFlag || !can) return 0;
            return mLive.values().stream()
                    .filter(live -> live.mKind.isCarriers() && live.mInterface.equals(iface))
                    .mapToInt(live -> mSubscriptions.get(live.mSubId).mUplinkAnswer)
                    .filter(targetMs -> targetMs != 0)
                    .min()
                    .orElse(0);
        }

        void run(Step step) {
            sSteps++;
            final boolean recovers = mFailures > 0 && --mFailures == 0;
            if (recovers) {
                mNetd.fault = FakeNetd.Fault.NONE;
                mNetd.faults.clear();
                mNetd.faultsOfQueues.clear();
                mNetd.faultsOfUplinks.clear();
            }
            final int calls = mNetd.calls;
            apply(step);
            mLooper.idle();
            if (step.action == Action.REPEAT && !recovers) {
                assertEquals("calls", calls, mNetd.calls);
            }
            mLooper.idleFor(waitMs(recovers), TimeUnit.MILLISECONDS);
            mRateLimitChanges = false;
            mPriorityMayBeFree = false;
            updateSubscriptions();
            updatePast();
            if (mNetd.fault != FakeNetd.Fault.NONE) {
                mUnsettled = true;
                return;
            }
            final Map<String, Integer> expected = new TreeMap<>();
            for (String iface : mNetd.getKnobs().keySet()) {
                expected.put(iface, expected(iface).lambda);
            }
            final Map<String, Integer> found = mNetd.getKnobs();
            final Map<String, Integer> expectedQueues = new TreeMap<>();
            final Map<String, Integer> foundQueues = new TreeMap<>();
            final Map<String, Integer> expectedUplinks = new TreeMap<>();
            final Map<String, Integer> foundUplinks = new TreeMap<>();
            for (String iface : found.keySet()) {
                expectedQueues.put(iface, expectedQueue(iface));
                foundQueues.put(iface, mNetd.getQueue(iface));
                expectedUplinks.put(iface, expectedUplink(iface));
                foundUplinks.put(iface, mNetd.getUplink(iface));
            }
            for (Map<?, ?> map :
                    List.of(
                            expected,
                            found,
                            expectedQueues,
                            foundQueues,
                            expectedUplinks,
                            foundUplinks)) {
                map.keySet().removeAll(mNetd.faults.keySet());
                for (String iface : mNetd.faults.keySet()) map.remove("v4-" + iface);
            }
            for (Map<?, ?> map : List.of(expectedQueues, foundQueues)) {
                map.keySet().removeAll(mNetd.faultsOfQueues.keySet());
            }
            for (Map<?, ?> map : List.of(expectedUplinks, foundUplinks)) {
                map.keySet().removeAll(mNetd.faultsOfUplinks.keySet());
            }
            if (!expected.equals(found)) assertEquals(step + "\n" + dump(), expected, found);
            if (hasPrograms()) {
                for (String iface : expected.keySet()) {
                    if (expected(iface).clients != mNetd.leavesClientsAlone(iface)) continue;
                    fail("clients of " + iface + ", " + step + "\n" + dump());
                }
            }
            if (!expectedQueues.equals(foundQueues)) {
                assertEquals("queues, " + step + "\n" + dump(), expectedQueues, foundQueues);
            }
            if (!expectedUplinks.equals(foundUplinks)) {
                assertEquals("uplinks, " + step + "\n" + dump(), expectedUplinks, foundUplinks);
            }
            if (!mNetd.faults.isEmpty()
                    || !mNetd.faultsOfQueues.isEmpty()
                    || !mNetd.faultsOfUplinks.isEmpty()) {
                mUnsettled = true;
                return;
            }
            checkLeaks(expected, expectedQueues, expectedUplinks);
            checkPast();
            // Whether netd's programs went with a network, or for another filter, it alone knows
            final boolean refused = mNetd.hasPrograms() && !getRefused().isEmpty();
            mUnsettled |= refused || mNetd.hasPrograms() && mNetworksChange;
            if (!mUnsettled) assertEquals("redundant writes", 0, mNetd.redundantWrites);
            mNetd.redundantWrites = 0;
            mNetworksChange = false;
            mUnsettled = refused;
        }

        private int waitMs(boolean recovers) {
            if (recovers || mPriorityMayBeFree) return DrwaApplication.MAX_RETRY_DELAY_MS;
            return mRateLimitChanges ? DrwaRateLimit.CHANGE_MS + SOON_MS : SOON_MS;
        }

        /** Those that are to be on, and are not, for a filter of another kind. */
        Set<String> getRefused() {
            final Set<String> refused = new TreeSet<>();
            for (String iface : mNetd.getKnobs().keySet()) {
                if (mNetd.hasPolice(iface) && wanted(iface).lambda != 0) refused.add(iface);
            }
            return refused;
        }

        /** What begins to be governed begins to count; where the map fails, nobody knows when. */
        void updatePast() {
            if (!mNetd.hasBpf()) return;
            final Set<Integer> devs = mNetd.getDevs().getAll().keySet();
            mPast.keySet().retainAll(devs);
            final List<String> written = new ArrayList<>(mNetd.written);
            mNetd.written.clear();
            final boolean fails =
                    mUnsettled || mNetd.fault != FakeNetd.Fault.NONE || !mNetd.faults.isEmpty();
            for (int index : devs) {
                final boolean anew = written.contains(mNetd.getName(index) + " deleted");
                if (anew || !mPast.containsKey(index)) mPast.put(index, 0L);
                if (fails) mPast.put(index, null);
            }
        }

        /** The dump tells what no program has seen, and of nothing else. */
        void checkPast() {
            if (!mNetd.hasBpf()) return;
            final List<String> expected = new ArrayList<>();
            final List<String> found = new ArrayList<>();
            String iface = "";
            for (String line : dump().split("\n")) {
                final String name = line.split(" ")[0];
                if (line.contains(" lambda=")) iface = name;
                if (line.startsWith("  past the programs came ") && knowsPast(iface)) {
                    found.add(iface + line);
                }
            }
            mPast.forEach(
                    (index, past) -> {
                        if (past == null || past < DrwaBpfKnobs.PAST_BYTES) return;
                        expected.add(
                                mNetd.getName(index)
                                        + ("  past the programs came " + past)
                                        + " bytes or more");
                    });
            if (!expected.equals(found)) assertEquals(dump(), expected, found);
        }

        private boolean knowsPast(String iface) {
            return mPast.get(mNetd.getIndex(iface)) != null;
        }

        String dump() {
            final StringWriter text = new StringWriter();
            mController.dump(new PrintWriter(text, true));
            return text.toString();
        }

        /** A field of what applies the policy's decisions. */
        <T> T ofApplication(String field) {
            return ReflectionHelpers.getField(
                    ReflectionHelpers.getField(mController, "mApplication"), field);
        }

        void updateSubscriptions() {
            final boolean off = mOffBySetting || mOffByFlag;
            for (int subId = 0; subId < SUBSCRIPTIONS; subId++) {
                final Subscription subscription = mSubscriptions.get(subId);
                final boolean live = isLive(subId);
                subscription.mUsed = live && (subscription.mUsed || !off);
                if (!subscription.isKnown()) {
                    subscription.mAnswer = Wanted.OFF;
                    subscription.mUplinkAnswer = 0;
                } else if (!mReader.slow) {
                    subscription.mAnswer =
                            new Wanted(
                                    subscription.mLambda,
                                    subscription.mLambda == 0 || subscription.mClients);
                    subscription.mUplinkAnswer = subscription.mUplinkMs;
                }
            }
        }

        boolean isLive(int subId) {
            return mLive.values().stream()
                    .anyMatch(live -> live.mKind.isCarriers() && live.mSubId == subId);
        }

        void checkLeaks(
                Map<String, Integer> expected,
                Map<String, Integer> expectedQueues,
                Map<String, Integer> expectedUplinks) {
            final SparseArray<?> networks = ReflectionHelpers.getField(mController, "mNetworks");
            assertEquals("networks", mLive.size(), networks.size());

            final SparseArray<?> subscriptions =
                    ReflectionHelpers.getField(
                            ReflectionHelpers.getField(mController, "mCarrierConfig"),
                            "mSubscriptions");
            assertEquals(
                    "subscriptions",
                    mSubscriptions.stream().filter(Subscription::isKnown).count(),
                    subscriptions.size());

            final Map<String, Integer> uplinks = known(ofApplication("mUplink"), "mTarget");
            // That a vendor's qdisc has taken its place is not told
            uplinks.keySet().removeIf(mNetd::hasVendorQdisc);
            assertEquals("known uplinks", withoutZeros(expectedUplinks), uplinks);

            if (hasPrograms()) {
                checkPrograms(withoutZeros(expected));
                return;
            }
            final DrwaKnobs knobs = ofApplication("mKnobs");
            if (knobs.isMissing()) {
                assertEquals("known knobs", Set.of(), knobs.getInterfacesNotOff());
                return;
            }
            assertEquals("known lambdas", withoutZeros(expected), known(knobs, "mLambda"));
            assertEquals("known queues", withoutZeros(expectedQueues), known(knobs, "mQueue"));
        }

        /** What is governed has filters, and nothing else does. */
        void checkPrograms(Map<String, Integer> expected) {
            expected.keySet().removeIf(this::isGovernedBelow);
            for (String iface : mNetd.getKnobs().keySet()) {
                final int filters = expected.containsKey(iface) ? 2 : 0;
                assertEquals(iface, filters, mNetd.getFilters(iface).size());
            }
            final Set<String> refused = getRefused();
            final String dump = refused.isEmpty() ? "" : dump();
            for (String iface : refused) {
                if (!dump.matches("(?s).*" + iface + " λ=[^\n]*, not written: .*")) fail(dump);
            }
            refused.addAll(expected.keySet());
            final DrwaKnobs knobs = ofApplication("mKnobs");
            final Set<String> known = new TreeSet<>(knobs.getInterfacesNotOff());
            known.removeIf(this::comesYet);
            assertEquals("known interfaces", refused, known);
            if (mNetd.hasBpf()) checkMap(knobs, refused);
            if (mNetd.hasPrograms()) assertEquals(expected.keySet(), mNetd.getPrograms().keySet());
        }

        /** It has what is to be governed, and nothing else, under whatever index. */
        void checkMap(DrwaKnobs knobs, Set<String> expected) {
            final Set<Integer> indices = new TreeSet<>();
            for (String iface : expected) indices.add(mNetd.getIndex(iface));
            final Map<Integer, DrwaBpfKnobs.Dev> devs = mNetd.getDevs().getAll();
            if (!indices.equals(devs.keySet())) assertEquals(dump(), indices, devs.keySet());
            checkPlaces(devs.values());
            final Set<Integer> gone = ReflectionHelpers.getField(knobs, "mGone");
            assertEquals("gone", Set.of(), gone);
        }

        static void checkPlaces(Collection<DrwaBpfKnobs.Dev> devs) {
            final Set<Long> slots = new TreeSet<>();
            final Map<Long, Long> numbers = new TreeMap<>();
            for (DrwaBpfKnobs.Dev dev : devs) {
                if (!slots.add(dev.slot)) fail("two count in place " + dev.slot);
                // One without a number shares with nobody
                final long number = dev.number == 0 ? -dev.slot : dev.number;
                final Long other = numbers.put(dev.queue, number);
                if (other != null) assertEquals("place " + dev.queue, (long) other, number);
            }
            assertEquals("queues", numbers.size(), new TreeSet<>(numbers.values()).size());
        }

        static Map<String, Integer> withoutZeros(Map<String, Integer> values) {
            values.values().removeIf(value -> value == 0);
            return values;
        }

        /** What the policy takes all interfaces to hold, but for those that come yet. */
        Map<String, Integer> known(Object owner, String parameter) {
            final ArrayMap<String, Integer> values =
                    ReflectionHelpers.getField(
                            ReflectionHelpers.getField(owner, parameter), "mValues");
            final Map<String, Integer> known = new TreeMap<>(values);
            known.keySet().removeIf(this::comesYet);
            return known;
        }

        boolean comesYet(String iface) {
            return isUsed(iface) && !mNetd.hasInterface(iface);
        }

        void apply(Step step) {
            final int netId = 100 + step.network;
            final Live live = mLive.get(netId);
            switch (step.action) {
                case CONNECT:
                    if (live == null) connect(netId, makeNetwork(step));
                    break;
                case DISCONNECT:
                    disconnect(netId, false);
                    break;
                case INTERFACE_GOES_FIRST:
                    disconnect(netId, true);
                    break;
                case REPLACE:
                case SIM_SWAP:
                    if (live == null) break;
                    final Live next = makeNetwork(step);
                    next.mKind = live.mKind;
                    next.mInterface = live.mInterface;
                    if (step.action == Action.REPLACE) next.mSubId = live.mSubId;
                    final int nextId = 100 + (step.network + 1) % NETWORKS;
                    if (mLive.containsKey(nextId)) break;
                    connect(nextId, next);
                    disconnect(netId, false);
                    break;
                case CLAT_UP:
                    if (live == null || live.mClat) break;
                    live.mClat = true;
                    connect(netId, live);
                    break;
                case CLAT_DOWN:
                    if (live == null || !live.mClat) break;
                    live.mClat = false;
                    final boolean last = !isUsed(live.clat());
                    if (last && step.choice % 2 == 0) mNetd.removeInterface(live.clat());
                    announce(netId);
                    if (last) mNetd.removeInterface(live.clat());
                    break;
                case RUN_OVER:
                    if (live == null) break;
                    live.mBelow = below(step);
                    announce(netId);
                    break;
                case REPEAT:
                    mLive.keySet().forEach(this::announce);
                    break;
                case DUN:
                    if (live == null || !(live.mKind == Kind.DUN || live.mKind == Kind.MMS)) break;
                    live.mKind = live.mKind == Kind.DUN ? Kind.MMS : Kind.DUN;
                    announce(netId);
                    break;
                case TETHER:
                    final int tethers = step.network % SUBSCRIPTIONS;
                    final Subscription tethering = mSubscriptions.get(tethers);
                    tethering.mClients = step.choice % 2 == 0;
                    configure(tethers, tethering.mLambda, tethering.mUplinkMs);
                    break;
                case CONFIG:
                    configure(
                            step.network % SUBSCRIPTIONS,
                            step.choice == 0 ? 0 : LAMBDAS[step.detail % LAMBDAS.length],
                            UPLINKS_MS[step.detail / LAMBDAS.length % UPLINKS_MS.length]);
                    break;
                case SIM_REMOVED:
                    final int subId = step.network % SUBSCRIPTIONS;
                    mSubscriptions.get(subId).mAnnounced = false;
                    mTelephony.announceConfig(
                            subId /* slotIndex */, SubscriptionManager.INVALID_SUBSCRIPTION_ID);
                    break;
                case PHONE_PROCESS_STALLS:
                    mReader.slow = step.choice % 2 == 0;
                    if (!mReader.slow) mReader.answer();
                    break;
                case SWITCH:
                    mOffBySetting = step.choice % 3 == 0;
                    mOffByFlag = step.detail % 3 == 0;
                    putSwitches();
                    break;
                case INTERFACE_COMES_AGAIN:
                    if (live == null || !mNetd.hasInterface(anyOf(live, step))) break;
                    mNetd.removeInterface(anyOf(live, step));
                    if (step.choice % 2 == 0) mLooper.idle();
                    mNetd.addInterface(anyOf(live, step));
                    break;
                case INTERFACE_LOSES_ITS_NAME:
                    if (live == null || !mNetd.hasInterface(anyOf(live, step))) break;
                    final String stray = STRAYS[step.choice % STRAYS.length];
                    if (mNetd.hasInterface(stray)) mNetd.removeInterface(stray);
                    mNetd.renameInterface(anyOf(live, step), stray);
                    break;
                case INTERFACE_TAKES_ANOTHERS_NAME:
                    final String other = STRAYS[step.choice % STRAYS.length];
                    if (live == null || !mNetd.hasInterface(other)) break;
                    final String taken = anyOf(live, step);
                    if (mNetd.hasInterface(taken)) mNetd.removeInterface(taken);
                    mNetd.renameInterface(other, taken);
                    break;
                case INTERFACE_COMES_WITHOUT_KNOB:
                    if (live == null || live.mKind == Kind.ETHERNET) break;
                    final String lacking = anyOf(live, step);
                    if (mNetd.hasInterface(lacking)) mNetd.removeInterface(lacking);
                    mNetd.removeKnob(lacking);
                    mNetd.addInterface(lacking);
                    break;
                case NETD_FAILS:
                    mNetd.fault = anyFault(step);
                    mFailures = 1 + step.detail % 4;
                    break;
                case NETD_FAILS_FOR_ONE:
                    if (live == null) break;
                    mNetd.faults.put(anyOf(live, step), anyFault(step));
                    mFailures = 1 + step.detail % 4;
                    break;
                case NETD_FAILS_FOR_A_QUEUE:
                    if (live == null) break;
                    mNetd.faultsOfQueues.put(anyOf(live, step), anyFault(step));
                    mFailures = 1 + step.detail % 4;
                    break;
                case NETD_FAILS_FOR_AN_UPLINK:
                    if (live == null) break;
                    mNetd.faultsOfUplinks.put(live.mInterface, anyFault(step));
                    mFailures = 1 + step.detail % 4;
                    break;
                case VENDOR_SETS_A_QDISC:
                    if (live == null || !mNetd.hasInterface(live.mInterface)) break;
                    mNetd.addVendorQdisc(live.mInterface);
                    break;
                case VENDOR_TAKES_IT_AWAY:
                    if (live == null || !mNetd.hasVendorQdisc(live.mInterface)) break;
                    mNetd.removeVendorQdisc(live.mInterface);
                    // Nobody tells of qdiscs; of the link, when it is next up or down
                    mNetd.announce(l -> l.onInterfaceLinkStateChanged(live.mInterface, true));
                    break;
                case RATE_LIMIT_COMES:
                    setRateLimit(step.detail, step.choice % 2 == 0);
                    break;
                case RATE_LIMIT_GOES:
                    setRateLimit(NO_RATE_LIMIT, step.choice % 2 == 0);
                    break;
                case POLICE_COMES:
                    if (live == null || !mNetd.hasInterface(live.mInterface)) break;
                    mNetd.addPolice(live.mInterface);
                    break;
                case POLICE_GOES:
                    if (live == null || !mNetd.hasPolice(live.mInterface)) break;
                    removePriority(live.mInterface);
                    mPriorityMayBeFree = true;
                    break;
                case TRAFFIC:
                case OFFLOAD:
                    if (live == null || !mNetd.hasInterface(anyOf(live, step))) break;
                    receive(anyOf(live, step), PAST_BYTES, step.action == Action.TRAFFIC);
                    break;
                case RESTART:
                    restart();
                    break;
            }
        }

        static String anyOf(Live live, Step step) {
            return live.interfaces().get(step.detail % live.interfaces().size());
        }

        /** But none: that failures end is for {@link #run} to know. */
        static FakeNetd.Fault anyFault(Step step) {
            final int faults = FakeNetd.Fault.values().length - 1;
            return FakeNetd.Fault.values()[1 + step.choice % faults];
        }

        Live makeNetwork(Step step) {
            final Live live = new Live();
            live.mKind = Kind.values()[step.choice % Kind.values().length];
            live.mInterface = live.mKind.mInterfaces[step.detail % live.mKind.mInterfaces.length];
            live.mSubId = step.detail % SUBSCRIPTIONS;
            live.mBelow = live.mKind.runsOverOthers() ? below(step) : null;
            return live;
        }

        /** Any networks, dead ones and the network itself among them; a VCN knows its own. */
        static List<Integer> below(Step step) {
            final List<Integer> netIds = new ArrayList<>();
            for (int i = 0; i < NETWORKS; i++) {
                if ((step.detail & 1 << i) != 0) netIds.add(100 + i);
            }
            return netIds;
        }
    }

    /**
     * Lives of some actions alone, for with all of them each undoes what others have led to (Groce
     * et al., Swarm Testing, ISSTA 2012).
     */
    @Provide
    Arbitrary<List<Step>> lives() {
        return Arbitraries.subsetOf(Action.values())
                .ofMinSize(1)
                .flatMap(DrwaStateMachine::livesOf);
    }

    private static Arbitrary<List<Step>> livesOf(Set<Action> actions) {
        final Arbitrary<Step> steps =
                Combinators.combine(
                                Arbitraries.of(actions),
                                Arbitraries.integers().between(0, NETWORKS - 1),
                                Arbitraries.integers().between(0, 11),
                                Arbitraries.integers().between(0, (1 << NETWORKS) - 1))
                        .as(Step::new);
        return steps.list()
                .ofMinSize(1)
                .ofMaxSize(300)
                .withSizeDistribution(RandomDistribution.uniform());
    }

    @Property(tries = 750, edgeCases = EdgeCasesMode.NONE)
    void knobsFollowTheSpecification(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.WITH_QUEUES);
        for (Step step : life) phone.run(step);
    }

    @Property(tries = 150, edgeCases = EdgeCasesMode.NONE)
    void lambdasFollowTheSpecificationAlone(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.WITHOUT_QUEUES_AND_UPLINK);
        for (Step step : life) phone.run(step);
    }

    @Property(tries = 150, edgeCases = EdgeCasesMode.NONE)
    void uplinksFollowTheSpecificationAlone(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.WITHOUT_LAMBDA);
        for (Step step : life) phone.run(step);
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void netdsProgramsFollowTheSpecification(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.NETD_PROGRAMS);
        for (Step step : life) phone.run(step);
    }

    @Property(tries = 450, edgeCases = EdgeCasesMode.NONE)
    void mapsFollowTheSpecification(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.BPF);
        for (Step step : life) phone.run(step);
    }
}
