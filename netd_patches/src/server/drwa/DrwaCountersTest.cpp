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

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

namespace android {
namespace net {

namespace {

DrwaCounters counted(const std::vector<uint64_t>& delayRounds,
                     const std::vector<uint64_t>& rttRounds = {}) {
    return {"rmnet0", 3, 812, 10321, delayRounds, rttRounds};
}

std::string delayLine(const std::vector<uint64_t>& rounds) {
    const auto lines = toLines(counted(rounds));
    return lines.size() == 2 ? lines[1] : "";
}

}  // namespace

TEST(DrwaCountersTest, ReadsALineForEachInterface) {
    auto all = parseDrwaCounters(
            "rmnet0 lambda=125 queue=101 sockets=3 rounds=812 capped=10321 delay_us=5,1,0 "
            "rtt_us=0,0,6\n"
            "wlan0 lambda=0 queue=0 sockets=0 rounds=0 capped=0 delay_us=0,0,0 rtt_us=0,0,0\n");
    ASSERT_TRUE(all.ok()) << all.error().message();
    ASSERT_THAT(*all, SizeIs(2));
    const DrwaCounters& rmnet0 = all->front();
    EXPECT_EQ(rmnet0.ifName, "rmnet0");
    EXPECT_EQ(rmnet0.sockets, 3u);
    EXPECT_EQ(rmnet0.rounds, 812u);
    EXPECT_EQ(rmnet0.capped, 10321u);
    EXPECT_THAT(rmnet0.delayRounds, ElementsAre(5, 1, 0));
    EXPECT_THAT(rmnet0.rttRounds, ElementsAre(0, 0, 6));
    EXPECT_EQ(all->back().ifName, "wlan0");
    EXPECT_EQ(all->back().rounds, 0u);
}

TEST(DrwaCountersTest, TakesWhatLaterKernelsTell) {
    auto all = parseDrwaCounters(
            "a=1 new=x rtt_us=0,1 rounds=18446744073709551615 word lambda=off sockets=2 new_us=\n");
    ASSERT_TRUE(all.ok()) << all.error().message();
    ASSERT_THAT(*all, SizeIs(1));
    // A name may have the sign; it is known by its place.
    EXPECT_EQ(all->front().ifName, "a=1");
    EXPECT_EQ(all->front().rounds, UINT64_MAX);
    EXPECT_EQ(all->front().capped, 0u);
    EXPECT_THAT(all->front().delayRounds, IsEmpty());
    EXPECT_THAT(all->front().rttRounds, ElementsAre(0, 1));
}

TEST(DrwaCountersTest, TakesAnEmptyText) {
    for (const char* text : {"", "\n"}) {
        auto all = parseDrwaCounters(text);
        ASSERT_TRUE(all.ok());
        EXPECT_THAT(*all, IsEmpty());
    }
}

TEST(DrwaCountersTest, CountersHaveToBeNumbers) {
    for (const char* word : {"rounds=", "rounds=x", "sockets=-1", "capped=1.5", "delay_us=1,,2",
                             "delay_us=1,2,", "rtt_us=x", "rounds=18446744073709551616"}) {
        auto all = parseDrwaCounters(std::string("rmnet0 sockets=1 ") + word + "\n");
        ASSERT_FALSE(all.ok()) << word;
        EXPECT_EQ(all.error().code(), EPROTO);
    }
}

TEST(DrwaCountersTest, BinsDouble) {
    EXPECT_EQ(drwaBinStartUs(0), 0u);
    EXPECT_EQ(drwaBinStartUs(1), 1024u);
    EXPECT_EQ(drwaBinStartUs(2), 2048u);
    EXPECT_EQ(drwaBinStartUs(13), uint64_t{1} << 22);
    EXPECT_EQ(drwaBinStartUs(54), uint64_t{1} << 63);
    EXPECT_EQ(drwaBinStartUs(55), UINT64_MAX);
    EXPECT_EQ(drwaBinStartUs(SIZE_MAX), UINT64_MAX);
}

TEST(DrwaCountersTest, LinesForPeople) {
    EXPECT_THAT(toLines(counted({90, 5, 4, 1}, {0, 0, 0, 7})),
                ElementsAre("connections=3 rounds=812 capped=10321",
                            "queueing delay: p50<1.0ms p95<2.0ms p99<4.1ms",
                            "RTT without it: p50>=4.1ms p95>=4.1ms p99>=4.1ms"));
}

TEST(DrwaCountersTest, PercentilesAreOfRounds) {
    // The half of one round is below the end of its bin.
    EXPECT_EQ(delayLine({0, 1, 0}), "queueing delay: p50<2.0ms p95<2.0ms p99<2.0ms");
    EXPECT_EQ(delayLine({50, 50, 0}), "queueing delay: p50<1.0ms p95<2.0ms p99<2.0ms");
    EXPECT_EQ(delayLine({49, 51, 0}), "queueing delay: p50<2.0ms p95<2.0ms p99<2.0ms");
    EXPECT_EQ(delayLine({98, 1, 1}), "queueing delay: p50<1.0ms p95<1.0ms p99<2.0ms");
    EXPECT_EQ(delayLine({UINT64_MAX, UINT64_MAX, 0}),
              "queueing delay: p50<1.0ms p95<2.0ms p99<2.0ms");
    EXPECT_EQ(delayLine({7}), "queueing delay: p50>=0.0ms p95>=0.0ms p99>=0.0ms");
}

TEST(DrwaCountersTest, NothingIsSaidWhereNothingWasGoverned) {
    EXPECT_THAT(toLines({"wlan0", 0, 0, 0, {0, 0}, {0, 0}}), IsEmpty());
    // The first round is yet to end.
    EXPECT_THAT(toLines({"rmnet0", 1, 0, 0, {0, 0}, {0, 0}}),
                ElementsAre("connections=1 rounds=0 capped=0"));
}

}  // namespace net
}  // namespace android
