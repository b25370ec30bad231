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

#include "DrwaCounters.h"

#include <errno.h>
#include <inttypes.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <android-base/parseint.h>
#include <android-base/stringprintf.h>
#include <android-base/strings.h>

namespace android {
namespace net {

using base::Error;
using base::ParseUint;
using base::Result;
using base::Split;
using base::StringPrintf;

namespace {

constexpr uint64_t kFirstBinUs = 1024;
constexpr int kPercentiles[] = {50, 95, 99};

// The counters in a word such as "rounds=12" or "delay_us=3,0,1".
Result<std::vector<uint64_t>> parseNumbers(const std::string& word, size_t start) {
    std::vector<uint64_t> numbers;
    for (const std::string& text : Split(word.substr(start), ",")) {
        uint64_t number;
        if (!ParseUint(text, &number)) {
            return Error(EPROTO) << "What the kernel counted is no number: " << word;
        }
        numbers.push_back(number);
    }
    return numbers;
}

Result<DrwaCounters> parseLine(const std::string& line) {
    const std::vector<std::string> words = Split(line, " ");
    std::map<std::string, std::vector<uint64_t>> found = {
            {"sockets", {}}, {"rounds", {}}, {"capped", {}}, {"delay_us", {}}, {"rtt_us", {}}};
    for (size_t i = 1; i < words.size(); i++) {
        const size_t keyLength = words[i].find('=');
        const auto key = found.find(words[i].substr(0, keyLength));
        if (keyLength == std::string::npos || key == found.end()) continue;
        auto numbers = parseNumbers(words[i], keyLength + 1);
        if (!numbers.ok()) return numbers.error();
        key->second = std::move(*numbers);
    }
    const auto first = [&found](const char* key) {
        return found[key].empty() ? 0 : found[key].front();
    };
    return DrwaCounters{words.front(),   first("sockets"),  first("rounds"),
                        first("capped"), found["delay_us"], found["rtt_us"]};
}

// As in "p50<2.0ms p95<16.4ms p99>=4194.3ms".
std::string percentiles(const std::vector<uint64_t>& bins) {
    // In floating point, for the sum may not fit.
    const double all = std::accumulate(bins.begin(), bins.end(), 0.0);
    std::string text;
    for (const int percentile : kPercentiles) {
        size_t bin = 0;
        double below = bins[0];
        while (bin + 1 < bins.size() && below < all / 100 * percentile) below += bins[++bin];
        const bool isLast = bin + 1 == bins.size();
        const double edgeMs = drwaBinStartUs(isLast ? bin : bin + 1) / 1e3;
        text += StringPrintf(" p%d%s%.1fms", percentile, isLast ? ">=" : "<", edgeMs);
    }
    return text;
}

bool isEmpty(const std::vector<uint64_t>& bins) {
    return std::all_of(bins.begin(), bins.end(), [](uint64_t rounds) { return rounds == 0; });
}

}  // namespace

uint64_t drwaBinStartUs(size_t bin) {
    if (bin == 0) return 0;
    const size_t doublings = bin - 1;
    return doublings < 54 ? kFirstBinUs << doublings : UINT64_MAX;
}

Result<std::vector<DrwaCounters>> parseDrwaCounters(std::string_view text) {
    std::vector<DrwaCounters> all;
    for (const std::string& line : Split(std::string(text), "\n")) {
        if (line.empty()) continue;
        auto counters = parseLine(line);
        if (!counters.ok()) return counters.error();
        all.push_back(std::move(*counters));
    }
    return all;
}

std::vector<std::string> toLines(const DrwaCounters& counters) {
    if (counters.sockets == 0 && counters.rounds == 0) return {};
    std::vector<std::string> lines;
    lines.push_back(StringPrintf("connections=%" PRIu64 " rounds=%" PRIu64 " capped=%" PRIu64,
                                 counters.sockets, counters.rounds, counters.capped));
    if (!isEmpty(counters.delayRounds)) {
        lines.push_back("queueing delay:" + percentiles(counters.delayRounds));
    }
    if (!isEmpty(counters.rttRounds)) {
        lines.push_back("RTT without it:" + percentiles(counters.rttRounds));
    }
    return lines;
}

}  // namespace net
}  // namespace android
