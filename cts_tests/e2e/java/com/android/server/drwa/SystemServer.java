// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.internet;
import static com.android.server.connectivity.TestNetworks.link;
import static com.android.server.connectivity.TestNetworks.network;
import static com.android.server.connectivity.TestNetworks.vpn;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.Application;
import android.content.Context;
import android.net.INetd;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.os.Binder;
import android.os.Build;
import android.os.Handler;
import android.os.HandlerThread;
import android.os.ParcelFileDescriptor;
import android.os.PersistableBundle;
import android.os.RemoteException;
import android.os.ServiceManager;
import com.android.server.connectivity.DrwaBpfDependencies;
import com.android.server.connectivity.DrwaController;
import com.android.server.connectivity.FakeTelephony;
import com.android.server.connectivity.PolicyThreads;
import com.android.server.connectivity.TestSwitches;
import com.android.server.connectivity.VendorXml;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowSystemProperties;
import org.robolectric.util.ReflectionHelpers;

/**
 * The system server of the lab's guest: the policy in one of its hosts, on the framework's classes,
 * with the process netd below it. No test: Robolectric starts what has the form of one.
 *
 * <p>Takes the place of ConnectivityService, which tells the policy of networks, and of the phone
 * process, which has the carriers' configuration, as commands say. Commands come over a socket; the
 * usage is in cts_tests/README.md. Ends with the process.
 */
@RunWith(RobolectricTestRunner.class)
@Config(
        shadows = {
            FakeServiceManager.class,
            DrwaServiceTest.Connectivity.class,
            KernelInterfaces.class
        })
public class SystemServer {
    /** What telephony says since Android 13: bytes for receiving, then for sending. */
    private static final String LTE_BUFFERS = "2097152,6291456,16777216,512000,2097152,8388608";

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final Map<Integer, Map<String, String>> mSims = new HashMap<>();
    private Path mVendorXml;
    private INetd mNetd;
    private Host mHost;

    /** What tells the policy of networks, and where people find it. */
    private abstract static class Host {
        /** Whose name dumpsys and cmd take. */
        abstract String getServiceName();

        abstract Handler getHandler();

        abstract void change(Network network, NetworkCapabilities nc, LinkProperties lp);

        abstract void lose(Network network);

        abstract void dump(PrintWriter pw) throws Exception;

        abstract int command(PrintWriter pw, String[] args) throws Exception;
    }

    /** A: ConnectivityService, whose patch calls the policy. */
    private static final class ConnectivityService extends Host {
        private final Handler mHandler;
        private final DrwaController mPolicy;

        ConnectivityService(Context context, INetd netd) {
            final HandlerThread thread = new HandlerThread("ConnectivityServiceThread");
            thread.start();
            mHandler = new Handler(thread.getLooper());
            mPolicy = new DrwaController(context, mHandler, netd, new DrwaBpfDependencies());
            // LTE_BUFFERS leave nothing to replace
            mPolicy.start(() -> {});
        }

        @Override
        String getServiceName() {
            return Context.CONNECTIVITY_SERVICE;
        }

        @Override
        Handler getHandler() {
            return mHandler;
        }

        /** As updateLinkProperties() and updateCapabilities() do at their ends. */
        @Override
        void change(Network network, NetworkCapabilities nc, LinkProperties lp) {
            mHandler.post(() -> mPolicy.onNetworkChanged(network.getNetId(), nc, lp));
            mHandler.post(() -> mPolicy.onNetworkChanged(network.getNetId(), nc, lp));
        }

        @Override
        void lose(Network network) {
            mHandler.post(() -> mPolicy.onNetworkDestroyed(network.getNetId()));
        }

        @Override
        void dump(PrintWriter pw) {
            mPolicy.dump(pw);
        }

        @Override
        int command(PrintWriter pw, String[] args) {
            if (args.length == 0 || !args[0].equals("drwa")) {
                pw.println("Usage: cmd connectivity drwa ...");
                return -1;
            }
            return mPolicy.handleShellCommand(pw, Arrays.copyOfRange(args, 1, args.length));
        }
    }

    /** B: a service of its own, which listens to ConnectivityService's callbacks. */
    private static final class Standalone extends Host {
        Standalone(Context context) {
            DrwaServiceTest.boot(context);
        }

        private static Binder published() {
            return (Binder) ServiceManager.getService("drwa");
        }

