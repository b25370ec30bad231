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
import android.net.INetd;

/**
 * What the policy has within its reach inside of the module that the BPF programs come with.
 *
 * @hide
 */
public class DrwaBpfDependencies extends DrwaController.Dependencies {
    @Override
    @NonNull
    DrwaKnobs makeBpfKnobs(@NonNull INetd netd, @NonNull DrwaWriteLog log)
            throws UnsupportedOperationException {
        return new DrwaBpfKnobs(new DrwaBpfKnobs.Dependencies(), log);
    }
}
