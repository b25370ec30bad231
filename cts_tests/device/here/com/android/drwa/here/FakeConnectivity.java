// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import static android.net.NetworkCapabilities.NET_CAPABILITY_INTERNET;
import static android.net.NetworkCapabilities.TRANSPORT_TEST;
import static android.net.NetworkCapabilities.TRANSPORT_VPN;
import static android.net.NetworkCapabilities.TRANSPORT_WIFI;

import android.Manifest;
import android.content.Context;
import android.net.ConnectivityManager;
import android.net.IConnectivityManager;
import android.net.INetworkAgent;
import android.net.INetworkAgentRegistry;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkInfo;
import android.net.NetworkRequest;
import android.net.TestNetworkInterface;
import android.net.connectivity.android.net.ITestNetworkManager;
import android.os.Binder;
import android.os.Bundle;
import android.os.Handler;
import android.os.IInterface;
import android.os.Message;
import android.os.Messenger;
import android.os.ParcelFileDescriptor;
import android.os.Parcelable;
import android.os.Process;
import android.os.RemoteException;
import com.android.server.connectivity.DrwaController;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.robolectric.util.ReflectionHelpers;

/**
 * ConnectivityService and its TestNetworkService, below IConnectivityManager: keeps networks, tells
 * callbacks of all that match, resolves what VPNs run over, and starts 464xlat. Calls the policy
 * where the patch does, if it has one. All of that happens on its handler's thread.
 *
 * <p>It scores no networks: whatever is connected stays, and the default is the device's Wi-Fi.
 */
final class FakeConnectivity {
    private static final String WLAN = "wlan0";
    private static final String WLAN_RMEM = "524288,2097152,4194304";
    private static final String WLAN_WMEM = "262144,524288,1048576";
    private static final String CLAT_PREFIX = "v4-";
    private static final String TUN_PREFIX = "testtun";
    private static final int FIRST_NET_ID = 100;
    private static final long TIMEOUT_S = 10;

    private final Context mContext;
    private final Handler mHandler;
    private final SystemHere.Netd mNetd;
    private final DrwaController mPolicy;
    private final Map<Integer, Agent> mNetworks = new TreeMap<>();
    private final List<Request> mRequests = new ArrayList<>();
    private int mNextNetId = FIRST_NET_ID;
    private int mNextTun;

    /**
     * @param policy what to tell of networks, or null
     */
    FakeConnectivity(
            Context context, Handler handler, SystemHere.Netd netd, DrwaController policy) {
        mContext = context;
        mHandler = handler;
        mNetd = netd;
        mPolicy = policy;
    }

    /** What ConnectivityManager talks to. */
    IConnectivityManager getInterface() {
        return standIn(IConnectivityManager.class, this::call, new Dumper());
    }

    private final class Dumper extends Binder {
        @Override
        protected void dump(FileDescriptor fd, PrintWriter pw, String[] args) {
            pw.println("NetworkProviders for:");
            pw.println();
            if (mPolicy != null) mPolicy.dump(pw);
        }

        @Override
        public int handleShellCommand(
                ParcelFileDescriptor in,
                ParcelFileDescriptor out,
                ParcelFileDescriptor err,
                String[] args) {
            if (mPolicy == null || !args[0].equals("drwa")) throw new AssertionError(args[0]);
            final PrintWriter pw = new PrintWriter(new FileOutputStream(out.getFileDescriptor()));
            final int result =
                    mPolicy.handleShellCommand(pw, Arrays.copyOfRange(args, 1, args.length));
            pw.flush();
            return result;
        }
    }

    private interface Calls {
        Object call(Method method, Object[] args) throws RemoteException;
    }

    /** Releases of Android differ in methods and parameters that do not matter here. */
    private static <T extends IInterface> T standIn(Class<T> aidl, Calls calls, Binder binder) {
        final Object proxy =
                Proxy.newProxyInstance(
                        aidl.getClassLoader(),
                        new Class<?>[] {aidl},
                        (self, method, args) ->
                                method.getName().equals("asBinder")
                                        ? binder
                                        : calls.call(method, args));
        binder.attachInterface(aidl.cast(proxy), aidl.getName());
        return aidl.cast(proxy);
    }

