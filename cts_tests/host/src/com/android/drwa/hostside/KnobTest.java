// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assume.assumeTrue;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** The kernel's files: whose they are, who may write them, and what they take. */
public class KnobTest extends DrwaHostTestCase {
    /** An interface that no network uses. */
    private static final String IFACE = "drwatest0";

    /** What would switch many, and what no packet of the network comes by. */
    private static final String[] NO_INTERFACES = {"all", "default", "lo"};

    @Before
    public void addInterface() throws Exception {
        shell("ip link add " + IFACE + " type dummy");
    }

    @After
    public void removeInterface() throws Exception {
        getDevice().enableAdbRoot();
        run("ip link del " + IFACE);
    }

    private int write(String value) throws Exception {
        return run("echo '" + value + "' >" + getPath(IFACE)).getExitCode();
    }

    @Test
    public void everyInterfaceHasOne() throws Exception {
        final Set<String> all = new TreeSet<>(List.of(shell("ls -1 " + CONF).split("\n")));
        all.removeAll(List.of(NO_INTERFACES));
        assertEquals(all, new TreeSet<>(getInterfaces()));
    }

    @Test
    public void nothingSwitchesManyInterfaces() throws Exception {
        for (String name : NO_INTERFACES) {
            assertFalse(name, getInterfaces().contains(name));
        }
    }

    @Test
    public void rootOwnsIt() throws Exception {
        for (String name : getInterfaces()) {
            assertEquals(name, "644 0 0", shell("stat -c '%a %u %g' " + getPath(name)).trim());
        }
    }

    @Test
    public void shellReadsButCannotWriteIt() throws Exception {
        getDevice().disableAdbRoot();
        assertEquals(0, getKnob(IFACE));
        assertNotEquals(0, write("150"));
        assertEquals(0, getKnob(IFACE));
    }

    @Test
    public void boundsAreTaken() throws Exception {
        for (int value : new int[] {100, 101, 999, 1000, 0}) {
            assertEquals("" + value, 0, write("" + value));
            assertEquals(value, getKnob(IFACE));
        }
    }

    @Test
    public void othersAreRefusedAndChangeNothing() throws Exception {
        assertEquals(0, write("150"));
        final String[] others = {
            "1",
            "99",
            "1001",
            "-1",
            "-100",
            "2147483647",
            "2147483648",
            "4294967396",
            "1.5",
            "x",
            "-"
        };
        for (String value : others) {
            assertNotEquals(value, 0, write(value));
            assertEquals(value, 150, getKnob(IFACE));
        }
    }

    private int writeQueue(String value) throws Exception {
        return run("echo '" + value + "' >" + CONF + IFACE + "/" + QUEUE).getExitCode();
    }

    @Test
    public void queueIsBesideIt() throws Exception {
        assumeTrue("this kernel knows λ alone, and no queues", areQueuesInKernel());
        for (String name : getInterfaces()) {
            final String path = CONF + name + "/" + QUEUE;
            assertEquals(name, "644 0 0", shell("stat -c '%a %u %g' " + path).trim());
        }
        for (String name : NO_INTERFACES) {
            assertNotEquals(name, 0, (int) run("cat " + CONF + name + "/" + QUEUE).getExitCode());
        }
    }

    @Test
    public void queueIsAnyNumberFromZero() throws Exception {
        assumeTrue("this kernel knows λ alone, and no queues", areQueuesInKernel());
        assertEquals(0, getQueue(IFACE));
        for (String value : new String[] {"1", "100", "65535", "2147483647", "0", "101"}) {
            assertEquals(value, 0, writeQueue(value));
            assertEquals(value, "" + getQueue(IFACE));
        }
        for (String value : new String[] {"-1", "2147483648", "4294967396", "1.5", "x", "-"}) {
            assertNotEquals(value, 0, writeQueue(value));
            assertEquals(value, 101, getQueue(IFACE));
        }
        assertEquals(0, getKnob(IFACE));
    }

    @Test
    public void interfacesDoNotShareIt() throws Exception {
        final String second = "drwatest1";
        shell("ip link add " + second + " type dummy");
        try {
            assertEquals(0, write("150"));
            assertEquals(0, getKnob(second));
        } finally {
            shell("ip link del " + second);
        }
    }

    @Test
    public void newInterfaceIsOff() throws Exception {
        assertEquals(0, write("150"));
        removeInterface();
        addInterface();
        assertEquals(0, getKnob(IFACE));
    }
}
