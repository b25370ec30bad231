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
import java.util.Locale;

/**
 * What DRWA is to do on a network or an interface, and why.
 *
 * @hide
 */
final class DrwaSetting {
    /** The target in hundredths of a bandwidth-delay product, 100 to 1000, or 0 for off. */
    final int lambda;

    /** Whether UDP is held to a short queue as well, where programs at the interface can. */
    final boolean aqm;

    /** Whether what the phone forwards, as of a hotspot's clients, is governed where it can be. */
    final boolean tethering;

    /** For people who read a dump, e.g. "wifi" or "carrier 1989". */
    @NonNull final String reason;

    DrwaSetting(int lambda, boolean aqm, boolean tethering, @NonNull String reason) {
        this.lambda = lambda;
        this.aqm = aqm;
        this.tethering = tethering;
        this.reason = reason;
    }

    static DrwaSetting off(@NonNull String reason) {
        return new DrwaSetting(DrwaKnobs.OFF, false, true, reason);
    }

    boolean isOn() {
        return lambda != DrwaKnobs.OFF;
    }

    /**
     * As in "off: wifi", "λ=1.50: carrier 1989" and "λ=1.50, UDP held, clients left alone: carrier
     * 1989".
     */
    @Override
    public String toString() {
        if (!isOn()) return "off: " + reason;
        final String held = aqm ? ", UDP held" : "";
        final String clients = tethering ? "" : ", clients left alone";
        return String.format(
                Locale.ROOT,
                "λ=%d.%02d%s%s: %s",
                lambda / 100,
                lambda % 100,
                held,
                clients,
                reason);
    }
}
