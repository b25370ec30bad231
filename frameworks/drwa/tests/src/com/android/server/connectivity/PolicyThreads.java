// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.robolectric.Shadows.shadowOf;

import android.os.Handler;
import android.os.Looper;
import java.util.ArrayList;
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
        for (Looper looper : running()) shadowOf(looper).idle();
        shadowOf(handler.getLooper()).idle();
    }

    /**
     * Ends them, which a system server never does. One that outlives its test may die when that
     * test's environment goes, and whoever waits for it then waits for ever.
     */
    public static void end() {
        for (Looper looper : running()) end(looper);
    }

    /** Ends a looper's thread, and waits for its end. */
    public static void end(Looper looper) {
        looper.quit();
        try {
            looper.getThread().join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Their loopers, in the order of their names: the service's first. */
    private static List<Looper> running() {
        final List<Looper> loopers = new ArrayList<>();
        for (String name : NAMES) {
            for (Looper looper : ShadowLooper.getAllLoopers()) {
                final Thread thread = looper.getThread();
                if (thread.getName().equals(name) && thread.isAlive()) loopers.add(looper);
            }
        }
        return loopers;
    }
}
