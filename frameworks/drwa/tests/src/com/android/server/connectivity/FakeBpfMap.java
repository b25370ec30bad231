// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import android.system.ErrnoException;
import android.system.OsConstants;
import com.android.net.module.util.IBpfMap;
import com.android.net.module.util.Struct;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** A hash map of the kernel's with room for some entries, which it keeps as bytes. */
public class FakeBpfMap<V extends Struct> implements IBpfMap<Struct.S32, V> {
    private final ConcurrentSkipListMap<Integer, byte[]> mEntries = new ConcurrentSkipListMap<>();
    private final Class<V> mValueClass;
    private final int mCapacity;
    private final Observer<V> mObserver;

    /** Sees each system call. What it throws is what the call comes to. */
    public interface Observer<V extends Struct> {
        void onRead(int key) throws ErrnoException;

        void beforeWrite(int key) throws ErrnoException;

        /**
         * @param former null if there was none
         * @param value null if there is none any more
         */
        void afterWrite(int key, V former, V value) throws ErrnoException;
    }

    public FakeBpfMap(Class<V> valueClass, int capacity, Observer<V> observer) {
        mValueClass = valueClass;
        mCapacity = capacity;
        mObserver = observer;
    }

    /** As another process sees it, or the programs. */
    public Map<Integer, V> getAll() {
        final Map<Integer, V> all = new TreeMap<>();
        mEntries.forEach((key, value) -> all.put(key, parse(value)));
        return all;
    }

    /** As another process writes it, or the programs. */
    public void put(int key, V value) {
        mEntries.put(key, value.writeToBytes());
    }

    /** As another process deletes it, or the programs. */
    public void remove(int key) {
        mEntries.remove(key);
    }

    private V parse(byte[] value) {
        if (value == null) return null;
        return Struct.parse(mValueClass, ByteBuffer.wrap(value).order(ByteOrder.nativeOrder()));
    }

    private static Struct.S32 keyOf(Integer key) {
        return key == null ? null : new Struct.S32(key);
    }

    @Override
    public void updateEntry(Struct.S32 key, V value) throws ErrnoException {
        mObserver.beforeWrite(key.val);
        if (!mEntries.containsKey(key.val) && mEntries.size() >= mCapacity) {
            throw new ErrnoException("nativeWriteToMapEntry", OsConstants.E2BIG);
        }
        final V former = parse(mEntries.put(key.val, value.writeToBytes()));
        mObserver.afterWrite(key.val, former, value);
    }

    @Override
    public boolean deleteEntry(Struct.S32 key) throws ErrnoException {
        mObserver.beforeWrite(key.val);
        final V former = parse(mEntries.remove(key.val));
        mObserver.afterWrite(key.val, former, null);
        return former != null;
    }

    @Override
    public Struct.S32 getNextKey(Struct.S32 key) throws ErrnoException {
        if (!mEntries.containsKey(key.val)) return getFirstKey();
        // About all keys, and so about no interface
        mObserver.onRead(0);
        return keyOf(mEntries.higherKey(key.val));
    }

    @Override
    public Struct.S32 getFirstKey() throws ErrnoException {
        mObserver.onRead(0);
        return mEntries.isEmpty() ? null : keyOf(mEntries.firstKey());
    }

    @Override
    public V getValue(Struct.S32 key) throws ErrnoException {
        mObserver.onRead(key.val);
        return parse(mEntries.get(key.val));
    }
}
