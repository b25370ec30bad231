// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.DrwaCarrierConfig.DEFAULT_LAMBDA;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_ENABLED;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_LAMBDA;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_ROAMING;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_TETHERING;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_UPLINK;
import static com.android.server.connectivity.DrwaCarrierConfig.MAX_LAMBDA;
import static com.android.server.connectivity.DrwaCarrierConfig.MAX_UPLINK_MS;
import static com.android.server.connectivity.DrwaCarrierConfig.MIN_LAMBDA;
import static com.android.server.connectivity.DrwaCarrierConfig.MIN_UPLINK_MS;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.os.Handler;
import android.os.Looper;
import android.os.PersistableBundle;
import android.util.Xml;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLog;
import org.xmlpull.v1.XmlPullParser;
import org.xmlpull.v1.XmlPullParserException;

/**
 * Carriers' XML as nobody should write it, restored by the framework and read by the policy. What
 * the framework refuses never gets to a phone's configuration; of the rest, nothing may be thrown,
 * and only an int in range be the target.
 *
 * <p>{@code -Dfuzz.runs} and {@code -Dfuzz.seed} ask for more, or for the same again.
 */
@RunWith(RobolectricTestRunner.class)
public class CarrierXmlFuzzTest {
    private static final int SUB = 1;
    private static final String[] TAGS = {
        "boolean",
        "int",
        "long",
        "double",
        "string",
        "null",
        "int-array",
        "string-array",
        "boolean-array",
        "pbundle_as_map",
        "map",
        "integer",
        "carrier_config",
    };
    private static final String[] NAMES = {
        KEY_ENABLED, KEY_LAMBDA, KEY_UPLINK, KEY_TETHERING, KEY_ROAMING, "drwa_lambda", "", null
    };
    private static final String[] VALUES = {
        "true",
        "false",
        "TRUE",
        "1",
        "",
        null,
        "0",
        "4",
        "5",
        "200",
        "201",
        "100",
        "125",
        "150",
        "1000",
        "99",
        "1001",
        "-125",
        "+125",
        "0x7d",
        "1e2",
        "125.0",
        "2147483648",
        "99999999999999999999",
        "٣",
        "&lt;",
        "&bad;",
    };

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final DrwaCarrierConfig mConfig =
            new DrwaCarrierConfig(
                    mContext, new Handler(Looper.getMainLooper()), new FakeReader(), () -> {});
    private final long mSeed = Long.getLong("fuzz.seed", new Random().nextLong());
    private final Random mRandom = new Random(mSeed);

    private String anyOf(String... choices) {
        return choices[mRandom.nextInt(choices.length)];
    }

    private String anyAttribute(String name, String value) {
        return value == null ? "" : " " + name + "=\"" + value + "\"";
    }

    private String anyElement(int depth) {
        final boolean ours = mRandom.nextBoolean();
        final boolean enabled = mRandom.nextBoolean();
        final String tag = ours ? (enabled ? "boolean" : "int") : anyOf(TAGS);
        final String number = mRandom.nextBoolean() ? KEY_LAMBDA : KEY_UPLINK;
        final String name = ours ? (enabled ? KEY_ENABLED : number) : anyOf(NAMES);
        final String good = enabled ? "true" : anyOf("5", "125", "150", "200");
        final String value = ours && (enabled || mRandom.nextBoolean()) ? good : anyOf(VALUES);
        final StringBuilder text = new StringBuilder("<").append(tag);
        text.append(anyAttribute("name", name)).append(anyAttribute("value", value));
        if (tag.endsWith("-array")) text.append(anyAttribute("num", anyOf("0", "1", "2", "-1")));
        text.append(">");
        if (depth < 3 && mRandom.nextInt(4) == 0) {
            text.append(anyElement(depth + 1));
        } else if (mRandom.nextInt(8) == 0) {
            text.append(anyOf("125", "<item value=\"125\"/>", "<!-- -->", "<![CDATA[x]]>"));
        }
        return text.append("</").append(tag).append(">").toString();
    }

