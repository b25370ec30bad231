// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintWriter;
import org.junit.Test;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** Runs {@link DrwaStateMachine} by jqwik, inside of Robolectric's framework. */
@RunWith(RobolectricTestRunner.class)
public class DrwaStateMachineTest {
    private static final int MIN_STEPS = 100_000;

    @Test
    public void stateMachine() {
        final LauncherDiscoveryRequest request =
                LauncherDiscoveryRequestBuilder.request()
                        .selectors(selectClass(DrwaStateMachine.class))
                        .configurationParameter(
                                "jqwik.database", System.getProperty("jqwik.database"))
                        .configurationParameter("jqwik.shrinking.bounded.seconds", "120")
                        .build();
        final SummaryGeneratingListener listener = new SummaryGeneratingListener();
        LauncherFactory.create().execute(request, listener);
        listener.getSummary().printFailuresTo(new PrintWriter(System.out, true));
        assertEquals(0, listener.getSummary().getTotalFailureCount());
        assertEquals(4, listener.getSummary().getTestsSucceededCount());
        System.out.println(DrwaStateMachine.sSteps + " steps");
        assertTrue(DrwaStateMachine.sSteps >= MIN_STEPS);
    }
}