    private Object call(Method method, Object[] args) {
        switch (method.getName()) {
            case "registerNetworkAgent":
                enforceTestNetworks();
                final Agent agent =
                        register(
                                get(args, INetworkAgent.class),
                                get(args, NetworkCapabilities.class),
                                get(args, LinkProperties.class));
                if (method.getReturnType() == Network.class) return agent.mNetwork;
                // From Android 16 on, a parcelable that Android 15 does not know
                final Object both = ReflectionHelpers.callConstructor(method.getReturnType());
                ReflectionHelpers.setField(both, "network", agent.mNetwork);
                ReflectionHelpers.setField(both, "registry", agent);
                return both;
            case "requestNetwork":
            case "listenForNetwork":
                return request(
                        get(args, NetworkCapabilities.class),
                        get(args, Messenger.class),
                        method.getName().equals("listenForNetwork")
                                ? NetworkRequest.Type.LISTEN
                                : NetworkRequest.Type.REQUEST);
            case "releaseNetworkRequest":
                post(() -> mRequests.removeIf(r -> r.mRequest.equals(args[0])));
                return null;
            case "startOrGetTestNetworkService":
                return standIn(ITestNetworkManager.class, this::callTestNetworks, new Binder())
                        .asBinder();
            case "getEnabledConnectivityManagerFeatures":
                return 0L;
            case "getActiveNetwork":
                return new Network(FIRST_NET_ID);
            case "getAllNetworks":
                return onThread(
                        () ->
                                mNetworks.keySet().stream()
                                        .map(Network::new)
                                        .toArray(Network[]::new));
            case "getNetworkCapabilities":
                return onThread(() -> find(args).mCapabilities);
            case "getLinkProperties":
                return onThread(() -> find(args).mProperties);
            default:
                throw new UnsupportedOperationException(method.getName());
        }
    }

