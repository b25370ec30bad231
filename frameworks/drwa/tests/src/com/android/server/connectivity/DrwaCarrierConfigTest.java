// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.DrwaCarrierConfig.KEY_AQM;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_ENABLED;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_LAMBDA;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_ROAMING;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_TETHERING;
import static com.android.server.connectivity.DrwaCarrierConfig.KEY_UPLINK;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.os.Handler;
import android.os.Looper;
import android.os.PersistableBundle;
import android.telephony.SubscriptionManager;
import android.telephony.TelephonyManager;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadows.ShadowLog;

@RunWith(RobolectricTestRunner.class)
public class DrwaCarrierConfigTest {
    private static final int SUB = 1;

    private final Application mContext = RuntimeEnvironment.getApplication();
    private final FakeTelephony mTelephony = new FakeTelephony(mContext);
    private final FakeReader mReader = new FakeReader();
    private int mChanges;
    private final DrwaCarrierConfig mConfig =
            new DrwaCarrierConfig(
                    mContext, new Handler(Looper.getMainLooper()), mReader, () -> mChanges++);

    @Before
    public void setUp() {
        mTelephony.neverCalls = Thread.currentThread();
        mTelephony.setCarrierId(SUB, 1989);
        mConfig.start();
    }

    private static void idle() {
        shadowOf(Looper.getMainLooper()).idle();
    }

    private String get() {
        mConfig.get(SUB, false);
        idle();
        return mConfig.get(SUB, false).toString();
    }

    private void announce(PersistableBundle config) {
        mTelephony.setConfig(SUB, config);
        mTelephony.announceConfig(SUB);
        idle();
    }