        @Override
        String getServiceName() {
            return "drwa";
        }

        @Override
        Handler getHandler() {
            return DrwaServiceTest.Connectivity.sHandler;
        }

        @Override
        void change(Network network, NetworkCapabilities nc, LinkProperties lp) {
            getHandler()
                    .post(
                            () -> {
                                final var callback = DrwaServiceTest.Connectivity.sCallback;
                                callback.onAvailable(network);
                                callback.onCapabilitiesChanged(network, nc);
                                callback.onLinkPropertiesChanged(network, lp);
                            });
        }

        @Override
        void lose(Network network) {
            getHandler().post(() -> DrwaServiceTest.Connectivity.sCallback.onLost(network));
        }

        @Override
        void dump(PrintWriter pw) throws Exception {
            copyOutput(pw, out -> published().dump(out.getFileDescriptor(), new String[0]));
        }

        @Override
        int command(PrintWriter pw, String[] args) throws Exception {
            final int[] result = new int[1];
            copyOutput(
                    pw, out -> result[0] = published().handleShellCommand(null, out, null, args));
            return result[0];
        }

        private interface Writer {
            void write(ParcelFileDescriptor out) throws Exception;
        }

        /** A pipe holds less than a dump may have. */
        private static void copyOutput(PrintWriter pw, Writer writer) throws Exception {
            final File file = File.createTempFile("drwa", null);
            try (ParcelFileDescriptor out =
                    ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_WRITE)) {
                writer.write(out);
                pw.print(Files.readString(file.toPath()));
            } finally {
                file.delete();
            }
        }
    }

    /** Serves until the process is killed. */
    @Test
    public void main() throws Exception {
        loadSettings(Path.of(System.getProperty("drwa.data")));
        mNetd = new NetdClient(Path.of(System.getProperty("drwa.netd")));
        shadowOf(mContext).setSystemService(Context.NETD_SERVICE, mNetd.asBinder());
        // Commands come from the shell, which has it
        shadowOf(mContext).grantPermissions(Manifest.permission.DUMP);
        mHost =
                System.getProperty("drwa.host").equals("A")
                        ? new ConnectivityService(mContext, mNetd)
                        : new Standalone(mContext);
        PolicyThreads.idle(mHost.getHandler());

        try (ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            final Path socket = Path.of(System.getProperty("drwa.socket"));
            Files.deleteIfExists(socket);
            listener.bind(UnixDomainSocketAddress.of(socket));
            while (true) {
                try (Words client = new Words(listener.accept())) {
                    serve(client);
                }
            }
        }
    }

    /** What is kept over a restart; properties are read at the start alone. */
    private void loadSettings(Path folder) throws IOException {
        final Map<String, String> properties = load(folder.resolve("properties"));
        properties.forEach(ShadowSystemProperties::override);
        final boolean debuggable = properties.getOrDefault("ro.debuggable", "0").equals("1");
        ReflectionHelpers.setStaticField(Build.class, "TYPE", debuggable ? "userdebug" : "user");
        for (String store : List.of("settings", "device_config")) {
            load(folder.resolve(store)).forEach((name, value) -> put(store, name, value));
        }
    }

    /**
     * Puts a setting, as "global/drwa_enabled", or a flag, as "tethering/drwa". Nobody here looks
     * at others.
     *
     * @param value null to delete it
     */
    private void put(String store, String name, String value) {
        switch (store + " " + name) {
            case "settings global/drwa_enabled":
                TestSwitches.putSetting(mContext, value);
                break;
            case "device_config tethering/drwa":
                TestSwitches.putFlag(mContext, value);
                break;
            default:
                break;
        }
    }

    private static Map<String, String> load(Path file) throws IOException {
        final Properties properties = new Properties();
        if (Files.exists(file)) {
            try (InputStream in = Files.newInputStream(file)) {
                properties.load(in);
            }
        }
        return properties.stringPropertyNames().stream()
                .collect(Collectors.toMap(name -> name, properties::getProperty));
    }

    private void serve(Words client) throws IOException {
        final StringWriter text = new StringWriter();
        int code;
        try {
            final List<String> words = client.readRequest();
            final PrintWriter pw = new PrintWriter(text);
            code = run(pw, words.get(0), words.subList(1, words.size()));
            pw.flush();
        } catch (Exception e) {
            text.append(e + "\n");
            code = 1;
        }
        client.writeAnswer(code & 0xff, text.toString());
    }

    private int run(PrintWriter pw, String command, List<String> args) throws Exception {
        switch (command) {
            case "dumpsys":
                return withService(pw, args, () -> dump(pw));
            case "cmd":
                return withService(
                        pw,
                        args,
                        () ->
                                mHost.command(
                                        pw, args.subList(1, args.size()).toArray(new String[0])));
            case "settings":
            case "device_config":
                put(command, args.get(0), args.size() > 1 ? args.get(1) : null);
                break;
            case "network":
                changeNetwork(args);
                break;
            case "telephony":
                changeTelephony(args);
                break;
            default:
                pw.println("No such command: " + command);
                return 1;
        }
        PolicyThreads.idle(mHost.getHandler());
        return 0;
    }

    private interface Code {
        int run() throws Exception;
    }

    private int withService(PrintWriter pw, List<String> args, Code code) throws Exception {
        if (args.isEmpty() || !args.get(0).equals(mHost.getServiceName())) {
            pw.println("Can't find service: " + String.join(" ", args));
            return 1;
        }
        return code.run();
    }

    private int dump(PrintWriter pw) throws Exception {
        mHost.dump(pw);
        return 0;
    }

    /** As ConnectivityService: netd knows of it before anybody else does. */
    private void changeNetwork(List<String> args) throws RemoteException {
        final Network network = network(Integer.parseInt(args.get(1)));
        switch (args.get(0)) {
            case "connect":
                final String[] stacked = args.subList(4, args.size()).toArray(new String[0]);
                final LinkProperties lp = link(args.get(3), stacked);
                if (args.get(2).startsWith("cellular")) lp.setTcpBufferSizes(LTE_BUFFERS);
                if (!args.get(2).startsWith("vpn")) {
                    mNetd.networkAddInterface(network.getNetId(), args.get(3));
                }
                mHost.change(network, capabilities(args.get(2)), lp);
                break;
            case "lose":
                mNetd.networkDestroy(network.getNetId());
                mHost.lose(network);
                break;
            default:
                throw new IllegalArgumentException(args.get(0));
        }
    }

    /** Of "wifi", "cellular:SUBSCRIPTION" or "vpn:TRANSPORT:NETID,...". */
    private static NetworkCapabilities capabilities(String kind) {
        final String[] parts = kind.split(":");
        switch (parts[0]) {
            case "wifi":
                return internet(NetworkCapabilities.TRANSPORT_WIFI);
            case "cellular":
                return cellular(Integer.parseInt(parts[1]));
            case "vpn":
                final int below =
                        parts[1].equals("wifi")
                                ? NetworkCapabilities.TRANSPORT_WIFI
                                : NetworkCapabilities.TRANSPORT_CELLULAR;
                return vpn(
                        Arrays.stream(parts[2].split(",")).map(Integer::valueOf).toList(), below);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private void changeTelephony(List<String> args) throws Exception {
        switch (args.get(0)) {
            case "xml":
                mVendorXml = Path.of(args.get(1));
                for (int subId : mSims.keySet()) loadConfig(subId);
                break;
            case "sim":
                final int subId = Integer.parseInt(args.get(1));
                final Map<String, String> carrier = new HashMap<>();
                for (String filter : args.subList(2, args.size())) {
                    final String[] parts = filter.split("=", 2);
                    carrier.put(parts[0], parts[1]);
                }
                mSims.put(subId, carrier);
                loadConfig(subId);
                break;
            default:
                throw new IllegalArgumentException(args.get(0));
        }
    }

    /** As CarrierConfigLoader: has the app make it, keeps it in a file, and says so. */
    private void loadConfig(int subId) throws Exception {
        final Map<String, String> carrier = mSims.get(subId);
        PersistableBundle config = new PersistableBundle();
        if (mVendorXml != null) config = new VendorXml(mVendorXml).load(carrier);
        final ByteArrayOutputStream file = new ByteArrayOutputStream();
        config.writeToStream(file);
        mTelephony.setConfig(
                subId,
                PersistableBundle.readFromStream(new ByteArrayInputStream(file.toByteArray())));
        mTelephony.setCarrierId(subId, Integer.parseInt(carrier.getOrDefault("cid", "-1")));
        mTelephony.announceConfig(subId);
    }
}
