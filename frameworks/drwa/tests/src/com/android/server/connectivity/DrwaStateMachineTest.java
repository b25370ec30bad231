// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.Map;
import java.util.TreeMap;
import org.junit.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.reporting.ReportEntry;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** Runs {@link DrwaStateMachine} by jqwik, inside of Robolectric's framework. */
@RunWith(RobolectricTestRunner.class)
public class DrwaStateMachineTest {
    private static final int MIN_STEPS = 100_000;

    /** Collects what must outlive a failure: the seeds, and the lives that they shrank to. */
    private static class Listener implements TestExecutionListener {
        final Map<String, String> mReports = new TreeMap<>();
        final Map<String, String> mFailures = new TreeMap<>();
        int mSucceeded;

        @Override
        public void reportingEntryPublished(TestIdentifier test, ReportEntry entry) {
            System.out.println(entry);
            mReports.put(test.getDisplayName(), String.valueOf(entry.getKeyValuePairs().values()));
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
                mFailures.put(test.getDisplayName(), String.valueOf(result.getThrowable()));
            } else if (test.isTest()) {
                mSucceeded++;
            }
        }

        /** Of each how it failed, its seed, and the shortest life that does, all in one line. */
        String describeFailures() {
            final StringBuilder text = new StringBuilder();
            mFailures.forEach(
                    (name, failure) -> {
                        final String report = mReports.getOrDefault(name, failure);
                        text.append(name).append(report.split("Original Sample")[0]).append(' ');
                    });
            return text.toString().replaceAll("\\s+", " ");
        }
    }

    @Test
    public void stateMachine() {
        final LauncherDiscoveryRequest request =
                LauncherDiscoveryRequestBuilder.request()
                        .selectors(selectClass(DrwaStateMachine.class))
                        .configurationParameter(
                                "jqwik.database", System.getProperty("jqwik.database"))
                        .configurationParameter("jqwik.reporting.usejunitplatform", "true")
                        .configurationParameter("jqwik.shrinking.bounded.seconds", "120")
                        .build();
        final Listener listener = new Listener();
        LauncherFactory.create().execute(request, listener);
        assertEquals("", listener.describeFailures());
        assertEquals(5, listener.mSucceeded);
        System.out.println(DrwaStateMachine.sSteps + " steps");
        assertTrue(DrwaStateMachine.sSteps >= MIN_STEPS);
    }
}
