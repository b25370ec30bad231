// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.robolectric.Shadows.shadowOf;

import android.os.Handler;
import android.os.Looper;
import java.util.List;
import org.robolectric.shadows.ShadowLooper;

/** The threads of a policy that has made its own. */
public final class PolicyThreads {
    /** DrwaService's, where the policy has that host, and the one that reads for it. */
    private static final List<String> NAMES =
            List.of("DrwaService", DrwaCarrierConfig.class.getSimpleName());

    private PolicyThreads() {}

    /** Waits until the policy has done what it was told, and has asked telephony if it had to. */
    public static void idle(Handler handler) {
        shadowOf(handler.getLooper()).idle();
        for (String name : NAMES) {
            for (Looper looper : ShadowLooper.getAllLoopers()) {
                if (looper.getThread().getName().equals(name)) shadowOf(looper).idle();
            }
        }
        shadowOf(handler.getLooper()).idle();
    }
}
