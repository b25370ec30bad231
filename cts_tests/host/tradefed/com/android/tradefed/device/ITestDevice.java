// SPDX-License-Identifier: Apache-2.0

package com.android.tradefed.device;

import com.android.tradefed.util.CommandResult;

/** Of tradefed's interface, what the tests use; see the README. */
public interface ITestDevice {
    boolean enableAdbRoot() throws DeviceNotAvailableException;

    boolean disableAdbRoot() throws DeviceNotAvailableException;

    CommandResult executeShellV2Command(String command) throws DeviceNotAvailableException;

    void reboot() throws DeviceNotAvailableException;

    boolean waitForDeviceAvailable() throws DeviceNotAvailableException;
}
