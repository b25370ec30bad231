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
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkSpecifier;
import android.net.TelephonyNetworkSpecifier;
import java.util.List;
import java.util.Objects;

/**
 * The part of a network's state that decisions depend on.
 *
 * @hide
 */
final class DrwaNetwork {
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

    DrwaNetwork(@NonNull NetworkCapabilities nc, @NonNull LinkProperties lp) {
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
    boolean hasSameDevice(DrwaNetwork other) {
        return !mInterfaces.isEmpty()
                && !other.mInterfaces.isEmpty()
                && mInterfaces.get(0).equals(other.mInterfaces.get(0));
    }

    @Override
    public boolean equals(Object o) {
        if (!(o instanceof DrwaNetwork)) return false;
        final DrwaNetwork other = (DrwaNetwork) o;
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
