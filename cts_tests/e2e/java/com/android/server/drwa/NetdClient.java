// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import android.net.INetd;
import android.os.Binder;
import android.os.DeadObjectException;
import android.os.IBinder;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import java.io.IOException;
import java.nio.file.Path;

/** The process netd, as its binder would be: once dead, dead for ever. */
final class NetdClient extends INetd.Default {
    private final Words mNetd;

    NetdClient(Path socket) throws IOException {
        mNetd = Words.connect(socket);
    }

    @Override
    public IBinder asBinder() {
        final Binder binder = new Binder();
        binder.attachInterface(this, INetd.class.getName());
        return binder;
    }

    @Override
    public String getProcSysNet(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        return call("getProcSysNet", "" + ipVersion, "" + which, iface, parameter);
    }

    @Override
    public void setProcSysNet(
            int ipVersion, int which, String iface, String parameter, String value)
            throws RemoteException {
        call("setProcSysNet", "" + ipVersion, "" + which, iface, parameter, value);
    }

    private synchronized String call(String... words) throws RemoteException {
        final int error;
        final String text;
        try {
            mNetd.writeRequest(words);
            error = Integer.parseInt(mNetd.read());
            text = mNetd.read();
        } catch (IOException e) {
            throw new DeadObjectException();
        }
        if (error != 0) throw new ServiceSpecificException(error, text);
        return text;
    }
}
