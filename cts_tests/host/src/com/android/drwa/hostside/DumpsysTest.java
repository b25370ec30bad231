// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Test;

/** What dumpsys tells, which has to be what the kernel holds. */
public class DumpsysTest extends DrwaHostTestCase {
    private static final int LAMBDA = 275;
    private static final Pattern ERRORS = Pattern.compile("\nWrites: \\d+, errors: (\\d+)\n");

    @Test
    public void policyTellsWhatTheKernelHolds() throws Exception {
        assertTrue(getDump(), getDump().startsWith("DRWA: enabled\n"));
        assertFalse("this device has no network", getSettings().isEmpty());
        assertKnobsAre(getSettings());
    }

    /** Since the policy has started. */
    private int getErrors() throws Exception {
        final Matcher errors = ERRORS.matcher(getDump());
        assertTrue(getDump(), errors.find());
        return Integer.parseInt(errors.group(1));
    }

    @Test
    public void netdTellsWhatTheKernelHolds() throws Exception {
        final String dump = shell("dumpsys netd");
        assumeTrue("this netd has no part of DRWA", dump.contains("DrwaController"));
        final Map<String, String> told = new TreeMap<>();
        final Matcher line =
                Pattern.compile("\n +(\\S+) (lambda=\\d+(?: queue=\\d+)?)\n").matcher(dump + "\n");
        for (int start = 0; line.find(start); start = line.end() - 1) {
            told.put(line.group(1), line.group(2));
        }
        final boolean queues = areQueuesInKernel();
        final Map<String, String> held = new TreeMap<>();
        for (String iface : getInterfaces()) {
            final String queue = queues ? " queue=" + getQueue(iface) : "";
            held.put(iface, "lambda=" + getKnob(iface) + queue);
        }
        assertEquals(dump, held, told);
    }

    @Test
    public void commandOverridesUntilCleared() throws Exception {
        assumeTrue(
                "user builds have no such command",
                shell("getprop ro.debuggable").trim().equals("1"));
        final String command =
                "cmd " + (getHost().equals("drwa") ? "drwa" : "connectivity drwa") + " ";
        final Map<String, Integer> before = getSettings();
        final int errors = getErrors();
        final Map<String, Integer> overridden = new TreeMap<>(before);
        try {
            for (String iface : before.keySet()) {
                shell(command + "set " + iface + " " + LAMBDA);
                overridden.put(iface, LAMBDA);
                assertEquals(overridden, getSettings());
                assertKnobsAre(overridden);
            }
        } finally {
            shell(command + "clear");
        }
        assertEquals(before, getSettings());
        assertKnobsAre(before);
        assertEquals(errors, getErrors());
    }
}
