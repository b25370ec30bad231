// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import java.io.IOException;

/** Stands in for the class of ConnectivityService's module, as {@link Struct} does. */
public class BpfUtils {
    public static int getProgramId(int attachType) throws IOException {
        throw new IOException("Failed to query bpf program " + attachType);
    }
}
