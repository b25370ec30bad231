// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public class DrwaWriteLogTest {
    @Test
    public void latestLinesAreKeptAndComeFirst() {
        final DrwaWriteLog log = new DrwaWriteLog();
        for (int i = 0; i < 150; i++) log.onWritten("write " + i);
        final StringWriter text = new StringWriter();
        log.dump(new PrintWriter(text, true));
        final List<String> lines = text.toString().lines().toList();
        assertEquals(List.of("Writes: 150, errors: 0", "Recent writes:"), lines.subList(0, 2));
        assertEquals(2 + 100, lines.size());
        assertTrue(lines.get(2), lines.get(2).endsWith(" - write 149"));
        assertTrue(lines.get(101), lines.get(101).endsWith(" - write 50"));
    }
}
