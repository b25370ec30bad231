// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static android.system.OsConstants.ENOENT;

import android.annotation.NonNull;
import android.net.INetd;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.util.ArrayMap;
import android.util.LocalLog;
import android.util.Log;
import com.android.internal.annotations.VisibleForTesting;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/**
 * The kernel's knob for DRWA, {@code /proc/sys/net/ipv4/conf/<interface>/tcp_drwa_lambda}, written
 * through netd. In spite of its place it governs IPv4 and IPv6 connections.
 *
 * <p>Knows what every interface's knob holds, so that it writes nothing twice. A new interface
 * starts with 0, and a knob disappears with its interface.
 *
 * <p>Belongs to one thread, except for {@link #dump}. No method throws what netd throws.
 *
 * @hide
 */
final class DrwaKnob {
    private static final String TAG = DrwaKnob.class.getSimpleName();

    /** The value that leaves an interface to the kernel's own receive window. */
    static final int OFF = 0;

    @VisibleForTesting static final String KNOB = "tcp_drwa_lambda";

    /** Every interface has this one, whatever the kernel. */
    @VisibleForTesting static final String ANY_KERNEL_HAS = "forwarding";

    private static final int UNKNOWN = -1;
    private static final int MAX_LOG_LINES = 100;

    @NonNull private final INetd mNetd;
    @NonNull private final LocalLog mLog = new LocalLog(MAX_LOG_LINES);

    /** What the knobs hold; interfaces that are not here hold 0. */
    private final ArrayMap<String, Integer> mValues = new ArrayMap<>();

    private boolean mSeen;

    // Written by the owning thread alone, read by dump() too.
    private volatile boolean mMissing;
    private volatile int mWrites;
    private volatile int mErrors;

    DrwaKnob(@NonNull INetd netd) {
        mNetd = netd;
    }

    /** Whether this kernel is known to lack DRWA. Once true, it stays true. */
    boolean isMissing() {
        return mMissing;
    }

    /** The interfaces whose knobs hold something else than 0, or may do so. */
    @NonNull
    List<String> getInterfacesNotOff() {
        return new ArrayList<>(mValues.keySet());
    }

    /** Finds out whether the kernel has the knob and what it holds on the given interfaces. */
    void read(@NonNull List<String> interfaces) {
        boolean lacking = false;
        for (String iface : interfaces) {
            try {
                final int value = Integer.parseInt(getProcSysNet(iface, KNOB));
                mSeen = true;
                if (value != OFF) mValues.put(iface, value);
            } catch (RemoteException | RuntimeException e) {
                if (isNotFound(e)) {
                    lacking |= exists(iface, ANY_KERNEL_HAS);
                } else {
                    onError("read", iface, e);
                }
            }
        }
        if (lacking && !mSeen) onMissing();
    }

    /**
     * Writes the setting of an interface unless its knob holds it already.
     *
     * @return whether that is done: false means that it is worth another try later
     */
    boolean set(@NonNull String iface, @NonNull DrwaSetting setting) {
        if (mValues.getOrDefault(iface, OFF) == setting.lambda || mMissing) return true;
        try {
            mNetd.setProcSysNet(
                    INetd.IPV4, INetd.CONF, iface, KNOB, Integer.toString(setting.lambda));
        } catch (RemoteException | RuntimeException e) {
            if (!isNotFound(e)) {
                onError("write", iface, e);
                return false;
            }
            mValues.remove(iface);
            if (!mSeen && exists(iface, ANY_KERNEL_HAS)) onMissing();
            // Without its interface a knob is off. To switch it on, wait for the interface.
            return mMissing || !setting.isOn();
        }
        mSeen = true;
        mWrites++;
        mLog.log(iface + " " + setting);
        if (setting.isOn()) {
            mValues.put(iface, setting.lambda);
        } else {
            mValues.remove(iface);
        }
        return true;
    }

    /** Prints counters and recent writes. Callable from any thread. */
    void dump(@NonNull PrintWriter pw) {
        if (mMissing) pw.println("This kernel has no " + KNOB);
        pw.println("Writes: " + mWrites + ", errors: " + mErrors);
        pw.println("Recent writes:");
        mLog.reverseDump(pw);
    }

    private boolean exists(String iface, String parameter) {
        try {
            getProcSysNet(iface, parameter);
            return true;
        } catch (RemoteException | RuntimeException e) {
            return false;
        }
    }

    private String getProcSysNet(String iface, String parameter) throws RemoteException {
        return mNetd.getProcSysNet(INetd.IPV4, INetd.CONF, iface, parameter);
    }

    private void onMissing() {
        mMissing = true;
        mValues.clear();
        Log.i(TAG, "This kernel has no " + KNOB + ", so DRWA stays off");
    }

    private static boolean isNotFound(Exception e) {
        return e instanceof ServiceSpecificException
                && ((ServiceSpecificException) e).errorCode == ENOENT;
    }

    private void onError(String what, String iface, Exception e) {
        // netd may have written before it failed, and the interface may go before the next try
        mValues.put(iface, UNKNOWN);
        mErrors++;
        final String message = "Cannot " + what + " " + KNOB + " of " + iface + ": " + e;
        Log.e(TAG, message);
        mLog.log(message);
    }
}
