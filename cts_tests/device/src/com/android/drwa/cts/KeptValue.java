// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import static com.android.drwa.cts.Drwa.shell;

import org.junit.rules.ExternalResource;

/**
 * A setting or a flag of this device's, which a test may change and which is its own after that.
 */
final class KeptValue extends ExternalResource {
    private static final String NONE = "null";

    private final String mStore;
    private final String mName;
    private String mValue;

    /**
     * @param store the shell's command, "settings" or "device_config"
     * @param name as that names it, with a space
     */
    KeptValue(String store, String name) {
        mStore = store;
        mName = name;
    }

    private String get() {
        return shell(mStore + " get " + mName).trim();
    }

    @Override
    protected void before() {
        mValue = get();
    }

    @Override
    protected void after() {
        if (mValue.equals(get())) return;
        final boolean none = mValue.equals(NONE);
        shell(mStore + (none ? " delete " : " put ") + mName + (none ? "" : " " + mValue));
    }
}
