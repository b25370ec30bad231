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
import android.os.Handler;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/**
 * The commands of developers.
 *
 * @hide
 */
final class DrwaShell {
    private static final int SHELL_COMMAND_TIMEOUT_S = 5;

    private static final String LAMBDA_RANGE =
            "in hundredths from "
                    + DrwaCarrierConfig.MIN_LAMBDA
                    + " to "
                    + DrwaCarrierConfig.MAX_LAMBDA
                    + ", or 0 for off";

    @NonNull private final Handler mHandler;
    @NonNull private final BooleanSupplier mIsDebuggable;
    @NonNull private final Policy mPolicy;

    /** What the commands are about. */
    interface Policy {
        /** Callable from any thread. */
        void dump(@NonNull PrintWriter pw);

        /**
         * Called on the handler's thread.
         *
         * @return what went wrong, or null
         */
        @Nullable
        String override(@NonNull String iface, int lambda);

        /**
         * Called on the handler's thread.
         *
         * @return what went wrong, or null
         */
        @Nullable
        String clearOverrides();
    }

    /**
     * @param isDebuggable whether the build is one for developers
     */
    DrwaShell(
            @NonNull Handler handler,
            @NonNull BooleanSupplier isDebuggable,
            @NonNull Policy policy) {
        mHandler = handler;
        mIsDebuggable = isDebuggable;
        mPolicy = policy;
    }

    /**
     * Runs a command: no argument or "show" prints what {@link Policy#dump} does, "set INTERFACE
     * LAMBDA" overrides the policy, "clear" ends all overrides. Refused by user builds. Waits for
     * the handler, so it must not run on the handler's thread.
     *
     * @param args what follows the command's name
     * @return 0, or -1 if refused or wrong, which {@code pw} then explains
     */
    int run(@NonNull PrintWriter pw, @NonNull String[] args) {
        if (!mIsDebuggable.getAsBoolean()) {
            pw.println("Only debuggable builds have this command");
            return -1;
        }
        final String command = args.length == 0 ? "show" : args[0];
        if (command.equals("show") && args.length <= 1) {
            mPolicy.dump(pw);
            return 0;
        }
        if (command.equals("clear") && args.length == 1) {
            return runOnHandlerThread(pw, mPolicy::clearOverrides);
        }
        if (command.equals("set") && args.length == 3) {
            final Integer lambda = parseLambda(args[2]);
            if (lambda != null) {
                return runOnHandlerThread(pw, () -> mPolicy.override(args[1], lambda));
            }
            pw.println("Not " + LAMBDA_RANGE + ": " + args[2]);
            return -1;
        }
        pw.println("Usage: drwa [show | set INTERFACE LAMBDA | clear], LAMBDA " + LAMBDA_RANGE);
        return -1;
    }

    @Nullable
    private static Integer parseLambda(String text) {
        try {
            final int lambda = Integer.parseInt(text);
            return lambda == DrwaKnobs.OFF || DrwaCarrierConfig.isValidLambda(lambda)
                    ? lambda
                    : null;
        } catch (NumberFormatException e) {
            return null;
        }
    }

    private int runOnHandlerThread(PrintWriter pw, Callable<String> command) {
        final FutureTask<String> task = new FutureTask<>(command);
        mHandler.post(task);
        String problem;
        try {
            problem = task.get(SHELL_COMMAND_TIMEOUT_S, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            // What has failed here takes no effect later, unless it is under way
            task.cancel(false /* mayInterruptIfRunning */);
            problem = e.toString();
        }
        if (problem == null) return 0;
        pw.println(problem);
        return -1;
    }
}
