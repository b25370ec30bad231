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
import android.content.ContentResolver;
import android.content.Context;
import android.database.ContentObserver;
import android.os.Handler;
import android.os.SystemProperties;
import android.provider.DeviceConfig;
import android.provider.Settings;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.util.Objects;

/**
 * What switches DRWA off on the whole phone, whatever the carriers want. The setting and the flag
 * work at once, the property when the system server starts.
 *
 * <p>Belongs to the thread of the handler that {@link #start} is given, except for {@link
 * #getReasonOff}.
 *
 * @hide
 */
final class DrwaSwitch {
    private static final String TAG = DrwaSwitch.class.getSimpleName();

    /**
     * Key in {@link Settings.Global}: 0 switches off. Absent, or with any other value, the carriers
     * decide.
     */
    @VisibleForTesting static final String SETTING = "drwa_enabled";

    /** Flag in DeviceConfig's tethering namespace: {@link #FLAG_OFF} switches off. */
    @VisibleForTesting static final String FLAG = "drwa";

    /** As in the DeviceConfigUtils of ConnectivityService's module. */
    @VisibleForTesting static final int FLAG_OFF = -1;

    /** Boolean property that switches off on the next start, before anything else has a say. */
    @VisibleForTesting static final String PROPERTY = "persist.drwa.disable";

    private static final int DEFAULT = 1;

    @NonNull private final Context mContext;

    // Written by the owning thread alone.
    @Nullable private volatile String mReasonOff;

    DrwaSwitch(@NonNull Context context) {
        mContext = context;
        if (SystemProperties.getBoolean(PROPERTY, false)) mReasonOff = PROPERTY;
    }

    /** Why DRWA is off, for people who read a dump, or null if it is not. From any thread. */
    @Nullable
    String getReasonOff() {
        return mReasonOff;
    }

    /**
     * Calls back on the handler's thread, which this must run on, whenever the reason changes.
     *
     * @return false if DRWA is off until the system server starts again
     */
    boolean start(@NonNull Handler handler, @NonNull Runnable onChanged) {
        if (mReasonOff != null) return false;
        final Runnable look =
                () -> {
                    if (look()) onChanged.run();
                };
        // Never unregistered because the system server never stops
        mContext.getContentResolver()
                .registerContentObserver(
                        Settings.Global.getUriFor(SETTING),
                        false /* notifyForDescendants */,
                        new ContentObserver(handler) {
                            @Override
                            public void onChange(boolean selfChange) {
                                look.run();
                            }
                        });
        DeviceConfig.addOnPropertiesChangedListener(
                DeviceConfig.NAMESPACE_TETHERING, handler::post, properties -> look.run());
        look();
        return true;
    }

    private boolean look() {
        final String reason = readReasonOff();
        if (Objects.equals(reason, mReasonOff)) return false;
        mReasonOff = reason;
        Log.i(TAG, reason == null ? "No longer off" : "Off: " + reason);
        return true;
    }

    @Nullable
    private String readReasonOff() {
        final ContentResolver resolver = mContext.getContentResolver();
        if (Settings.Global.getInt(resolver, SETTING, DEFAULT) == 0) {
            return "Settings.Global " + SETTING;
        }
        if (DeviceConfig.getInt(DeviceConfig.NAMESPACE_TETHERING, FLAG, DEFAULT) == FLAG_OFF) {
            return "DeviceConfig " + DeviceConfig.NAMESPACE_TETHERING + "/" + FLAG;
        }
        return null;
    }
}
