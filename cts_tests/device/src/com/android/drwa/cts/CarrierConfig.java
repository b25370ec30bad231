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

    /**
     * Overrides the configuration, and waits until telephony has taken it.
     *
     * @param lambda in hundredths of a bandwidth-delay product, not necessarily a valid one
     */
    void override(boolean enabled, int lambda) {
        final PersistableBundle values = new PersistableBundle();
        values.putBoolean(KEY_ENABLED, enabled);
        values.putInt(KEY_LAMBDA, lambda);
        mManager.overrideConfig(mSubId, values);
        Drwa.await(
                "carrier configuration",
                () -> {
                    final PersistableBundle now =
                            mManager.getConfigForSubId(mSubId, KEY_ENABLED, KEY_LAMBDA);
                    return now.getBoolean(KEY_ENABLED) == enabled
                            && now.getInt(KEY_LAMBDA) == lambda;
                });
    }
}