    private Object callTestNetworks(Method method, Object[] args) {
        if (!method.getName().equals("createInterface")) {
            throw new UnsupportedOperationException(method.getName());
        }
        enforceTestNetworks();
        final String name = TUN_PREFIX + mNextTun++;
        mNetd.addInterface(name);
        try {
            // The interface lives as long as the descriptor
            final ParcelFileDescriptor tun =
                    ParcelFileDescriptor.open(
                            new File("/dev/null"),
                            ParcelFileDescriptor.MODE_READ_WRITE,
                            mHandler,
                            e -> mNetd.removeInterface(name));
            return new TestNetworkInterface(tun, name);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private void enforceTestNetworks() {
        mContext.enforceCallingOrSelfPermission(
                Manifest.permission.MANAGE_TEST_NETWORKS, "ConnectivityService");
    }

    private static <T> T get(Object[] args, Class<T> type) {
        for (Object arg : args) {
            if (type.isInstance(arg)) return type.cast(arg);
        }
        throw new AssertionError("No " + type);
    }

    /** What talks to a network's agent, which is in this process. */
    private interface Event {
        void happen() throws RemoteException;
    }

    private void post(Event event) {
        mHandler.post(
                () -> {
                    try {
                        event.happen();
                    } catch (RemoteException e) {
                        throw new AssertionError(e);
                    }
                });
    }

    private <T> T onThread(Callable<T> call) {
        final FutureTask<T> task = new FutureTask<>(call);
        mHandler.post(task);
        try {
            return task.get(TIMEOUT_S, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    private Agent find(Object[] args) {
        return mNetworks.get(get(args, Network.class).getNetId());
    }

    /** Connects the network that is the device's own. */
    void connectWifiOfTheDevice() {
        mNetd.addInterface(WLAN);
        final LinkProperties lp = new LinkProperties();
        lp.setInterfaceName(WLAN);
        lp.setTcpBufferSizes(WLAN_RMEM + "," + WLAN_WMEM);
        final NetworkCapabilities nc =
                new NetworkCapabilities.Builder()
                        .addTransportType(TRANSPORT_WIFI)
                        .addCapability(NET_CAPABILITY_INTERNET)
                        .build();
        final Agent agent = register(new INetworkAgent.Default(), nc, lp);
        post(agent::connect);
        post(this::updateTcpBufferSizes);
    }

    /** As the patched one, of the default network, which is the device's own. */
    void updateTcpBufferSizes() {
        final Agent agent = mNetworks.get(FIRST_NET_ID);
        final String[] sizes = agent.mProperties.getTcpBufferSizes().split(",");
        if (mPolicy != null) mPolicy.replaceReceiveMaximum(FIRST_NET_ID, sizes);
        mNetd.setTcpRWmemorySize(
                String.join(" ", Arrays.asList(sizes).subList(0, 3)),
                String.join(" ", Arrays.asList(sizes).subList(3, 6)));
    }

    private Agent register(INetworkAgent agent, NetworkCapabilities nc, LinkProperties lp) {
        final Agent registered = new Agent(new Network(mNextNetId++), agent, nc, lp);
        post(registered::register);
        return registered;
    }

    private NetworkRequest request(
            NetworkCapabilities nc, Messenger messenger, NetworkRequest.Type type) {
        final Request request = new Request(nc, messenger, type);
        post(
                () -> {
                    mRequests.add(request);
                    for (Agent agent : mNetworks.values()) {
                        if (agent.mConnected) request.tellAvailable(agent);
                    }
                });
        return request.mRequest;
    }

    /** A request or a callback of an app's. */
    private static final class Request {
        final NetworkRequest mRequest;
        private final Messenger mMessenger;
        private static int sNextId = 1;

        Request(NetworkCapabilities nc, Messenger messenger, NetworkRequest.Type type) {
            mRequest = new NetworkRequest(nc, ConnectivityManager.TYPE_NONE, sNextId++, type);
            mMessenger = messenger;
        }

        void tellAvailable(Agent agent) {
            tell(
                    ConnectivityManager.CALLBACK_AVAILABLE,
                    agent,
                    new NetworkCapabilities(agent.mCapabilities),
                    new LinkProperties(agent.mProperties));
        }

        void tell(int what, Agent agent, Parcelable... values) {
            if (!mRequest.canBeSatisfiedBy(agent.mCapabilities)) return;
            final Bundle bundle = new Bundle();
            put(bundle, mRequest);
            put(bundle, agent.mNetwork);
            for (Parcelable value : values) put(bundle, value);
            final Message message = Message.obtain();
            message.what = what;
            message.setData(bundle);
            try {
                mMessenger.send(message);
            } catch (RemoteException e) {
                throw new AssertionError(e);
            }
        }

        private static void put(Bundle bundle, Parcelable value) {
            bundle.putParcelable(value.getClass().getSimpleName(), value);
        }
    }

    /** A network with its agent, and what the agent says of it. */
    private final class Agent extends INetworkAgentRegistry.Default {
        final Network mNetwork;
        private final INetworkAgent mAgent;

        /** As the agent declares them; what has come of them. */
        private NetworkCapabilities mDeclared;

        NetworkCapabilities mCapabilities;
        private LinkProperties mDeclaredProperties;
        LinkProperties mProperties;

        /** The interface that 464xlat stacks on the network's, or null. */
        private LinkProperties mClat;

        /** Null for the default network. */
        private List<Network> mUnderlying;

        boolean mConnected;
        private boolean mDestroyed;

        Agent(Network network, INetworkAgent agent, NetworkCapabilities nc, LinkProperties lp) {
            mNetwork = network;
            mAgent = agent;
            mDeclared = new NetworkCapabilities(nc);
            mDeclaredProperties = new LinkProperties(lp);
        }

        void register() throws RemoteException {
            mNetworks.put(mNetwork.getNetId(), this);
            updateCapabilities();
            updateProperties();
            tellRegistered();
        }

        /** From Android 16 on, without the registry. */
        private void tellRegistered() {
            for (Method method : INetworkAgent.class.getMethods()) {
                if (!method.getName().equals("onRegistered")) continue;
                try {
                    if (method.getParameterCount() == 0) {
                        method.invoke(mAgent);
                    } else {
                        method.invoke(mAgent, this);
                    }
                } catch (ReflectiveOperationException e) {
                    throw new AssertionError(e);
                }
            }
        }

        @Override
        public void sendNetworkInfo(NetworkInfo info) {
            post(
                    () -> {
                        if (info.getState() == NetworkInfo.State.CONNECTED) connect();
                        if (info.getState() == NetworkInfo.State.DISCONNECTED) disconnect();
                    });
        }

        @Override
        public void sendNetworkCapabilities(NetworkCapabilities nc) {
            post(
                    () -> {
                        mDeclared = new NetworkCapabilities(nc);
                        updateCapabilities();
                    });
        }

        @Override
        public void sendLinkProperties(LinkProperties lp) {
            post(
                    () -> {
                        mDeclaredProperties = new LinkProperties(lp);
                        updateProperties();
                    });
        }

        @Override
        public void sendUnderlyingNetworks(List<Network> networks) {
            post(
                    () -> {
                        mUnderlying = networks;
                        updateCapabilities();
                    });
        }

        @Override
        public void sendUnregisterAfterReplacement(int timeoutMillis) {
            post(this::destroy);
        }

        void connect() throws RemoteException {
            mConnected = true;
            mAgent.onNetworkCreated();
            updateProperties();
            updateCapabilities();
            for (Request request : mRequests) request.tellAvailable(this);
        }

        private void disconnect() throws RemoteException {
            destroy();
            mNetworks.remove(mNetwork.getNetId());
            tellAll(ConnectivityManager.CALLBACK_LOST);
            updateVpns();
            mAgent.onDisconnected();
        }

        /** As destroyNativeNetwork(), which comes once. */
        private void destroy() throws RemoteException {
            if (mDestroyed) return;
            mDestroyed = true;
            stopClat();
            mAgent.onNetworkDestroyed();
            if (mPolicy != null) mPolicy.onNetworkDestroyed(mNetwork.getNetId());
        }

        private void updateCapabilities() {
            final NetworkCapabilities nc = new NetworkCapabilities(mDeclared);
            if (nc.hasTransport(TRANSPORT_TEST)) {
                nc.restrictCapabilitiesForTestNetwork(Process.SHELL_UID);
            }
            if (nc.hasTransport(TRANSPORT_VPN)) addUnderlying(nc);
            mCapabilities = nc;
            updatePolicy();
            tellAll(ConnectivityManager.CALLBACK_CAP_CHANGED, new NetworkCapabilities(nc));
            if (!nc.hasTransport(TRANSPORT_VPN)) updateVpns();
        }

        private void addUnderlying(NetworkCapabilities nc) {
            final List<Network> declared =
                    mUnderlying == null ? List.of(new Network(FIRST_NET_ID)) : mUnderlying;
            final List<Network> underlying = new ArrayList<>();
            for (Network network : declared) {
                final Agent agent = mNetworks.get(network.getNetId());
                if (agent == null) continue;
                underlying.add(network);
                for (int transport : agent.mCapabilities.getTransportTypes()) {
                    nc.addTransportType(transport);
                }
            }
            nc.setUnderlyingNetworks(underlying);
        }

        private void updateVpns() {
            for (Agent agent : mNetworks.values()) {
                if (agent.mDeclared.hasTransport(TRANSPORT_VPN)) agent.updateCapabilities();
            }
        }

        private void updateProperties() {
            mProperties = new LinkProperties(mDeclaredProperties);
            final boolean needsClat =
                    mProperties.getNat64Prefix() != null && !mProperties.hasIpv4Address();
            if (mConnected && !mDestroyed && needsClat) {
                startClat();
            } else {
                stopClat();
            }
            if (mClat != null) mProperties.addStackedLink(mClat);
            updatePolicy();
            tellAll(ConnectivityManager.CALLBACK_IP_CHANGED, new LinkProperties(mProperties));
        }

        private void startClat() {
            if (mClat != null) return;
            mClat = new LinkProperties();
            mClat.setInterfaceName(CLAT_PREFIX + mProperties.getInterfaceName());
            mNetd.addInterface(mClat.getInterfaceName());
        }

        private void stopClat() {
            if (mClat == null) return;
            mNetd.removeInterface(mClat.getInterfaceName());
            mClat = null;
        }

        /** As the patch's updateDrwa(). */
        private void updatePolicy() {
            if (mPolicy == null || !mConnected || mDestroyed) return;
            mPolicy.onNetworkChanged(mNetwork.getNetId(), mCapabilities, mProperties);
        }

        private void tellAll(int what, Parcelable... values) {
            if (!mConnected) return;
            for (Request request : mRequests) request.tell(what, this, values);
        }
    }
}
