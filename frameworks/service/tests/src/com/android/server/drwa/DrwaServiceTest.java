// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import static android.net.NetworkCapabilities.TRANSPORT_CELLULAR;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;
import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.network;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.Application;
import android.content.ContentResolver;
import android.content.Context;
import android.net.ConnectivityManager;
import android.net.ConnectivityManager.NetworkCallback;
import android.net.Network;
import android.net.NetworkRequest;
import android.os.Binder;
import android.os.Handler;
import android.os.Looper;
import android.os.ParcelFileDescriptor;
import android.os.ServiceManager;
import android.provider.Settings;
import com.android.server.SystemService;
import com.android.server.connectivity.FakeNetd;
import com.android.server.connectivity.FakeTelephony;
import com.android.server.connectivity.PolicyThreads;
import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowBuild;
import org.robolectric.shadows.ShadowConnectivityManager;

@RunWith(RobolectricTestRunner.class)
@Config(shadows = {FakeServiceManager.class, DrwaServiceTest.Connectivity.class})
public class DrwaServiceTest {
    private static final Network CELL = network(100);
    private static final Network WIFI = network(101);
    private static final Network VPN = network(102);
    private static final int SUB = 1;
    private static final int LAMBDA = 150;
    private static final String RMNET = "rmnet_data2";
    private static final String WLAN = "wlan0";
    private static final String TUN = "tun0";

    /** What ConnectivityService is asked for. */
    @Implements(ConnectivityManager.class)
    public static class Connectivity extends ShadowConnectivityManager {
        static final List<NetworkRequest> sRequests = new ArrayList<>();
        static Handler sHandler;
        static NetworkCallback sCallback;

