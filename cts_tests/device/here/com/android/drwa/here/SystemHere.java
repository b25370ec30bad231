// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.content.Context;
import android.net.NetworkInfo;
import android.os.Handler;
import android.os.HandlerThread;
import com.android.server.SystemService;
import com.android.server.connectivity.DrwaController;
import com.android.server.connectivity.FakeBpf;
import com.android.server.connectivity.FakeNetd;
import com.android.server.connectivity.FakeTelephony;
import com.android.server.connectivity.PolicyThreads;
import com.android.server.drwa.DrwaService;
import com.android.server.drwa.FakeServiceManager;
import org.robolectric.shadow.api.Shadow;
import org.robolectric.shadows.ShadowSubscriptionManager;

/**
 * The processes that a device's tests talk to, stood in for below their AIDL interfaces: netd in
 * front of a kernel, the phone process, ConnectivityService, and a shell. What is above them is
 * Android's own, the policy is DRWA's own, in one of its hosts.
 */
public class SystemHere extends Application {
    /** Which of the policy's hosts to run. */
    public enum Host {
        /** ConnectivityService, which calls the policy as the patch has it. */
        A,
        /** The same, with BPF programs on a kernel without knobs. */
        A_BPF,
        /** DrwaService. */
        B,
        /** The same, with netd's BPF programs on a kernel without knobs. */
        B_BPF
    }

    static final String HOST_PROPERTY = "drwa.host";
    static final String KERNEL_LACKS_DRWA_PROPERTY = "drwa.kernel.lacks";
    static final int SUB_ID = 1;

    private static final int CARRIER_ID = 1989;

    /** netd, and a kernel's limits, which ConnectivityService sets. */
    static final class Netd extends FakeNetd {
        volatile String mTcpRmem;
        volatile String mTcpWmem;

        @Override
        public void setTcpRWmemorySize(String rmem, String wmem) {
            mTcpRmem = rmem;
            mTcpWmem = wmem;
        }
    }

    final Netd mNetd = new Netd();

    private HandlerThread mThread;

    @Override
    public void onCreate() {
        super.onCreate();
        // Robolectric leaves it out, and NetworkAgent needs it
        Shadow.directInitialize(NetworkInfo.class);
        FakeServiceManager.forgetAll();
        final Host host = Host.valueOf(System.getProperty(HOST_PROPERTY));
        final boolean lacksDrwa = Boolean.getBoolean(KERNEL_LACKS_DRWA_PROPERTY);
        final boolean patched = host == Host.A || host == Host.A_BPF;
        final boolean bpf = host == Host.A_BPF && !lacksDrwa;
        final boolean netds = host == Host.B_BPF && !lacksDrwa;
        if (bpf || netds || lacksDrwa) mNetd.removeDrwaFromKernel();
        if (bpf) mNetd.addBpf();
        if (netds) mNetd.addPrograms();
        // A modem's, which no network has: by it the policy sees at the start what the kernel lacks
        if (bpf || netds) mNetd.addInterface("rmnet_ipa0");
        shadowOf(this).setSystemService(Context.NETD_SERVICE, mNetd.asBinder());
        final FakeTelephony telephony = new FakeTelephony(this);
        telephony.setCarrierId(SUB_ID, CARRIER_ID);
        ShadowSubscriptionManager.setDefaultDataSubscriptionId(SUB_ID);

        mThread = new HandlerThread("ConnectivityServiceThread");
        mThread.start();
        final Handler handler = new Handler(mThread.getLooper());
        final DrwaController.Dependencies deps =
                bpf ? FakeBpf.makeModule(mNetd) : FakeBpf.makePlatform(mNetd);
        final DrwaController policy =
                patched ? new DrwaController(this, handler, mNetd, deps) : null;
        final FakeConnectivity connectivity = new FakeConnectivity(this, handler, mNetd, policy);
        FakeServiceManager.addService(
                Context.CONNECTIVITY_SERVICE,
                connectivity.getInterface().asBinder(),
                false /* allowIsolated */,
                0 /* dumpPriority */);
        if (patched) {
            policy.start(connectivity::updateTcpBufferSizes);
        } else {
            final DrwaService service =
                    new DrwaService(this) {
                        @Override
                        protected DrwaController.Dependencies makeDependencies() {
                            return FakeBpf.makePlatform(mNetd);
                        }
                    };
            service.onStart();
            service.onBootPhase(SystemService.PHASE_THIRD_PARTY_APPS_CAN_START);
        }
        connectivity.connectWifiOfTheDevice();
        // As a phone has long started, and set its limits, by the time of a test
        PolicyThreads.idle(handler);
    }

    @Override
    public void onTerminate() {
        PolicyThreads.end();
        PolicyThreads.end(mThread.getLooper());
        super.onTerminate();
    }
}
