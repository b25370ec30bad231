// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import android.system.ErrnoException;
import android.system.OsConstants;

/**
 * Stands in for the class of ConnectivityService's module, as {@link Struct} does, on a machine
 * where nothing is pinned.
 */
public class BpfMap<K extends Struct, V extends Struct> implements IBpfMap<K, V> {
    public static final int BPF_F_RDWR = 0;
    public static final int BPF_F_RDONLY = 1 << 3;

    public BpfMap(final String path, final int flag, final Class<K> key, final Class<V> value)
            throws ErrnoException {
        if (Struct.getSize(key) == 0 || Struct.getSize(value) == 0) {
            throw new IllegalArgumentException(path);
        }
        throw new ErrnoException("nativeBpfFdGet", OsConstants.ENOENT);
    }

    @Override
    public void updateEntry(K key, V value) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean deleteEntry(K key) {
        throw new UnsupportedOperationException();
    }

    @Override
    public K getNextKey(K key) {
        throw new UnsupportedOperationException();
    }

    @Override
    public K getFirstKey() {
        throw new UnsupportedOperationException();
    }

    @Override
    public V getValue(K key) {
        throw new UnsupportedOperationException();
    }
}
