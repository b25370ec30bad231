// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.annotation.NonNull;
import android.annotation.Nullable;
import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.Handler;
import android.os.PersistableBundle;
import android.telephony.CarrierConfigManager;
import android.telephony.TelephonyManager;
import android.util.Log;
import android.util.SparseArray;
import com.android.internal.annotations.VisibleForTesting;
import com.android.modules.utils.build.SdkLevel;

/**
 * What each subscription's carrier wants of DRWA: the only reader of the carrier configuration.
 *
 * <p>Until a carrier is identified, the configuration holds the defaults of CarrierConfigManager,
 * which are the product's default. A key that is missing there too, has the wrong type or is out of
 * range counts as {@link #DEFAULT_ENABLED} or {@link #DEFAULT_LAMBDA}, and is logged.
 *
 * <p>Belongs to the thread of the handler that {@link #start} is given. No method throws what
 * telephony throws.
 *
 * @hide
 */
final class DrwaCarrierConfig {
    private static final String TAG = DrwaCarrierConfig.class.getSimpleName();

    /** Whether DRWA governs the TCP connections on this carrier's network. */
    @VisibleForTesting static final String KEY_ENABLED = "drwa_enabled_bool";

    /**
     * How much may be in flight, in hundredths of a bandwidth-delay product, from {@link
     * #MIN_LAMBDA} to {@link #MAX_LAMBDA}.
     */
    @VisibleForTesting static final String KEY_LAMBDA = "drwa_lambda_int";

    static final int MIN_LAMBDA = 100;
    static final int MAX_LAMBDA = 1000;
    @VisibleForTesting static final boolean DEFAULT_ENABLED = false;
    @VisibleForTesting static final int DEFAULT_LAMBDA = 125;

    @NonNull private final Context mContext;
    private final SparseArray<DrwaSetting> mSettings = new SparseArray<>();

    DrwaCarrierConfig(@NonNull Context context) {
        mContext = context;
    }

    /** Calls back on the handler's thread whenever a subscription's setting may have changed. */
    void start(@NonNull Handler handler, @NonNull Runnable onChanged) {
        final Runnable onConfigChanged =
                () -> {
                    mSettings.clear();
                    onChanged.run();
                };
        if (!SdkLevel.isAtLeastU()) {
            final BroadcastReceiver receiver =
                    new BroadcastReceiver() {
                        @Override
                        public void onReceive(Context context, Intent intent) {
                            onConfigChanged.run();
                        }
                    };
            // Never unregistered because the system server never stops
            mContext.registerReceiver(
                    receiver,
                    new IntentFilter(CarrierConfigManager.ACTION_CARRIER_CONFIG_CHANGED),
                    null,
                    handler);
            return;
        }
        final CarrierConfigManager manager = getManager();
        if (manager == null) return;
        manager.registerCarrierConfigChangeListener(
                handler::post,
                (slotIndex, subId, carrierId, specificCarrierId) -> onConfigChanged.run());
    }

    /** The setting of a subscription, read from telephony unless known. */
    @NonNull
    DrwaSetting get(int subId) {
        DrwaSetting setting = mSettings.get(subId);
        if (setting == null) {
            setting = read(subId);
            mSettings.put(subId, setting);
        }
        return setting;
    }

    /** Whether the kernel takes a target; {@link DrwaKnob#OFF} is none. */
    static boolean isValidLambda(int lambda) {
        return lambda >= MIN_LAMBDA && lambda <= MAX_LAMBDA;
    }

    /** Forgets a subscription that no network uses any more. */
    void forget(int subId) {
        mSettings.remove(subId);
    }

    @NonNull
    private DrwaSetting read(int subId) {
        final PersistableBundle config;
        final String carrier;
        try {
            final CarrierConfigManager manager = getManager();
            if (manager == null) return DrwaSetting.off("no carrier configuration");
            config =
                    SdkLevel.isAtLeastU()
                            ? manager.getConfigForSubId(subId, KEY_ENABLED, KEY_LAMBDA)
                            : manager.getConfigForSubId(subId);
            carrier = describeCarrier(subId);
        } catch (RuntimeException e) {
            // Thrown while the phone process is down. It announces its configuration once it is up.
            Log.e(TAG, "Cannot read the carrier configuration of subscription " + subId, e);
            return DrwaSetting.off("carrier configuration unavailable");
        }
        if (!getEnabled(config, subId)) return DrwaSetting.off(carrier);
        return new DrwaSetting(getLambda(config, subId), carrier);
    }

    private static boolean getEnabled(@Nullable PersistableBundle config, int subId) {
        final Object value = config == null ? null : config.get(KEY_ENABLED);
        if (value instanceof Boolean) return (Boolean) value;
        logDefault(subId, KEY_ENABLED, value, DEFAULT_ENABLED);
        return DEFAULT_ENABLED;
    }

    private static int getLambda(@NonNull PersistableBundle config, int subId) {
        final Object value = config.get(KEY_LAMBDA);
        if (value instanceof Integer) {
            final int lambda = (Integer) value;
            if (isValidLambda(lambda)) return lambda;
        }
        logDefault(subId, KEY_LAMBDA, value, DEFAULT_LAMBDA);
        return DEFAULT_LAMBDA;
    }

    private static void logDefault(int subId, String key, Object value, Object used) {
        Log.i(TAG, "Subscription " + subId + ": " + key + "=" + value + ", using " + used);
    }

    private String describeCarrier(int subId) {
        final int carrierId =
                mContext.getSystemService(TelephonyManager.class)
                        .createForSubscriptionId(subId)
                        .getSimCarrierId();
        return carrierId == TelephonyManager.UNKNOWN_CARRIER_ID
                ? "unidentified carrier"
                : "carrier " + carrierId;
    }

    @Nullable
    private CarrierConfigManager getManager() {
        return mContext.getSystemService(CarrierConfigManager.class);
    }
}
