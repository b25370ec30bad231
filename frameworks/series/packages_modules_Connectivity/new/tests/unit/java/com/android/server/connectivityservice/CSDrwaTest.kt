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

package com.android.server

import android.net.LinkProperties
import android.net.NetworkCapabilities
import android.net.NetworkCapabilities.NET_CAPABILITY_INTERNET
import android.net.NetworkCapabilities.NET_CAPABILITY_NOT_METERED
import android.net.NetworkCapabilities.NET_CAPABILITY_NOT_SUSPENDED
import android.net.NetworkCapabilities.NET_CAPABILITY_NOT_VCN_MANAGED
import android.net.NetworkCapabilities.NET_CAPABILITY_NOT_VPN
import android.net.NetworkCapabilities.TRANSPORT_CELLULAR
import android.net.NetworkCapabilities.TRANSPORT_VPN
import android.net.NetworkCapabilities.TRANSPORT_WIFI
import android.net.VpnManager.TYPE_VPN_SERVICE
import android.net.VpnTransportInfo
import android.os.Build
import androidx.test.filters.SmallTest
import com.android.server.connectivity.DrwaController
import com.android.testutils.DevSdkIgnoreRule
import com.android.testutils.DevSdkIgnoreRunner
import org.junit.Test
import org.junit.runner.RunWith
import org.mockito.ArgumentCaptor
import org.mockito.ArgumentMatchers.argThat
import org.mockito.ArgumentMatchers.eq
import org.mockito.Mockito.atLeastOnce
import org.mockito.Mockito.clearInvocations
import org.mockito.Mockito.doAnswer
import org.mockito.Mockito.never
import org.mockito.Mockito.verify

private const val LONG_TIMEOUT_MS = 5_000
private const val CELL_IFNAME = "rmnet_data0"
private const val CELL_IFNAME2 = "rmnet_data1"

private fun nc(transport: Int) = NetworkCapabilities.Builder()
        .addTransportType(transport)
        .addCapability(NET_CAPABILITY_INTERNET)
        .addCapability(NET_CAPABILITY_NOT_SUSPENDED)
        .addCapability(NET_CAPABILITY_NOT_VCN_MANAGED)
        .build()

private fun vpnNc() = NetworkCapabilities.Builder()
        .addTransportType(TRANSPORT_VPN)
        .removeCapability(NET_CAPABILITY_NOT_VPN)
        .addCapability(NET_CAPABILITY_NOT_VCN_MANAGED)
        .setTransportInfo(VpnTransportInfo(
                TYPE_VPN_SERVICE,
                "MySession12345",
                false /* bypassable */,
                false /* longLivedTcpConnectionsExpensive */))
        .build()

private fun lp(iface: String) = LinkProperties().apply { interfaceName = iface }

/** What ConnectivityService tells [DrwaController], which decides for itself and has own tests. */
@RunWith(DevSdkIgnoreRunner::class)
@SmallTest
@DevSdkIgnoreRule.IgnoreUpTo(Build.VERSION_CODES.R)
class CSDrwaTest : CSTest() {
    /** Connects a cellular network. What the policy is told of it on the way is forgotten. */
    private fun connectCell(): CSAgentWrapper {
        val agent = Agent(nc = nc(TRANSPORT_CELLULAR), lp = lp(CELL_IFNAME))
        agent.connect()
        waitForIdle()
        clearInvocations(drwaController)
        return agent
    }

    private fun verifyChanged(
            agent: CSAgentWrapper,
            nc: (NetworkCapabilities) -> Boolean = { true },
            iface: String
    ) {
        waitForIdle()
        verify(drwaController, atLeastOnce()).onNetworkChanged(
                eq(agent.network.netId),
                argThat(nc),
                argThat { it.interfaceName == iface })
    }

    private fun verifyNeverChanged(agent: CSAgentWrapper) {
        waitForIdle()
        verify(drwaController, never())
                .onNetworkChanged(eq(agent.network.netId), any(), any())
    }

    @Test
    fun testStartedWhenSystemIsReady() {
        verify(drwaController).start(any())
    }

    private fun limitedLp(sizes: String) = lp(CELL_IFNAME).apply { tcpBufferSizes = sizes }

    /** Replaces the receive maximum of a network, as the policy does while it governs it. */
    private fun govern(agent: CSAgentWrapper, maximum: String?) {
        doAnswer {
            val sizes: Array<String> = it.getArgument(1)
            if (maximum != null) sizes[2] = maximum
        }.`when`(drwaController).replaceReceiveMaximum(eq(agent.network.netId), any())
        val onReceiveMaximum = ArgumentCaptor.forClass(Runnable::class.java)
        verify(drwaController, atLeastOnce()).start(onReceiveMaximum.capture())
        csHandler.post(onReceiveMaximum.value)
        waitForIdle()
    }

