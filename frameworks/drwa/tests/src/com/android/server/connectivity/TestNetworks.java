// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.NET_CAPABILITY_INTERNET;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_VPN;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_VPN;

import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.TelephonyNetworkSpecifier;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.robolectric.shadows.ShadowNetwork;

/** Capabilities and properties as telephony, Wi-Fi and VPNs have them. */
public final class TestNetworks {
    private TestNetworks() {}

    public static Network network(int netId) {
        return ShadowNetwork.newInstance(netId);
    }

    /** A network for the internet. */
    public static NetworkCapabilities internet(int... transports) {
        return internetBuilder(transports).build();
    }

    private static NetworkCapabilities.Builder internetBuilder(int... transports) {
        final NetworkCapabilities.Builder builder =
                new NetworkCapabilities.Builder().addCapability(NET_CAPABILITY_INTERNET);
        for (int transport : transports) builder.addTransportType(transport);
        return builder;
    }

    /** A network for the internet of a SIM. */
    public static NetworkCapabilities cellular(int subId, int... moreTransports) {
        return internetBuilder(moreTransports)
                .addTransportType(TRANSPORT_CELLULAR)
                .setNetworkSpecifier(
                        new TelephonyNetworkSpecifier.Builder().setSubscriptionId(subId).build())
                .setSubscriptionIds(Set.of(subId))
                .build();
    }

    /** A network of a SIM for something else than the internet, as MMS is. */
    public static NetworkCapabilities cellularFor(int capability, int subId) {
        final NetworkCapabilities nc = new NetworkCapabilities(cellular(subId));
        return new NetworkCapabilities.Builder(nc)
                .removeCapability(NET_CAPABILITY_INTERNET)
                .addCapability(capability)
                .build();
    }

    /**
     * A VPN as ConnectivityService stores it, which adds the transports below.
     *
     * @param underlying netIds, or null if they are unknown
     */
    public static NetworkCapabilities vpn(List<Integer> underlying, int... transportsBelow) {
        return internetBuilder(transportsBelow)
                .addTransportType(TRANSPORT_VPN)
                .removeCapability(NET_CAPABILITY_NOT_VPN)
                .setUnderlyingNetworks(networks(underlying))
                .build();
    }

    /** A VCN, which says to be cellular whatever it runs over. */
    public static NetworkCapabilities vcn(int subId, List<Integer> underlying) {
        return internetBuilder(TRANSPORT_CELLULAR)
                .setSubscriptionIds(Set.of(subId))
                .setUnderlyingNetworks(networks(underlying))
                .build();
    }

    private static List<Network> networks(List<Integer> netIds) {
        if (netIds == null) return null;
        return netIds.stream().map(TestNetworks::network).collect(Collectors.toList());
    }

    /** The properties of a network with an interface and others stacked on it, as 464xlat does. */
    public static LinkProperties link(String iface, String... stacked) {
        final LinkProperties lp = new LinkProperties();
        lp.setInterfaceName(iface);
        for (String name : stacked) lp.addStackedLink(link(name));
        return lp;
    }
}
