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
import android.util.ArrayMap;

/**
 * What is the same of BPF programs, whoever owns them.
 *
 * @hide
 */
abstract class DrwaProgramKnobs implements DrwaKnobs {
    /** Why programs cannot be attached, by interface. */
    @NonNull final ArrayMap<String, String> mProblems = new ArrayMap<>();

    @Override
    public final boolean isMissing() {
        return false;
    }

    @Override
    public final boolean hasQueues() {
        return true;
    }

    @Override
    public final boolean supersedeLimit() {
        // Programs lower the window, and have no say in the buffer.
        return false;
    }

    @Override
    public final boolean reachStacked() {
        return true;
    }

    @Override
    public final String explain(String iface, Result result) {
        final String problem = mProblems.get(iface);
        return result == Result.ATTACH_FAILED && problem != null
                ? result + ": " + problem
                : result.toString();
    }
}
