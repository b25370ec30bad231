// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import android.system.ErrnoException;
import android.system.OsConstants;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Stands in for the class of ConnectivityService's module, as {@link Struct} does. Without the
 * native part, which the system property {@code drwa.natives} names, nothing is pinned.
 */
public class BpfMap<K extends Struct, V extends Struct> implements IBpfMap<K, V> {
    public static final int BPF_F_RDWR = 0;
    public static final int BPF_F_RDONLY = 1 << 3;

    /** Of enum bpf_cmd. */
    private static final int LOOKUP = 1;

    private static final int UPDATE = 2;
    private static final int DELETE = 3;
    private static final int GET_NEXT_KEY = 4;

    private static final String NATIVE = System.getProperty("drwa.natives");

    static {
        if (NATIVE != null) System.load(NATIVE);
    }

    private final int mFd;
    private final Class<K> mKey;
    private final Class<V> mValue;

    public BpfMap(final String path, final int flag, final Class<K> key, final Class<V> value)
            throws ErrnoException {
        mKey = key;
        mValue = value;
        final int keySize = Struct.getSize(key);
        final int valueSize = Struct.getSize(value);
        mFd = NATIVE == null ? -OsConstants.ENOENT : open(path, flag, keySize, valueSize);
        if (mFd < 0) throw new ErrnoException("nativeBpfFdGet", -mFd);
    }

    /** A file descriptor, or the negated errno; EBADF if the map's sizes are others. */
    private static native int open(String path, int flags, int keySize, int valueSize);

    /** 0, or the negated errno. */
    private static native int call(int command, int fd, byte[] key, byte[] value);

    /** Whether there is such a key. */
    private boolean doCall(String what, int command, byte[] key, byte[] value)
            throws ErrnoException {
        final int result = call(command, mFd, key, value);
        if (result == -OsConstants.ENOENT) return false;
        if (result < 0) throw new ErrnoException(what, -result);
        return true;
    }

    private static <T extends Struct> T parse(Class<T> type, byte[] bytes) {
        return Struct.parse(type, ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()));
    }

    @Override
    public void updateEntry(K key, V value) throws ErrnoException {
        doCall("nativeWriteToMapEntry", UPDATE, key.writeToBytes(), value.writeToBytes());
    }

    @Override
    public boolean deleteEntry(K key) throws ErrnoException {
        return doCall("nativeDeleteMapEntry", DELETE, key.writeToBytes(), null);
    }

    @Override
    public K getNextKey(K key) throws ErrnoException {
        return next(key.writeToBytes());
    }

    @Override
    public K getFirstKey() throws ErrnoException {
        return next(null);
    }

    private K next(byte[] key) throws ErrnoException {
        final byte[] next = new byte[Struct.getSize(mKey)];
        return doCall("nativeGetNextMapKey", GET_NEXT_KEY, key, next) ? parse(mKey, next) : null;
    }

    @Override
    public V getValue(K key) throws ErrnoException {
        final byte[] value = new byte[Struct.getSize(mValue)];
        return doCall("nativeFindMapEntry", LOOKUP, key.writeToBytes(), value)
                ? parse(mValue, value)
                : null;
    }
}
