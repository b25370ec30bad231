/*
 * Copyright (C) 2026 The DRWA for Android Authors
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

package com.android.server.connectivity;

import android.annotation.NonNull;
import android.net.INetdUnsolicitedEventListener;
import java.util.function.Consumer;

/**
 * Hears from netd that an interface has come, gone, or changed its link or its name.
 *
 * <p>Whose name changes sends netd no uevent that it knows, but a netlink message with the new
 * name, which netd takes for the link's state. So does an interface that comes, a second time and
 * after its knob is there.
 *
 * @hide
 */
final class DrwaInterfaceListener extends INetdUnsolicitedEventListener.Stub {
    @NonNull private final Consumer<String> mOnEvent;

    /**
     * @param onEvent takes the name of the interface, on a binder thread
     */
    DrwaInterfaceListener(@NonNull Consumer<String> onEvent) {
        mOnEvent = onEvent;
    }

    @Override
    public void onInterfaceAdded(String iface) {
        mOnEvent.accept(iface);
    }

    @Override
    public void onInterfaceRemoved(String iface) {
        mOnEvent.accept(iface);
    }

    @Override
    public void onInterfaceLinkStateChanged(String iface, boolean up) {
        mOnEvent.accept(iface);
    }

    // netd names no interface here
    @Override
    public void onInterfaceChanged(String iface, boolean up) {}

    @Override
    public void onInterfaceClassActivityChanged(
            boolean isActive, int timerLabel, long timestampNs, int uid) {}

    @Override
    public void onQuotaLimitReached(String alertName, String iface) {}

    @Override
    public void onInterfaceDnsServerInfo(String iface, long lifetimeS, String[] servers) {}

    @Override
    public void onInterfaceAddressUpdated(String address, String iface, int flags, int scope) {}

    @Override
    public void onInterfaceAddressRemoved(String address, String iface, int flags, int scope) {}

    @Override
    public void onRouteChanged(boolean updated, String route, String gateway, String iface) {}

    @Override
    public void onStrictCleartextDetected(int uid, String hex) {}

    @Override
    public int getInterfaceVersion() {
        return VERSION;
    }

    @Override
    public String getInterfaceHash() {
        return HASH;
    }
}
