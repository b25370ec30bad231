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

#ifndef DRWA_PROGRAMS_H
#define DRWA_PROGRAMS_H

#include <stdint.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <android-base/result.h>
#include <android-base/thread_annotations.h>
#include <android-base/unique_fd.h>

#include "DrwaBpf.h"

namespace android {
namespace net {

// DRWA for a kernel without its patches: two BPF programs, which the platform's loader has pinned,
// as filters of the interfaces that are on.
//
// DrwaService sets an interface with INetd::setProcSysNet() and reads it with getProcSysNet(), by
// the name kParameter in "ipv4" and "conf", as DrwaUplink.h has it, for the same reason. There is
// no such file. The value is one of
//
//   0                          off
//   LAMBDA QUEUE AQM CLIENTS   on: lambda in hundredths, a queue's number as of DrwaController.h,
//                              whether UDP is held to a short queue as well, and whether what the
//                              phone forwards is governed, 0 or 1 each
//
// An interface that is on has an entry in the map "devs", by its index, and both programs. One that
// is off has neither: no program of ours runs there. So what is on is in the kernel alone, and what
// was left, or belongs to no interface any more, is taken away at the next change.
//
// Filters go with their qdisc, which netd itself takes away when an interface leaves its network.
// To set the same again brings them back.
//
// A place of another filter's stays its own: whoever has DRWA's priority already keeps it, and the
// interface stays off.
//
// All methods can be called from any thread.
class DrwaPrograms {
  public:
    static constexpr char kParameter[] = "drwa_programs";

    // Where the platform's loader pins what is in /system/etc/bpf/drwa.
    static constexpr char kPins[] = "/sys/fs/bpf/";

    static constexpr uint32_t kMinLambda = 100;
    static constexpr uint32_t kMaxLambda = 1000;

    // DRWA_SECOND_US: an older delay tells nothing of a queue.
    static constexpr uint32_t kDelayOldUs = 1048576;

    // DRWA_DEVS of the programs: how many interfaces may be on.
    static constexpr uint32_t kPlaces = 64;

    explicit DrwaPrograms(std::unique_ptr<DrwaBpf> bpf = std::make_unique<DrwaBpf>());

    // Switches all interfaces off, for the start of netd: whoever wanted them on is restarted too.
    // Tries all of them whatever happens, and returns the first error. Without programs there is
    // nothing to do.
    base::Result<void> reset() EXCLUDES(mMutex);

    // Switches an interface on or off, or returns
    //   EINVAL   it is no such value;
    //   ENODEV   there is no such interface;
    //   ENOENT   there are no programs, or not all: the message says where they were looked for;
    //   EPROTO   the maps are of another version's programs;
    //   EEXIST   another filter has the priority: the message has its kind;
    //   ENOSPC   too many interfaces are on;
    //   ENOTSUP  packets of its kind cannot be read;
    //   other    what the kernel said.
    //
    // EINVAL, ENOENT and EPROTO change nothing. After any other error the interface is off, unless
    // the message says that it stays.
    base::Result<void> set(const std::string& ifName, const std::string& value) EXCLUDES(mMutex);

    // What an interface was set to. ENODEV, ENOENT and EPROTO as above.
    base::Result<std::string> get(const std::string& ifName) const EXCLUDES(mMutex);

    // Prints, line by line, the interfaces that are on and what the programs have counted there,
    // and those where that was refused.
    void dump(const std::function<void(const std::string&)>& println) const EXCLUDES(mMutex);

  private:
    struct Wanted {
        uint32_t lambda = 0;
        uint32_t queue = 0;
        bool aqm = false;
        bool clients = true;
    };

    // What the loader has pinned, opened.
    struct Pins {
        base::unique_fd devs, queues, counts;
        // By their hooks, with their ids.
        base::unique_fd programs[2];
        uint32_t ids[2];
    };

    using Devs = std::map<uint32_t, DrwaBpfDev>;

    static base::Result<Wanted> parse(const std::string& value);
    static std::string format(const DrwaBpfDev& dev);

    base::Result<base::unique_fd> openMap(const std::string& name, size_t bytes) const;
    base::Result<Pins> open() const;
    base::Result<Devs> readDevs(const Pins& pins) const;

    base::Result<void> change(const std::string& ifName, const std::string& value) REQUIRES(mMutex);
    base::Result<void> switchOn(const Pins& pins, const Devs& devs, uint32_t index,
                                const std::string& ifName, const Wanted& wanted) const
            REQUIRES(mMutex);
    base::Result<void> switchOff(const Pins& pins, uint32_t index) const REQUIRES(mMutex);
    base::Result<DrwaBpfDev> choose(const Pins& pins, const Devs& devs, uint32_t index,
                                    const std::string& ifName, const Wanted& wanted) const;
    base::Result<uint32_t> takeSlot(const Pins& pins, const Devs& devs) const;
    base::Result<uint32_t> chooseQueue(const Pins& pins, const Devs& devs, uint32_t index,
                                       uint32_t number) const;
    base::Result<void> attach(const Pins& pins, uint32_t index, const std::string& ifName,
                              const DrwaBpfDev& dev) const REQUIRES(mMutex);
    base::Result<bool> isAttached(const Pins& pins, uint32_t index, DrwaBpf::Hook hook,
                                  const std::string& ifName) const;
    base::Result<void> addFilter(uint32_t index, DrwaBpf::Hook hook, int program) const;
    std::string describeDelay(const Pins& pins, const DrwaBpfDev& dev) const;
    std::vector<std::string> describe(const Pins& pins, uint32_t index,
                                      const DrwaBpfDev& dev) const;

    const std::unique_ptr<DrwaBpf> mBpf;

    // Held while the kernel is changed: no call sees another's half, or undoes it.
    mutable std::mutex mMutex;
    int mDone GUARDED_BY(mMutex) = 0;
    int mRefused GUARDED_BY(mMutex) = 0;
    // Why interfaces do not have what was last wanted.
    std::map<std::string, std::string> mRefusals GUARDED_BY(mMutex);
};

}  // namespace net
}  // namespace android

#endif  // DRWA_PROGRAMS_H
