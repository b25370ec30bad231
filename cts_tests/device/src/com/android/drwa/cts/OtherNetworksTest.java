// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_BLUETOOTH;
import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_ETHERNET;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;

import android.net.ConnectivityManager;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import androidx.test.platform.app.InstrumentationRegistry;
import org.junit.Before;
import org.junit.Test;

/** Networks that are not cellular, beside one that is. */
public class OtherNetworksTest extends DrwaTestCase {
    private static final int LAMBDA = 150;

    private TestNetwork mCellular;

    @Before
    public void connect() {
        mCarrier.override(true, LAMBDA);
        mCellular = connectCellular();
        assertOn(mCellular.getInterface(), LAMBDA);
    }

    private void assertStaysOff(int transport, String reason) {
        final TestNetwork network = mNetworks.connect(TestNetworks.transport(transport));
        assertOff(network.getInterface(), reason);
        assertOn(mCellular.getInterface(), LAMBDA);
    }

    @Test
    public void wifiStaysOff() {
        assertStaysOff(TRANSPORT_WIFI, "wifi");
    }

    @Test
    public void ethernetStaysOff() {
        assertStaysOff(TRANSPORT_ETHERNET, "ethernet");
    }

    @Test
    public void bluetoothStaysOff() {
        assertStaysOff(TRANSPORT_BLUETOOTH, "bluetooth");
    }

    @Test
    public void wifiWithASubscriptionStaysOff() {
        // As a carrier's own Wi-Fi has
        final NetworkCapabilities wifi =
                new NetworkCapabilities.Builder(TestNetworks.transport(TRANSPORT_WIFI))
                        .setNetworkSpecifier(
                                TestNetworks.cellular(mCarrier.getSubId()).getNetworkSpecifier())
                        .build();
        assertOff(mNetworks.connect(wifi).getInterface(), "wifi");
    }

    @Test
    public void networksOfTheDeviceAreOffUnlessCellular() {
        final ConnectivityManager connectivity =
                InstrumentationRegistry.getInstrumentation()
                        .getContext()
                        .getSystemService(ConnectivityManager.class);
        for (Network network : connectivity.getAllNetworks()) {
            final NetworkCapabilities nc = connectivity.getNetworkCapabilities(network);
            final LinkProperties lp = connectivity.getLinkProperties(network);
            if (nc == null || lp == null || nc.hasTransport(TRANSPORT_CELLULAR)) continue;
            for (String iface : lp.getAllInterfaceNames()) {
                assertFalse(iface, Drwa.getSetting(iface).isEmpty());
                assertEquals(iface, Drwa.OFF, Drwa.getKnob(iface));
            }
        }
    }
}
