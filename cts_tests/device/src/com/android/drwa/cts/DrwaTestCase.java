// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static org.junit.Assume.assumeFalse;
import static org.junit.Assume.assumeTrue;

import android.app.UiAutomation;
import androidx.test.ext.junit.runners.AndroidJUnit4;
import androidx.test.platform.app.InstrumentationRegistry;
import java.util.List;
import org.junit.Rule;
import org.junit.rules.ExternalResource;
import org.junit.rules.RuleChain;
import org.junit.runner.RunWith;

/**
 * What the tests on a device have in common: the shell's permissions, networks to simulate and a
 * carrier configuration to override, all of which end with the test.
 *
 * <p>A test is not run, and says so, if the kernel lacks DRWA or, for a class marked {@link
 * KernelWithoutDrwa}, has it.
 */
@RunWith(AndroidJUnit4.class)
public abstract class DrwaTestCase {
    final CarrierConfig mCarrier = new CarrierConfig();
    final TestNetworks mNetworks = new TestNetworks();

    @Rule
    public final RuleChain rules =
            RuleChain.outerRule(new RightKernel())
                    .around(new ShellPermissions())
                    .around(mCarrier)
                    .around(mNetworks);

    private class RightKernel extends ExternalResource {
        @Override
        protected void before() {
            final boolean without =
                    DrwaTestCase.this.getClass().isAnnotationPresent(KernelWithoutDrwa.class);
            if (without) {
                assumeFalse("this kernel has DRWA", Drwa.isInKernel());
            } else {
                assumeTrue("this kernel has no DRWA", Drwa.isInKernel());
            }
        }
    }

    private static class ShellPermissions extends ExternalResource {
        private final UiAutomation mUiAutomation =
                InstrumentationRegistry.getInstrumentation().getUiAutomation();

        @Override
        protected void before() {
            mUiAutomation.adoptShellPermissionIdentity();
        }

        @Override
        protected void after() {
            mUiAutomation.dropShellPermissionIdentity();
        }
    }

    /** A cellular network of the SIM in the phone, for the internet. */
    TestNetwork connectCellular() {
        return mNetworks.connect(TestNetworks.cellular(mCarrier.getSubId()));
    }

    /** A VPN over other networks. */
    TestNetwork connectVpn(TestNetwork... below) {
        return mNetworks.connect(TestNetworks.vpn(), List.of(below));
    }
}
