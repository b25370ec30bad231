// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.OWN_QUEUE;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;
import static com.android.drwa.cts.Drwa.getQueue;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assume.assumeTrue;

import java.util.List;
import org.junit.Before;
import org.junit.Test;

/** Which interfaces the kernel is told to share one queue of the radio's. */
public class QueueTest extends DrwaTestCase {
    private static final int LAMBDA = 150;

    @Before
    public void override() {
        assumeTrue("this kernel knows λ alone, and no queues", Drwa.areQueuesInKernel());
        mCarrier.override(true, LAMBDA);
    }

    private TestNetwork connectSecondCellular() {
        return mNetworks.connect(TestNetworks.secondCellular(mCarrier.getSubId()));
    }

    private static int getQueueOnceOn(String iface) {
        assertOn(iface, LAMBDA);
        final int queue = getQueue(iface);
        assertNotEquals(iface, OWN_QUEUE, queue);
        return queue;
    }

    @Test
    public void interfacesOfANetworkShareOne() {
        final TestNetwork cellular =
                mNetworks.connect(
                        TestNetworks.cellular(mCarrier.getSubId()), mNetworks.createIpv6OnlyLink());
        final String clat = "v4-" + cellular.getInterface();
        Drwa.await("464xlat", () -> !Drwa.getSetting(clat).isEmpty());
        final String iface = cellular.getInterface();
        Drwa.assertStackedOn(clat, iface, LAMBDA);
        final int queue = getQueueOnceOn(iface);
        // What is off has none
        assertEquals(Drwa.arePrograms() ? OWN_QUEUE : queue, getQueue(clat));
    }

    @Test
    public void networksHaveTheirOwn() {
        final String one = connectCellular().getInterface();
        final String two = connectSecondCellular().getInterface();
        assertNotEquals(getQueueOnceOn(one), getQueueOnceOn(two));
    }

    @Test
    public void vpnOverOneNetworkSharesIts() {
        final TestNetwork one = connectCellular();
        final TestNetwork two = connectSecondCellular();
        final TestNetwork vpn = connectVpn(one);
        final String tun = vpn.getInterface();
        assertEquals(getQueueOnceOn(one.getInterface()), getQueueOnceOn(tun));
        final int other = getQueueOnceOn(two.getInterface());
        vpn.setUnderlyingNetworks(List.of(two));
        Drwa.await("the other queue", () -> getQueue(tun) == other);
        vpn.setUnderlyingNetworks(List.of(one, two));
        Drwa.await("a queue of its own", () -> getQueue(tun) == OWN_QUEUE);
        assertOn(tun, LAMBDA);
    }

    @Test
    public void networkThatIsOffSharesNone() {
        final TestNetwork wifi = mNetworks.connect(TestNetworks.transport(TRANSPORT_WIFI));
        assertOff(wifi.getInterface(), "wifi");
        assertEquals(OWN_QUEUE, getQueue(wifi.getInterface()));
        final TestNetwork cellular = connectCellular();
        getQueueOnceOn(cellular.getInterface());
        cellular.disconnect();
        assertReset(cellular.getInterface());
        assertEquals(OWN_QUEUE, getQueue(cellular.getInterface()));
    }
}
