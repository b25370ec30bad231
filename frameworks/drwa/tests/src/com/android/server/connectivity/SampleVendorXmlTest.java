// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.app.Application;
import android.os.PersistableBundle;
import android.util.Xml;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLog;
import org.xmlpull.v1.XmlPullParser;

/**
 * The sample for carriers, restored by the framework as the CarrierConfig app does, and read by the
 * policy. Only the filters are matched here, by the app's rules: it is in no jar.
 */
@RunWith(RobolectricTestRunner.class)
public class SampleVendorXmlTest {
    private static final int SUB = 1;
    private static final Set<String> KEYS =
            Set.of(DrwaCarrierConfig.KEY_ENABLED, DrwaCarrierConfig.KEY_LAMBDA);

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final Set<Integer> mMatched = new HashSet<>();
    private int mElements;

    /** What the app makes of the sample for a SIM and a device. */
    private PersistableBundle load(Map<String, String> carrier) throws Exception {
        final PersistableBundle config = new PersistableBundle();
        try (InputStream in = Files.newInputStream(Path.of("carrier/vendor.xml"))) {
            final XmlPullParser parser = Xml.newPullParser();
            parser.setInput(in, null /* the file says which encoding */);
            mElements = 0;
            while (parser.next() != XmlPullParser.END_DOCUMENT) {
                if (parser.getEventType() != XmlPullParser.START_TAG
                        || !parser.getName().equals("carrier_config")) {
                    continue;
                }
                mElements++;
                if (!matches(parser, carrier)) continue;
                mMatched.add(mElements);
                final PersistableBundle element = PersistableBundle.restoreFromXml(parser);
                assertTrue(element.keySet().toString(), KEYS.containsAll(element.keySet()));
                config.putAll(element);
            }
        }
        return config;
    }

    private static boolean matches(XmlPullParser parser, Map<String, String> carrier) {
        boolean matches = true;
        for (int i = 0; i < parser.getAttributeCount(); i++) {
            final String wanted = parser.getAttributeValue(i);
            switch (parser.getAttributeName(i)) {
                case "name":
                    break;
                case "spn":
                    matches &= carrier.getOrDefault("spn", "").matches("(?i)" + wanted);
                    break;
                case "cid":
                case "mcc":
                case "mnc":
                case "gid1":
                case "device":
                    matches &= wanted.equalsIgnoreCase(carrier.get(parser.getAttributeName(i)));
                    break;
                default:
                    throw new AssertionError("no filter: " + parser.getAttributeName(i));
            }
        }
        return matches;
    }

    private void assertPolicy(String expected, Map<String, String> carrier) throws Exception {
        mTelephony.setConfig(SUB, load(carrier));
        ShadowLog.clear();
        assertEquals(expected, new DrwaCarrierConfig(mContext).get(SUB).toString());
        // It says when a value is wrong and a default takes its place.
        if (!expected.startsWith("off")) {
            assertEquals(List.of(), ShadowLog.getLogsForTag("DrwaCarrierConfig"));
        }
    }

    @Test
    public void everyCarrierGetsItsTarget() throws Exception {
        mTelephony.setCarrierId(SUB, 1);
        assertPolicy("λ=1.25: carrier 1", Map.of("cid", "1839"));
        assertPolicy("off: carrier 1", Map.of("cid", "1839", "device", "emu64a"));
        assertPolicy("λ=1.50: carrier 1", Map.of("cid", "2018"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "240", "mnc", "01"));
        assertPolicy("off: carrier 1", Map.of("mcc", "240", "mnc", "07"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "310", "mnc", "240", "gid1", "6901"));
        assertPolicy("off: carrier 1", Map.of("mcc", "310", "mnc", "240"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "262", "mnc", "01", "spn", "Congstar"));
        assertPolicy("off: carrier 1", Map.of("mcc", "262", "mnc", "01", "spn", "Telekom.de"));
        assertEquals("elements that no carrier above gets", mElements, mMatched.size());
    }
}