    private String read(PersistableBundle config) {
        announce(config);
        return get();
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
    public void answerThatCannotBeUnparceledIsNone() {
        mTelephony.malformed = true;
        assertEquals("off: carrier configuration unavailable", get());
        mTelephony.malformed = false;
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
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
        assertEquals("off: carrier configuration unavailable", get());
        assertOneLineAbout("Cannot read the carrier configuration of subscription 1");
    }

    @Test
    public void deviceWithoutTelephonyIsOff() {
        shadowOf(mContext).removeSystemService("carrier_config");
        mConfig.start();
        assertEquals("off: no carrier configuration", get());
    }

    @Test
    public void registryThatIsMissingLeavesWhatCanBeRead() {
        mTelephony.registryDown = true;
        mConfig.start();
        assertOneLineAbout("Changes of carrier configurations will not be heard of");
        mTelephony.setConfig(SUB, true, 150);
        assertEquals("λ=1.50: carrier of subscription 1", get());
    }

    @Test
    public void telephonyThatRefusesTheHostLeavesItOff() {
        mTelephony.refuses = true;
        mTelephony.setConfig(SUB, true, 150);
        mConfig.start();
        assertOneLineAbout("Changes of carrier configurations will not be heard of");
        ShadowLog.clear();
        assertEquals("off: carrier configuration unavailable", get());
        assertOneLineAbout("Cannot read the carrier configuration of subscription 1");
    }

    @Test
    public void announcedChangeIsReadAgain() {
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        assertEquals(1, mChanges);
        mTelephony.setConfig(SUB, true, 200);
        mTelephony.announceConfig(SUB);
        assertEquals(1, mChanges);
        idle();
        assertEquals(2, mChanges);
        assertEquals("λ=2.00: carrier 1989", mConfig.get(SUB, false).toString());
    }

    @Test
    public void oldSettingStaysUntilTheNewOneIsRead() {
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        mReader.slow = true;
        mTelephony.setConfig(SUB, true, 200);
        mTelephony.announceConfig(SUB);
        assertEquals("λ=1.50: carrier 1989", get());
        mReader.answer();
        assertEquals("λ=2.00: carrier 1989", get());
    }

    @Test
    public void announcedConfigurationIsReadBeforeItIsAskedFor() {
        mTelephony.setConfig(SUB, true, 150);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals("λ=1.50: carrier 1989", mConfig.get(SUB, false).toString());
        assertEquals(1, mTelephony.reads);
    }

    @Test
    public void carrierIsNamedOnceTelephonyHasToldIt() {
        mTelephony.setConfig(SUB, true, 150);
        assertEquals("λ=1.50: carrier of subscription 1", get());
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals("λ=1.50: carrier 1989", get());
    }

    @Test
    public void removedSimIsForgotten() {
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        mTelephony.announceConfig(SUB, SubscriptionManager.INVALID_SUBSCRIPTION_ID);
        idle();
        // A network may outlive it
        assertEquals("λ=1.50: carrier of subscription 1", get());
        final int reads = mTelephony.reads;
        mConfig.forget(SUB);
        assertEquals("λ=1.50: carrier of subscription 1", get());
        assertEquals(reads + 1, mTelephony.reads);
    }

    @Test
    public void simOfASlotIsKeptWithoutANetwork() {
        assertEquals("λ=1.50: carrier 1989", readLambda(150));
        final int reads = mTelephony.reads;
        mConfig.forget(SUB);
        assertEquals("λ=1.50: carrier 1989", mConfig.get(SUB, false).toString());
        mConfig.forget(SUB);
        mTelephony.announceConfig(SUB /* slotIndex */, SUB + 1);
        idle();
        mConfig.get(SUB, false);
        idle();
        assertEquals(reads + 2, mTelephony.reads);
    }

    @Test
    public void answerToAForgottenQuestionIsDropped() {
        mTelephony.setConfig(SUB, true, 150);
        mReader.slow = true;
        mConfig.get(SUB, false);
        mConfig.forget(SUB);
        mConfig.get(SUB, false);
        mReader.answer();
        idle();
        assertEquals(1, mChanges);
    }

    @Test
    public void noOtherKeysAreRead() {
        readLambda(150);
        assertEquals(
                "[drwa_enabled_bool, drwa_lambda_int, drwa_aqm_bool, drwa_tethering_bool,"
                        + " drwa_roaming_bool, drwa_uplink_target_ms_int]",
                mTelephony.keysRead.toString());
    }

    private String readAqm(Object value) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, true);
        config.putInt(KEY_LAMBDA, 150);
        if (value != null) config.putObject(KEY_AQM, value);
        announce(config);
        return mConfig.get(SUB, false).toString();
    }

    @Test
    public void udpIsHeldWhereTheCarrierWantsIt() {
        assertEquals("λ=1.50, UDP held: carrier 1989", readAqm(true));
        assertTrue(mConfig.get(SUB, false).aqm);
        assertEquals("λ=1.50: carrier 1989", readAqm(false));
        assertFalse(mConfig.get(SUB, false).aqm);
        assertEquals("λ=1.50: carrier 1989", readAqm(null));
        assertEquals(0, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
    }

    @Test
    public void udpIsNotHeldForAWordOfAnotherType() {
        assertEquals("λ=1.50: carrier 1989", readAqm("true"));
        assertOneLineAbout("drwa_aqm_bool=true, using false");
    }

    private DrwaSetting readTethering(Object value) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, true);
        config.putInt(KEY_LAMBDA, 150);
        if (value != null) config.putObject(KEY_TETHERING, value);
        announce(config);
        return mConfig.get(SUB, false);
    }

    @Test
    public void clientsAreLeftAloneWhereTheCarrierWantsIt() {
        assertFalse(readTethering(false).tethering);
        assertEquals(
                "λ=1.50, clients left alone: carrier 1989", mConfig.get(SUB, false).toString());
    }

    @Test
    public void clientsAreGovernedElse() {
        for (Object value : new Object[] {true, null, "false"}) {
            assertTrue(readTethering(value).tethering);
            assertEquals("λ=1.50: carrier 1989", mConfig.get(SUB, false).toString());
        }
        assertOneLineAbout("drwa_tethering_bool=false, using true");
    }

    private void readRoaming(Object value) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, true);
        config.putInt(KEY_LAMBDA, 150);
        config.putInt(KEY_UPLINK, 20);
        if (value != null) config.putObject(KEY_ROAMING, value);
        announce(config);
        assertEquals("λ=1.50: carrier 1989", mConfig.get(SUB, false).toString());
        assertEquals(20, mConfig.getUplinkMs(SUB, false));
    }

    @Test
    public void roamingIsOffWhereTheCarrierWantsIt() {
        readRoaming(false);
        assertEquals("off: roaming", mConfig.get(SUB, true).toString());
        assertEquals(0, mConfig.getUplinkMs(SUB, true));
    }

    @Test
    public void roamingIsAsAtHomeElse() {
        for (Object value : new Object[] {true, null, "false"}) {
            readRoaming(value);
            assertEquals("λ=1.50: carrier 1989", mConfig.get(SUB, true).toString());
            assertEquals(20, mConfig.getUplinkMs(SUB, true));
        }
        assertOneLineAbout("drwa_roaming_bool=false, using true");
    }

    private int readUplink(Object value) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(KEY_ENABLED, false);
        if (value != null) config.putObject(KEY_UPLINK, value);
        announce(config);
        return mConfig.getUplinkMs(SUB, false);
    }

    @Test
    public void uplinksInRangeAreTaken() {
        for (int targetMs : new int[] {0, 5, 20, 200}) assertEquals(targetMs, readUplink(targetMs));
        assertEquals(0, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
    }

    @Test
    public void uplinkThatIsMissingIsOffWithoutAWord() {
        assertEquals(0, readUplink(null));
        assertEquals(0, ShadowLog.getLogsForTag("DrwaCarrierConfig").size());
    }

    @Test
    public void uplinksOutOfRangeAreOff() {
        for (Object wrong : new Object[] {-1, 1, 4, 201, "20", 20L, 20.0, true}) {
            ShadowLog.clear();
            assertEquals(0, readUplink(wrong));
            assertOneLineAbout("drwa_uplink_target_ms_int=" + wrong + ", using 0");
        }
    }

    @Test
    public void uplinkIsOffUntilItIsRead() {
        mTelephony.setConfig(SUB, false, 125, 20);
        mReader.slow = true;
        assertEquals(0, mConfig.getUplinkMs(SUB, false));
        mReader.answer();
        idle();
        assertEquals(20, mConfig.getUplinkMs(SUB, false));
        assertEquals(1, mTelephony.reads);
        assertEquals("off: carrier of subscription 1", mConfig.get(SUB, false).toString());
    }

    @Test
    public void uplinkIsOffWhileThePhoneProcessIsDown() {
        mTelephony.down = true;
        mTelephony.setConfig(SUB, true, 125, 20);
        mTelephony.announceConfig(SUB);
        idle();
        assertEquals(0, mConfig.getUplinkMs(SUB, false));
    }
}
