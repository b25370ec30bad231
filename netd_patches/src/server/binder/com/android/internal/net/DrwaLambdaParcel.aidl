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

package com.android.internal.net;

/**
 * What the receive windows over an interface are held to.
 *
 * {@hide}
 */
parcelable DrwaLambdaParcel {
    /** Name of the interface, e.g. "rmnet_data0". */
    @utf8InCpp String ifName;

    /** In hundredths of a bandwidth-delay product, 100 to 1000; 0: off. */
    int lambda;

    /**
     * Interfaces with the same number above 0 share a queue of the radio's, 0: this one has its
     * own. When it is set, -1 leaves it as it is; when it is read, -1 says that the kernel knows no
     * queues.
     */
    int queue = -1;
}
