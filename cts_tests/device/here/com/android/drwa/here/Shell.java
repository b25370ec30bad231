// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import android.app.UiAutomation;
import android.content.pm.PackageManager;
import android.os.Binder;
import android.os.IBinder;
import android.os.ParcelFileDescriptor;
import android.os.RemoteException;
import android.os.ServiceManager;
import android.provider.DeviceConfig;
import com.android.server.connectivity.FakeNetd;
import com.android.server.connectivity.TestSwitches;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowApplication;
import org.robolectric.shadows.ShadowUiAutomation;

/** The shell that instrumentations may ask for its permissions and for commands. */
@Implements(UiAutomation.class)
public class Shell extends ShadowUiAutomation {
    private static final Pattern KNOB =
            Pattern.compile("cat /proc/sys/net/ipv4/conf/([^/]+)/tcp_drwa_(lambda|queue)");

    /** Of what the shell can put, what switches DRWA; deleted if there is no value. */
    private static final Pattern SETTING =
            Pattern.compile("settings (?:delete|put) global drwa_enabled(?: (\\S+))?");

    private static final Pattern FLAG =
            Pattern.compile("device_config (?:delete|put) tethering drwa(?: (\\S+))?");

    private static final String GET_SETTING = "settings get global drwa_enabled";
    private static final String GET_FLAG = "device_config get tethering drwa";

    private static final Pattern FIND_KNOBS =
            Pattern.compile("find /proc/sys/net/ipv4/conf/ -name tcp_drwa_(?:lambda|queue)");

    /** Those of the shell's that the tests use. */
    private static final String[] PERMISSIONS = {
        "android.permission.DUMP",
        "android.permission.MANAGE_TEST_NETWORKS",
        "android.permission.MODIFY_PHONE_STATE",
    };

    private static ShadowApplication app() {
        return Shadows.shadowOf(RuntimeEnvironment.getApplication());
    }

    @Implementation
    protected void adoptShellPermissionIdentity() {
        app().grantPermissions(PERMISSIONS);
    }

    @Implementation
    protected void dropShellPermissionIdentity() {
        app().denyPermissions(PERMISSIONS);
    }

    /** Runs as the shell, whoever the test is. */
    @Implementation
    protected ParcelFileDescriptor executeShellCommand(String command) {
        final boolean isShell =
                RuntimeEnvironment.getApplication().checkSelfPermission(PERMISSIONS[0])
                        == PackageManager.PERMISSION_GRANTED;
        adoptShellPermissionIdentity();
        try {
            // What a service dumps may not fit into a pipe
            final File file = File.createTempFile("shell", null);
            try (FileOutputStream out = new FileOutputStream(file)) {
                run(command, out);
                return ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_ONLY);
            } finally {
                file.delete();
            }
        } catch (IOException | RemoteException e) {
            throw new AssertionError(command, e);
        } finally {
            if (!isShell) dropShellPermissionIdentity();
        }
    }

    private static void run(String command, FileOutputStream out)
            throws IOException, RemoteException {
        final SystemHere.Netd netd = ((SystemHere) RuntimeEnvironment.getApplication()).mNetd;
        final Matcher knob = KNOB.matcher(command);
        final Matcher setting = SETTING.matcher(command);
        final Matcher flag = FLAG.matcher(command);
        if (command.equals("dumpsys netd")) {
            print(out, dumpUplinks(netd) + dumpPrograms(netd));
        } else if (command.startsWith("dumpsys ")) {
            final IBinder service = ServiceManager.getService(command.substring(8));
            if (service == null) return;
            service.dump(out.getFD(), new String[0]);
        } else if (command.equals("cat /proc/sys/net/ipv4/tcp_rmem")) {
            print(out, netd.mTcpRmem.replace(' ', '\t'));
        } else if (command.equals("cat /proc/sys/net/ipv4/tcp_wmem")) {
            print(out, netd.mTcpWmem.replace(' ', '\t'));
        } else if (command.startsWith("cmd ")) {
            print(out, callService(command.split(" ")));
        } else if (FIND_KNOBS.matcher(command).matches()) {
            if (netd.kernelHasDrwa()) print(out, String.join("\n", netd.getKnobs().keySet()));
        } else if (knob.matches()) {
            final String iface = knob.group(1);
            final boolean isQueue = knob.group(2).equals("queue");
            print(out, "" + (isQueue ? netd.getQueue(iface) : netd.getKnob(iface)));
        } else if (command.equals(GET_SETTING)) {
            print(out, "" + TestSwitches.getSetting(RuntimeEnvironment.getApplication()));
        } else if (command.equals(GET_FLAG)) {
            print(out, "" + DeviceConfig.getString("tethering", "drwa", null));
        } else if (setting.matches()) {
            TestSwitches.putSetting(RuntimeEnvironment.getApplication(), setting.group(1));
        } else if (flag.matches()) {
            TestSwitches.putFlag(RuntimeEnvironment.getApplication(), flag.group(1));
        } else {
            throw new AssertionError("No such command here: " + command);
        }
    }

    /** As cmd does. */
    private static String callService(String[] words) throws IOException {
        final Binder service = (Binder) ServiceManager.getService(words[1]);
        final File file = File.createTempFile("cmd", null);
        try (ParcelFileDescriptor out =
                ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_WRITE)) {
            final String[] args = Arrays.copyOfRange(words, 2, words.length);
            service.handleShellCommand(null /* in */, out, null /* err */, args);
            return Files.readString(file.toPath());
        } finally {
            file.delete();
        }
    }

    /** As DrwaUplink.cpp does. */
    private static String dumpUplinks(FakeNetd netd) {
        final StringBuilder text = new StringBuilder("DrwaUplink\n");
        for (String iface : netd.getKnobs().keySet()) {
            final int targetMs = netd.getUplink(iface);
            if (targetMs != 0) {
                text.append("    " + iface + " uplink=" + targetMs + "ms root=drwa_up 6d00:\n");
            }
        }
        return text.toString();
    }

    /** As DrwaPrograms.cpp does. */
    private static String dumpPrograms(FakeNetd netd) {
        final StringBuilder text = new StringBuilder("DrwaPrograms\n");
        if (!netd.hasPrograms()) return text + "  /sys/fs/bpf/prog_drwa_ingress: not there\n";
        for (Map.Entry<String, String> program : netd.getPrograms().entrySet()) {
            final String[] words = program.getValue().split(" ");
            text.append("    " + program.getKey() + " lambda=" + words[0] + " queue=" + words[1]);
            text.append(" aqm=" + words[2] + " clients=" + words[3] + "\n");
        }
        return text.toString();
    }

    private static void print(FileOutputStream out, String text) throws IOException {
        out.write(text.getBytes(StandardCharsets.UTF_8));
    }
}