    private byte[] anyDocument() {
        final StringBuilder text = new StringBuilder("<carrier_config_list><carrier_config>");
        for (int i = mRandom.nextInt(5); i > 0; i--) text.append(anyElement(0));
        text.append("</carrier_config></carrier_config_list>");
        byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
        for (int i = mRandom.nextInt(6) - 3; i > 0; i--) {
            final int at = mRandom.nextInt(bytes.length);
            if (mRandom.nextBoolean()) {
                bytes[at] = (byte) mRandom.nextInt();
            } else {
                // What lies behind moves up, or falls away with the end.
                final int from = Math.min(bytes.length, at + 1 + mRandom.nextInt(8));
                System.arraycopy(bytes, from, bytes, at, bytes.length - from);
                bytes = Arrays.copyOf(bytes, Math.max(1, bytes.length - (from - at)));
            }
        }
        return bytes;
    }

    /** What the CarrierConfig app makes of a document; null where it gives up. */
    private static PersistableBundle restore(byte[] document) {
        final PersistableBundle config = new PersistableBundle();
        try {
            final XmlPullParser parser = Xml.newPullParser();
            parser.setInput(new ByteArrayInputStream(document), "utf-8");
            while (parser.next() != XmlPullParser.END_DOCUMENT) {
                if (parser.getEventType() == XmlPullParser.START_TAG
                        && parser.getName().equals("carrier_config")) {
                    config.putAll(PersistableBundle.restoreFromXml(parser));
                }
            }
        } catch (XmlPullParserException | IOException | RuntimeException e) {
            return null;
        }
        return config;
    }

    private static String expected(PersistableBundle config, boolean roams) {
        for (String key :
                new String[] {KEY_ENABLED, KEY_LAMBDA, KEY_UPLINK, KEY_TETHERING, KEY_ROAMING}) {
            // The phone process copies the keys that it is asked for, and fails at such a value.
            if (config.get(key) instanceof PersistableBundle) {
                return "off: carrier configuration unavailable";
            }
        }
        if (roams && Boolean.FALSE.equals(config.get(KEY_ROAMING))) return "off: roaming";
        if (!Boolean.TRUE.equals(config.get(KEY_ENABLED))) return "off: carrier 1";
        int lambda = DEFAULT_LAMBDA;
        if (config.get(KEY_LAMBDA) instanceof Integer) {
            final int wanted = (Integer) config.get(KEY_LAMBDA);
            if (wanted >= MIN_LAMBDA && wanted <= MAX_LAMBDA) lambda = wanted;
        }
        final String clients =
                Boolean.FALSE.equals(config.get(KEY_TETHERING)) ? ", clients left alone" : "";
        return String.format("λ=%d.%02d%s: carrier 1", lambda / 100, lambda % 100, clients);
    }

    private static int expectedUplinkMs(PersistableBundle config) {
        if (expected(config, false).equals("off: carrier configuration unavailable")) return 0;
        if (!(config.get(KEY_UPLINK) instanceof Integer)) return 0;
        final int wanted = (Integer) config.get(KEY_UPLINK);
        return wanted >= MIN_UPLINK_MS && wanted <= MAX_UPLINK_MS ? wanted : 0;
    }

    @Test
    public void anyXmlIsATargetInRangeOrOff() {
        final int runs = Integer.getInteger("fuzz.runs", 1000);
        int restored = 0;
        int on = 0;
        int held = 0;
        mTelephony.setCarrierId(SUB, 1);
        mConfig.start();
        for (int run = 0; run < runs; run++) {
            final byte[] document = anyDocument();
            final PersistableBundle config = restore(document);
            if (config == null) continue;
            restored++;
            final String what =
                    "seed " + mSeed + ": " + new String(document, StandardCharsets.UTF_8);
            mTelephony.setConfig(SUB, config);
            mTelephony.announceConfig(SUB);
            final boolean roams = mRandom.nextBoolean();
            final String wanted = expected(config, roams);
            try {
                shadowOf(Looper.getMainLooper()).idle();
                assertEquals(what, wanted, mConfig.get(SUB, roams).toString());
            } catch (RuntimeException e) {
                throw new AssertionError(what, e);
            }
            if (!wanted.startsWith("off")) on++;
            final int uplinkMs = expectedUplinkMs(config);
            assertEquals(what, uplinkMs, mConfig.getUplinkMs(SUB, false));
            if (uplinkMs != 0) held++;
            ShadowLog.clear();
        }
        System.out.println(
                runs
                        + (" documents, " + restored + " restored, " + on + " on, ")
                        + (held + " with an uplink held"));
        assertTrue("restored: " + restored, restored > runs / 10);
        assertTrue("on: " + on, on > runs / 100);
        assertTrue("held: " + held, held > runs / 500);
    }
}
