// SPDX-License-Identifier: Apache-2.0

package com.android.tradefed.util;

/** Of tradefed's class, what the tests use. */
public class CommandResult {
    private final Integer mExitCode;
    private final String mStdout;
    private final String mStderr;

    public CommandResult(Integer exitCode, String stdout, String stderr) {
        mExitCode = exitCode;
        mStdout = stdout;
        mStderr = stderr;
    }

    public Integer getExitCode() {
        return mExitCode;
    }

    public String getStdout() {
        return mStdout;
    }

    public String getStderr() {
        return mStderr;
    }
}
