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

#ifndef DRWA_UPLINK_H
#define DRWA_UPLINK_H

#include <stdint.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <android-base/result.h>
#include <android-base/thread_annotations.h>

#include "DrwaNetlink.h"

namespace android {
namespace net {

// What a drwa_up has measured and counted: what struct tc_drwa_up_xstats of <linux/drwa_up.h>
// begins with. What a kernel does not tell is 0.
struct DrwaUpStats {
    // What leaves the modem, in bytes per second.
    uint64_t rate;
    // How much may be released that is not known to have left the modem, and how much is.
    uint32_t windowBytes;
    uint32_t inFlightBytes;
    // How long the last packet with an answer waited in the modem, and its RTT without that.
    uint32_t delayUs;
    uint32_t ageUs;
    // DRWA_UP_START, _HOLD, _DRAIN or _OPEN.
    uint32_t phase;
    // Packets whose answer is waited for, and answers that told something.
    uint32_t marks;
    uint32_t answers;
    // How often the queue was drained to see the path alone, a connection's path became longer, and
    // all was let through for want of answers.
    uint32_t drains;
    uint32_t jumps;
    uint32_t opened;
    // Short packets, which wait for nothing.
    uint32_t shorts;
    // 1: the modem's driver tells what waits there, and answers are not needed.
    uint32_t told;
};

// An interface, as rtnetlink tells of it.
struct DrwaLink {
    std::string ifName;
    int index = 0;
    bool loopback = false;
    uint32_t txQueues = 1;
    // Of Qualcomm's rmnet, the number that the modem and its driver know it by; 0: none.
    uint8_t mux = 0;
    // What it goes over, the index of an interface; 0: nothing, or one in another name space.
    int lower = 0;
};

// Those of |links| with these names; without any, all but the loopback. ENODEV: one is not there.
base::Result<std::vector<DrwaLink>> chooseLinks(const std::vector<DrwaLink>& links,
                                                const std::vector<std::string>& ifNames);

// What the drwa_up of a transmit queue tells.
struct DrwaUplinkQueue {
    // From 1, as mq's classes; 0: it is the interface's only one.
    uint32_t number;
    DrwaUpStats stats;
};

// The qdiscs of an interface.
struct DrwaUplinkState {
    std::string ifName;
    // How long packets may wait in the modem, in ms. 0: the root is not ours.
    int targetMs = 0;
    // The kind of the root, empty for an interface that has none, as one that was never up; and its
    // handle, 0 if it is the kernel's default.
    std::string root;
    uint32_t handle = 0;
    // The kind of what packets wait in before the modem; empty if the root is not ours.
    std::string leaf;
    // Whose grants it hears where the modem's driver tells, as the kernel says; 0: nobody's.
    uint32_t mux = 0;
    // By number; none if the root is not ours.
    std::vector<DrwaUplinkQueue> queues;
};

// The uplink of DRWA: a qdisc, drwa_up, lets no more into the modem than this sends within a target
// time, so that packets wait where fq_codel sorts them, and not where a photo's upload is ahead of
// all others.
//
// ConnectivityService sets the target with INetd::setProcSysNet() and reads it with
// getProcSysNet(), by the name kParameter in "ipv4" and "conf". There is no such file: INetd is
// frozen, and these are its only calls for an interface, a name and a number. A netd without this
// class says ENOENT, as of any file that is not there.
//
// Where nobody has set a root, and the kernel's default is there, whose handle is 0, ours takes its
// place: drwa_up with fq_codel below, or mq with these for each queue of an interface that has
// several. A root that somebody has set stays as it is. When ours is taken away, the kernel puts
// its default back.
//
// On an rmnet of Qualcomm's, each drwa_up has the link's mux_id, by which it hears what the modem's
// driver tells of its queue's bearer, if that does (drwa_up_dfc.c). A drwa_up that is too old to
// know of such ids ignores it.
//
// A default that is no FIFO, such as one that a vendor has chosen by
// /proc/sys/net/core/default_qdisc, stays below drwa_up in place of fq_codel.
//
// All methods can be called from any thread.
class DrwaUplink {
  public:
    static constexpr char kParameter[] = "drwa_uplink_target_ms";
    static constexpr int kOff = 0;
    static constexpr int kMinTargetMs = 5;
    static constexpr int kMaxTargetMs = 200;

    // Sends a message to the kernel's rtnetlink, and gives each datagram of the answer to |reader|;
    // see askNetlink().
    using AskFn = std::function<base::Result<void>(const std::string& message,
                                                   const DrwaReaderFn& reader)>;

    // |module| is there while the kernel has drwa_up as a module.
    explicit DrwaUplink(AskFn ask = askRtnetlink, std::string module = "/sys/module/sch_drwa_up");

