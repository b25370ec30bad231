// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static com.android.drwa.cts.Drwa.shell;
import static org.junit.Assert.assertEquals;

import androidx.test.ext.junit.runners.AndroidJUnit4;
import org.junit.Test;
import org.junit.runner.Description;
import org.junit.runner.RunWith;
import org.junit.runners.model.Statement;

@RunWith(AndroidJUnit4.class)
public class KeptValueTest {
    private static void assertKept(String store, String name) throws Throwable {
        final Statement test =
                new Statement() {
                    @Override
                    public void evaluate() {
                        shell(store + " put " + name + " -1");
                    }
                };
        for (String value : new String[] {"1", "0"}) {
            shell(store + " put " + name + " " + value);
            new KeptValue(store, name).apply(test, Description.EMPTY).evaluate();
            assertEquals(value, shell(store + " get " + name).trim());
        }
        shell(store + " delete " + name);
        new KeptValue(store, name).apply(test, Description.EMPTY).evaluate();
        assertEquals("null", shell(store + " get " + name).trim());
    }

    @Test
    public void settingIsAsItWas() throws Throwable {
        assertKept("settings", "global drwa_enabled");
    }

    @Test
    public void flagIsAsItWas() throws Throwable {
        assertKept("device_config", "tethering drwa");
    }
}
