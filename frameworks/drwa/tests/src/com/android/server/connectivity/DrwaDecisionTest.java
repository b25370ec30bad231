// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.util.ArrayMap;
import android.util.SparseArray;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** Tests what follows from live networks, without a phone. */
@RunWith(RobolectricTestRunner.class)
public class DrwaDecisionTest {
    private static final int CELL = 100;
    private static final int OTHER = 101;
    private static final int VPN = 102;
    private static final int SUB = 1;
    private static final int SUB2 = 2;
    private static final int UPLINK_MS = 20;

    private final SparseArray<DrwaNetwork> mNetworks = new SparseArray<>();
    private final Map<String, DrwaSetting> mOverrides = new ArrayMap<>();

    /** SUB wants 1.50, SUB2 3.00 and clients left alone; both want their uplinks held. */
    private final DrwaDecision.Carriers mCarriers =
            new DrwaDecision.Carriers() {
                @Override
                public DrwaSetting get(int subId, boolean roams) {
                    return new DrwaSetting(subId * 150, false, subId == SUB, "carrier " + subId);
                }

                @Override
                public int getUplinkMs(int subId, boolean roams) {
                    return subId * UPLINK_MS;
                }
            };

    private void add(int netId, NetworkCapabilities nc, LinkProperties lp) {
        mNetworks.put(netId, new DrwaNetwork(nc, lp));
    }

    private DrwaDecision decide() {
        return new DrwaDecision(mNetworks, mCarriers, null, null, mOverrides);
    }

    private static String inOrder(Map<String, DrwaSetting> settings) {
        return new TreeMap<>(settings).toString();
    }

    @Test
    public void nothingFollowsFromNothing() {
        final DrwaDecision decision = decide();
        assertEquals(Map.of(), decision.settings);
        assertEquals(Map.of(), decision.queues);
        assertEquals(Map.of(), decision.below);
        assertEquals(Map.of(), decision.limits);
        assertEquals(Map.of(), decision.uplinks);
    }

    @Test
    public void networkOfASimHasAllOfIt() {
        final LinkProperties lp = link("rmnet0", "v4-rmnet0");
        lp.setTcpBufferSizes("1,2,3,4,5,6");
        add(CELL, cellular(SUB), lp);
        final DrwaDecision decision = decide();
        assertEquals(
                "{rmnet0=λ=1.50: carrier 1, v4-rmnet0=λ=1.50: carrier 1}",
                inOrder(decision.settings));
        assertEquals(Map.of("rmnet0", CELL, "v4-rmnet0", CELL), decision.queues);
        assertEquals(Map.of("v4-rmnet0", "rmnet0"), decision.below);
        assertEquals(Map.of("rmnet0", "1,2,3,4,5,6", "v4-rmnet0", "1,2,3,4,5,6"), decision.limits);
        assertEquals(Map.of("rmnet0", UPLINK_MS), decision.uplinks);
    }

    @Test
    public void stackedInterfaceIsGovernedBelowWhereItCanBe() {
        add(CELL, cellular(SUB), link("rmnet0", "v4-rmnet0"));
        final DrwaDecision decision = decide();
        assertSame(decision.settings, decision.getSettings(false));
        assertEquals(
                "{rmnet0=λ=1.50: carrier 1, v4-rmnet0=off: governed at rmnet0}",
                inOrder(decision.getSettings(true)));
        assertEquals("λ=1.50: carrier 1", decision.settings.get("v4-rmnet0").toString());
    }

    @Test
    public void vpnHasTheLeastAndTheQueueOfOneBelow() {
        add(CELL, cellular(SUB), link("rmnet0"));
        add(OTHER, cellular(SUB2), link("rmnet1"));
        add(VPN, vpn(List.of(OTHER), TRANSPORT_CELLULAR), link("tun0"));
        assertEquals(
                "λ=3.00, clients left alone: over network 101 (carrier 2)",
                decide().settings.get("tun0").toString());
        assertEquals(Integer.valueOf(OTHER), decide().queues.get("tun0"));
        add(VPN, vpn(List.of(OTHER, CELL), TRANSPORT_CELLULAR), link("tun0"));
        assertEquals(
                "λ=1.50: over network 100 (carrier 1)", decide().settings.get("tun0").toString());
        assertNull(decide().queues.get("tun0"));
        assertNull(decide().uplinks.get("tun0"));
    }

    @Test
    public void networksThatShareADeviceHaveTheLeast() {
        add(CELL, cellular(SUB2), link("rmnet0"));
        add(OTHER, cellular(SUB), link("rmnet0"));
        assertEquals("{rmnet0=λ=1.50: carrier 1}", inOrder(decide().settings));
        assertEquals(Map.of("rmnet0", CELL), decide().queues);
        assertEquals(Map.of("rmnet0", UPLINK_MS), decide().uplinks);
    }

    @Test
    public void switchHasTheLastWord() {
        add(CELL, cellular(SUB), link("rmnet0"));
        add(OTHER, internet(TRANSPORT_WIFI), link("wlan0"));
        mOverrides.put("wlan0", new DrwaSetting(200, false, true, "shell"));
        assertEquals("λ=2.00: shell", decide().settings.get("wlan0").toString());
        final DrwaDecision off =
                new DrwaDecision(mNetworks, mCarriers, "a switch", null, mOverrides);
        assertEquals("{rmnet0=off: a switch, wlan0=off: a switch}", inOrder(off.settings));
        assertEquals(Map.of(), off.uplinks);
    }
}
