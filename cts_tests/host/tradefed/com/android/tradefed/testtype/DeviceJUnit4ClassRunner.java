// SPDX-License-Identifier: Apache-2.0

package com.android.tradefed.testtype;

import com.android.drwa.here.GuestDevice;
import com.android.tradefed.testtype.junit4.BaseHostJUnit4Test;
import java.util.ArrayList;
import java.util.List;
import org.junit.runner.Runner;
import org.junit.runners.BlockJUnit4ClassRunner;
import org.junit.runners.Suite;
import org.junit.runners.model.FrameworkMethod;
import org.junit.runners.model.InitializationError;

/** Gives tests their device, as tradefed's does: here guests, one with each host of the policy. */
public class DeviceJUnit4ClassRunner extends Suite {
    public DeviceJUnit4ClassRunner(Class<?> tests) throws InitializationError {
        super(tests, runners(tests));
    }

    private static List<Runner> runners(Class<?> tests) throws InitializationError {
        final List<Runner> runners = new ArrayList<>();
        for (String host : GuestDevice.HOSTS) runners.add(new OneDevice(tests, host));
        return runners;
    }

    private static final class OneDevice extends BlockJUnit4ClassRunner {
        private final String mHost;

        OneDevice(Class<?> tests, String host) throws InitializationError {
            super(tests);
            mHost = host;
        }

        @Override
        protected String testName(FrameworkMethod method) {
            return super.testName(method) + "[" + mHost + "]";
        }

        @Override
        protected Object createTest() throws Exception {
            final BaseHostJUnit4Test test = (BaseHostJUnit4Test) super.createTest();
            test.setDevice(GuestDevice.get(mHost));
            return test;
        }
    }
}
