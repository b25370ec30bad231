// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;
import static org.junit.Assume.assumeFalse;
import static org.junit.Assume.assumeTrue;

import com.android.tradefed.testtype.DeviceJUnit4ClassRunner;
import com.android.tradefed.testtype.junit4.BaseHostJUnit4Test;
import com.android.tradefed.util.CommandResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Before;
import org.junit.runner.RunWith;

/**
 * What the tests from a host have in common: a root shell on a device whose kernel has DRWA. A test
 * is not run, and says so, where these are missing.
 */
@RunWith(DeviceJUnit4ClassRunner.class)
public abstract class DrwaHostTestCase extends BaseHostJUnit4Test {
    static final String CONF = "/proc/sys/net/ipv4/conf/";

    static final String KNOB = "tcp_drwa_lambda";

    /** Beside it; a kernel with an older series has none. */
    static final String QUEUE = "tcp_drwa_queue";

    private static final String TITLE = "DRWA: ";
    private static final long TIMEOUT_S = 60;
    private static final long POLL_MS = 500;

    /** As in "rmnet_data2 λ=1.50: carrier 1989" and "wlan0 off: wifi". */
    private static final Pattern SETTING =
            Pattern.compile("(\\S+) (?:λ=(\\d+)\\.(\\d\\d)|off): .*");

    @Before
    public void findDrwa() throws Exception {
        assumeTrue("this build has no root shell", getDevice().enableAdbRoot());
        assumeFalse("this kernel has no DRWA", getInterfaces().isEmpty());
    }

    CommandResult run(String command) throws Exception {
        return getDevice().executeShellV2Command(command);
    }

    /** The output of a command that has to succeed. */
    String shell(String command) throws Exception {
        final CommandResult result = run(command);
        assertEquals(command + ": " + result.getStderr(), 0, (int) result.getExitCode());
        return result.getStdout();
    }

    static String getPath(String iface) {
        return CONF + iface + "/" + KNOB;
    }

    /** All interfaces that have the knob. */
    List<String> getInterfaces() throws Exception {
        final List<String> found = new ArrayList<>();
        for (String path : shell("find " + CONF + " -name " + KNOB).split("\n")) {
            if (!path.isEmpty()) found.add(path.substring(CONF.length(), path.lastIndexOf('/')));
        }
        return found;
    }

    boolean areQueuesInKernel() throws Exception {
        return !shell("find " + CONF + " -name " + QUEUE).isEmpty();
    }

    int getQueue(String iface) throws Exception {
        return Integer.parseInt(shell("cat " + CONF + iface + "/" + QUEUE).trim());
    }

    int getKnob(String iface) throws Exception {
        return Integer.parseInt(shell("cat " + getPath(iface)).trim());
    }

    /** The service that the policy's host dumps and takes commands by. */
    String getHost() throws Exception {
        return run("dumpsys drwa").getStdout().startsWith(TITLE) ? "drwa" : "connectivity";
    }

    /** What the policy says of itself, or "" while the system server is not up. */
    String getDump() throws Exception {
        final String dump = run("dumpsys " + getHost()).getStdout();
        return dump.substring(Math.max(dump.indexOf(TITLE), 0));
    }

    /** λ in hundredths by interface, 0 for off, of all that the policy has decided on. */
    Map<String, Integer> getSettings() throws Exception {
        final Map<String, Integer> settings = new TreeMap<>();
        for (String line : getDump().split("\n")) {
            // Recent writes come after it
            if (line.startsWith("Events without")) break;
            if (line.startsWith(TITLE)) continue;
            final Matcher matcher = SETTING.matcher(line);
            if (!matcher.matches()) continue;
            final boolean on = matcher.group(2) != null;
            settings.put(
                    matcher.group(1),
                    on ? Integer.parseInt(matcher.group(2) + matcher.group(3)) : 0);
        }
        return settings;
    }

    /** Waits until the policy has decided the same as before a restart, and checks the knobs. */
    void assertSettingsComeBack(Map<String, Integer> settings) throws Exception {
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (!getSettings().equals(settings)) {
            if (System.nanoTime() > end) fail("Not in time: " + settings + "\n" + getDump());
            Thread.sleep(POLL_MS);
        }
        assertKnobsAre(settings);
    }

    /** Checks all knobs; those of interfaces that the policy has nothing to say of are off. */
    void assertKnobsAre(Map<String, Integer> settings) throws Exception {
        for (String iface : getInterfaces()) {
            assertEquals(iface, (int) settings.getOrDefault(iface, 0), getKnob(iface));
        }
    }
}
