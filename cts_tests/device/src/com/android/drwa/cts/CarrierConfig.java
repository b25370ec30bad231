// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static org.junit.Assume.assumeTrue;

import android.os.PersistableBundle;
import android.telephony.CarrierConfigManager;
import android.telephony.SubscriptionManager;
import androidx.test.platform.app.InstrumentationRegistry;
import org.junit.rules.ExternalResource;

/**
 * What the SIM's carrier wants of DRWA, overridden with the shell's permissions for a test's time.
 * From Android 15 on, telephony permits that on debuggable builds only.
 */
final class CarrierConfig extends ExternalResource {
    private static final String KEY_ENABLED = "drwa_enabled_bool";
    private static final String KEY_LAMBDA = "drwa_lambda_int";
    private static final String KEY_UPLINK = "drwa_uplink_target_ms_int";

    private CarrierConfigManager mManager;
    private int mSubId;

    @Override
    protected void before() {
        mManager =
                InstrumentationRegistry.getInstrumentation()
                        .getContext()
                        .getSystemService(CarrierConfigManager.class);
        mSubId = SubscriptionManager.getDefaultDataSubscriptionId();
        assumeTrue(
                "there is no SIM in this device",
                SubscriptionManager.isUsableSubscriptionId(mSubId));
    }

    @Override
    protected void after() {
        if (mManager != null) mManager.overrideConfig(mSubId, null);
    }

    /** The subscription whose configuration this overrides. */
    int getSubId() {
        return mSubId;
    }

    /** As the other one, for a carrier that leaves its uplink alone. */
    void override(boolean enabled, int lambda) {
        override(enabled, lambda, Drwa.OFF);
    }

    /**
     * Overrides the configuration, and waits until telephony has taken it.
     *
     * @param lambda in hundredths of a bandwidth-delay product, not necessarily a valid one
     * @param uplinkMs how long packets may wait in the modem, not necessarily a valid one
     */
    void override(boolean enabled, int lambda, int uplinkMs) {
        final PersistableBundle values = new PersistableBundle();
        values.putBoolean(KEY_ENABLED, enabled);
        values.putInt(KEY_LAMBDA, lambda);
        values.putInt(KEY_UPLINK, uplinkMs);
        mManager.overrideConfig(mSubId, values);
        Drwa.await(
                "carrier configuration",
                () -> {
                    final PersistableBundle now =
                            mManager.getConfigForSubId(mSubId, KEY_ENABLED, KEY_LAMBDA, KEY_UPLINK);
                    return now.getBoolean(KEY_ENABLED) == enabled
                            && now.getInt(KEY_LAMBDA) == lambda
                            && now.getInt(KEY_UPLINK) == uplinkMs;
                });
    }
}
