// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Reads carrier configurations on threads of their own as the policy's does, but has read when it
 * returns, unless the phone process is slow.
 */
class FakeReader implements Executor {
    private final Queue<Runnable> mWaiting = new ArrayDeque<>();

    /** While set, the phone process does not answer. */
    boolean slow;

    @Override
    public void execute(Runnable task) {
        mWaiting.add(task);
        if (!slow) answer();
    }

    /** The phone process answers all that it was asked. */
    void answer() {
        while (!mWaiting.isEmpty()) runOnThread(mWaiting.remove());
    }

    private static void runOnThread(Runnable task) {
        final AtomicReference<Throwable> thrown = new AtomicReference<>();
        final Thread thread = new Thread(task);
        thread.setUncaughtExceptionHandler((t, e) -> thrown.set(e));
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        if (thrown.get() != null) throw new AssertionError(thrown.get());
    }
}
