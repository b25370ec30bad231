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
#include <string>
#include <vector>

#include <android-base/result.h>
#include <android-base/thread_annotations.h>

#include "DrwaSockets.h"

namespace android {
namespace net {

// What the receive windows of TCP connections over an interface are held to.
struct DrwaLambda {
    std::string ifName;
    // In hundredths of a bandwidth-delay product; 0: the kernel's own receive window.
    int lambda;
};

// Dynamic Receive Window Adjustment (DRWA): the kernel holds the receive windows of TCP connections
// over an interface to lambda times their bandwidth-delay product, so that the link stays full and
// the queue before it short.
//
// ConnectivityService sets lambda with INetd::setProcSysNet(), one interface at a time. This class
// does what that call cannot: several interfaces in one step, errors that tell a missing interface
// from a kernel without DRWA, a defined state when netd starts, and a report for dumpsys.
//
// Nobody but this class knows how a kernel takes lambda. Today there is one form, the file
// net/ipv4/conf/<interface>/tcp_drwa_lambda, which governs IPv4 and IPv6 alike; every interface
// except the loopback has it.
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

    // |procSysNet| is the folder that has "ipv4".
    explicit DrwaController(std::string procSysNet = "/proc/sys/net",
                            ReadSocketsFn readSockets = readDrwaSockets, SleepFn sleep = sleepFor);

    // Turns DRWA off on every interface, for the start of netd: the kernel keeps lambda when netd
    // crashes, but whoever had set it is restarted too. Does nothing on a kernel without DRWA.
    //
    // Tries all interfaces whatever happens, and returns the first error. An interface that
    // disappears meanwhile is none.
    base::Result<void> reset() EXCLUDES(mMutex);

    // Sets lambda of each of the given interfaces, or changes nothing and returns
    //   EINVAL   a name is no name of an interface ("all" and "default" are none), or occurs twice;
    //            a lambda is neither kOff nor in [kMinLambda, kMaxLambda];
    //   ENODEV   there is no such interface;
    //   ENOENT   the interface has no lambda: the kernel lacks DRWA, or this is the loopback;
    //   EPROTO   the kernel's present value is no lambda;
    //   other    what reading or writing the kernel's file gave.
    //
    // Nothing is written before all names and values are found good. When a write fails, the
    // interfaces written before get their former values again; the error's message names those that
    // refuse, other than by having disappeared.
    base::Result<void> setLambdas(const std::vector<DrwaLambda>& lambdas) EXCLUDES(mMutex);

    // Returns lambda of the given interfaces, in that order; without any, of all interfaces that
    // have it, by name. The latter is an empty list on a kernel without DRWA. Fails as a whole,
    // with the errors of setLambdas().
    base::Result<std::vector<DrwaLambda>> getLambdas(
            const std::vector<std::string>& ifNames = {}) const EXCLUDES(mMutex);

    // The connections of this moment. Errors are those of readDrwaSockets().
    base::Result<DrwaSnapshot> readSockets() const { return mReadSockets(); }

    // Prints, line by line, lambda of every interface with the connections that receive, and how
    // calls of setLambdas() ended. |rates|: takes kDumpInterval to find the busiest connections
    // and their rates; else it does not wait.
    void dump(const std::function<void(const std::string&)>& println, bool rates) const
            EXCLUDES(mMutex);

    // One line for each interface, followed by those of its connections.
    static std::vector<std::string> format(const std::vector<DrwaLambda>& lambdas,
                                           const std::vector<DrwaFlow>& flows);

  private:
    static void sleepFor(std::chrono::milliseconds duration);

    // The form of the kernel's interface; see the top.
    std::string confPath(const std::string& ifName) const;
    std::string knobPath(const std::string& ifName) const;

    base::Result<std::vector<DrwaFlow>> readFlows(bool rates) const;
    base::Result<std::vector<std::string>> listInterfaces() const;
    base::Result<int> readKnob(const std::string& ifName) const;
    base::Result<void> writeKnob(const std::string& ifName, int lambda) const REQUIRES(mMutex);
    int missingOr(const std::string& ifName, int error) const;
    base::Result<void> setAll(const std::vector<DrwaLambda>& lambdas) REQUIRES(mMutex);

    const std::string mProcSysNet;
    const ReadSocketsFn mReadSockets;
    const SleepFn mSleep;

    // Held while knobs are read or written: no call sees another's half, or undoes it.
    mutable std::mutex mMutex;
    int mDone GUARDED_BY(mMutex) = 0;
    int mRefused GUARDED_BY(mMutex) = 0;
    std::string mLastRefusal GUARDED_BY(mMutex);
};

}  // namespace net
}  // namespace android

#endif  // DRWA_CONTROLLER_H
