// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.link;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.net.INetd;
import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Handler;
import android.os.Looper;
import android.os.RemoteException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.junit.Before;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLog;

/** A policy whose phone a test plays. */
public abstract class DrwaControllerTestCase {
    protected static final int CELL = 100;
    protected static final int OTHER = 101;
    protected static final int VPN = 102;
    protected static final int VCN = 103;

    protected static final int SUB = 1;
    protected static final int SUB2 = 2;
    protected static final int LAMBDA = 150;
    protected static final int LAMBDA2 = 300;

    protected static final String RMNET = "rmnet_data2";
    protected static final String RMNET2 = "rmnet_data3";
    protected static final String CLAT = "v4-rmnet_data2";
    protected static final String WLAN = "wlan0";
    protected static final String TUN = "tun0";

    protected final FakeNetd mNetd = new FakeNetd();
    protected final FakeBpf mBpf = new FakeBpf(mNetd);
    protected final FakeTelephony mTelephony =
            new FakeTelephony(RuntimeEnvironment.getApplication());
    protected final TestDependencies mDeps = new TestDependencies();
    protected DrwaController mController;

    /** The phone that the policy finds. */
    protected class TestDependencies extends DrwaController.Dependencies {
        final FakeReader mReader = new FakeReader();

        boolean mDebuggable = true;

        /** The system cannot list its interfaces. */
        boolean mCannotList;

        /** What the system lists although it is gone when netd is asked for it. */
        List<String> mGone = List.of();

        @Override
        DrwaKnobs makeBpfKnobs(INetd netd, DrwaWriteLog log) throws RemoteException {
            if (mNetd.hasPrograms()) return super.makeBpfKnobs(netd, log);
            if (!mNetd.hasBpf()) throw new UnsupportedOperationException("a reason");
            return new DrwaBpfKnobs(mBpf, log);
        }

        @Override
        List<String> getInterfaceNames() {
            if (mCannotList) return null;
            final List<String> names = new ArrayList<>(mNetd.getKnobs().keySet());
            names.addAll(mGone);
            return names;
        }

        @Override
        boolean isDebuggable() {
            return mDebuggable;
        }

        @Override
        Executor makeReader() {
            return mReader;
        }
    }

    @Before
    public void setUp() {
        for (String iface : List.of(RMNET, RMNET2, CLAT, WLAN, TUN)) mNetd.addInterface(iface);
        mTelephony.setConfig(SUB, true, LAMBDA);
        mTelephony.setCarrierId(SUB, 1989);
        mTelephony.setConfig(SUB2, true, LAMBDA2);
        mTelephony.setCarrierId(SUB2, 1839);
        mTelephony.neverCalls = Thread.currentThread();
        makeController();
    }

    protected void makeController() {
        mController =
                new DrwaController(
                        RuntimeEnvironment.getApplication(),
                        new Handler(Looper.getMainLooper()),
                        mNetd,
                        mDeps);
    }

    protected void start() {
        mController.start();
        idle();
        announceSims();
    }

    /** As the phone process does once it has read the SIMs. */
    protected void announceSims() {
        mTelephony.announceConfig(SUB);
        mTelephony.announceConfig(SUB2);
        idle();
    }

    protected static void idle() {
        shadowOf(Looper.getMainLooper()).idle();
    }

    protected static void idleFor(long ms) {
        shadowOf(Looper.getMainLooper()).idleFor(ms, TimeUnit.MILLISECONDS);
    }

    protected void connect(int netId, NetworkCapabilities nc, LinkProperties lp) {
        mController.onNetworkChanged(netId, nc, lp);
        idle();
    }

    protected void startOnCellular() {
        start();
        connect(CELL, cellular(SUB), link(RMNET));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    protected String dump() {
        final StringWriter text = new StringWriter();
        mController.dump(new PrintWriter(text, true));
        return text.toString();
    }

    protected void assertDumped(String line) {
        assertTrue(dump(), List.of(dump().split("\n")).contains(line));
    }

    protected static long countLogged(String tag, int priority) {
        return ShadowLog.getLogsForTag(tag).stream().filter(l -> l.type == priority).count();
    }

    /**
     * @param bytesPerSecond -1 for none
     */
    protected static void putRateLimit(long bytesPerSecond) {
        TestSwitches.putRateLimit(RuntimeEnvironment.getApplication(), bytesPerSecond);
        idle();
    }

    protected static void putSetting(String value) {
        TestSwitches.putSetting(RuntimeEnvironment.getApplication(), value);
        idle();
    }
}
