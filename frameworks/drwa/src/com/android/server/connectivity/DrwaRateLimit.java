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
import android.provider.Settings;
import com.android.internal.annotations.VisibleForTesting;

/**
 * The developers' limit of the download rate, for which ConnectivityService uses the priority of
 * the programs' filters: beside one of the programs, its own cannot be attached, and when the limit
 * changes it takes away all that has the priority at ingress. So the programs have to be off while
 * there is a limit, and until ConnectivityService is done with a change.
 *
 * <p>Belongs to the thread of the handler.
 *
 * @hide
 */
final class DrwaRateLimit {
    /** Key in {@link Settings.Global}, ConnectivitySettingsManager's: bytes per second. */
    @VisibleForTesting static final String SETTING = "ingress_rate_limit_bytes_per_second";

    private static final long NONE = -1;

    /** ConnectivityService may hear of a change later than the policy, on another thread. */
    @VisibleForTesting static final int CHANGE_MS = 1000;

    @NonNull private final ContentResolver mResolver;
    @NonNull private final Handler mHandler;
    @NonNull private final Runnable mOnChanged;
    @NonNull private final Runnable mEnd = () -> set(false);

    private boolean mInTheWay;

    /**
     * @param onChanged called on the handler's thread whenever {@link #getReasonOff} has changed
     */
    DrwaRateLimit(@NonNull Context context, @NonNull Handler handler, @NonNull Runnable onChanged) {
        mResolver = context.getContentResolver();
        mHandler = handler;
        mOnChanged = onChanged;
    }

    void start() {
        // Never unregistered because the system server never stops
        mResolver.registerContentObserver(
                Settings.Global.getUriFor(SETTING),
                false /* notifyForDescendants */,
                new ContentObserver(mHandler) {
                    @Override
                    public void onChange(boolean selfChange) {
                        DrwaRateLimit.this.onChange();
                    }
                });
        mInTheWay = isSet();
    }

    /** Takes notice of a change, before ConnectivityService does if it is what calls. */
    void onChange() {
        mHandler.removeCallbacks(mEnd);
        set(true);
        if (!isSet()) mHandler.postDelayed(mEnd, CHANGE_MS);
    }

    /** Why the programs are off, for people who read a dump, or null if they need not be. */
    @Nullable
    String getReasonOff() {
        return mInTheWay ? "Settings.Global " + SETTING : null;
    }

    private boolean isSet() {
        return Settings.Global.getLong(mResolver, SETTING, NONE) > NONE;
    }

    private void set(boolean inTheWay) {
        if (inTheWay == mInTheWay) return;
        mInTheWay = inTheWay;
        mOnChanged.run();
    }
}
