// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import com.android.drwa.cts.KernelWithoutDrwa;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.junit.runner.Description;
import org.junit.runner.Runner;
import org.junit.runners.Suite;
import org.junit.runners.model.FrameworkMethod;
import org.junit.runners.model.InitializationError;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.internal.bytecode.Sandbox;

/**
 * Runs the device's tests once with each host of the policy, and with BPF programs. AndroidX's
 * AndroidJUnit4 picks it by the system property "android.junit.runner".
 */
public final class BothHostsRunner extends Suite {
    public BothHostsRunner(Class<?> tests) throws InitializationError {
        super(tests, runners(tests));
    }

    private static List<Runner> runners(Class<?> tests) throws InitializationError {
        final List<Runner> runners = new ArrayList<>();
        for (SystemHere.Host host : SystemHere.Host.values()) {
            runners.add(new HostRunner(tests, host));
        }
        return runners;
    }

    private static final class HostRunner extends RobolectricTestRunner {
        private final SystemHere.Host mHost;

        HostRunner(Class<?> tests, SystemHere.Host host) throws InitializationError {
            super(tests);
            mHost = host;
        }

        @Override
        protected Description describeChild(FrameworkMethod method) {
            final Description description = super.describeChild(method);
            return Description.createTestDescription(
                    description.getTestClass(), description.getMethodName() + "[" + mHost + "]");
        }

        @Override
        protected void beforeTest(Sandbox sandbox, FrameworkMethod method, Method bootstrapped)
                throws Throwable {
            // The system is made in the sandbox, whose classes are others
            System.setProperty(SystemHere.HOST_PROPERTY, mHost.name());
            System.setProperty(
                    SystemHere.KERNEL_LACKS_DRWA_PROPERTY,
                    Boolean.toString(
                            getTestClass().getAnnotation(KernelWithoutDrwa.class) != null));
            super.beforeTest(sandbox, method, bootstrapped);
        }
    }
}
