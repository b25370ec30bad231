// SPDX-License-Identifier: Apache-2.0

package com.android.internal.net;

/**
 * What the receive windows over an interface are held to.
 *
 * {@hide}
 */
parcelable DrwaLambdaParcel {
    /** Name of the interface, e.g. "rmnet_data0". */
    @utf8InCpp String ifName;

    /** In hundredths of a bandwidth-delay product, 100 to 1000; 0: off. */
    int lambda;
}
