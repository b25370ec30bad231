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
import android.net.Network;
import android.util.ArrayMap;
import android.util.ArraySet;
import android.util.SparseArray;
import java.util.Map;

/**
 * What all interfaces are to be set to, by what is known of the live networks. It calls nobody but
 * those who speak for carriers, and writes nothing.
 *
 * @hide
 */
final class DrwaDecision {
    /** A VPN over a VCN over cellular; an app could declare its own VPN to lie under itself. */
    private static final int MAX_STACKED_NETWORKS = 3;

    /** By interface, as are the others. */
    final ArrayMap<String, DrwaSetting> settings = new ArrayMap<>();

    /** The queue of the radio's that packets come out of, but for {@link DrwaKnobs#OWN_QUEUE}. */
    final ArrayMap<String, Integer> queues = new ArrayMap<>();

    /** The interface that this one is stacked on, as 464xlat's is. */
    final ArrayMap<String, String> below = new ArrayMap<>();

    /** The static limits of the network, where it has some. */
    final ArrayMap<String, String> limits = new ArrayMap<>();

    /** The uplink's target in ms, where there is one. */
    final ArrayMap<String, Integer> uplinks = new ArrayMap<>();

    @NonNull private final SparseArray<DrwaNetwork> mNetworks;
    @NonNull private final Carriers mCarriers;
    @Nullable private final String mReasonProgramsOff;

    /** What the carriers of subscriptions want. */
    interface Carriers {
        @NonNull
        DrwaSetting get(int subId, boolean roams);

        int getUplinkMs(int subId, boolean roams);
    }

    /**
     * @param networks the live ones, by netId
     * @param reasonOff why everything is off, or null
     * @param reasonProgramsOff why programs at interfaces are off, or null
     * @param overrides settings of a developer's, by interface
     */
    DrwaDecision(
            @NonNull SparseArray<DrwaNetwork> networks,
            @NonNull Carriers carriers,
            @Nullable String reasonOff,
            @Nullable String reasonProgramsOff,
            @NonNull Map<String, DrwaSetting> overrides) {
        mNetworks = networks;
        mCarriers = carriers;
        mReasonProgramsOff = reasonProgramsOff;
        for (int i = 0; i < networks.size(); i++) {
            final DrwaNetwork state = networks.valueAt(i);
            final DrwaSetting setting =
                    reasonOff == null
                            ? decide(state, MAX_STACKED_NETWORKS)
                            : DrwaSetting.off(reasonOff);
            for (String iface : state.mInterfaces) {
                settings.merge(iface, setting, DrwaDecision::share);
                if (state.mTcpBufferSizes != null) limits.put(iface, state.mTcpBufferSizes);
            }
            final int uplinkMs = reasonOff == null ? decideUplinkMs(state) : DrwaUplink.OFF;
            if (uplinkMs != DrwaUplink.OFF) {
                uplinks.merge(state.mInterfaces.get(0), uplinkMs, Math::min);
            }
        }
        if (reasonOff == null) settings.putAll(overrides);
        for (String iface : settings.keySet()) {
            final int queue = findQueue(networks, iface);
            if (queue != DrwaKnobs.OWN_QUEUE) queues.put(iface, queue);
            final String device = findBelow(networks, iface);
            if (device != null) below.put(iface, device);
        }
    }

    /**
     * @param byPrograms whether programs at interfaces govern, and so the packets of an interface
     *     at the one that it is stacked on
     */
    @NonNull
    ArrayMap<String, DrwaSetting> getSettings(boolean byPrograms) {
        if (!byPrograms) return settings;
        final ArrayMap<String, DrwaSetting> some = new ArrayMap<>(settings);
        for (int i = 0; i < some.size(); i++) {
            if (!some.valueAt(i).isOn()) continue;
            final String device = below.get(some.keyAt(i));
            if (mReasonProgramsOff != null) {
                some.setValueAt(i, DrwaSetting.off(mReasonProgramsOff));
            } else if (device != null) {
                some.setValueAt(i, DrwaSetting.off("governed at " + device));
            }
        }
        return some;
    }

    /** The interface that this one is stacked on, or null. */
    @Nullable
    static String findBelow(@NonNull SparseArray<DrwaNetwork> networks, @NonNull String iface) {
        for (int i = 0; i < networks.size(); i++) {
            final int depth = networks.valueAt(i).mInterfaces.indexOf(iface);
            if (depth > 0) return networks.valueAt(i).mInterfaces.get(0);
        }
        return null;
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
    static int findQueue(@NonNull SparseArray<DrwaNetwork> networks, @NonNull String iface) {
        final ArraySet<Integer> queues = new ArraySet<>();
        for (int i = 0; i < networks.size(); i++) {
            if (networks.valueAt(i).mInterfaces.contains(iface)) {
                queues.add(findQueue(networks, networks.keyAt(i), MAX_STACKED_NETWORKS));
            }
        }
        return queues.size() == 1 ? queues.valueAt(0) : DrwaKnobs.OWN_QUEUE;
    }

    private static int findQueue(SparseArray<DrwaNetwork> networks, int netId, int maxStacked) {
        final DrwaNetwork state = networks.get(netId);
        if (state == null || maxStacked == 0) return DrwaKnobs.OWN_QUEUE;
        if (state.mUnderlyingNetworks != null) {
            if (state.mUnderlyingNetworks.size() != 1) return DrwaKnobs.OWN_QUEUE;
            return findQueue(networks, state.mUnderlyingNetworks.get(0).getNetId(), maxStacked - 1);
        }
        // Networks over one device share its queue, as while one replaces another
        for (int i = 0; i < networks.size(); i++) {
            if (networks.valueAt(i).hasSameDevice(state)) return networks.keyAt(i);
        }
        return netId;
    }

    /** The setting of an interface that two networks use. */
    private static DrwaSetting share(DrwaSetting a, DrwaSetting b) {
        if (!a.isOn()) return b;
        return b.isOn() && b.lambda < a.lambda ? b : a;
    }

    /** The target of the device that a network's packets leave by, whoever they come from. */
    private int decideUplinkMs(DrwaNetwork state) {
        final boolean isBelowOthers = state.mReasonOff == null && state.mUnderlyingNetworks == null;
        return isBelowOthers && !state.mInterfaces.isEmpty()
                ? mCarriers.getUplinkMs(state.mSubId, state.mRoams)
                : DrwaUplink.OFF;
    }

    private DrwaSetting decide(DrwaNetwork state, int maxStacked) {
        if (state.mReasonOff != null) return DrwaSetting.off(state.mReasonOff);
        if (state.mUnderlyingNetworks == null) {
            return mCarriers.get(state.mSubId, state.mRoams);
        }
        if (maxStacked == 1) return DrwaSetting.off("too many stacked networks");

        DrwaSetting least = null;
        for (Network network : state.mUnderlyingNetworks) {
            final DrwaNetwork underlying = mNetworks.get(network.getNetId());
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
