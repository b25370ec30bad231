// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;
import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeFalse;
import static org.junit.Assume.assumeNotNull;

import android.net.ConnectivityManager;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.os.Build;
import androidx.test.platform.app.InstrumentationRegistry;
import org.junit.Test;

/**
 * The static limits of the receive buffer, tcp_rmem, and of the send buffer, tcp_wmem. They stay
 * those that AOSP has for the default network, but for the receive maximum while DRWA governs that
 * network, if its host is ConnectivityService. What a network that is not the default one does, and
 * all that DrwaService does, changes nothing in them.
 */
public class StaticLimitTest extends DrwaTestCase {
    private static final String TCP_RMEM = "/proc/sys/net/ipv4/tcp_rmem";
    private static final String TCP_WMEM = "/proc/sys/net/ipv4/tcp_wmem";
    private static final int LAMBDA = 150;

    /** Of DRWA's own, in bytes. */
    private static final long OWN_MAXIMUM = 16 << 20;

    private String mLimits;

    private void assertUnchanged() {
        assertEquals(mLimits, getLimits());
    }

    private static String getLimits() {
        return read(TCP_RMEM) + "," + read(TCP_WMEM);
    }

    private static String read(String path) {
        return Drwa.shell("cat " + path).trim().replaceAll("\\s+", ",");
    }

    private static ConnectivityManager getConnectivity() {
        return InstrumentationRegistry.getInstrumentation()
                .getContext()
                .getSystemService(ConnectivityManager.class);
    }

    /** The tests' carrier configuration would govern the device's own network as well. */
    private static void assumeDefaultNetworkStaysUngoverned() {
        final ConnectivityManager connectivity = getConnectivity();
        final NetworkCapabilities nc =
                connectivity.getNetworkCapabilities(connectivity.getActiveNetwork());
        assumeFalse(
                "the default network is cellular, and would be governed; turn Wi-Fi on",
                Drwa.isInConnectivityService()
                        && nc != null
                        && nc.hasTransport(TRANSPORT_CELLULAR));
    }

    private static LinkProperties getDefaultLinkProperties() {
        final ConnectivityManager connectivity = getConnectivity();
        final Network network = connectivity.getActiveNetwork();
        assumeNotNull("this device has no default network", network);
        return connectivity.getLinkProperties(network);
    }

    @Test
    public void limitsAreThoseOfTheDefaultNetwork() {
        assumeDefaultNetworkStaysUngoverned();
        final LinkProperties lp = getDefaultLinkProperties();
        assumeNotNull("the default network says nothing of limits", lp.getTcpBufferSizes());
        mLimits = lp.getTcpBufferSizes();
        assertUnchanged();

        mCarrier.override(true, LAMBDA);
        assertOn(connectCellular().getInterface(), LAMBDA);
        assertUnchanged();
    }

    @Test
    public void receiveMaximumIsReplacedWhileTheDefaultNetworkIsGoverned() {
        final String iface = getDefaultLinkProperties().getInterfaceName();
        assumeFalse("a user build takes no such command", Build.TYPE.equals("user"));
        final String drwa = Drwa.isInConnectivityService() ? "cmd connectivity drwa " : "cmd drwa ";
        final String setting = Drwa.getSetting(iface);
        mLimits = getLimits();
        final String[] sizes = mLimits.split(",");
        final long maximum = Math.max(Long.parseLong(sizes[2]), OWN_MAXIMUM);
        if (Drwa.isInConnectivityService()) sizes[2] = String.valueOf(maximum);
        try {
            Drwa.shell(drwa + "set " + iface + " " + LAMBDA);
            assertOn(iface, LAMBDA);
            assertEquals(String.join(",", sizes), getLimits());
        } finally {
            Drwa.shell(drwa + "clear");
        }
        assertEquals(setting, Drwa.getSetting(iface));
        assertUnchanged();
    }

    @Test
    public void noEventChangesThem() {
        assumeDefaultNetworkStaysUngoverned();
        mLimits = getLimits();
        mCarrier.override(true, LAMBDA);
        final TestNetwork cellular = connectCellular();
        assertOn(cellular.getInterface(), LAMBDA);
        assertUnchanged();
        final TestNetwork wifi = mNetworks.connect(TestNetworks.transport(TRANSPORT_WIFI));
        assertOff(wifi.getInterface(), "wifi");
        assertUnchanged();
        mCarrier.override(false, LAMBDA);
        assertOff(cellular.getInterface(), "");
        assertUnchanged();
        cellular.disconnect();
        assertReset(cellular.getInterface());
        assertUnchanged();
    }
}
