// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.robolectric.Shadows.shadowOf;

import android.os.Handler;
import android.os.Looper;
import org.robolectric.shadows.ShadowLooper;

/** The threads of a policy that has made its own. */
public final class PolicyThreads {
    private PolicyThreads() {}

    /** Waits until the policy has done what it was told, and has asked telephony if it had to. */
    public static void idle(Handler handler) {
        shadowOf(handler.getLooper()).idle();
        for (Looper looper : ShadowLooper.getAllLoopers()) {
            if (looper.getThread().getName().equals(DrwaCarrierConfig.class.getSimpleName())) {
                shadowOf(looper).idle();
            }
        }
        shadowOf(handler.getLooper()).idle();
    }
}
