/*
 * Copyright (C) 2026 The DRWA for Android Authors
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

package com.android.server.connectivity;

import android.annotation.NonNull;
import java.io.PrintWriter;
import java.util.Set;

/**
 * What sets DRWA for an interface: its target, and the queue that it shares with others.
 *
 * <p>Knows what every interface holds, so that it writes nothing twice. A new interface is off,
 * what it holds disappears with it, and stays with it when it changes its name. Whoever hears of
 * any of these says so by {@link #refresh}, because a name alone does not tell whether it is the
 * same interface still.
 *
 * <p>Belongs to one thread, except for {@link #isMissing}, {@link #hasQueues}, {@link
 * #supersedeLimit}, {@link #reachStacked}, {@link #describe} and {@link #dump}. No method throws
 * what lies below throws: it is logged, and the result says so.
 *
 * @hide
 */
interface DrwaKnobs {
    /** The λ that leaves an interface to the kernel's own receive window. */
    int OFF = 0;

    /** Of an interface that shares its queue with no other. */
    int OWN_QUEUE = 0;

    /** What became of a try, for people who read it. */
    enum Result {
        DONE("done"),
        NO_INTERFACE("no such interface"),
        NO_LAMBDA("no " + DrwaSysctlKnobs.LAMBDA),
        NO_QUEUE("no " + DrwaSysctlKnobs.QUEUE),
        FAILED("netd failed"),
        QUEUE_FAILED("netd failed to set " + DrwaSysctlKnobs.QUEUE),
        MAP_FAILED("the BPF map failed"),
        MAP_FULL("the BPF map is full"),
        ATTACH_FAILED("the BPF programs cannot be attached"),
        NO_UPLINK("no " + DrwaUplink.TARGET),
        UPLINK_FAILED("netd failed to set " + DrwaUplink.TARGET),
        BUSY("another qdisc was put there, which stays");

        @NonNull private final String mText;

        Result(@NonNull String text) {
            mText = text;
        }

        /** Whether an interface that was to be on is. It may be so without its queue. */
        boolean isGoverned() {
            return this == DONE || this == NO_QUEUE || this == QUEUE_FAILED;
        }

        @Override
        public String toString() {
            return mText;
        }
    }

    /** As in "queue 100". */
    @NonNull
    static String describeQueue(int queue) {
        return queue == OWN_QUEUE ? "queue of its own" : "queue " + queue;
    }

    /** Whether these were missing when last looked for, see {@link #refresh}. */
    boolean isMissing();

    /** Whether interfaces may share a queue, as far as is known. */
    boolean hasQueues();

    /** Whether an interface that is on has no static limit any more. */
    boolean supersedeLimit();

    /**
     * Whether an interface's setting reaches what is stacked on it, as 464xlat is, whose packets
     * cross it as well. Then what is stacked has to be off.
     */
    boolean reachStacked();

    /** Where they are, for people who read a dump. */
    @NonNull
    String describe();

    /** The interfaces that are not off, or may not be. */
    @NonNull
    Set<String> getInterfacesNotOff();

    /**
     * Finds out what all interfaces hold. Does nothing once that is done.
     *
     * @return whether it is done: false means that it is worth another try later
     */
    boolean start();

    /** An interface has joined a network or left one, with which netd may take things away. */
    void onNetworkOf(@NonNull String iface);

    /**
     * Finds out what an interface holds, and {@link Result#DONE} if it can be set. What was missing
     * may be there by now.
     */
    @NonNull
    Result refresh(@NonNull String iface);

    /**
     * Writes the setting of an interface, but for what it holds already.
     *
     * @param queue above 0 and the same for all interfaces that share it, or {@link #OWN_QUEUE}. An
     *     interface that is off has the latter anyway
     */
    @NonNull
    Result set(@NonNull String iface, @NonNull DrwaSetting setting, int queue);

    /** For people who read a dump, why {@link #set} came to a result. */
    @NonNull
    default String explain(@NonNull String iface, @NonNull Result result) {
        return result.toString();
    }

    /** Takes away what no interface needs, once all of them are set. */
    @NonNull
    Result clean();

    /** Prints what there is to tell beside the settings. */
    void dump(@NonNull PrintWriter pw);
}
