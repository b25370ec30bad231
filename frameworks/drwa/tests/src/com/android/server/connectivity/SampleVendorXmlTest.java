// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.os.Handler;
import android.os.Looper;
import android.os.PersistableBundle;
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

/** The sample for carriers, restored by the framework, and read by the policy. */
@RunWith(RobolectricTestRunner.class)
public class SampleVendorXmlTest {
    private static final int SUB = 1;
    private static final Set<String> KEYS =
            Set.of(DrwaCarrierConfig.KEY_ENABLED, DrwaCarrierConfig.KEY_LAMBDA);

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final DrwaCarrierConfig mConfig =
            new DrwaCarrierConfig(
                    mContext, new Handler(Looper.getMainLooper()), new FakeReader(), () -> {});
    private final VendorXml mSample = new VendorXml(Path.of("carrier/vendor.xml"));
    private final Set<Integer> mMatched = new HashSet<>();

    private void assertPolicy(String expected, Map<String, String> carrier) throws Exception {
        mTelephony.setConfig(SUB, mSample.load(carrier));
        for (int i = 0; i < mSample.mElements.size(); i++) {
            final PersistableBundle element = mSample.mElements.get(i);
            if (element == null) continue;
            mMatched.add(i);
            assertTrue(element.keySet().toString(), KEYS.containsAll(element.keySet()));
        }
        ShadowLog.clear();
        mTelephony.announceConfig(SUB);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(expected, mConfig.get(SUB, false).toString());
        // It says when a value is wrong and a default takes its place.
        if (!expected.startsWith("off")) {
            assertEquals(List.of(), ShadowLog.getLogsForTag("DrwaCarrierConfig"));
        }
    }

    @Test
    public void everyCarrierGetsItsTarget() throws Exception {
        mTelephony.setCarrierId(SUB, 1);
        mConfig.start();
        assertPolicy("λ=1.25: carrier 1", Map.of("cid", "1839"));
        assertPolicy("off: carrier 1", Map.of("cid", "1839", "device", "emu64a"));
        assertPolicy("λ=1.50: carrier 1", Map.of("cid", "2018"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "240", "mnc", "01"));
        assertPolicy("off: carrier 1", Map.of("mcc", "240", "mnc", "07"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "310", "mnc", "240", "gid1", "6901"));
        assertPolicy("off: carrier 1", Map.of("mcc", "310", "mnc", "240"));
        assertPolicy("λ=1.25: carrier 1", Map.of("mcc", "262", "mnc", "01", "spn", "Congstar"));
        assertPolicy("off: carrier 1", Map.of("mcc", "262", "mnc", "01", "spn", "Telekom.de"));
        assertEquals(
                "elements that no carrier above gets", mSample.mElements.size(), mMatched.size());
    }
}
