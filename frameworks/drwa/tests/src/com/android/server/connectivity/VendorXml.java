// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.os.PersistableBundle;
import android.util.Xml;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.xmlpull.v1.XmlPullParser;
import org.xmlpull.v1.XmlPullParserException;

/**
 * A vendor.xml of the CarrierConfig app, restored by the framework as the app does. Only the
 * filters are matched here, by the app's rules: it is in no jar.
 */
public final class VendorXml {
    private final Path mFile;

    /** What the elements that matched last had, in their order; null for those that did not. */
    final List<PersistableBundle> mElements = new ArrayList<>();

    public VendorXml(Path file) {
        mFile = file;
    }

    /**
     * What the app makes of it for a SIM and a device.
     *
     * @param carrier by the names of the filters
     */
    public PersistableBundle load(Map<String, String> carrier)
            throws IOException, XmlPullParserException {
        final PersistableBundle config = new PersistableBundle();
        mElements.clear();
        try (InputStream in = Files.newInputStream(mFile)) {
            final XmlPullParser parser = Xml.newPullParser();
            parser.setInput(in, null /* the file says which encoding */);
            while (parser.next() != XmlPullParser.END_DOCUMENT) {
                if (parser.getEventType() != XmlPullParser.START_TAG
                        || !parser.getName().equals("carrier_config")) {
                    continue;
                }
                PersistableBundle element = null;
                if (matches(parser, carrier)) {
                    element = PersistableBundle.restoreFromXml(parser);
                    config.putAll(element);
                }
                mElements.add(element);
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
}
