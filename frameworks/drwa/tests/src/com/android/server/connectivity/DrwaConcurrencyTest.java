// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static com.android.server.connectivity.TestNetworks.cellular;
import static com.android.server.connectivity.TestNetworks.link;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.os.Handler;
import android.os.HandlerThread;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.stream.Collectors;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/** Events come on the handler's thread while a binder thread dumps. */
@RunWith(RobolectricTestRunner.class)
public class DrwaConcurrencyTest {
    private static final int EVENTS = 20_000;
    private static final int NET_ID = 100;

    private final FakeNetd mNetd = new FakeNetd();

    private static List<String> dumpedInterfaces(DrwaController controller) {
        final StringWriter text = new StringWriter();
        controller.dump(new PrintWriter(text, true));
        return text.toString()
                .lines()
                .filter(line -> line.matches("(v4-)?rmnet.*"))
                .collect(Collectors.toList());
    }

    @Test
    public void dumpNeverShowsHalfAnEvent() throws Exception {
        final FakeTelephony telephony = new FakeTelephony(RuntimeEnvironment.getApplication());
        telephony.setConfig(1, true, 150);
        telephony.setCarrierId(1, 1989);
        mNetd.addInterface("rmnet_data2");
        mNetd.addInterface("v4-rmnet_data2");
        final HandlerThread thread = new HandlerThread("events");
        thread.start();
        final Handler handler = new Handler(thread.getLooper());
        final DrwaController controller =
                new DrwaController(
                        RuntimeEnvironment.getApplication(),
                        handler,
                        mNetd,
                        new DrwaController.Dependencies() {
                            @Override
                            Executor makeReader() {
                                return new FakeReader();
                            }
                        });
        controller.start();
        shadowOf(thread.getLooper()).idle();
        telephony.announceConfig(1);
        shadowOf(thread.getLooper()).idle();

        final FutureTask<Void> events =
                new FutureTask<>(
                        () -> {
                            for (int i = 0; i < EVENTS; i++) {
                                controller.onNetworkChanged(
                                        NET_ID, cellular(1), link("rmnet_data2", "v4-rmnet_data2"));
                                controller.onNetworkDestroyed(NET_ID);
                            }
                            return null;
                        });
        handler.post(events);
        final List<String> all =
                List.of("rmnet_data2 λ=1.50: carrier 1989", "v4-rmnet_data2 λ=1.50: carrier 1989");
        int dumps = 0;
        while (!events.isDone()) {
            final List<String> shown = dumpedInterfaces(controller);
            assertTrue(shown.toString(), shown.isEmpty() || shown.equals(all));
            dumps++;
        }
        events.get();
        assertTrue(dumps > 1);
        assertEquals(List.of(), dumpedInterfaces(controller));
        assertEquals(4 * EVENTS, mNetd.writes);
        thread.quitSafely();
    }
}
