// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_METERED;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_SUSPENDED;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_VCN_MANAGED;
import static android.net.NetworkCapabilities.NET_CAPABILITY_NOT_VPN;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_TEST;
import static android.net.NetworkCapabilities.TRANSPORT_VPN;

import android.content.Context;
import android.net.IpPrefix;
import android.net.LinkAddress;
import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.net.NetworkRequest;
import android.net.RouteInfo;
import android.net.TelephonyNetworkSpecifier;
import android.net.TestNetworkInterface;
import android.net.TestNetworkManager;
import android.net.VpnManager;
import android.net.VpnTransportInfo;
import android.os.Handler;
import android.os.HandlerThread;
import androidx.test.platform.app.InstrumentationRegistry;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.rules.ExternalResource;

/**
 * Simulates networks over tun interfaces, which all end with the test.
 *
 * <p>They have TRANSPORT_TEST, and are restricted, without which ConnectivityService would leave
 * them no other transport. It also takes NET_CAPABILITY_INTERNET from them, so that no app gets to
 * use them. The network specifier stays.
 */
final class TestNetworks extends ExternalResource {
    private static final String IPV4_ADDRESS = "192.0.2.1/32";
    private static final String IPV6_ADDRESS = "2001:db8:1::1/64";
    private static final String NAT64_PREFIX = "64:ff9b::/96";

    private final List<TestNetworkInterface> mInterfaces = new ArrayList<>();
    private final List<TestNetwork> mNetworks = new ArrayList<>();
    private HandlerThread mThread;
    private Context mContext;

    @Override
    protected void before() {
        mContext = InstrumentationRegistry.getInstrumentation().getContext();
        mThread = new HandlerThread(TestNetworks.class.getSimpleName());
        mThread.start();
    }

    @Override
    protected void after() {
        // What runs over others came last
        Collections.reverse(mNetworks);
        for (TestNetwork network : mNetworks) network.disconnect();
        for (TestNetworkInterface iface : mInterfaces) {
            try {
                iface.getFileDescriptor().close();
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        }
        mThread.quitSafely();
    }

    /** A network of a SIM. */
    static NetworkCapabilities cellular(int subId) {
        return new NetworkCapabilities.Builder(transport(TRANSPORT_CELLULAR))
                .setNetworkSpecifier(
                        new TelephonyNetworkSpecifier.Builder().setSubscriptionId(subId).build())
                .build();
    }

    /** A second network of a SIM, which a request of its own keeps beside the first. */
    static NetworkCapabilities secondCellular(int subId) {
        return new NetworkCapabilities.Builder(cellular(subId))
                .addCapability(NET_CAPABILITY_NOT_METERED)
                .build();
    }

    /** A network of one transport. */
    static NetworkCapabilities transport(int transport) {
        return builder(transport).addCapability(NET_CAPABILITY_NOT_VPN).build();
    }

    static NetworkCapabilities vpn() {
        return builder(TRANSPORT_VPN)
                .setTransportInfo(
                        new VpnTransportInfo(
                                VpnManager.TYPE_VPN_SERVICE,
                                "drwa" /* sessionId */,
                                false /* bypassable */,
                                false /* longLivedTcpConnectionsExpensive */))
                .build();
    }

    private static NetworkCapabilities.Builder builder(int transport) {
        return NetworkCapabilities.Builder.withoutDefaultCapabilities()
                .addTransportType(TRANSPORT_TEST)
                .addTransportType(transport)
                .addCapability(NET_CAPABILITY_NOT_SUSPENDED)
                .addCapability(NET_CAPABILITY_NOT_ROAMING)
                .addCapability(NET_CAPABILITY_NOT_VCN_MANAGED);
    }

    /** Connects a network over an interface of its own. */
    TestNetwork connect(NetworkCapabilities capabilities) {
        return connect(capabilities, createLink());
    }

    /** Connects a network over an interface that exists. */
    TestNetwork connect(NetworkCapabilities capabilities, LinkProperties link) {
        return connect(capabilities, link, null);
    }

    /** Connects a network that runs over others. */
    TestNetwork connect(NetworkCapabilities capabilities, List<TestNetwork> underlying) {
        return connect(capabilities, createLink(), underlying);
    }

    private TestNetwork connect(
            NetworkCapabilities capabilities, LinkProperties link, List<TestNetwork> underlying) {
        final NetworkRequest.Builder request = new NetworkRequest.Builder().clearCapabilities();
        for (int transport : capabilities.getTransportTypes()) {
            request.addTransportType(transport);
        }
        if (capabilities.getNetworkSpecifier() != null) {
            request.setNetworkSpecifier(capabilities.getNetworkSpecifier());
        }
        if (capabilities.hasCapability(NET_CAPABILITY_NOT_METERED)) {
            request.addCapability(NET_CAPABILITY_NOT_METERED);
        }
        final TestNetwork network =
                new TestNetwork(mContext, mThread.getLooper(), capabilities, link);
        mNetworks.add(network);
        if (underlying != null) network.setUnderlyingNetworks(underlying);
        network.connect(request.build(), underlying == null, new Handler(mThread.getLooper()));
        return network;
    }

    /** Makes an interface with an IPv4 address. */
    LinkProperties createLink() {
        final LinkProperties lp = createInterface(new LinkAddress(IPV4_ADDRESS));
        addDefaultRoute(lp, "0.0.0.0/0");
        return lp;
    }

    /** Makes an interface with an IPv6 address alone, beside which 464xlat puts another one. */
    LinkProperties createIpv6OnlyLink() {
        final LinkProperties lp = createInterface(new LinkAddress(IPV6_ADDRESS));
        addDefaultRoute(lp, "::/0");
        lp.setNat64Prefix(new IpPrefix(NAT64_PREFIX));
        return lp;
    }

    private static void addDefaultRoute(LinkProperties lp, String prefix) {
        lp.addRoute(
                new RouteInfo(
                        new IpPrefix(prefix),
                        null /* gateway */,
                        lp.getInterfaceName(),
                        RouteInfo.RTN_UNICAST));
    }

    private LinkProperties createInterface(LinkAddress address) {
        final TestNetworkInterface iface =
                mContext.getSystemService(TestNetworkManager.class)
                        .createTunInterface(List.of(address));
        mInterfaces.add(iface);
        final LinkProperties lp = new LinkProperties();
        lp.setInterfaceName(iface.getInterfaceName());
        lp.addLinkAddress(address);
        return lp;
    }
}
