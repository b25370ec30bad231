// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import android.system.ErrnoException;

/** Stands in for the interface of ConnectivityService's module, as {@link Struct} does. */
public interface IBpfMap<K extends Struct, V extends Struct> extends AutoCloseable {
    void updateEntry(K key, V value) throws ErrnoException;

    boolean deleteEntry(K key) throws ErrnoException;

    /** The first key if this one is not there, null if it is the last. */
    K getNextKey(K key) throws ErrnoException;

    K getFirstKey() throws ErrnoException;

    V getValue(K key) throws ErrnoException;

    @Override
    default void close() {}
}
