/*
 * Copyright (C) 2026 The DRWA for Android Authors
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

package com.android.server.connectivity;

import android.annotation.NonNull;
import android.annotation.Nullable;
import android.annotation.TargetApi;
import android.content.Context;
import android.os.Build;
import android.os.Handler;
import android.os.PersistableBundle;
import android.telephony.CarrierConfigManager;
import android.telephony.SubscriptionManager;
import android.telephony.TelephonyManager;
import android.util.Log;
import android.util.SparseArray;
import com.android.internal.annotations.VisibleForTesting;
import java.util.concurrent.Executor;

/**
 * What each subscription's carrier wants of DRWA: the only reader of the carrier configuration.
 *
 * <p>Until a carrier is identified, the configuration holds the defaults of CarrierConfigManager,
 * which are the product's default. A key that is missing there too, has the wrong type or is out of
 * range counts as {@link #DEFAULT_ENABLED}, {@link #DEFAULT_LAMBDA} or {@link #DEFAULT_UPLINK_MS},
 * and is logged, but for one of the keys that a carrier need not speak of.
 *
 * <p>Belongs to the handler's thread, which never waits for telephony: the phone process may be
 * busy, or starting. It is called on another thread, which posts what it answers. No method throws
 * what telephony throws.
 *
 * @hide
 */
// DrwaController starts nothing on older platforms, though ConnectivityService's module has these
// too
@TargetApi(Build.VERSION_CODES.UPSIDE_DOWN_CAKE)
final class DrwaCarrierConfig implements DrwaDecision.Carriers {
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

    /**
     * How long packets may wait in the modem on their way up, in ms, from {@link #MIN_UPLINK_MS} to
     * {@link #MAX_UPLINK_MS}, or {@link DrwaUplink#OFF}. {@link #KEY_ENABLED} has no say in it.
     */
    @VisibleForTesting static final String KEY_UPLINK = "drwa_uplink_target_ms_int";

    @VisibleForTesting static final int MIN_UPLINK_MS = 5;
    @VisibleForTesting static final int MAX_UPLINK_MS = 200;
    @VisibleForTesting static final int DEFAULT_UPLINK_MS = DrwaUplink.OFF;

    /**
     * Whether QUIC, and other UDP of more than 250 kb/s, is held to a short queue as well, by
     * dropping some of it. Programs at the interface can, a kernel with the series cannot.
     */
    @VisibleForTesting static final String KEY_AQM = "drwa_aqm_bool";

    @VisibleForTesting static final boolean DEFAULT_AQM = false;

    /**
     * Whether the connections that the phone forwards, as of a hotspot's clients, are governed as
     * its own are. Programs at the interface can, a kernel with the series governs none of them.
     */
    @VisibleForTesting static final String KEY_TETHERING = "drwa_tethering_bool";

    @VisibleForTesting static final boolean DEFAULT_TETHERING = true;

    /** Whether all of that holds while the phone roams, too; if not, it is off there. */
    @VisibleForTesting static final String KEY_ROAMING = "drwa_roaming_bool";

    @VisibleForTesting static final boolean DEFAULT_ROAMING = true;

    @NonNull private final Context mContext;
    @NonNull private final Handler mHandler;

    /** Runs what calls telephony, in order. */
    @NonNull private final Executor mReader;

    @NonNull private final Runnable mOnChanged;

    /**
     * The subscriptions that networks use, and those of the SIMs that telephony has told of, which
     * a network may use at any moment.
     */
    private final SparseArray<Subscription> mSubscriptions = new SparseArray<>();

    /** Who the carriers of the SIMs are, by slot, as far as telephony has told. */
    private final SparseArray<Carrier> mCarriers = new SparseArray<>();

    private boolean mStarted;

    private static final class Subscription {
        boolean mUsed;

        /** Null until telephony has answered. */
        @Nullable Answer mAnswer;
    }

    private static final class Answer {
        final int mLambda;
        final boolean mAqm;
        final boolean mTethering;
        final boolean mRoaming;
        final int mUplinkMs;

        /** Why there is no configuration, or null if there is one. */
        @Nullable final String mProblem;

