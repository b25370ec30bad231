// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import android.net.INetd;
import android.net.INetdUnsolicitedEventListener;
import android.os.Binder;
import android.os.DeadObjectException;
import android.os.IBinder;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** The process netd, as its binder would be: once dead, dead for ever. */
final class NetdClient extends INetd.Default {
    private final Path mSocket;
    private final Words mNetd;

    NetdClient(Path socket) throws IOException {
        mSocket = socket;
        mNetd = Words.connect(socket);
    }

    @Override
    public IBinder asBinder() {
        final Binder binder = new Binder();
        binder.attachInterface(this, INetd.class.getName());
        return binder;
    }

    @Override
    public void registerUnsolicitedEventListener(INetdUnsolicitedEventListener listener)
            throws RemoteException {
        final Words events;
        try {
            events = Words.connect(mSocket);
        } catch (IOException e) {
            throw new DeadObjectException();
        }
        call(events, "registerUnsolicitedEventListener");
        new Thread(() -> tell(listener, events), "netd's binder thread").start();
    }

    /** Until netd dies. */
    private static void tell(INetdUnsolicitedEventListener listener, Words events) {
        try (events) {
            while (true) {
                final List<String> words = events.readRequest();
                final String iface = words.get(1);
                switch (words.get(0)) {
                    case "onInterfaceAdded":
                        listener.onInterfaceAdded(iface);
                        break;
                    case "onInterfaceRemoved":
                        listener.onInterfaceRemoved(iface);
                        break;
                    case "onInterfaceLinkStateChanged":
                        listener.onInterfaceLinkStateChanged(iface, words.get(2).equals("1"));
                        break;
                    default:
                        throw new AssertionError(words);
                }
            }
        } catch (IOException e) {
            // It has died
        } catch (RemoteException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public String getProcSysNet(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        return call(mNetd, "getProcSysNet", "" + ipVersion, "" + which, iface, parameter);
    }

    @Override
    public void setProcSysNet(
            int ipVersion, int which, String iface, String parameter, String value)
            throws RemoteException {
        call(mNetd, "setProcSysNet", "" + ipVersion, "" + which, iface, parameter, value);
    }

    @Override
    public void networkAddInterface(int netId, String iface) throws RemoteException {
        call(mNetd, "networkAddInterface", "" + netId, iface);
    }

    @Override
    public void networkDestroy(int netId) throws RemoteException {
        call(mNetd, "networkDestroy", "" + netId);
    }

    private static String call(Words netd, String... words) throws RemoteException {
        final int error;
        final String text;
        try {
            synchronized (netd) {
                netd.writeRequest(words);
                error = Integer.parseInt(netd.read());
                text = netd.read();
            }
        } catch (IOException e) {
            throw new DeadObjectException();
        }
        if (error != 0) throw new ServiceSpecificException(error, text);
        return text;
    }
}
