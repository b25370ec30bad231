// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static org.junit.Assert.assertTrue;

import android.content.Context;
import android.net.ConnectivityManager;
import android.net.ConnectivityManager.NetworkCallback;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkAgent;
import android.net.NetworkAgentConfig;
import android.net.NetworkCapabilities;
import android.net.NetworkRequest;
import android.net.NetworkScore;
import android.os.Handler;
import android.os.Looper;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A simulated network with its agent, and a request that keeps it up. */
final class TestNetwork {
    private static final String TAG = TestNetwork.class.getSimpleName();
    private static final long TIMEOUT_S = 5;

    /** Longer than any test. */
    private static final int REPLACEMENT_MS = 60_000;

    private final ConnectivityManager mConnectivity;
    private final Agent mAgent;
    private final Callback mCallback = new Callback();
    private final CountDownLatch mAvailable = new CountDownLatch(1);
    private final CountDownLatch mLost = new CountDownLatch(1);
    private LinkProperties mProperties;
    private boolean mRegistered;

    private static final class Agent extends NetworkAgent {
        Agent(Context context, Looper looper, NetworkCapabilities nc, LinkProperties lp) {
            super(
                    context,
                    looper,
                    TAG,
                    nc,
                    lp,
                    new NetworkScore.Builder().build(),
                    new NetworkAgentConfig.Builder().build(),
                    null /* provider */);
        }
    }

    /** Sees all networks that its request matches, of which this is one. */
    private final class Callback extends NetworkCallback {
        @Override
        public void onAvailable(Network network) {
            if (network.equals(mAgent.getNetwork())) mAvailable.countDown();
        }

        @Override
        public void onLost(Network network) {
            if (network.equals(mAgent.getNetwork())) mLost.countDown();
        }
    }

    /** A network that is yet to connect. */
    TestNetwork(
            Context context,
            Looper looper,
            NetworkCapabilities capabilities,
            LinkProperties properties) {
        mConnectivity = context.getSystemService(ConnectivityManager.class);
        mProperties = properties;
        mAgent = new Agent(context, looper, capabilities, properties);
        mAgent.setTeardownDelayMillis(0);
    }

    /**
     * Connects, and waits until that is known.
     *
     * @param request for this network
     * @param isRequestable whether the request keeps it up; VPNs stay up without one
     */
    void connect(NetworkRequest request, boolean isRequestable, Handler handler) {
        mRegistered = true;
        mAgent.register();
        if (isRequestable) {
            mConnectivity.requestNetwork(request, mCallback, handler);
        } else {
            mConnectivity.registerNetworkCallback(request, mCallback, handler);
        }
        mAgent.markConnected();
        await(mAvailable, "available");
    }

    Network getNetwork() {
        return mAgent.getNetwork();
    }

    String getInterface() {
        return mProperties.getInterfaceName();
    }

    /** What ConnectivityService tells of the network, the interfaces stacked on it included. */
    LinkProperties getLinkProperties() {
        return mConnectivity.getLinkProperties(getNetwork());
    }

    void setUnderlyingNetworks(List<TestNetwork> networks) {
        mAgent.setUnderlyingNetworks(networks.stream().map(TestNetwork::getNetwork).toList());
    }

    /** Moves to another interface, as a modem may do. */
    void setLinkProperties(LinkProperties properties) {
        mProperties = properties;
        mAgent.sendLinkProperties(properties);
    }

    /** Destroys the network, whose agent stays until its replacement comes or the test ends. */
    void destroyUntilReplaced() {
        mAgent.unregisterAfterReplacement(REPLACEMENT_MS);
    }

    /** Ends the network, and waits until that is known. Its interface stays. */
    void disconnect() {
        if (!mRegistered) return;
        mRegistered = false;
        mAgent.unregister();
        await(mLost, "lost");
        mConnectivity.unregisterNetworkCallback(mCallback);
    }

    private void await(CountDownLatch event, String what) {
        try {
            assertTrue(
                    "Not in time: " + getNetwork() + " " + what,
                    event.await(TIMEOUT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
