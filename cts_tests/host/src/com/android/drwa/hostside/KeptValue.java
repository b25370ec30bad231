// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.hostside;

import org.junit.rules.ExternalResource;

/** A setting or a flag of the device's, which a test may change and which is its own after that. */
final class KeptValue extends ExternalResource {
    private static final String NONE = "null";

    private final DrwaHostTestCase mTest;
    private final String mStore;
    private final String mName;
    private String mValue;

    /**
     * @param store the shell's command, "settings" or "device_config"
     * @param name as that names it, with a space
     */
    KeptValue(DrwaHostTestCase test, String store, String name) {
        mTest = test;
        mStore = store;
        mName = name;
    }

    private String get() throws Exception {
        // Where there is no root, the shell may as well
        mTest.getDevice().enableAdbRoot();
        return mTest.shell(mStore + " get " + mName).trim();
    }

    @Override
    protected void before() throws Exception {
        mValue = get();
    }

    @Override
    protected void after() {
        try {
            if (mValue.equals(get())) return;
            final boolean none = mValue.equals(NONE);
            mTest.shell(
                    mStore + (none ? " delete " : " put ") + mName + (none ? "" : " " + mValue));
        } catch (Exception e) {
            throw new AssertionError(mStore + " " + mName + " was " + mValue, e);
        }
    }
}
