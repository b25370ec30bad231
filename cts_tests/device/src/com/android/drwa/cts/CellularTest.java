// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.telephony.SubscriptionManager;
import org.junit.Test;

/** λ on cellular networks. */
public class CellularTest extends DrwaTestCase {
    private static final int LAMBDA = 150;
    private static final int LAMBDA2 = 225;
    private static final int MIN_LAMBDA = 100;
    private static final int MAX_LAMBDA = 1000;
    private static final int DEFAULT_LAMBDA = 125;

    /** No SIM of this device has it. */
    private static final int OTHER_SUBSCRIPTION = 987_654;

    @Test
    public void carrierSetsLambda() {
        mCarrier.override(true, LAMBDA);
        assertOn(connectCellular().getInterface(), LAMBDA);
    }

    @Test
    public void carrierThatDoesNotWantItLeavesItOff() {
        mCarrier.override(false, LAMBDA);
        assertOff(connectCellular().getInterface(), "");
    }

    @Test
    public void carrierChangesALiveNetwork() {
        mCarrier.override(true, LAMBDA);
        final String iface = connectCellular().getInterface();
        assertOn(iface, LAMBDA);
        mCarrier.override(true, LAMBDA2);
        assertOn(iface, LAMBDA2);
        mCarrier.override(false, LAMBDA2);
        assertOff(iface, "");
        mCarrier.override(true, LAMBDA);
        assertOn(iface, LAMBDA);
    }

    @Test
    public void lambdaHasBounds() {
        mCarrier.override(true, MIN_LAMBDA);
        final String iface = connectCellular().getInterface();
        assertOn(iface, MIN_LAMBDA);
        mCarrier.override(true, MAX_LAMBDA);
        assertOn(iface, MAX_LAMBDA);
        mCarrier.override(true, MAX_LAMBDA + 1);
        assertOn(iface, DEFAULT_LAMBDA);
        mCarrier.override(true, MAX_LAMBDA);
        assertOn(iface, MAX_LAMBDA);
        mCarrier.override(true, MIN_LAMBDA - 1);
        assertOn(iface, DEFAULT_LAMBDA);
    }

    @Test
    public void disconnectionResets() {
        mCarrier.override(true, LAMBDA);
        final TestNetwork cellular = connectCellular();
        assertOn(cellular.getInterface(), LAMBDA);
        cellular.disconnect();
        assertReset(cellular.getInterface());
    }

    @Test
    public void interfaceThatTheNetworkLeavesIsReset() {
        mCarrier.override(true, LAMBDA);
        final TestNetwork cellular = connectCellular();
        final String first = cellular.getInterface();
        assertOn(first, LAMBDA);
        final LinkProperties second = mNetworks.createLink();
        cellular.setLinkProperties(second);
        assertOn(second.getInterfaceName(), LAMBDA);
        assertReset(first);
    }

    @Test
    public void replacementTakesTheInterfaceOver() {
        mCarrier.override(true, LAMBDA);
        final LinkProperties link = mNetworks.createLink();
        final NetworkCapabilities capabilities = TestNetworks.cellular(mCarrier.getSubId());
        final TestNetwork old = mNetworks.connect(capabilities, link);
        assertOn(link.getInterfaceName(), LAMBDA);
        old.destroyUntilReplaced();
        final TestNetwork replacement = mNetworks.connect(capabilities, link);
        old.disconnect();
        assertOn(link.getInterfaceName(), LAMBDA);
        replacement.disconnect();
        assertReset(link.getInterfaceName());
    }

    @Test
    public void everyNetworkHasItsOwnSubscription() {
        mCarrier.override(true, LAMBDA);
        final TestNetwork other = mNetworks.connect(TestNetworks.cellular(OTHER_SUBSCRIPTION));
        final TestNetwork own = connectCellular();
        assertOn(own.getInterface(), LAMBDA);
        assertOff(other.getInterface(), "");
    }

    @Test
    public void networkWithoutSubscriptionIsOff() {
        mCarrier.override(true, LAMBDA);
        final NetworkCapabilities unspecific =
                TestNetworks.transport(NetworkCapabilities.TRANSPORT_CELLULAR);
        assertOff(mNetworks.connect(unspecific).getInterface(), "no subscription");
        final NetworkCapabilities invalid =
                TestNetworks.cellular(SubscriptionManager.INVALID_SUBSCRIPTION_ID);
        assertOff(mNetworks.connect(invalid).getInterface(), "no subscription");
    }
}
