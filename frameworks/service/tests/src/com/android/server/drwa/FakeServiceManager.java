// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import android.os.IBinder;
import android.os.ServiceManager;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowServiceManager;

/** Keeps what system services publish, which Robolectric's drops. */
@Implements(ServiceManager.class)
public class FakeServiceManager extends ShadowServiceManager {
    private static final Map<String, IBinder> sPublished = new ConcurrentHashMap<>();

    /** As at the start of the system, which a test has to say. */
    public static void forgetAll() {
        sPublished.clear();
    }

    @Implementation
    public static void addService(
            String name, IBinder service, boolean allowIsolated, int dumpPriority) {
        sPublished.put(name, service);
    }

    @Implementation
    protected static IBinder getService(String name) {
        final IBinder published = sPublished.get(name);
        return published == null ? ShadowServiceManager.getService(name) : published;
    }
}
