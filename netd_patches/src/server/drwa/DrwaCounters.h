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

#ifndef DRWA_COUNTERS_H
#define DRWA_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>
#include <vector>

#include <android-base/result.h>

namespace android {
namespace net {

// What the kernel has counted at an interface since that came, as /proc/net/tcp_drwa tells it.
struct DrwaCounters {
    std::string ifName;
    // Connections that came under control here.
    uint64_t sockets;
    // Rounds, of about an RTT each, that connections were under control for.
    uint64_t rounds;
    // Segments that offered less than they would have without DRWA.
    uint64_t capped;
    // Histograms: of the rounds that had an RTT, how many had a queueing delay, and an RTT without
    // it, within each bin. A bin begins at drwaBinStartUs() and ends where the next one does; the
    // last one has no end.
    std::vector<uint64_t> delayRounds;
    std::vector<uint64_t> rttRounds;
};

// Where a bin of a histogram begins: 0, 1024, 2048 and so on, doubling.
uint64_t drwaBinStartUs(size_t bin);

// Takes the text of /proc/net/tcp_drwa. Keys that are not known are ignored, those that are missing
// leave 0 or an empty histogram. EPROTO: a counter that is no number.
base::Result<std::vector<DrwaCounters>> parseDrwaCounters(std::string_view text);

// For people, in lines; none where nothing was under control yet.
std::vector<std::string> toLines(const DrwaCounters& counters);

}  // namespace net
}  // namespace android

#endif  // DRWA_COUNTERS_H
