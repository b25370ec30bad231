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
import android.util.Log;
import com.android.internal.annotations.GuardedBy;
import java.io.PrintWriter;
import java.time.LocalDateTime;
import java.util.ArrayDeque;

/**
 * What was written lately to {@link DrwaKnobs}, and what failed. Written by one thread, printed by
 * any.
 *
 * <p>android.util.LocalLog is not in the API that a system service outside of the platform is built
 * with.
 *
 * @hide
 */
final class DrwaWriteLog {
    private static final String TAG = DrwaKnobs.class.getSimpleName();

    private static final int MAX_LINES = 100;

    /** The latest first. */
    @GuardedBy("mLines")
    private final ArrayDeque<String> mLines = new ArrayDeque<>(MAX_LINES);

    // Written by the owning thread alone, read by others too.
    private volatile int mWrites;
    private volatile int mErrors;

    void onWritten(@NonNull String what) {
        mWrites++;
        log(what);
    }

    /** Of what somebody else has a right to refuse. */
    void onRefused(@NonNull String what, @NonNull Exception e) {
        final String message = what + ": " + e;
        Log.i(TAG, message);
        log(message);
    }

    void onError(@NonNull String what, @NonNull Exception e) {
        mErrors++;
        final String message = what + ": " + e;
        Log.e(TAG, message);
        log(message);
    }

    /** Prints counters and recent lines, the latest first. Callable from any thread. */
    void dump(@NonNull PrintWriter pw) {
        pw.println("Writes: " + mWrites + ", errors: " + mErrors);
        pw.println("Recent writes:");
        synchronized (mLines) {
            mLines.forEach(pw::println);
        }
    }

    private void log(String what) {
        synchronized (mLines) {
            if (mLines.size() == MAX_LINES) mLines.removeLast();
            mLines.addFirst(LocalDateTime.now() + " - " + what);
        }
    }
}