        @Override
        protected void registerNetworkCallback(
                NetworkRequest request, NetworkCallback callback, Handler handler) {
            sRequests.add(request);
            sCallback = callback;
            sHandler = handler;
        }
    }

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeNetd mNetd = new FakeNetd();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);

    @Before
    public void setUp() {
        for (String iface : List.of(RMNET, WLAN, TUN)) mNetd.addInterface(iface);
        mTelephony.setConfig(SUB, true, LAMBDA);
        mTelephony.setCarrierId(SUB, 1989);
        shadowOf(mContext).setSystemService(Context.NETD_SERVICE, mNetd.asBinder());
    }

    @After
    public void tearDown() {
        PolicyThreads.end();
        FakeServiceManager.forgetAll();
        Connectivity.sRequests.clear();
    }

    private void start() {
        boot(mContext);
        mTelephony.neverCalls = Connectivity.sHandler.getLooper().getThread();
        PolicyThreads.idle(Connectivity.sHandler);
        mTelephony.announceConfig(SUB);
        PolicyThreads.idle(Connectivity.sHandler);
    }

    /** As the system server does. */
    static void boot(Context context) {
        final DrwaService service = new DrwaService(context);
        service.onStart();
        service.onBootPhase(SystemService.PHASE_THIRD_PARTY_APPS_CAN_START);
    }

    /** As ConnectivityManager calls back, on the handler's thread. */
    private static void callBack(Consumer<NetworkCallback> event) {
        Connectivity.sHandler.post(() -> event.accept(Connectivity.sCallback));
        PolicyThreads.idle(Connectivity.sHandler);
    }

    private static void connectCellular() {
        callBack(
                callback -> {
                    callback.onAvailable(CELL);
                    callback.onCapabilitiesChanged(CELL, cellular(SUB));
                    callback.onLinkPropertiesChanged(CELL, link(RMNET));
                });
    }

    private static Binder published() {
        return (Binder) ServiceManager.getService("drwa");
    }

    private static String dump() throws Exception {
        final File file = File.createTempFile("drwa", null);
        try (FileOutputStream out = new FileOutputStream(file)) {
            published().dump(out.getFD(), new String[0]);
            return Files.readString(file.toPath());
        } finally {
            file.delete();
        }
    }

    @Test
    public void systemServerCanStartIt() throws Exception {
        // As SystemServiceManager.startService() does with the name in the resource
        final SystemService service =
                (SystemService)
                        Class.forName("com.android.server.drwa.DrwaService")
                                .getConstructor(Context.class)
                                .newInstance(mContext);
        service.onStart();
        assertNotNull(published());
    }

    @Test
    public void asksOnceConnectivityServiceIsReady() {
        final DrwaService service = new DrwaService(mContext);
        service.onStart();
        service.onBootPhase(SystemService.PHASE_ACTIVITY_MANAGER_READY);
        assertEquals(List.of(), Connectivity.sRequests);
        service.onBootPhase(SystemService.PHASE_THIRD_PARTY_APPS_CAN_START);
        service.onBootPhase(SystemService.PHASE_BOOT_COMPLETED);
        assertEquals(1, Connectivity.sRequests.size());
    }

    @Test
    public void everyNetworkIsWatched() {
        start();
        assertEquals(1, Connectivity.sRequests.size());
        final NetworkRequest request = Connectivity.sRequests.get(0);
        assertTrue(request.canBeSatisfiedBy(cellular(SUB)));
        assertTrue(request.canBeSatisfiedBy(internet(TRANSPORT_WIFI)));
        assertTrue(request.canBeSatisfiedBy(vpn(List.of(100), TRANSPORT_CELLULAR)));
        assertFalse(Connectivity.sHandler.getLooper() == Looper.getMainLooper());
    }

    @Test
    public void networksAreSwitched() {
        start();
        connectCellular();
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
        callBack(
                callback -> {
                    callback.onCapabilitiesChanged(WIFI, internet(TRANSPORT_WIFI));
                    callback.onLinkPropertiesChanged(WIFI, link(WLAN));
                    callback.onCapabilitiesChanged(VPN, vpn(List.of(100), TRANSPORT_CELLULAR));
                    callback.onLinkPropertiesChanged(VPN, link(TUN));
                });
        assertEquals(0, mNetd.getKnob(WLAN));
        assertEquals(LAMBDA, mNetd.getKnob(TUN));
        callBack(
                callback -> callback.onCapabilitiesChanged(VPN, vpn(List.of(101), TRANSPORT_WIFI)));
        assertEquals(0, mNetd.getKnob(TUN));
        callBack(callback -> callback.onLost(CELL));
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void networkWaitsForBothHalvesOfItsState() {
        start();
        callBack(callback -> callback.onLinkPropertiesChanged(CELL, link(RMNET)));
        assertEquals(0, mNetd.writes);
        callBack(callback -> callback.onCapabilitiesChanged(CELL, cellular(SUB)));
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void lostNetworkIsForgotten() {
        start();
        connectCellular();
        callBack(callback -> callback.onLost(CELL));
        callBack(callback -> callback.onCapabilitiesChanged(CELL, cellular(SUB)));
        assertEquals(0, mNetd.getKnob(RMNET));
        callBack(callback -> callback.onLost(CELL));
        callBack(callback -> callback.onLinkPropertiesChanged(CELL, link(RMNET)));
        assertEquals(0, mNetd.getKnob(RMNET));
    }

    @Test
    public void settingSwitchesAtOnce() {
        start();
        connectCellular();
        final ContentResolver resolver = mContext.getContentResolver();
        Settings.Global.putInt(resolver, "drwa_enabled", 0);
        PolicyThreads.idle(Connectivity.sHandler);
        assertEquals(0, mNetd.getKnob(RMNET));
        Settings.Global.putString(resolver, "drwa_enabled", null);
        PolicyThreads.idle(Connectivity.sHandler);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void interfaceThatComesAgainIsSetAgain() {
        start();
        connectCellular();
        mNetd.removeInterface(RMNET);
        mNetd.addInterface(RMNET);
        PolicyThreads.idle(Connectivity.sHandler);
        assertEquals(LAMBDA, mNetd.getKnob(RMNET));
    }

    @Test
    public void dumpNeedsItsPermission() throws Exception {
        start();
        connectCellular();
        assertFalse(dump().contains("rmnet_data2"));
        shadowOf(mContext).grantPermissions(Manifest.permission.DUMP);
        assertTrue(dump(), dump().contains("rmnet_data2 λ=1.50: carrier 1989"));
    }

    @Test
    public void shellReachesThePolicy() throws Exception {
        ShadowBuild.setType("user");
        start();
        final File file = File.createTempFile("drwa", null);
        try (ParcelFileDescriptor out =
                ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_WRITE)) {
            final String[] args = {"nonsense"};
            assertEquals(-1, published().handleShellCommand(null, out, null, args));
            final String text = Files.readString(file.toPath());
            assertEquals("Only debuggable builds have this command\n", text);
        } finally {
            file.delete();
        }
    }
}
