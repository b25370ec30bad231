// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import android.annotation.NonNull;
import android.content.Context;
import android.net.ConnectivityManager;
import android.net.ConnectivityManager.NetworkCallback;
import android.net.INetd;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkRequest;
import android.os.Binder;
import android.os.Handler;
import android.os.HandlerThread;
import android.os.IBinder;
import android.os.ParcelFileDescriptor;
import android.util.ArrayMap;
import com.android.internal.annotations.VisibleForTesting;
import com.android.internal.util.DumpUtils;
import com.android.server.SystemService;
import com.android.server.connectivity.DrwaController;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintWriter;

/**
 * Runs the DRWA policy beside a ConnectivityService that cannot be patched, and feeds it from
 * network callbacks. The system server starts it if {@code config_deviceSpecificSystemServices}
 * names it.
 *
 * <p>netd stays the one of the start: init restarts the system server together with netd.
 */
public class DrwaService extends SystemService {
    private static final String TAG = DrwaService.class.getSimpleName();

    /** For dumpsys and cmd. */
    private static final String SERVICE_NAME = "drwa";

    private Handler mHandler;
    private DrwaController mController;

    public DrwaService(@NonNull Context context) {
        super(context);
    }

    @Override
    public void onStart() {
        final Context context = getContext();
        final HandlerThread thread = new HandlerThread(TAG);
        thread.start();
        mHandler = new Handler(thread.getLooper());
        final INetd netd =
                INetd.Stub.asInterface((IBinder) context.getSystemService(Context.NETD_SERVICE));
        mController = new DrwaController(context, mHandler, netd, makeDependencies());
        mController.start();
        publishBinderService(SERVICE_NAME, new DrwaBinder());
    }

    @VisibleForTesting
    @NonNull
    protected DrwaController.Dependencies makeDependencies() {
        return new DrwaController.Dependencies();
    }

    @Override
    public void onBootPhase(int phase) {
        // Before systemReady(), ConnectivityService knows nobody's permissions, and would narrow
        // the request to foreground networks for good
        if (phase != PHASE_THIRD_PARTY_APPS_CAN_START) return;
        // Without capabilities, the request matches every network, VPNs too
        getContext()
                .getSystemService(ConnectivityManager.class)
                .registerNetworkCallback(
                        new NetworkRequest.Builder().clearCapabilities().build(),
                        new NetworkListener(),
                        mHandler);
    }

    private final class NetworkListener extends NetworkCallback {
        private final ArrayMap<Network, NetworkCapabilities> mCapabilities = new ArrayMap<>();
        private final ArrayMap<Network, LinkProperties> mLinkProperties = new ArrayMap<>();

        @Override
        public void onCapabilitiesChanged(Network network, NetworkCapabilities nc) {
            mCapabilities.put(network, nc);
            onChanged(network);
        }

        @Override
        public void onLinkPropertiesChanged(Network network, LinkProperties lp) {
            mLinkProperties.put(network, lp);
            onChanged(network);
        }

        private void onChanged(Network network) {
            final NetworkCapabilities nc = mCapabilities.get(network);
            final LinkProperties lp = mLinkProperties.get(network);
            if (nc == null || lp == null) return;
            mController.onNetworkChanged(network.getNetId(), nc, lp);
        }

        @Override
        public void onLost(Network network) {
            mCapabilities.remove(network);
            mLinkProperties.remove(network);
            mController.onNetworkDestroyed(network.getNetId());
        }
    }

    private final class DrwaBinder extends Binder {
        @Override
        protected void dump(FileDescriptor fd, PrintWriter pw, String[] args) {
            if (DumpUtils.checkDumpPermission(getContext(), TAG, pw)) mController.dump(pw);
        }

        @Override
        public int handleShellCommand(
                ParcelFileDescriptor in,
                ParcelFileDescriptor out,
                ParcelFileDescriptor err,
                String[] args) {
            final PrintWriter pw = new PrintWriter(new FileOutputStream(out.getFileDescriptor()));
            final int result = mController.handleShellCommand(pw, args);
            pw.flush();
            return result;
        }
    }
}
