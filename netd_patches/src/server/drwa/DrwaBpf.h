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

#ifndef DRWA_BPF_H
#define DRWA_BPF_H

#include <stdint.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <android-base/result.h>
#include <android-base/unique_fd.h>

#include "DrwaNetlink.h"

namespace android {
namespace net {

// What DRWA's programs and their owner tell each other by maps, with the layout of
// kernel/bpf/drwa.h of DRWA's repository.

// What is wanted of an interface, by its index.
struct DrwaBpfDev {
    // Hundredths.
    uint32_t lambda;
    // The same for those that share a queue, 0: its own.
    uint32_t number;
    // Its place in the map of counters, and its queue's in that of queues.
    uint32_t slot;
    uint32_t queue;
    // Length of the link layer's header, bytes.
    uint32_t l2;
    // Of the filters.
    uint16_t priority;
    // Whether the qdisc goes with the filters.
    uint8_t clsact;
    // Whether what is forwarded is left alone.
    uint8_t local;
    // Whether UDP is held to a short queue as well.
    uint32_t aqm;
    // What answers to echoes begin with, 0: none are sent.
    uint32_t echo;
};

// What the programs keep of a queue.
struct DrwaBpfQueue {
    uint8_t state[68];
    // The queueing delay that UDP is judged by, and when that was told: 0, never.
    uint32_t delayUs;
    uint32_t delaySetUs;
    uint8_t rest[36];
};

// What was counted at an interface since it has its place.
struct DrwaBpfCounts {
    static constexpr int kBins = 14;

    // Bytes beyond headers: all that came, and were sent, and of what came those that were not
    // governed, by the reason.
    uint64_t came;
    uint64_t sent;
    uint64_t notTcp;
    uint64_t unknown;
    uint64_t mptcp;
    uint64_t isSigned;
    // Connections that became governed, rounds of the law, segments that offered less.
    uint64_t flows;
    uint64_t rounds;
    uint64_t capped;
    uint64_t delayUs[kBins];
    uint64_t rttUs[kBins];
    // When the first packet crossed, and one more than the place of its queue; there 0 lets the
    // programs begin anew.
    uint32_t beganUs;
    uint32_t joined;
    // Flows of UDP that were judged, packets that were dropped, flows left alone.
    uint64_t udpFlows;
    uint64_t udpDropped;
    uint64_t udpDeaf;
    uint64_t udpTunnels;
    // Bytes of clients that are left alone.
    uint64_t clients;
    uint64_t cameBefore;
    uint64_t sentBefore;
};

// The kernel's bpf(2), and the filters of interfaces, as far as DrwaPrograms needs them. All
// functions return the errno of what the kernel refuses.
//
// BpfMap abort()s netd over a map of another size, which an object of another version has.
// libtcutils lists no filters, and takes away all of a priority, whoever set them.
class DrwaBpf {
  public:
    enum class Hook { kIngress, kEgress };

    // What a hook has at DRWA's priority.
    struct Filter {
        std::string kind;
        // Of the program that has DRWA's handle, 0: none has.
        uint32_t program = 0;
    };

    virtual ~DrwaBpf() = default;

    virtual base::Result<base::unique_fd> open(const std::string& pin) const;

    // The length of a map's values, bytes, and the id of a program.
    virtual base::Result<uint32_t> valueBytesOf(int map) const;
    virtual base::Result<uint32_t> idOf(int program) const;

    // At most |limit|. What changes meanwhile may be among them or not.
    virtual base::Result<std::vector<uint32_t>> keysOf(int map, size_t limit) const;

    // |bytes| has to be what valueBytesOf() says.
    virtual base::Result<void> read(int map, uint32_t key, void* value, size_t bytes) const;
    virtual base::Result<void> write(int map, uint32_t key, const void* value, size_t bytes) const;
    virtual base::Result<void> erase(int map, uint32_t key) const;

    // 0: there is no such interface.
    virtual uint32_t indexOf(const std::string& ifName) const;
    // Empty: there is no such interface.
    virtual std::string nameOf(uint32_t index) const;

    // By the programs' clock, CLOCK_MONOTONIC, of which they keep 32 bits.
    virtual uint32_t nowUs() const;

    // How many bytes precede IP's header. ENOTSUP: packets of its kind cannot be read.
    virtual base::Result<uint32_t> linkBytesOf(const std::string& ifName) const;
    // The same of an ARPHRD_ on a kernel's release.
    static std::optional<uint32_t> linkBytesOfKind(unsigned kind, const std::string& release);

    // None if there is no qdisc for filters, either.
    virtual base::Result<std::optional<Filter>> filterOf(uint32_t index, Hook hook) const;
    // EEXIST: there is one.
    virtual base::Result<void> addClsact(uint32_t index) const;
    virtual base::Result<void> addFilter(uint32_t index, Hook hook, int program) const;
    virtual base::Result<void> removeFilter(uint32_t index, Hook hook) const;

    template <typename T>
    base::Result<T> read(int map, uint32_t key) const {
        static_assert(std::is_trivially_copyable_v<T>);
        T value = {};
        auto done = read(map, key, &value, sizeof(value));
        if (!done.ok()) return done.error();
        return value;
    }

    template <typename T>
    base::Result<void> write(int map, uint32_t key, const T& value) const {
        static_assert(std::is_trivially_copyable_v<T>);
        return write(map, key, &value, sizeof(value));
    }

    // Of the filters: before those of tethering (2, 3) and of 464xlat (4), which redirect what they
    // take. That of a developer's ingress rate limit has the same.
    static constexpr uint16_t kPriority = 1;

  private:
    base::Result<void> change(uint16_t type, uint16_t flags, const std::string& body) const;
};

const char* toString(DrwaBpf::Hook hook);

}  // namespace net
}  // namespace android

#endif  // DRWA_BPF_H
