// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.junit.Assert.assertEquals;

import android.net.INetd;
import android.net.INetdUnsolicitedEventListener;
import android.os.Binder;
import android.os.DeadObjectException;
import android.os.IBinder;
import android.os.RemoteException;
import android.os.ServiceSpecificException;
import android.system.ErrnoException;
import android.system.OsConstants;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * netd in front of a kernel: which interfaces exist, and what their knobs of DRWA hold.
 *
 * <p>Or a kernel whose knobs are the maps of BPF programs, {@link #replaceKnobsByBpf}: what a test
 * reads and sets is in these maps then, and what fails are their system calls.
 */
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
    private final Map<String, Integer> mQueues = new ConcurrentHashMap<>();
    private final Map<String, Integer> mUplinks = new ConcurrentHashMap<>();
    private final Set<String> mVendorQdiscs = ConcurrentHashMap.newKeySet();
    private final Set<String> mWithoutKnob = ConcurrentHashMap.newKeySet();
    private final List<INetdUnsolicitedEventListener> mListeners = new CopyOnWriteArrayList<>();
    private final Map<String, Integer> mIndices = new ConcurrentHashMap<>();
    private int mLastIndex = 1;
    private FakeBpfMap<DrwaBpfKnobs.Dev> mDevs;

    /** By interface, those of the programs' filters that are attached, true for ingress. */
    private final Map<String, List<Boolean>> mFilters = new ConcurrentHashMap<>();

    private final Set<String> mClsact = ConcurrentHashMap.newKeySet();
    private final Set<String> mPoliced = ConcurrentHashMap.newKeySet();

    /** By interface, what netd's own programs are set to; null without them. */
    private Map<String, String> mPrograms;

    private boolean mKernelHasDrwa = true;
    private boolean mKernelHasQueues = true;
    private boolean mNetdHasUplink = true;
    private boolean mKernelHasUplink = true;

    /** Why netd cannot use its programs, which it has by {@link #addPrograms}. */
    public String programsProblem;

    /** Applies to all calls until changed. */
    public Fault fault = Fault.NONE;

    /** Applies to what is to tell of interfaces. */
    public Fault faultOfListening = Fault.NONE;

    /** Applies to calls about one interface; for {@link #fault} to win, that has to be set. */
    public final Map<String, Fault> faults = new ConcurrentHashMap<>();

    /** Applies to calls about one interface's queue. */
    public final Map<String, Fault> faultsOfQueues = new ConcurrentHashMap<>();

    /** Applies to calls about one interface's uplink. */
    public final Map<String, Fault> faultsOfUplinks = new ConcurrentHashMap<>();

    public int calls;

    /** Writes of λ. */
    public int writes;

    /** Writes of what a knob held already. */
    public int redundantWrites;

    /** All writes in their order, as in "rmnet0 tcp_drwa_lambda=150". */
    public final List<String> written = Collections.synchronizedList(new ArrayList<>());

    /** What a listener is told, by netd's own threads. */
    public interface Event {
        void tell(INetdUnsolicitedEventListener listener) throws RemoteException;
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
        calls++;
        throwIf(fault);
        throwIf(faultOfListening);
        mListeners.add(listener);
        if (fault == Fault.DIES_AFTER_WRITE) throw new DeadObjectException();
    }

    /** As when the system server, which the listeners live in, starts again. */
    public void forgetListeners() {
        mListeners.clear();
    }

    public int countListeners() {
        return mListeners.size();
    }

    /** Tells all listeners of something. */
    public void announce(Event event) {
        try {
            for (INetdUnsolicitedEventListener listener : mListeners) event.tell(listener);
        } catch (RemoteException e) {
            throw new AssertionError(e);
        }
    }

    /** Adds an interface as the kernel does, whose uevent netd sees first. */
    public void addInterface(String iface) {
        announce(listener -> listener.onInterfaceAdded(iface));
        mKnobs.put(iface, 0);
        mIndices.put(iface, ++mLastIndex);
        announce(listener -> listener.onInterfaceLinkStateChanged(iface, false /* up */));
    }

    /** Removes an interface with its knobs, but not its entry in a map. */
    public void removeInterface(String iface) {
        mKnobs.remove(iface);
        mQueues.remove(iface);
        mUplinks.remove(iface);
        mVendorQdiscs.remove(iface);
        mWithoutKnob.remove(iface);
        mIndices.remove(iface);
        mFilters.remove(iface);
        mClsact.remove(iface);
        mPoliced.remove(iface);
        if (mPrograms != null) mPrograms.remove(iface);
        announce(listener -> listener.onInterfaceRemoved(iface));
    }

    /** The device goes on under another name, with its knob. netd hears of the new name alone. */
    public void renameInterface(String from, String to) {
        mKnobs.put(to, mKnobs.remove(from));
        mIndices.put(to, mIndices.remove(from));
        if (mFilters.containsKey(from)) mFilters.put(to, mFilters.remove(from));
        if (mClsact.remove(from)) mClsact.add(to);
        if (mPoliced.remove(from)) mPoliced.add(to);
        if (mPrograms != null && mPrograms.containsKey(from)) {
            mPrograms.put(to, mPrograms.remove(from));
        }
        if (mQueues.containsKey(from)) mQueues.put(to, mQueues.remove(from));
        if (mUplinks.containsKey(from)) mUplinks.put(to, mUplinks.remove(from));
        if (mVendorQdiscs.remove(from)) mVendorQdiscs.add(to);
        if (mWithoutKnob.remove(from)) mWithoutKnob.add(to);
        announce(listener -> listener.onInterfaceLinkStateChanged(to, true /* up */));
    }

    public boolean hasInterface(String iface) {
        return mKnobs.containsKey(iface);
    }

    public void removeDrwaFromKernel() {
        mKernelHasDrwa = false;
    }

    /** As a kernel without knobs, with programs that the module has loaded. */
    public void replaceKnobsByBpf() {
        removeDrwaFromKernel();
        addBpf();
    }

    /** As a module with programs, whatever the kernel has. */
    public void addBpf() {
        mDevs = new FakeBpfMap<>(DrwaBpfKnobs.Dev.class, 64, new SystemCalls());
    }

    /** As a netd that owns programs, which the platform's loader has pinned. */
    public void addPrograms() {
        mPrograms = new ConcurrentSkipListMap<>();
    }

    public boolean hasPrograms() {
        return mPrograms != null;
    }

    /** What netd's programs govern, by interface. */
    public Map<String, String> getPrograms() {
        return mPrograms;
    }

    private void setPrograms(String iface, String value) {
        if (!value.matches("0|[1-9][0-9]{2,3} [0-9]+ [01] [01]")) {
            throw new ServiceSpecificException(OsConstants.EINVAL);
        }
        if (!value.equals("0") && mPoliced.contains(iface)) {
            mPrograms.remove(iface);
            mFilters.remove(iface);
            throw new ServiceSpecificException(
                    OsConstants.EEXIST,
                    "Priority 1 at "
                            + iface
                            + "'s ingress is another's, a filter of kind matchall");
        }
        final boolean attached = getFilters(iface).size() == 2;
        final String former =
                value.equals("0") ? mPrograms.remove(iface) : mPrograms.put(iface, value);
        if (value.equals("0")) {
            if (former == null) redundantWrites++;
            mFilters.remove(iface);
        } else {
            if (attached && value.equals(former)) redundantWrites++;
            mClsact.add(iface);
            mFilters.put(iface, new ArrayList<>(List.of(false, true)));
        }
    }

    /** As when a module of the kernel's was loaded. */
    public void addDrwaToKernel() {
        mKernelHasDrwa = true;
    }

    /** As when that module goes, and what its knobs held with it. */
    public void unloadDrwaFromKernel() {
        mKernelHasDrwa = false;
        mKnobs.replaceAll((iface, lambda) -> 0);
        mQueues.clear();
    }

    /** As when the qdisc's module was loaded. */
    public void addUplinkToKernel() {
        mKernelHasUplink = true;
    }

    public boolean hasBpf() {
        return mDevs != null;
    }

    /** The maps hold what governs. */
    private boolean isBpf() {
        return hasBpf() && !mKernelHasDrwa;
    }

    /** netd's programs are what governs. */
    private boolean isPrograms() {
        return hasPrograms() && !mKernelHasDrwa;
    }

    /** What governs, by index. */
    public FakeBpfMap<DrwaBpfKnobs.Dev> getDevs() {
        return mDevs;
    }

    /** 0 if there is no such interface. */
    public int getIndex(String iface) {
        return mIndices.getOrDefault(iface, 0);
    }

    /** Null if there is no such interface. */
    public String getName(int index) {
        for (Map.Entry<String, Integer> iface : mIndices.entrySet()) {
            if (iface.getValue() == index) return iface.getKey();
        }
        return null;
    }

    /** An entry as the programs' owner makes it, of no place in particular. */
    public static DrwaBpfKnobs.Dev makeDev(long lambda, long queue) {
        return new DrwaBpfKnobs.Dev(
                lambda,
                queue,
                0,
                0,
                0,
                DrwaBpfKnobs.PRIORITY,
                DrwaBpfKnobs.CLSACT_STAYS,
                (short) 0,
                0,
                DrwaBpfKnobs.NO_ECHO);
    }

    /** What governs the packets of an interface: those of 464xlat's cross the one below, too. */
    private DrwaBpfKnobs.Dev getDev(String iface) {
        final DrwaBpfKnobs.Dev own =
                isBpf() ? mDevs.getAll().get(getIndex(iface)) : getProgramsDev(iface);
        if (own != null && getFilters(iface).size() == 2) return own;
        if (iface.startsWith("v4-")) return getDev(iface.substring("v4-".length()));
        return makeDev(0, 0);
    }

    /** The entry that netd makes of what its programs are set to; null if they are off. */
    private DrwaBpfKnobs.Dev getProgramsDev(String iface) {
        final String value = mPrograms.get(iface);
        if (value == null) return null;
        final String[] words = value.split(" ");
        return new DrwaBpfKnobs.Dev(
                Long.parseLong(words[0]),
                Long.parseLong(words[1]),
                0,
                0,
                0,
                DrwaBpfKnobs.PRIORITY,
                DrwaBpfKnobs.CLSACT_STAYS,
                (short) (words[3].equals("0") ? 1 : 0),
                Long.parseLong(words[2]),
                DrwaBpfKnobs.NO_ECHO);
    }

    /** Whether the programs at an interface leave clients alone. */
    public boolean leavesClientsAlone(String iface) {
        return getDev(iface).local == 1;
    }

    private void setDev(String iface, long lambda, long queue) {
        final int index = mIndices.computeIfAbsent(iface, name -> ++mLastIndex);
        mDevs.put(index, makeDev(lambda, queue));
        if (lambda == 0) return;
        mClsact.add(iface);
        mFilters.put(iface, new ArrayList<>(List.of(false, true)));
    }

    /** True for the programs' filter at ingress, false for that at egress. */
    public List<Boolean> getFilters(String iface) {
        final List<Boolean> filters = new ArrayList<>(mFilters.getOrDefault(iface, List.of()));
        Collections.sort(filters);
        return filters;
    }

    /** As when netd has added the interface to a network that is no VPN. */
    public void addClsact(String iface) throws ErrnoException {
        throwIf(iface);
        if (!mClsact.add(iface)) throw new ErrnoException("qdisc", OsConstants.EEXIST);
    }

    /**
     * As ConnectivityService does for a developer's limit.
     *
     * @return false if the kernel refuses it, as beside a filter of another kind
     */
    public boolean addPolice(String iface) {
        if (getFilters(iface).contains(true)) return false;
        mClsact.add(iface);
        mPoliced.add(iface);
        return true;
    }

    /** As when netd has taken the interface from its network: the filters go with the qdisc. */
    public void removeClsact(String iface) {
        mClsact.remove(iface);
        mPoliced.remove(iface);
        mFilters.remove(iface);
    }

    public boolean hasPolice(String iface) {
        return mPoliced.contains(iface);
    }

    /** As the module's TcUtils does, which gives no handle: so the kernel takes one twice. */
    public void addFilter(String iface, boolean ingress) throws ErrnoException {
        throwIf(iface);
        if (!mClsact.contains(iface) || ingress && mPoliced.contains(iface)) {
            throw new ErrnoException("filter", OsConstants.EINVAL);
        }
        mFilters.computeIfAbsent(iface, name -> new ArrayList<>()).add(ingress);
    }

    public boolean hasEgress(String iface) {
        return mFilters.getOrDefault(iface, List.of()).contains(false);
    }

    /** As the module's TcUtils does: by priority and protocol, whosever it is. */
    public void deleteFilter(String iface, boolean ingress) throws ErrnoException {
        throwIf(iface);
        if (ingress && mPoliced.remove(iface)) return;
        if (!mClsact.contains(iface)) throw new ErrnoException("filter", OsConstants.EINVAL);
        final List<Boolean> filters = mFilters.get(iface);
        if (filters == null || !filters.removeIf(each -> each == ingress)) {
            throw new ErrnoException("filter", OsConstants.ENOENT);
        }
    }

    private void throwIf(String iface) throws ErrnoException {
        calls++;
        if (iface == null) throw new ErrnoException("filter", OsConstants.ENODEV);
        final Fault found = faultOf(iface, "");
        if (found != Fault.NONE && found != Fault.DIES_AFTER_WRITE) {
            throw new ErrnoException("filter", OsConstants.EIO);
        }
    }

    private final class SystemCalls implements FakeBpfMap.Observer<DrwaBpfKnobs.Dev> {
        @Override
        public void onRead(int index) throws ErrnoException {
            calls++;
            final Fault found = faultOf(index);
            if (found != Fault.NONE && found != Fault.DIES_AFTER_WRITE) throw ioError();
        }

        @Override
        public void beforeWrite(int index) throws ErrnoException {
            onRead(index);
        }

        @Override
        public void afterWrite(int index, DrwaBpfKnobs.Dev former, DrwaBpfKnobs.Dev dev)
                throws ErrnoException {
            final long before = former == null ? 0 : former.lambda;
            if (before != (dev == null ? 0 : dev.lambda)) writes++;
            if (Objects.equals(dev, former)) redundantWrites++;
            written.add(
                    getName(index)
                            + (dev == null ? " deleted" : " " + dev.lambda + " " + dev.number));
            if (faultOf(index) == Fault.DIES_AFTER_WRITE) throw ioError();
        }

        private Fault faultOf(int index) {
            final String iface = getName(index);
            return iface == null ? fault : FakeNetd.this.faultOf(iface, "");
        }

        private ErrnoException ioError() {
            return new ErrnoException("bpf", OsConstants.EIO);
        }
    }

    /** As a kernel with an older series, which knows λ alone. */
    public void removeQueuesFromKernel() {
        mKernelHasQueues = false;
    }

    public boolean kernelHasDrwa() {
        return mKernelHasDrwa;
    }

    /** As when the kernel had no memory for the knobs of an interface. */
    public void removeKnob(String iface) {
        mWithoutKnob.add(iface);
        mKnobs.put(iface, 0);
        mIndices.computeIfAbsent(iface, name -> ++mLastIndex);
    }

    public boolean hasKnob(String iface) {
        if (isBpf() || isPrograms()) return hasInterface(iface);
        return hasSysctl(iface);
    }

    private boolean hasSysctl(String iface) {
        return mKnobs.containsKey(iface) && mKernelHasDrwa && !mWithoutKnob.contains(iface);
    }

    /** As a shell or an earlier system server would do. */
    public void setKnob(String iface, int lambda) {
        mKnobs.put(iface, isBpf() ? 0 : lambda);
        if (isBpf()) setDev(iface, lambda, getQueue(iface));
    }

    public int getKnob(String iface) {
        return isBpf() || isPrograms() ? (int) getDev(iface).lambda : mKnobs.get(iface);
    }

    /** As a shell or an earlier system server would do. */
    public void setQueue(String iface, int queue) {
        if (isBpf()) {
            setDev(iface, getKnob(iface), queue);
        } else {
            mQueues.put(iface, queue);
        }
    }

    /** 0 for an interface that has a queue of its own. */
    public int getQueue(String iface) {
        return isBpf() || isPrograms()
                ? (int) getDev(iface).number
                : mQueues.getOrDefault(iface, 0);
    }

    /** As a netd without DRWA. */
    public void removeUplinkFromNetd() {
        mNetdHasUplink = false;
    }

    /** As a kernel without the qdisc. */
    public void removeUplinkFromKernel() {
        mKernelHasUplink = false;
    }

    /** As when a vendor's daemon has set a qdisc of its own. */
    public void addVendorQdisc(String iface) {
        mUplinks.remove(iface);
        mVendorQdiscs.add(iface);
    }

    public boolean hasVendorQdisc(String iface) {
        return mVendorQdiscs.contains(iface);
    }

    public void removeVendorQdisc(String iface) {
        mVendorQdiscs.remove(iface);
    }

    /** As an earlier system server would do. */
    public void setUplink(String iface, int targetMs) {
        mUplinks.put(iface, targetMs);
    }

    /** The target in ms of the qdisc at an interface's root, 0 if that is not netd's. */
    public int getUplink(String iface) {
        return mUplinks.getOrDefault(iface, 0);
    }

    /** All interfaces and what their knobs hold; 0 for those that have none. */
    public Map<String, Integer> getKnobs() {
        final Map<String, Integer> knobs = new TreeMap<>(mKnobs);
        if (isBpf() || isPrograms()) knobs.replaceAll((iface, none) -> getKnob(iface));
        return knobs;
    }

    @Override
    public String getProcSysNet(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        checkCall(ipVersion, which, iface, parameter);
        switch (parameter) {
            case DrwaSysctlKnobs.LAMBDA:
                return Integer.toString(mKnobs.get(iface));
            case DrwaSysctlKnobs.QUEUE:
                return Integer.toString(getQueue(iface));
            case DrwaUplink.TARGET:
                return Integer.toString(getUplink(iface));
            case DrwaNetdKnobs.PROGRAMS:
                return mPrograms.getOrDefault(iface, DrwaNetdKnobs.OFF_VALUE);
            default:
                return "1";
        }
    }

    @Override
    public void setProcSysNet(
            int ipVersion, int which, String iface, String parameter, String value)
            throws RemoteException {
        checkCall(ipVersion, which, iface, parameter);
        if (parameter.equals(DrwaNetdKnobs.PROGRAMS)) {
            setPrograms(iface, value);
            written.add(iface + " " + parameter + "=" + value);
            if (faultOf(iface, parameter) == Fault.DIES_AFTER_WRITE) {
                throw new DeadObjectException();
            }
            return;
        }
        final int number = Integer.parseInt(value);
        final Integer former;
        if (parameter.equals(DrwaSysctlKnobs.QUEUE)) {
            if (number < 0) throw new ServiceSpecificException(OsConstants.EINVAL);
            former = getQueue(iface);
            setQueue(iface, number);
        } else if (parameter.equals(DrwaUplink.TARGET)) {
            if (number != 0 && (number < 5 || number > 200)) {
                throw new ServiceSpecificException(OsConstants.EINVAL);
            }
            if (number != 0 && mVendorQdiscs.contains(iface)) {
                throw new ServiceSpecificException(OsConstants.EBUSY);
            }
            // A vendor's is not netd's to take away
            former = mVendorQdiscs.contains(iface) ? Integer.valueOf(-1) : getUplink(iface);
            setUplink(iface, number);
        } else {
            assertEquals(DrwaSysctlKnobs.LAMBDA, parameter);
            if (number != 0 && (number < 100 || number > 1000)) {
                throw new ServiceSpecificException(OsConstants.EINVAL);
            }
            writes++;
            former = mKnobs.put(iface, number);
        }
        if (former == number) redundantWrites++;
        written.add(iface + " " + parameter + "=" + value);
        if (faultOf(iface, parameter) == Fault.DIES_AFTER_WRITE) throw new DeadObjectException();
    }

    @Override
    public void setTcpRWmemorySize(String rmem, String wmem) {
        throw new AssertionError("The receive limits are ConnectivityService's");
    }

    private Fault faultOf(String iface, String parameter) {
        if (fault != Fault.NONE) return fault;
        final Fault ofQueue = faultsOfQueues.get(iface);
        if (ofQueue != null && parameter.equals(DrwaSysctlKnobs.QUEUE)) return ofQueue;
        final Fault ofUplink = faultsOfUplinks.get(iface);
        if (ofUplink != null && parameter.equals(DrwaUplink.TARGET)) return ofUplink;
        return faults.getOrDefault(iface, Fault.NONE);
    }

    private void checkCall(int ipVersion, int which, String iface, String parameter)
            throws RemoteException {
        calls++;
        assertEquals(INetd.IPV4, ipVersion);
        assertEquals(INetd.CONF, which);
        throwIf(faultOf(iface, parameter));
        if (parameter.equals(DrwaNetdKnobs.PROGRAMS) && mPrograms != null) {
            if (programsProblem != null) {
                throw new ServiceSpecificException(OsConstants.ENOENT, programsProblem);
            }
            if (hasInterface(iface) || iface.equals("lo")) return;
            throw new ServiceSpecificException(OsConstants.ENODEV);
        }
        if (hasFile(iface, parameter)) return;
        // What is no file, netd looks for itself
        final boolean isFile = !parameter.equals(DrwaUplink.TARGET) || !mNetdHasUplink;
        throw new ServiceSpecificException(
                isFile || hasInterface(iface) ? OsConstants.ENOENT : OsConstants.ENODEV);
    }

    private boolean hasFile(String iface, String parameter) {
        switch (parameter) {
            case DrwaSysctlKnobs.LAMBDA:
                return hasSysctl(iface);
            case DrwaSysctlKnobs.QUEUE:
                return hasSysctl(iface) && mKernelHasQueues;
            case DrwaUplink.TARGET:
                return hasInterface(iface) && mNetdHasUplink && mKernelHasUplink;
            case DrwaNetdKnobs.PROGRAMS:
                return false;
            default:
                return mKnobs.containsKey(iface);
        }
    }

    private static void throwIf(Fault fault) throws RemoteException {
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
    }
}
