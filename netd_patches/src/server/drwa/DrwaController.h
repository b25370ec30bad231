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

#ifndef DRWA_CONTROLLER_H
#define DRWA_CONTROLLER_H

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <android-base/result.h>
#include <android-base/thread_annotations.h>

#include "DrwaCounters.h"
#include "DrwaSockets.h"

namespace android {
namespace net {

// What the receive windows of TCP connections over an interface are held to.
struct DrwaLambda {
    std::string ifName;
    // In hundredths of a bandwidth-delay product; 0: the kernel's own receive window.
    int lambda;
    // Interfaces with the same id, which is above 0, share a queue of the radio's, and with it what
    // the kernel has learnt of it; 0: this one has a queue of its own. No value: when it is read,
    // the kernel knows no queues; when it is set, leave it as it is.
    std::optional<int> queue = {};
};

// Dynamic Receive Window Adjustment (DRWA): the kernel holds the receive windows of TCP connections
// over an interface to lambda times their bandwidth-delay product, so that the link stays full and
// the queue before it short.
//
// ConnectivityService sets lambda with INetd::setProcSysNet(), one interface at a time. This class
// does what that call cannot: several interfaces in one step, errors that tell a missing interface
// from a kernel without DRWA, a defined state when netd starts, and a report for dumpsys.
//
// Nobody but this class knows how a kernel takes lambda. Today there is one form, the files
// tcp_drwa_lambda and tcp_drwa_queue in /proc/sys/net/ipv4/conf/<interface>, which govern IPv4 and
// IPv6 alike; every interface except the loopback has them. Older series of the kernel have the
// first alone.
//
// All methods can be called from any thread.
class DrwaController {
  public:
    static constexpr int kOff = 0;
    static constexpr int kMinLambda = 100;
    static constexpr int kMaxLambda = 1000;

    // An argument of `dumpsys netd`, and how long it lets dump() watch the connections.
    static constexpr char kOptRates[] = "--drwa-rates";
    static constexpr std::chrono::milliseconds kDumpInterval{250};
    static constexpr size_t kMaxFlows = 10;

    using ReadSocketsFn = std::function<base::Result<DrwaSnapshot>()>;
    using SleepFn = std::function<void(std::chrono::milliseconds)>;

    // |proc| is the folder that has "sys/net" and "net".
    explicit DrwaController(std::string proc = "/proc", ReadSocketsFn readSockets = readDrwaSockets,
                            SleepFn sleep = sleepFor);

    // Turns DRWA off on every interface, and gives each a queue of its own, for the start of netd:
    // the kernel keeps both when netd crashes, but whoever had set them is restarted too. Does
    // nothing on a kernel without DRWA.
    //
    // Tries all interfaces whatever happens, and returns the first error. An interface that
    // disappears meanwhile is none.
    base::Result<void> reset() EXCLUDES(mMutex);

    // Sets lambda of each of the given interfaces, and the queue where one is given, or changes
    // nothing and returns
    //   EINVAL   a name is no name of an interface ("all" and "default" are none), or occurs twice;
    //            a lambda is neither kOff nor in [kMinLambda, kMaxLambda]; a queue is negative;
    //   ENODEV   there is no such interface;
    //   ENOENT   the interface has no lambda: the kernel lacks DRWA, or this is the loopback; or a
    //            queue is given, and the kernel knows none;
    //   EPROTO   the kernel's present value is no number;
    //   other    what reading or writing the kernel's file gave.
    //
    // Nothing is written before all names and values are found good. An interface is in its queue
    // as long as it is on. When a write fails, what was written before gets its former value again;
    // the error's message names what refuses, other than by having disappeared.
    base::Result<void> setLambdas(const std::vector<DrwaLambda>& lambdas) EXCLUDES(mMutex);

    // Returns lambda and the queue of the given interfaces, in that order; without any, of all
    // interfaces that have lambda, by name. The latter is an empty list on a kernel without DRWA.
    // Fails as a whole, with the errors of setLambdas().
    base::Result<std::vector<DrwaLambda>> getLambdas(
            const std::vector<std::string>& ifNames = {}) const EXCLUDES(mMutex);

    // What the kernel has counted at each interface; nothing if it does not tell. EPROTO: what it
    // tells makes no sense; other: what reading it gave.
    base::Result<std::vector<DrwaCounters>> readCounters() const;

    // The connections of this moment. Errors are those of readDrwaSockets().
    base::Result<DrwaSnapshot> readSockets() const { return mReadSockets(); }

    // Prints, line by line, lambda of every interface, what the kernel has counted there, and the
    // connections that receive. |rates|: takes kDumpInterval to find the busiest connections and
    // their rates; else it does not wait.
    void dump(const std::function<void(const std::string&)>& println, bool rates) const
            EXCLUDES(mMutex);

    // One line for each interface, followed by those of its counters and of its connections.
    static std::vector<std::string> format(const std::vector<DrwaLambda>& lambdas,
                                           const std::vector<DrwaCounters>& counters,
                                           const std::vector<DrwaFlow>& flows);

  private:
    static void sleepFor(std::chrono::milliseconds duration);

    // A file of the kernel's that each interface has; see the top.
    struct Knob {
        const char* file;
        // For messages.
        const char* name;
    };
    static constexpr Knob kLambda{"tcp_drwa_lambda", "lambda"};
    static constexpr Knob kQueue{"tcp_drwa_queue", "queue"};

    struct Write {
        std::string ifName;
        Knob knob;
        int value;
        int former;
    };

    std::string confPath(const std::string& ifName) const;
    std::string knobPath(const std::string& ifName, const Knob& knob) const;

    base::Result<std::vector<DrwaFlow>> readFlows(bool rates) const;
    base::Result<std::vector<std::string>> listInterfaces() const;
    base::Result<int> readKnob(const std::string& ifName, const Knob& knob) const;
    base::Result<DrwaLambda> readKnobs(const std::string& ifName) const;
    base::Result<void> writeKnob(const std::string& ifName, const Knob& knob, int value) const
            REQUIRES(mMutex);
    int missingOr(const std::string& ifName, int error) const;
    base::Result<std::vector<Write>> plan(const std::vector<DrwaLambda>& lambdas) const;

    const std::string mProc;
    const ReadSocketsFn mReadSockets;
    const SleepFn mSleep;

    // Held while knobs are read or written: no call sees another's half, or undoes it.
    mutable std::mutex mMutex;
};

}  // namespace net
}  // namespace android

#endif  // DRWA_CONTROLLER_H