        Answer(
                int lambda,
                boolean aqm,
                boolean tethering,
                boolean roaming,
                int uplinkMs,
                @Nullable String problem) {
            mLambda = lambda;
            mAqm = aqm;
            mTethering = tethering;
            mRoaming = roaming;
            mUplinkMs = uplinkMs;
            mProblem = problem;
        }

        static Answer problem(@NonNull String problem) {
            return new Answer(
                    DrwaKnobs.OFF,
                    DEFAULT_AQM,
                    DEFAULT_TETHERING,
                    DEFAULT_ROAMING,
                    DrwaUplink.OFF,
                    problem);
        }
    }

    private static final class Carrier {
        final int mSubId;
        final int mCarrierId;

        Carrier(int subId, int carrierId) {
            mSubId = subId;
            mCarrierId = carrierId;
        }
    }

    /**
     * @param reader runs one after the other, on another thread than the handler's
     * @param onChanged called on the handler's thread whenever a setting may have changed
     */
    DrwaCarrierConfig(
            @NonNull Context context,
            @NonNull Handler handler,
            @NonNull Executor reader,
            @NonNull Runnable onChanged) {
        mContext = context;
        mHandler = handler;
        mReader = reader;
        mOnChanged = onChanged;
    }

    /** Begins to listen to changes of the configuration, and to ask. */
    void start() {
        mStarted = true;
        mReader.execute(
                () -> {
                    try {
                        final CarrierConfigManager manager = getManager();
                        if (manager == null) return;
                        // Never unregistered because the system server never stops
                        manager.registerCarrierConfigChangeListener(
                                mHandler::post, this::onConfigChanged);
                    } catch (RuntimeException e) {
                        Log.e(TAG, "Changes of carrier configurations will not be heard of", e);
                    }
                });
        for (int i = 0; i < mSubscriptions.size(); i++) {
            read(mSubscriptions.keyAt(i), mSubscriptions.valueAt(i));
        }
    }

    /** The setting of a subscription, off until telephony was asked and has answered. */
    @Override
    @NonNull
    public DrwaSetting get(int subId, boolean roams) {
        final Answer answer = use(subId);
        if (answer == null) return DrwaSetting.off("carrier configuration not read yet");
        if (answer.mProblem != null) return DrwaSetting.off(answer.mProblem);
        if (roams && !answer.mRoaming) return DrwaSetting.off("roaming");
        return new DrwaSetting(
                answer.mLambda, answer.mAqm, answer.mTethering, describeCarrier(subId));
    }

    /** The target of a subscription's uplink in ms, off until telephony has answered. */
    @Override
    public int getUplinkMs(int subId, boolean roams) {
        final Answer answer = use(subId);
        if (answer == null || (roams && !answer.mRoaming)) return DrwaUplink.OFF;
        return answer.mUplinkMs;
    }

    /** What telephony has answered of a subscription that a network uses. */
    @Nullable
    private Answer use(int subId) {
        Subscription subscription = mSubscriptions.get(subId);
        if (subscription == null) subscription = read(subId);
        subscription.mUsed = true;
        return subscription.mAnswer;
    }

    /** Whether the kernel takes a target; {@link DrwaKnobs#OFF} is none. */
    static boolean isValidLambda(int lambda) {
        return lambda >= MIN_LAMBDA && lambda <= MAX_LAMBDA;
    }

    /** Takes notice that no network uses a subscription any more. */
    void forget(int subId) {
        final Subscription subscription = mSubscriptions.get(subId);
        if (subscription == null) return;
        subscription.mUsed = false;
        removeUnlessNeeded(subId);
    }

    private void onConfigChanged(int slot, int subId, int carrierId, int specificCarrierId) {
        final Carrier former = mCarriers.get(slot);
        mCarriers.put(slot, new Carrier(subId, carrierId));
        if (former != null) removeUnlessNeeded(former.mSubId);
        if (SubscriptionManager.isValidSubscriptionId(subId)) read(subId);
    }

    private void removeUnlessNeeded(int subId) {
        final Subscription subscription = mSubscriptions.get(subId);
        if (subscription == null || subscription.mUsed || findCarrier(subId) != null) return;
        mSubscriptions.remove(subId);
    }

