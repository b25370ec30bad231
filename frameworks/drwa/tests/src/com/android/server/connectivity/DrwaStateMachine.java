// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

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

    private enum Kind {
        CELLULAR(true, "rmnet_data0", "rmnet_data1", "rmnet_data2"),
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
        CONFIG,
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
        RESTART
    }

    private enum Kernel {
        WITH_QUEUES,
        WITHOUT_QUEUES_AND_UPLINK,
        WITHOUT_LAMBDA,
        BPF
    }

    private record Step(Action action, int network, int choice, int detail) {}

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

        /** 0 for a carrier that wants its uplink left alone. */
        int mUplinkMs;

        /** Whether telephony has told of it since the system server started. */
        boolean mAnnounced;

        /** Whether the policy has decided on a live network of its. */
        boolean mUsed;

        /** λ as telephony has told it, or 0 if it did not answer yet. */
        int mAnswer;

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
        final FakeBpf mBpf = new FakeBpf(mNetd);
        final FakeTelephony mTelephony = new FakeTelephony(mContext);
        final Map<Integer, Live> mLive = new TreeMap<>();
        final List<Subscription> mSubscriptions = new ArrayList<>();
        final ShadowLooper mLooper;

        DrwaController mController;
        Handler mHandler;
        FakeReader mReader = new FakeReader();

        boolean mOffBySetting;
        boolean mOffByFlag;

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
                    !leavesClientsAlone(lambda));
            mTelephony.announceConfig(subId);
        }

        /** By λ, so that it is plain whose say it is where networks share an interface. */
        static boolean leavesClientsAlone(int lambda) {
            return lambda == 150 || lambda == 1000;
        }

        void putSwitches() {
            TestSwitches.putSetting(mContext, mOffBySetting ? "0" : null);
            TestSwitches.putFlag(mContext, mOffByFlag ? "-1" : "0");
        }

        void restart() {
            mHandler.removeCallbacksAndMessages(null);
            mHandler = new Handler(Looper.myLooper());
            final boolean stalls = mReader.slow;
            mReader = new FakeReader();
            TestSwitches.forgetObservers(mContext);
            mTelephony.forgetListeners();
            mNetd.forgetListeners();
            for (Subscription subscription : mSubscriptions) {
                subscription.mAnnounced = false;
                subscription.mUsed = false;
                subscription.mAnswer = 0;
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
                                DrwaKnobs makeBpfKnobs(INetd netd, DrwaWriteLog log) {
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
            announce(netId);
        }

        void disconnect(int netId, boolean interfaceGoesFirst) {
            final Live dead = mLive.remove(netId);
            if (dead != null && interfaceGoesFirst) removeUnused(dead);
            if (dead != null) dead.interfaces().forEach(mNetd::removeClsact);
            mController.onNetworkDestroyed(netId);
            if (dead != null) removeUnused(dead);
        }

        /** The specification: what the knob of an interface must hold. */
        int expected(String iface) {
            if (mOffBySetting || mOffByFlag || !mNetd.hasKnob(iface)) return 0;
            if (isGovernedBelow(iface)) return expected(below(iface));
            int least = 0;
            for (Live live : mLive.values()) {
                final int wanted = live.interfaces().contains(iface) ? wanted(live, 1) : 0;
                if (wanted != 0 && (least == 0 || wanted < least)) least = wanted;
            }
            return least;
        }

        /** Programs at an interface see the packets of what is stacked on it. */
        boolean isGovernedBelow(String iface) {
            return mNetd.hasBpf() && iface.startsWith("v4-");
        }

        static String below(String iface) {
            return iface.substring("v4-".length());
        }

        /** What a network is to have that is the highest but {@code level - 1} of its stack. */
        int wanted(Live live, int level) {
            if (live.mKind == Kind.CELLULAR) return mSubscriptions.get(live.mSubId).mAnswer;
            if (!live.mKind.runsOverOthers() || live.mBelow == null || level == 3) return 0;
            return live.mBelow.stream()
                    .mapToInt(id -> mLive.containsKey(id) ? wanted(mLive.get(id), level + 1) : 0)
                    .min()
                    .orElse(0);
        }

        /** The specification: what the knob of an interface's queue must hold. */
        int expectedQueue(String iface) {
            if (!mKernelHasQueues || expected(iface) == 0) return 0;
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
                    .filter(live -> live.mKind == Kind.CELLULAR && live.mInterface.equals(iface))
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
            mLooper.idleFor(
                    recovers ? DrwaApplication.MAX_RETRY_DELAY_MS : SOON_MS, TimeUnit.MILLISECONDS);
            updateSubscriptions();
            if (mNetd.fault != FakeNetd.Fault.NONE) {
                mUnsettled = true;
                return;
            }
            final Map<String, Integer> expected = new TreeMap<>();
            for (String iface : mNetd.getKnobs().keySet()) expected.put(iface, expected(iface));
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
            if (mNetd.hasBpf()) {
                expected.forEach(
                        (iface, lambda) ->
                                assertEquals(
                                        "clients of " + iface + ", " + step + "\n" + dump(),
                                        leavesClientsAlone(lambda),
                                        mNetd.leavesClientsAlone(iface)));
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
            if (!mUnsettled) assertEquals("redundant writes", 0, mNetd.redundantWrites);
            mNetd.redundantWrites = 0;
            mUnsettled = false;
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
                    subscription.mAnswer = 0;
                    subscription.mUplinkAnswer = 0;
                } else if (!mReader.slow) {
                    subscription.mAnswer = subscription.mLambda;
                    subscription.mUplinkAnswer = subscription.mUplinkMs;
                }
            }
        }

        boolean isLive(int subId) {
            return mLive.values().stream()
                    .anyMatch(live -> live.mKind == Kind.CELLULAR && live.mSubId == subId);
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

            if (mNetd.hasBpf()) {
                checkMap(withoutZeros(expected));
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

        /** It has what is governed, and nothing else, under whatever index; so have filters. */
        void checkMap(Map<String, Integer> expected) {
            expected.keySet().removeIf(this::isGovernedBelow);
            final Set<Integer> indices = new TreeSet<>();
            for (String iface : expected.keySet()) indices.add(mNetd.getIndex(iface));
            final Map<Integer, DrwaBpfKnobs.Dev> devs = mNetd.getDevs().getAll();
            if (!indices.equals(devs.keySet())) assertEquals(dump(), indices, devs.keySet());
            for (String iface : mNetd.getKnobs().keySet()) {
                final int filters = expected.containsKey(iface) ? 2 : 0;
                assertEquals(iface, filters, mNetd.getFilters(iface).size());
            }
            checkPlaces(devs.values());

            final DrwaKnobs knobs = ofApplication("mKnobs");
            assertEquals("known interfaces", expected.keySet(), knobs.getInterfacesNotOff());
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
            known.keySet().removeIf(iface -> isUsed(iface) && !mNetd.hasInterface(iface));
            return known;
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

    @Property(tries = 450, edgeCases = EdgeCasesMode.NONE)
    void mapsFollowTheSpecification(@ForAll("lives") List<Step> life) {
        final Phone phone = new Phone(Kernel.BPF);
        for (Step step : life) phone.run(step);
    }
}