    @Test
    fun testReceiveMaximumIsReplacedWhileTheDefaultNetworkIsGoverned() {
        val cell = Agent(nc = nc(TRANSPORT_CELLULAR), lp = limitedLp("1,2,3,4,5,6"))
        cell.connect()
        waitForIdle()
        verify(netd).setTcpRWmemorySize("1 2 3", "4 5 6")

        govern(cell, maximum = "30")
        verify(netd).setTcpRWmemorySize("1 2 30", "4 5 6")
        cell.sendLinkProperties(limitedLp("1,2,3,4,5,7"))
        waitForIdle()
        verify(netd).setTcpRWmemorySize("1 2 30", "4 5 7")

        clearInvocations(netd)
        govern(cell, maximum = null)
        verify(netd).setTcpRWmemorySize("1 2 3", "4 5 7")
    }

    @Test
    fun testReceiveMaximumOfAnotherNetworkIsNotReplaced() {
        val cell = Agent(nc = nc(TRANSPORT_CELLULAR), lp = limitedLp("1,2,3,4,5,6"))
        cell.connect()
        govern(cell, maximum = "30")
        clearInvocations(netd)

        val wifiLp = lp("wlan0").apply { tcpBufferSizes = "7,8,9,10,11,12" }
        Agent(nc = nc(TRANSPORT_WIFI), lp = wifiLp).connect()
        waitForIdle()
        verify(netd).setTcpRWmemorySize("7 8 9", "10 11 12")
    }

    @Test
    fun testNoDefaultNetworkLeavesTheSizes() {
        val cell = Agent(nc = nc(TRANSPORT_CELLULAR), lp = limitedLp("1,2,3,4,5,6"))
        cell.connect()
        govern(cell, maximum = "30")
        cell.disconnect()
        waitForIdle()
        clearInvocations(netd)

        govern(cell, maximum = null)
        verify(netd, never()).setTcpRWmemorySize(any(), any())
    }

    @Test
    fun testNothingBeforeFirstConnection() {
        val agent = Agent(nc = nc(TRANSPORT_CELLULAR), lp = lp(CELL_IFNAME))
        agent.sendLinkProperties(lp(CELL_IFNAME2))
        verifyNeverChanged(agent)

        agent.connect()
        verifyChanged(agent, { it.hasTransport(TRANSPORT_CELLULAR) }, CELL_IFNAME2)
    }

    @Test
    fun testLinkPropertiesChange() {
        val agent = connectCell()

        agent.sendLinkProperties(lp(CELL_IFNAME2))
        verifyChanged(agent, iface = CELL_IFNAME2)
    }

    @Test
    fun testNetworkCapabilitiesChange() {
        val agent = connectCell()

        agent.sendNetworkCapabilities(NetworkCapabilities.Builder(nc(TRANSPORT_CELLULAR))
                .addCapability(NET_CAPABILITY_NOT_METERED)
                .build())
        verifyChanged(agent, { it.hasCapability(NET_CAPABILITY_NOT_METERED) }, CELL_IFNAME)
    }

    @Test
    fun testDisconnect() {
        val agent = connectCell()

        agent.disconnect()
        waitForIdle()
        verify(drwaController).onNetworkDestroyed(agent.network.netId)
    }

    @Test
    fun testDestroyedPendingReplacement() {
        val agent = connectCell()

        agent.unregisterAfterReplacement(LONG_TIMEOUT_MS)
        waitForIdle()
        verify(drwaController).onNetworkDestroyed(agent.network.netId)

        // Its replacement takes the default request, which changes the capabilities of both.
        Agent(nc = nc(TRANSPORT_CELLULAR), lp = lp(CELL_IFNAME)).connect()
        verifyNeverChanged(agent)
    }

    @Test
    fun testIngressRateLimitIsTold() {
        service.updateIngressRateLimit()
        waitForIdle()
        verify(drwaController).onIngressRateLimitChanged()
    }

    @Test
    fun testVpnFollowsDefaultNetwork() {
        val cell = connectCell()
        // Declares no underlying networks, which means whatever is the default.
        val vpn = Agent(nc = vpnNc(), lp = lp("tun0"))
        vpn.connect()
        verifyChanged(vpn, { it.underlyingNetworks == listOf(cell.network) }, "tun0")

        val wifi = Agent(nc = nc(TRANSPORT_WIFI), lp = lp("wlan0"))
        wifi.connect()
        verifyChanged(vpn, { it.underlyingNetworks == listOf(wifi.network) }, "tun0")
    }
}
