// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;

import android.net.INetd;
import android.os.Binder;
import android.os.DeadObjectException;
import android.os.IBinder;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.system.OsConstants;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** netd in front of a kernel: which interfaces exist, and what their DRWA knobs hold. */
public class FakeNetd extends INetd.Default {
    /** What can go wrong with a call, as netd or binder report it. */
    public enum Fault {
        NONE,
        /** netd is gone. */
        DEAD,
        /** netd wrote, then died before it answered. */
        DIES_AFTER_WRITE,
        /** The file system refuses. */
        IO_ERROR,
        /** netd finds that the caller is nobody. */
        SECURITY
    }

    private final Map<String, Integer> mKnobs = new ConcurrentSkipListMap<>();
    private boolean mKernelHasDrwa = true;

    /** Applies to all calls until changed. */
    public Fault fault = Fault.NONE;

    public int calls;
    public int writes;

    /** Writes of what the knob held already. */
    public int redundantWrites;

    @Override
    public IBinder asBinder() {
        final Binder binder = new Binder();
        binder.attachInterface(this, INetd.class.getName());
        return binder;
    }

    public void addInterface(String iface) {
        mKnobs.put(iface, 0);
    }

    public void removeInterface(String iface) {
        mKnobs.remove(iface);
    }

    public boolean hasInterface(String iface) {
        return mKnobs.containsKey(iface);
    }

    public void removeDrwaFromKernel() {
        mKernelHasDrwa = false;
    }

    public boolean kernelHasDrwa() {
        return mKernelHasDrwa;
    }

    /** As a shell or an earlier system server would do. */
    public void setKnob(String iface, int lambda) {
        mKnobs.put(iface, lambda);
    }

    public int getKnob(String iface) {
        return mKnobs.get(iface);
    }

    /** All interfaces and what their knobs hold. */
    public Map<String, Integer> getKnobs() {
        return new TreeMap<>(mKnobs);
    }

    @Override
    public String getProcSysNet(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        checkCall(ipVersion, which, iface, parameter);
        return parameter.equals(DrwaKnob.KNOB) ? Integer.toString(mKnobs.get(iface)) : "1";
    }

    @Override
    public void setProcSysNet(
            int ipVersion, int which, String iface, String parameter, String value)
            throws RemoteException {
        checkCall(ipVersion, which, iface, parameter);
        assertEquals(DrwaKnob.KNOB, parameter);
        final int lambda = Integer.parseInt(value);
        if (lambda != 0 && (lambda < 100 || lambda > 1000)) {
            throw new ServiceSpecificException(OsConstants.EINVAL);
        }
        writes++;
        if (mKnobs.put(iface, lambda) == lambda) redundantWrites++;
        if (fault == Fault.DIES_AFTER_WRITE) throw new DeadObjectException();
    }

    @Override
    public void setTcpRWmemorySize(String rmem, String wmem) {
        throw new AssertionError("The receive limits are ConnectivityService's");
    }

    private void checkCall(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        calls++;
        assertEquals(INetd.IPV4, ipVersion);
        assertEquals(INetd.CONF, which);
        switch (fault) {
            case DEAD:
                throw new DeadObjectException();
            case IO_ERROR:
                throw new ServiceSpecificException(OsConstants.EIO);
            case SECURITY:
                throw new SecurityException();
            default:
                break;
        }
        final boolean exists =
                mKnobs.containsKey(iface) && (mKernelHasDrwa || !parameter.equals(DrwaKnob.KNOB));
        if (!exists) throw new ServiceSpecificException(OsConstants.ENOENT);
    }
}
