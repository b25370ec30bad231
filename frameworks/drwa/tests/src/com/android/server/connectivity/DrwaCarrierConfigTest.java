// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.DrwaCarrierConfig.KEY_ENABLED;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_LAMBDA;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.content.Intent;
import android.os.Handler;
import android.os.Looper;
import android.os.PersistableBundle;
import android.telephony.CarrierConfigManager;
import android.telephony.TelephonyManager;
import com.android.modules.utils.build.SdkLevel;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowLog;

@RunWith(RobolectricTestRunner.class)
public class DrwaCarrierConfigTest {
    private static final int SUB = 1;

    /** Of what the policy uses, Android 13 lacks what it asks for the version before. */
    @Implements(SdkLevel.class)
    public static class Android13 {
        @Implementation
        protected static boolean isAtLeastU() {
            return false;
        }
    }

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final DrwaCarrierConfig mConfig = new DrwaCarrierConfig(mContext);
    private int mChanges;

    @Before
    public void setUp() {
        mTelephony.setCarrierId(SUB, 1989);
    }

    private void start() {
        mConfig.start(new Handler(Looper.getMainLooper()), () -> mChanges++);
    }

    private String read(PersistableBundle config) {
        mTelephony.setConfig(SUB, config);
        mConfig.forget(SUB);
        return mConfig.get(SUB).toString();
    }

    private static PersistableBundle enabled() {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, true);
        return config;
    }

    private String readLambda(int lambda) {
        final PersistableBundle config = enabled();
        config.putInt(KEY_LAMBDA, lambda);
        return read(config);
    }

    private static void assertOneLineAbout(String text) {
        assertEquals(1, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
        final String line = ShadowLog.getLogsForTag("DrwaCarrierConfig").get(0).msg;
        assertTrue(line, line.contains(text));
    }

    @Test
    public void targetsInRangeAreTaken() {
        assertEquals("λ=1.00: carrier 1989", readLambda(100));
        assertEquals("λ=1.25: carrier 1989", readLambda(125));
        assertEquals("λ=10.00: carrier 1989", readLambda(1000));
        assertEquals(0, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
    }

    @Test
    public void targetBelowTheRangeIsTheDefault() {
        assertEquals("λ=1.25: carrier 1989", readLambda(99));
        assertOneLineAbout("drwa_lambda_int=99, using 125");
    }

    @Test
    public void targetAboveTheRangeIsTheDefault() {
        assertEquals("λ=1.25: carrier 1989", readLambda(1001));
        assertOneLineAbout("drwa_lambda_int=1001, using 125");
    }

    @Test
    public void zeroIsNoTarget() {
        assertEquals("λ=1.25: carrier 1989", readLambda(0));
        assertOneLineAbout("drwa_lambda_int=0, using 125");
    }

    @Test
    public void missingTargetIsTheDefault() {
        assertEquals("λ=1.25: carrier 1989", read(enabled()));
        assertOneLineAbout("drwa_lambda_int=null, using 125");
    }

    @Test
    public void targetOfAnotherTypeIsTheDefault() {
        final PersistableBundle config = enabled();
        config.putString(KEY_LAMBDA, "150");
        assertEquals("λ=1.25: carrier 1989", read(config));
        assertOneLineAbout("drwa_lambda_int=150, using 125");
    }

    @Test
    public void missingSwitchIsOff() {
        assertEquals("off: carrier 1989", read(new PersistableBundle()));
        assertOneLineAbout("drwa_enabled_bool=null, using false");
    }

    @Test
    public void switchOfAnotherTypeIsOff() {
        final PersistableBundle config = new PersistableBundle();
        config.putInt(KEY_ENABLED, 1);
        config.putInt(KEY_LAMBDA, 125);
        assertEquals("off: carrier 1989", read(config));
        assertOneLineAbout("drwa_enabled_bool=1, using false");
    }

    @Test
    public void switchedOffCarrierNeedsNoTarget() {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, false);
        assertEquals("off: carrier 1989", read(config));
        assertEquals(0, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
    }

    @Test
    public void unidentifiedCarrierHasTheProductsDefault() {
        mTelephony.setCarrierId(SUB, TelephonyManager.UNKNOWN_CARRIER_ID);
        assertEquals("λ=1.50: unidentified carrier", readLambda(150));
    }

    @Test
    public void phoneProcessThatIsDownLeavesItOff() {
        mTelephony.down = true;
        mTelephony.setConfig(SUB, true, 150);
        assertEquals("off: carrier configuration unavailable", mConfig.get(SUB).toString());
        assertOneLineAbout("Cannot read the carrier configuration of subscription 1");
    }

    @Test
    public void deviceWithoutTelephonyIsOff() {
        shadowOf(mContext).removeSystemService("carrier_config");
        start();
        assertEquals("off: no carrier configuration", mConfig.get(SUB).toString());
    }

    @Test
    public void announcedChangeIsReadAgain() {
        start();
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        mTelephony.setConfig(SUB, true, 200);
        mTelephony.announceConfig(SUB);
        assertEquals(0, mChanges);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, mChanges);
        assertEquals("λ=2.00: carrier 1989", mConfig.get(SUB).toString());
    }

    @Test
    public void anyUpToDateAndroidReadsTwoKeysOnly() {
        readLambda(150);
        assertEquals("[drwa_enabled_bool, drwa_lambda_int]", mTelephony.keysRead.toString());
    }

    @Test
    @Config(shadows = Android13.class)
    public void olderAndroidReadsTheWholeConfiguration() {
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        assertEquals("[]", mTelephony.keysRead.toString());
    }

    @Test
    @Config(shadows = Android13.class)
    public void olderAndroidAnnouncesChangesByBroadcast() {
        start();
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        mTelephony.setConfig(SUB, true, 200);
        mContext.sendBroadcast(new Intent(CarrierConfigManager.ACTION_CARRIER_CONFIG_CHANGED));
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, mChanges);
        assertEquals("λ=2.00: carrier 1989", mConfig.get(SUB).toString());
    }
}
