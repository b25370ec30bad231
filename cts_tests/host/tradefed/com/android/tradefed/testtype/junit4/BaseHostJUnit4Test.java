// SPDX-License-Identifier: Apache-2.0

package com.android.tradefed.testtype.junit4;

import com.android.tradefed.device.ITestDevice;

/** Of tradefed's class, what the tests use. */
public abstract class BaseHostJUnit4Test {
    private ITestDevice mDevice;

    public void setDevice(ITestDevice device) {
        mDevice = device;
    }

    public ITestDevice getDevice() {
        return mDevice;
    }
}
