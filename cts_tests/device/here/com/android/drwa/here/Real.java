// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import android.net.ConnectivityManager;
import android.net.NetworkInfo;
import android.net.TestNetworkInterface;
import android.os.ParcelFileDescriptor;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.annotation.RealObject;
import org.robolectric.shadows.ShadowNetworkInfo;
import org.robolectric.util.ReflectionHelpers;

/** Takes the place of Robolectric's shadows, and of nothing else: the framework's classes run. */
public final class Real {
    private Real() {}

    /** Reaches {@link FakeConnectivity} through its AIDL interface. */
    @Implements(ConnectivityManager.class)
    public static class RealConnectivityManager {}

    /** NetworkAgent needs it. */
    @Implements(NetworkInfo.class)
    public static class RealNetworkInfo extends ShadowNetworkInfo {
        @RealObject private NetworkInfo mReal;

        @Implementation
        @Override
        protected NetworkInfo.State getState() {
            return ReflectionHelpers.getField(mReal, "mState");
        }
    }

    /** Asks the kernel for the interface's hardware address, which tests here have not got. */
    @Implements(TestNetworkInterface.class)
    public static class InterfaceWithoutKernel {
        @RealObject private TestNetworkInterface mReal;

        @Implementation(methodName = "__constructor__")
        protected void construct(ParcelFileDescriptor fd, String iface) {
            ReflectionHelpers.setField(mReal, "mFileDescriptor", fd);
            ReflectionHelpers.setField(mReal, "mInterfaceName", iface);
        }
    }
}