    // Takes away what an earlier netd has left, for the start of netd: whoever wanted it is
    // restarted too. Tries all interfaces whatever happens, and returns the first error.
    base::Result<void> reset() EXCLUDES(mMutex);

    // Holds an interface's uplink to a target, or leaves it alone, kOff; or changes nothing and
    // returns
    //   EINVAL   the target is neither kOff nor in [kMinTargetMs, kMaxTargetMs], or no number;
    //   ENODEV   there is no such interface;
    //   EBUSY    somebody has set a root, which is not ours to replace;
    //   ENOENT   the kernel has no drwa_up;
    //   EINTR    interfaces or qdiscs change too fast to be listed: worth another try;
    //   other    what the kernel said.
    //
    // If a step fails, the root is the kernel's default again. A kernel without fq_codel leaves
    // what drwa_up has below itself.
    base::Result<void> setTarget(const std::string& ifName, int targetMs) EXCLUDES(mMutex);
    base::Result<void> setTarget(const std::string& ifName, const std::string& targetMs)
            EXCLUDES(mMutex);

    // The target of an interface, kOff if the root is not ours. ENODEV and ENOENT as above.
    base::Result<int> getTarget(const std::string& ifName) EXCLUDES(mMutex);

    // All interfaces.
    base::Result<std::vector<DrwaLink>> getLinks() const;

    // The qdiscs of the given interfaces, in that order; without any, of all interfaces but the
    // loopback. ENODEV: one of them is not there; other: what the kernel said.
    base::Result<std::vector<DrwaUplinkState>> getStates(
            const std::vector<std::string>& ifNames = {}) const;

    // Prints, line by line, the interfaces whose uplinks are held, and those where that was
    // refused.
    void dump(const std::function<void(const std::string&)>& println) EXCLUDES(mMutex);

    // One line for each interface, followed by those of its queues that have sent something.
    static std::vector<std::string> format(const std::vector<DrwaUplinkState>& states);

  private:
    struct Qdisc {
        int ifIndex;
        // 0: the kernel's default; when it is created, the kernel chooses one.
        uint32_t handle;
        uint32_t parent;
        std::string kind;
        // Of a drwa_up alone.
        uint32_t targetUs = 0;
        uint32_t mux = 0;
        DrwaUpStats stats = {};
    };

    // Of one interface.
    struct Tree {
        std::optional<Qdisc> root;
        // None where the root is not ours.
        std::vector<Qdisc> gates;
        // The kind below the first gate, or of the kernel's default where that is.
        std::string leaf;

        bool isOurs() const { return !gates.empty(); }
    };

    static base::Result<void> askRtnetlink(const std::string& message, const DrwaReaderFn& reader);

    base::Result<void> request(uint16_t type, uint16_t flags, const std::string& body,
                               const DrwaMessageFn& onMessage) const;
    base::Result<void> list(uint16_t type, const std::string& body,
                            const std::function<void()>& onStart,
                            const DrwaMessageFn& onMessage) const;
    base::Result<DrwaLink> findLink(const std::string& ifName) const;
    base::Result<std::vector<Qdisc>> readQdiscs() const;
    static Tree treeOf(int ifIndex, const std::vector<Qdisc>& qdiscs);
    base::Result<Tree> readTree(int ifIndex) const;

    base::Result<void> write(uint16_t type, uint16_t flags, const Qdisc& qdisc) const;
    bool kernelHasIt() REQUIRES(mMutex);

    base::Result<void> set(const std::string& ifName, int targetMs) REQUIRES(mMutex);
    base::Result<void> attach(const DrwaLink& link, const std::string& leaf, uint32_t targetUs)
            REQUIRES(mMutex);
    base::Result<void> addBelow(const Qdisc& root, const std::string& leaf, uint32_t txQueues,
                                uint32_t targetUs) const;
    base::Result<void> addLeaf(const Qdisc& gate, const std::string& leaf) const;
    base::Result<void> change(const Tree& tree, uint32_t targetUs) const;
    base::Result<void> remove(const Qdisc& root) const;

    const AskFn mAsk;
    const std::string mModule;

    // Held while qdiscs are changed: no call sees another's half, or undoes it.
    mutable std::mutex mMutex;
    // As the kernel said last; none while it has to be asked.
    std::optional<bool> mKernelHasIt GUARDED_BY(mMutex);
    int mDone GUARDED_BY(mMutex) = 0;
    int mRefused GUARDED_BY(mMutex) = 0;
    // Why interfaces do not have what was last wanted.
    std::map<std::string, std::string> mRefusals GUARDED_BY(mMutex);
};

}  // namespace net
}  // namespace android

#endif  // DRWA_UPLINK_H
