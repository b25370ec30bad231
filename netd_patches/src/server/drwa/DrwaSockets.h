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

#ifndef DRWA_SOCKETS_H
#define DRWA_SOCKETS_H

#include <stdint.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <android-base/result.h>

#include "DrwaNetlink.h"

namespace android {
namespace net {

// An established TCP connection, as inet_diag describes it. Every kernel since 4.6 has all of this
// except for the window.
struct DrwaSocket {
    // The kernel's name of the socket, which no other gets as long as it runs.
    uint64_t cookie;
    uid_t uid;
    // The interface that the socket is bound to, or else that has its local address; may be empty.
    // A kernel with DRWA goes by the interface of the last packet, which inet_diag does not tell.
    std::string ifName;
    // Addresses with their ports.
    std::string local;
    std::string remote;
    uint64_t receivedBytes;
    // tcpi_last_data_recv, how long ago data last came.
    uint32_t quietMs;
    // The window last offered, tcpi_rcv_wnd, from Linux 6.2. Before, tcpi_rcv_ssthresh, which the
    // window may not exceed; DRWA's own limit is not in it.
    uint32_t windowBytes;
    bool windowIsLimit;
    // tcpi_rcv_rtt, the average RTT seen by the receiver; its least on kernels with
    // "tcp: always seek for minimal rtt in tcp_rcv_rtt_update()" (6.15 and stable kernels since
    // June 2025). 0: not measured.
    uint32_t rttUs;
    // tcpi_min_rtt, the least RTT of what was sent in the last minutes. 0: not measured.
    uint32_t minRttUs;
};

struct DrwaSnapshot {
    std::chrono::steady_clock::time_point time;
    std::vector<DrwaSocket> sockets;
};

// A connection that receives.
struct DrwaFlow {
    // The later of the two looks at it.
    DrwaSocket socket;
    // 0: unknown, for one look alone does not tell.
    double bitsPerSecond;
    // Bounds of the time that a packet waits in queues. The average RTT less the least gives the
    // lower one, which is 0 where the kernel tells no average. No more than a window is on its way,
    // so that the RTT cannot exceed what the window takes to arrive; this, less the least RTT,
    // gives the upper one, which is near where the window is what limits the sender. 0 both: RTT
    // unknown. Without a rate the upper one is 0.
    uint64_t queueMinUs;
    uint64_t queueMaxUs;
};

// Finds the name of an interface by its index, 0 if unknown, and by one of its addresses, 4 or 16
// bytes in network order. Returns an empty string when there is none.
using DrwaInterfaceFn =
        std::function<std::string(uint32_t ifIndex, const std::string& localAddress)>;

// Asks the kernel for established TCP sockets of a family, AF_INET or AF_INET6, with struct
// tcp_info. Returns the errno of a failed system call, or the reader's error.
base::Result<void> dumpEstablished(uint8_t family, const DrwaReaderFn& reader);

// Adds the sockets in a datagram of the kernel's answer to |sockets|. Takes structures of any
// length: struct tcp_info grows from kernel to kernel. Returns whether the answer ends here;
//   EBADMSG   the datagram, or a message in it, is cut off;
//   other     the error that the kernel answers with.
base::Result<bool> parseDrwaSockets(std::string_view datagram, const DrwaInterfaceFn& interfaceOf,
                                    std::vector<DrwaSocket>* sockets);

// All established TCP connections. Needs no privilege. Errors are those of the two above.
base::Result<DrwaSnapshot> readDrwaSockets();

// The connections in both snapshots that received in between, busiest first, |limit| at most.
std::vector<DrwaFlow> busiestDrwaFlows(const DrwaSnapshot& before, const DrwaSnapshot& after,
                                       size_t limit);

// The connections that received within the last second, |limit| at most, those first that have
// received the most since they began. Their rates are unknown.
std::vector<DrwaFlow> receivingDrwaFlows(const DrwaSnapshot& now, size_t limit);

// For people, in one line.
std::string toString(const DrwaFlow& flow);

}  // namespace net
}  // namespace android

#endif  // DRWA_SOCKETS_H