    private Subscription read(int subId) {
        Subscription subscription = mSubscriptions.get(subId);
        if (subscription == null) {
            subscription = new Subscription();
            mSubscriptions.put(subId, subscription);
        }
        read(subId, subscription);
        return subscription;
    }

    private void read(int subId, Subscription subscription) {
        // What changes between an answer and the beginning of listening would go unheard
        if (!mStarted) return;
        mReader.execute(
                () -> {
                    final Answer answer = ask(subId);
                    mHandler.post(
                            () -> {
                                // It may have been forgotten, and even asked for again
                                if (mSubscriptions.get(subId) != subscription) return;
                                subscription.mAnswer = answer;
                                mOnChanged.run();
                            });
                });
    }

    /** Asks telephony, and waits for it. */
    @NonNull
    private Answer ask(int subId) {
        try {
            final CarrierConfigManager manager = getManager();
            if (manager == null) return Answer.problem("no carrier configuration");
            return parse(
                    manager.getConfigForSubId(
                            subId,
                            KEY_ENABLED,
                            KEY_LAMBDA,
                            KEY_AQM,
                            KEY_TETHERING,
                            KEY_ROAMING,
                            KEY_UPLINK),
                    subId);
        } catch (RuntimeException e) {
            // Thrown while the phone process is down. It announces its configuration once it is up.
            // And by a bundle that cannot be unparceled, which is tried when it is first read.
            Log.e(TAG, "Cannot read the carrier configuration of subscription " + subId, e);
            return Answer.problem("carrier configuration unavailable");
        }
    }

    @NonNull
    private static Answer parse(@Nullable PersistableBundle config, int subId) {
        return new Answer(
                getEnabled(config, subId) ? getLambda(config, subId) : DrwaKnobs.OFF,
                getOptional(config, subId, KEY_AQM, DEFAULT_AQM),
                getOptional(config, subId, KEY_TETHERING, DEFAULT_TETHERING),
                getOptional(config, subId, KEY_ROAMING, DEFAULT_ROAMING),
                getUplinkMs(config, subId),
                null);
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

    private static boolean getOptional(
            @Nullable PersistableBundle config, int subId, String key, boolean byDefault) {
        final Object value = config == null ? null : config.get(key);
        // Of a carrier that does not speak of it, nothing need be said
        if (value == null) return byDefault;
        if (value instanceof Boolean) return (Boolean) value;
        logDefault(subId, key, value, byDefault);
        return byDefault;
    }

    private static int getUplinkMs(@Nullable PersistableBundle config, int subId) {
        final Object value = config == null ? null : config.get(KEY_UPLINK);
        // Of a carrier that does not speak of it, nothing need be said
        if (value == null) return DEFAULT_UPLINK_MS;
        if (value instanceof Integer) {
            final int ms = (Integer) value;
            if (ms == DrwaUplink.OFF || (ms >= MIN_UPLINK_MS && ms <= MAX_UPLINK_MS)) return ms;
        }
        logDefault(subId, KEY_UPLINK, value, DEFAULT_UPLINK_MS);
        return DEFAULT_UPLINK_MS;
    }

    private static void logDefault(int subId, String key, Object value, Object used) {
        Log.i(TAG, "Subscription " + subId + ": " + key + "=" + value + ", using " + used);
    }

    private String describeCarrier(int subId) {
        final Carrier carrier = findCarrier(subId);
        if (carrier == null) return "carrier of subscription " + subId;
        return carrier.mCarrierId == TelephonyManager.UNKNOWN_CARRIER_ID
                ? "unidentified carrier"
                : "carrier " + carrier.mCarrierId;
    }

    @Nullable
    private Carrier findCarrier(int subId) {
        for (int i = 0; i < mCarriers.size(); i++) {
            if (mCarriers.valueAt(i).mSubId == subId) return mCarriers.valueAt(i);
        }
        return null;
    }

    @Nullable
    private CarrierConfigManager getManager() {
        return mContext.getSystemService(CarrierConfigManager.class);
    }
}
