// SPDX-License-Identifier: Apache-2.0

package com.android.tradefed.device;

/** As tradefed's. */
public class DeviceNotAvailableException extends Exception {
    private static final long serialVersionUID = 1;

    public DeviceNotAvailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
