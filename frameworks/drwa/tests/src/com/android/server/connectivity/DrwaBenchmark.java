// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.link;
import static org.junit.Assert.assertEquals;
import static org.robolectric.Shadows.shadowOf;

import android.net.LinkProperties;
import android.net.NetworkCapabilities;
import android.os.Handler;
import android.os.Looper;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/**
 * What one event costs ConnectivityService when nothing has changed. Robolectric has to run it, and
 * its instrumentation of the framework is part of what is measured.
 */
@RunWith(RobolectricTestRunner.class)
public class DrwaBenchmark {
    /** A phone on a cellular network with 464xlat, seen by the thread that events come on. */
    @State(Scope.Thread)
    public static class Phone {
        private final FakeNetd mNetd = new FakeNetd();
        private final NetworkCapabilities mCapabilities = cellular(1);
        private final LinkProperties mLinkProperties = link("rmnet_data2", "v4-rmnet_data2");
        private DrwaController mController;
        private int mCalls;

        @Setup
        public void connect() {
            final FakeTelephony telephony = new FakeTelephony(RuntimeEnvironment.getApplication());
            telephony.setConfig(1, true, 150);
            telephony.setCarrierId(1, 1989);
            mLinkProperties.getAllInterfaceNames().forEach(mNetd::addInterface);
            Looper.prepare();
            mController =
                    new DrwaController(
                            RuntimeEnvironment.getApplication(),
                            new Handler(Looper.myLooper()),
                            mNetd,
                            new DrwaController.Dependencies() {
                                @Override
                                Executor makeReader() {
                                    return new FakeReader();
                                }
                            });
            mController.start();
            shadowOf(Looper.myLooper()).idle();
            update();
            shadowOf(Looper.myLooper()).idle();
            assertEquals(150, mNetd.getKnob("v4-rmnet_data2"));
            mCalls = mNetd.calls;
        }

        private void update() {
            mController.onNetworkChanged(100, mCapabilities, mLinkProperties);
        }

        @TearDown
        public void check() {
            assertEquals("binder calls", mCalls, mNetd.calls);
        }
    }

    /** One update of LinkProperties that brings nothing new. */
    @Benchmark
    @BenchmarkMode(Mode.AverageTime)
    @OutputTimeUnit(TimeUnit.MICROSECONDS)
    public void unchangedLinkProperties(Phone phone) {
        phone.update();
    }

    /** {@code -Dbenchmark.result} names the file to write. */
    @Test
    public void run() throws Exception {
        new Runner(
                        new OptionsBuilder()
                                .include(DrwaBenchmark.class.getName())
                                .forks(0)
                                .warmupIterations(5)
                                .warmupTime(TimeValue.seconds(1))
                                .measurementIterations(5)
                                .measurementTime(TimeValue.seconds(1))
                                .addProfiler(GCProfiler.class)
                                .shouldFailOnError(true)
                                .resultFormat(ResultFormatType.JSON)
                                .result(System.getProperty("benchmark.result"))
                                .build())
                .run();
    }
}
