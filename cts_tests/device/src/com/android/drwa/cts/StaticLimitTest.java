// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.drwa.cts.Drwa.assertOff;
import static com.android.drwa.cts.Drwa.assertOn;
import static com.android.drwa.cts.Drwa.assertReset;
import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeNotNull;

import android.net.ConnectivityManager;
import android.net.LinkProperties;
import android.net.Network;
import androidx.test.platform.app.InstrumentationRegistry;
import org.junit.Test;

/**
 * The static limits of the receive buffer, tcp_rmem, which stay those that AOSP has for the default
 * network. On an interface that is on, the kernel does not heed them, which its own tests show;
 * DRWA lifts nothing by writing them, so that other interfaces have AOSP's limit to the byte.
 */
public class StaticLimitTest extends DrwaTestCase {
    private static final String TCP_RMEM = "/proc/sys/net/ipv4/tcp_rmem";
    private static final int LAMBDA = 150;

    private String mLimits;

    private void assertUnchanged() {
        assertEquals(mLimits, getLimits());
    }

    private static String getLimits() {
        return Drwa.shell("cat " + TCP_RMEM).trim().replaceAll("\\s+", ",");
    }

    @Test
    public void limitsAreThoseOfTheDefaultNetwork() {
        final ConnectivityManager connectivity =
                InstrumentationRegistry.getInstrumentation()
                        .getContext()
                        .getSystemService(ConnectivityManager.class);
        final Network network = connectivity.getActiveNetwork();
        assumeNotNull("this device has no default network", network);
        final LinkProperties lp = connectivity.getLinkProperties(network);
        assumeNotNull("the default network says nothing of limits", lp.getTcpBufferSizes());
        mLimits = lp.getTcpBufferSizes().replaceAll("((\\d+,){2}\\d+),.*", "$1");
        assertUnchanged();

        mCarrier.override(true, LAMBDA);
        assertOn(connectCellular().getInterface(), LAMBDA);
        assertUnchanged();
    }

    @Test
    public void noEventChangesThem() {
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
