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

#include "DrwaPrograms.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <android-base/stringprintf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "FakeBpf.h"

using android::base::StringPrintf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

namespace android {
namespace net {

using Hook = DrwaBpf::Hook;

constexpr char kOn[] = "125 100 0 1";
constexpr char kOff[] = "0";

class DrwaProgramsTest : public testing::Test {
  protected:
    int errorOfSetting(const std::string& ifName, const std::string& value) {
        auto set = mPrograms.set(ifName, value);
        return set.ok() ? 0 : set.error().code();
    }

    std::string messageOfSetting(const std::string& ifName, const std::string& value) {
        auto set = mPrograms.set(ifName, value);
        return set.ok() ? "" : set.error().message();
    }

    std::string value(const std::string& ifName) {
        auto value = mPrograms.get(ifName);
        return value.ok() ? *value : StringPrintf("error %d", value.error().code());
    }

    // What the interface is, whatever DrwaPrograms says: both programs and an entry, or neither.
    bool isOn(uint32_t index) {
        const bool on = mBpf->devs().count(index);
        EXPECT_EQ(mBpf->hasProgram(index, Hook::kIngress), on) << index;
        EXPECT_EQ(mBpf->hasProgram(index, Hook::kEgress), on) << index;
        return on;
    }

    std::vector<std::string> dump() {
        std::vector<std::string> lines;
        mPrograms.dump([&](const std::string& line) { lines.push_back(line); });
        return lines;
    }

    // Is DrwaPrograms' own
    FakeBpf* const mBpf = new FakeBpf;
    DrwaPrograms mPrograms{std::unique_ptr<DrwaBpf>(mBpf)};
    const uint32_t mRmnet0 = mBpf->addInterface("rmnet0");
    const uint32_t mRmnet1 = mBpf->addInterface("rmnet1");
    const uint32_t mEth0 = mBpf->addInterface("eth0", 14);
};

TEST_F(DrwaProgramsTest, SwitchesOnAndOff) {
    EXPECT_EQ(value("rmnet0"), kOff);
    EXPECT_EQ(errorOfSetting("rmnet0", kOn), 0);
    EXPECT_TRUE(isOn(mRmnet0));
    EXPECT_FALSE(isOn(mRmnet1));
    EXPECT_EQ(value("rmnet0"), kOn);
    const DrwaBpfDev dev = mBpf->devs().at(mRmnet0);
    EXPECT_EQ(dev.lambda, 125u);
    EXPECT_EQ(dev.number, 100u);
    EXPECT_EQ(dev.priority, 1u);
    EXPECT_EQ(dev.clsact, 0u);
    EXPECT_EQ(dev.l2, 0u);
    EXPECT_EQ(dev.echo, 0u);
    EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
    EXPECT_FALSE(isOn(mRmnet0));
    EXPECT_EQ(value("rmnet0"), kOff);
    EXPECT_THAT(mBpf->filters, IsEmpty());
}

TEST_F(DrwaProgramsTest, OffTouchesNothing) {
    EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
    EXPECT_EQ(mBpf->changes, 0);
}

TEST_F(DrwaProgramsTest, TakesAllThatIsWanted) {
    EXPECT_EQ(errorOfSetting("eth0", "1000 0 1 0"), 0);
    DrwaBpfDev dev = mBpf->devs().at(mEth0);
    EXPECT_EQ(dev.lambda, 1000u);
    EXPECT_EQ(dev.number, 0u);
    EXPECT_EQ(dev.aqm, 1u);
    EXPECT_EQ(dev.local, 1u);
    EXPECT_EQ(dev.l2, 14u);
    EXPECT_EQ(value("eth0"), "1000 0 1 0");
    EXPECT_EQ(errorOfSetting("eth0", "100 7 0 1"), 0);
    const uint32_t slot = dev.slot;
    dev = mBpf->devs().at(mEth0);
    EXPECT_EQ(dev.slot, slot);
    EXPECT_EQ(dev.aqm, 0u);
    EXPECT_EQ(dev.local, 0u);
    EXPECT_EQ(value("eth0"), "100 7 0 1");
}

TEST_F(DrwaProgramsTest, RefusesWhatIsNoSuchValue) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    const int changes = mBpf->changes;
    for (const char* bad : {"",
                            " ",
                            "1",
                            "99 0 0 1",
                            "1001 0 0 1",
                            "-125 0 0 1",
                            "125",
                            "125 100",
                            "125 100 0",
                            "125 100 0 1 0",
                            "125 -1 0 1",
                            "125 100 2 1",
                            "125 100 0 2",
                            "125  0 1",
                            "125 100 0 1 ",
                            "a 100 0 1",
                            "4294967421 100 0 1",
                            "125 4294967296 0 1",
                            "0 0 0 1",
                            "00000 0 0 1"}) {
        EXPECT_EQ(errorOfSetting("rmnet0", bad), EINVAL) << bad;
    }
    EXPECT_EQ(mBpf->changes, changes);
    EXPECT_EQ(value("rmnet0"), kOn);
}

TEST_F(DrwaProgramsTest, TellsOfNoInterface) {
    EXPECT_EQ(errorOfSetting("nosuch0", kOn), ENODEV);
    EXPECT_EQ(errorOfSetting("nosuch0", kOff), ENODEV);
    EXPECT_EQ(value("nosuch0"), StringPrintf("error %d", ENODEV));
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("nosuch0"))));
}

// Whatever the loader has left out.
TEST_F(DrwaProgramsTest, TellsOfNoPrograms) {
    for (const std::string& pin :
         {"map_drwa_drwa_devs", "map_drwa_drwa_queues", "map_drwa_drwa_counts",
          "prog_drwa_schedcls_ingress_drwa", "prog_drwa_schedcls_egress_drwa"}) {
        SCOPED_TRACE(pin);
        const auto maps = mBpf->valueBytes;
        const auto programs = mBpf->programIds;
        mBpf->valueBytes.erase("/sys/fs/bpf/" + pin);
        mBpf->programIds.erase("/sys/fs/bpf/" + pin);
        EXPECT_EQ(errorOfSetting("rmnet0", kOn), ENOENT);
        EXPECT_THAT(messageOfSetting("rmnet0", kOff),
                    "Cannot open /sys/fs/bpf/" + pin +
                            ": No such file or directory; for why, see logcat -d -s bpfloader "
                            "LibBpfLoader BpfLoader-rs");
        EXPECT_EQ(value("lo"), StringPrintf("error %d", ENODEV));
        EXPECT_EQ(value("rmnet0"), StringPrintf("error %d", ENOENT));
        EXPECT_TRUE(mPrograms.reset().ok());
        EXPECT_THAT(dump(), Contains(HasSubstr("Cannot open /sys/fs/bpf/" + pin)));
        mBpf->valueBytes = maps;
        mBpf->programIds = programs;
    }
    EXPECT_EQ(mBpf->changes, 0);
}

// They would be written behind the end of ours.
TEST_F(DrwaProgramsTest, RefusesMapsOfAnotherVersion) {
    for (const char* map : {"devs", "queues", "counts"}) {
        uint32_t& bytes = mBpf->valueBytes.at(std::string("/sys/fs/bpf/map_drwa_drwa_") + map);
        bytes += 8;
        EXPECT_EQ(errorOfSetting("rmnet0", kOn), EPROTO);
        EXPECT_THAT(messageOfSetting("rmnet0", kOn), HasSubstr(map));
        EXPECT_EQ(value("rmnet0"), StringPrintf("error %d", EPROTO));
        EXPECT_FALSE(mPrograms.reset().ok());
        bytes -= 8;
    }
}

TEST_F(DrwaProgramsTest, SaidAgainItBringsFiltersBack) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    const uint32_t slot = mBpf->devs().at(mRmnet0).slot;
    DrwaBpfCounts counts = {};
    counts.joined = 5;
    counts.rounds = 7;
    mBpf->put("counts", slot, counts);
    const int changes = mBpf->changes;
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    EXPECT_EQ(mBpf->changes, changes + 1);
    EXPECT_EQ(mBpf->valuesOf<DrwaBpfCounts>("counts").at(slot).joined, 5u);
    // As netd does when it leaves a network, and as somebody with tc may
    mBpf->removeClsact(mRmnet0);
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    EXPECT_TRUE(isOn(mRmnet0));
    counts = mBpf->valuesOf<DrwaBpfCounts>("counts").at(slot);
    EXPECT_EQ(counts.joined, 0u);
    EXPECT_EQ(counts.rounds, 7u);
    mBpf->filters.erase({mRmnet0, Hook::kEgress});
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    EXPECT_TRUE(isOn(mRmnet0));
}

TEST_F(DrwaProgramsTest, APriorityOfAnothersStaysIts) {
    for (const Hook hook : {Hook::kIngress, Hook::kEgress}) {
        for (const DrwaBpf::Filter& theirs :
             {DrwaBpf::Filter{"matchall"}, DrwaBpf::Filter{"bpf", 99}}) {
            SCOPED_TRACE(toString(hook) + theirs.kind);
            mBpf->clsacts.insert(mRmnet0);
            mBpf->filters[{mRmnet0, hook}] = theirs;
            EXPECT_EQ(errorOfSetting("rmnet0", kOn), EEXIST);
            EXPECT_THAT(messageOfSetting("rmnet0", kOn),
                        StringPrintf("Priority 1 at rmnet0's %s is another's, a filter of kind %s: "
                                     "File exists",
                                     toString(hook), theirs.kind.c_str()));
            EXPECT_THAT(dump(), Contains(HasSubstr("rmnet0: Priority 1 at rmnet0's ")));
            EXPECT_EQ(value("rmnet0"), kOff);
            EXPECT_THAT(mBpf->filters, SizeIs(1));
            EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
            EXPECT_TRUE(mPrograms.reset().ok());
            const DrwaBpf::Filter& present = mBpf->filters.at({mRmnet0, hook});
            EXPECT_EQ(present.kind, theirs.kind);
            EXPECT_EQ(present.program, theirs.program);
            mBpf->removeClsact(mRmnet0);
            EXPECT_EQ(errorOfSetting("rmnet0", kOn), 0);
            EXPECT_THAT(dump(), Not(Contains(HasSubstr("is another's"))));
            EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
        }
    }
}

TEST_F(DrwaProgramsTest, TellsNothingOfAnInterfaceThatHasGone) {
    mBpf->filters[{mRmnet0, Hook::kIngress}] = {"matchall"};
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), EEXIST);
    ASSERT_THAT(dump(), Contains(HasSubstr("rmnet0: Priority 1")));
    mBpf->removeInterface(mRmnet0);
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("rmnet0"))));
}

// It is not in the list yet that is read before.
TEST_F(DrwaProgramsTest, SomebodyMayBeFaster) {
    mBpf->clsacts.insert(mRmnet0);
    mBpf->onChange = [&](int) {
        mBpf->filters[{mRmnet0, Hook::kEgress}] = {"matchall"};
        return 0;
    };
    // Seen when it looks whether the filter is there
    EXPECT_EQ(errorOfSetting("rmnet0", kOn), EEXIST);
    EXPECT_THAT(mBpf->devs(), IsEmpty());
    mBpf->removeClsact(mRmnet0);
    int atClsact = 0;
    mBpf->onChange = [&](int) {
        // Slot, queue, entry, the beginning, clsact, and then the first filter
        if (++atClsact == 6) mBpf->filters[{mRmnet0, Hook::kEgress}] = {"matchall"};
        return 0;
    };
    EXPECT_EQ(errorOfSetting("rmnet0", kOn), EEXIST);
    EXPECT_THAT(mBpf->devs(), IsEmpty());
    EXPECT_FALSE(mBpf->hasProgram(mRmnet0, Hook::kIngress));
}

TEST_F(DrwaProgramsTest, WhoHasOneNumberSharesAQueue) {
    ASSERT_EQ(errorOfSetting("rmnet0", "125 100 0 1"), 0);
    ASSERT_EQ(errorOfSetting("rmnet1", "125 0 0 1"), 0);
    ASSERT_EQ(errorOfSetting("eth0", "125 100 0 1"), 0);
    const auto queue = [&](uint32_t index) { return mBpf->devs().at(index).queue; };
    const auto slot = [&](uint32_t index) { return mBpf->devs().at(index).slot; };
    EXPECT_EQ(queue(mRmnet0), queue(mEth0));
    EXPECT_NE(queue(mRmnet0), queue(mRmnet1));
    EXPECT_NE(slot(mRmnet0), slot(mEth0));
    EXPECT_NE(slot(mRmnet0), slot(mRmnet1));
    // 0 is nobody's number.
    mBpf->addInterface("rmnet2");
    ASSERT_EQ(errorOfSetting("rmnet2", "125 0 0 1"), 0);
    EXPECT_NE(queue(mBpf->indexOf("rmnet2")), queue(mRmnet1));
    ASSERT_EQ(errorOfSetting("rmnet2", kOff), 0);
    // The first one leaves its queue to the other. Nothing passes unseen.
    const uint32_t shared = queue(mEth0);
    DrwaBpfCounts counts = {};
    counts.joined = 5;
    mBpf->put("counts", slot(mRmnet0), counts);
    DrwaBpfQueue used;
    memset(&used, 0xff, sizeof(used));
    for (uint32_t place = 0; place < FakeBpf::kPlaces; place++) mBpf->put("queues", place, used);
    ASSERT_EQ(errorOfSetting("rmnet0", "125 7 0 1"), 0);
    EXPECT_EQ(queue(mEth0), shared);
    EXPECT_NE(queue(mRmnet0), shared);
    EXPECT_NE(queue(mRmnet0), queue(mRmnet1));
    EXPECT_EQ(mBpf->valuesOf<DrwaBpfCounts>("counts").at(slot(mRmnet0)).joined, 5u);
    EXPECT_EQ(mBpf->valuesOf<DrwaBpfQueue>("queues").at(queue(mRmnet0)).state[0], 0);
    // Alone in it, it keeps the queue when its number changes.
    const uint32_t own = queue(mRmnet0);
    ASSERT_EQ(errorOfSetting("rmnet0", "125 8 0 1"), 0);
    EXPECT_EQ(queue(mRmnet0), own);
}

TEST_F(DrwaProgramsTest, ANewOneCountsFromZero) {
    DrwaBpfCounts counts = {};
    counts.rounds = 7;
    DrwaBpfQueue used;
    memset(&used, 0xff, sizeof(used));
    for (uint32_t place = 0; place < FakeBpf::kPlaces; place++) {
        mBpf->put("counts", place, counts);
        mBpf->put("queues", place, used);
    }
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    const DrwaBpfDev dev = mBpf->devs().at(mRmnet0);
    EXPECT_EQ(mBpf->valuesOf<DrwaBpfCounts>("counts").at(dev.slot).rounds, 0u);
    EXPECT_EQ(mBpf->valuesOf<DrwaBpfQueue>("queues").at(dev.queue).rest[35], 0);
}

TEST_F(DrwaProgramsTest, ThereIsAnEndOfPlaces) {
    std::vector<uint32_t> indices;
    for (uint32_t i = 0; i < FakeBpf::kPlaces; i++) {
        indices.push_back(mBpf->addInterface(StringPrintf("tun%u", i)));
        ASSERT_EQ(errorOfSetting(StringPrintf("tun%u", i), "125 0 0 1"), 0);
    }
    EXPECT_EQ(errorOfSetting("rmnet0", kOn), ENOSPC);
    EXPECT_FALSE(isOn(mRmnet0));
    for (const uint32_t index : indices) EXPECT_TRUE(isOn(index));
    mBpf->removeInterface(indices[7]);
    EXPECT_EQ(errorOfSetting("rmnet0", kOn), 0);
    EXPECT_TRUE(isOn(mRmnet0));
}

// As netd takes it away when the interface leaves its network, on another thread.
TEST_F(DrwaProgramsTest, TheQdiscMayGoInBetween) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    mBpf->onChange = [&](int) {
        mBpf->removeClsact(mRmnet0);
        return 0;
    };
    EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
    EXPECT_THAT(mBpf->devs(), IsEmpty());
    EXPECT_EQ(value("rmnet0"), kOff);
}

TEST_F(DrwaProgramsTest, WhatIsGoneLeavesNoEntry) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    mBpf->removeInterface(mRmnet0);
    EXPECT_THAT(mBpf->devs(), SizeIs(1));
    // Any change, of another one
    EXPECT_EQ(errorOfSetting("rmnet1", kOff), 0);
    EXPECT_THAT(mBpf->devs(), IsEmpty());
}

TEST_F(DrwaProgramsTest, ARenamedInterfaceKeepsItsEntry) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    mBpf->names[mRmnet0] = "wwan0";
    EXPECT_EQ(value("wwan0"), kOn);
    EXPECT_EQ(errorOfSetting("wwan0", kOff), 0);
    EXPECT_FALSE(isOn(mRmnet0));
}

TEST_F(DrwaProgramsTest, KindsThatCannotBeReadAreRefused) {
    mBpf->addInterface("wpan0", 127);
    EXPECT_EQ(errorOfSetting("wpan0", kOn), ENOTSUP);
    EXPECT_THAT(mBpf->devs(), IsEmpty());
}

// MediaTek's and Qualcomm's, which later kernels have for something else.
TEST_F(DrwaProgramsTest, KindsOfOldKernelsModemsAreRawIp) {
    for (const unsigned kind : {520u, 530u}) {
        for (const char* old : {"4.9.337", "4.19.191-g1a2b3c", "5.4.0", "5.10.205-android12-9"}) {
            EXPECT_EQ(DrwaBpf::linkBytesOfKind(kind, old), 0u) << kind << old;
        }
        for (const char* later : {"5.11.0", "5.15.149-android13-8", "6.1.0"}) {
            EXPECT_EQ(DrwaBpf::linkBytesOfKind(kind, later), std::nullopt) << kind << later;
        }
    }
    EXPECT_EQ(DrwaBpf::linkBytesOfKind(519, "6.1.0"), 0u);
    EXPECT_EQ(DrwaBpf::linkBytesOfKind(1, "4.19.191"), 14u);
    EXPECT_EQ(DrwaBpf::linkBytesOfKind(804, "4.19.191"), std::nullopt);
}

TEST_F(DrwaProgramsTest, ResetSwitchesAllOff) {
    const uint32_t gone = mBpf->addInterface("gone0");
    for (const char* ifName : {"rmnet0", "rmnet1", "gone0"}) {
        ASSERT_EQ(errorOfSetting(ifName, kOn), 0);
    }
    mBpf->removeInterface(gone);
    // The first of them cannot be
    const int first = mBpf->changes + 1;
    mBpf->onChange = [=](int number) { return number == first ? EIO : 0; };
    EXPECT_EQ(mPrograms.reset().error().code(), EIO);
    EXPECT_THAT(mBpf->devs(), SizeIs(1));
    EXPECT_TRUE(mPrograms.reset().ok());
    EXPECT_THAT(mBpf->devs(), IsEmpty());
    EXPECT_THAT(mBpf->filters, IsEmpty());
}

TEST_F(DrwaProgramsTest, OffWhateverFails) {
    int steps = 0;
    mBpf->onChange = [&](int) { return (steps++, 0); };
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    ASSERT_EQ(errorOfSetting("rmnet0", kOff), 0);
    const int toSwitchOn = 7;
    ASSERT_EQ(steps, toSwitchOn + 3);
    for (int failing = 1; failing <= toSwitchOn; failing++) {
        SCOPED_TRACE(failing);
        mBpf->removeClsact(mRmnet0);
        steps = 0;
        mBpf->onChange = [&](int) { return ++steps == failing ? EIO : 0; };
        EXPECT_EQ(errorOfSetting("rmnet0", kOn), EIO);
        EXPECT_FALSE(isOn(mRmnet0));
        EXPECT_EQ(value("rmnet0"), kOff);
    }
    // Where not even that can be had
    mBpf->onChange = [&](int) { return ++steps > 5 ? EIO : 0; };
    steps = 0;
    mBpf->removeClsact(mRmnet0);
    EXPECT_THAT(messageOfSetting("rmnet0", kOn), HasSubstr("; it stays: "));
    mBpf->onChange = [](int) { return 0; };
    EXPECT_EQ(errorOfSetting("rmnet0", kOff), 0);
    EXPECT_FALSE(isOn(mRmnet0));
}

TEST_F(DrwaProgramsTest, DumpTellsWhatWasCounted) {
    ASSERT_EQ(errorOfSetting("rmnet0", "125 100 1 0"), 0);
    DrwaBpfCounts counts = {};
    counts.came = 5000000;
    counts.notTcp = 1000;
    counts.unknown = 2000;
    counts.mptcp = 3000;
    counts.isSigned = 4000;
    counts.clients = 6000;
    counts.flows = 3;
    counts.rounds = 100;
    counts.capped = 50;
    counts.udpFlows = 9;
    counts.udpDropped = 8;
    counts.udpDeaf = 7;
    counts.udpTunnels = 6;
    counts.delayUs[4] = 100;
    counts.rttUs[6] = 100;
    mBpf->put("counts", mBpf->devs().at(mRmnet0).slot, counts);
    EXPECT_EQ(errorOfSetting("rmnet1", "1"), EINVAL);
    EXPECT_THAT(
            dump(),
            ElementsAre(
                    "DrwaPrograms", "  set: 1 done, 1 refused",
                    "  Interfaces that BPF programs govern, and what was counted since they do:",
                    "    rmnet0 lambda=125 queue=100 aqm=1 clients=0",
                    "      bytes that came=5000000, of which no TCP=1000 unknown=2000 mptcp=3000 "
                    "signed=4000 clients=6000",
                    "      UDP: flows=9 dropped=8 deaf=7 tunnels=6 queue_ms=unknown",
                    "      connections=3 rounds=100 capped=50",
                    "      queueing delay: p50<16.4ms p95<16.4ms p99<16.4ms",
                    "      RTT without it: p50<65.5ms p95<65.5ms p99<65.5ms",
                    "  Interfaces that were to be governed, and why they are not:",
                    "    rmnet1: Neither 0 nor a lambda from 100 to 1000, a queue, and two of 0 "
                    "and 1: Invalid argument"));
    mBpf->filters.erase({mRmnet0, Hook::kEgress});
    EXPECT_THAT(dump(), Contains("    rmnet0 lambda=125 queue=100 aqm=1 clients=0, no program at "
                                 "its egress"));
}

TEST_F(DrwaProgramsTest, DumpTellsTheDelayThatUdpIsJudgedBy) {
    ASSERT_EQ(errorOfSetting("rmnet0", kOn), 0);
    ASSERT_EQ(errorOfSetting("rmnet1", "125 101 1 1"), 0);
    DrwaBpfQueue queue = {};
    queue.delayUs = 12345;
    // 32 bits of the clock wrap around meanwhile
    queue.delaySetUs = 0xffffffff;
    mBpf->put("queues", mBpf->devs().at(mRmnet1).queue, queue);
    const auto told = [&](uint32_t now) {
        mBpf->now = now;
        std::string delays;
        for (const std::string& line : dump()) {
            const size_t found = line.find("queue_ms=");
            if (found != std::string::npos) delays += line.substr(found);
        }
        return delays;
    };
    EXPECT_EQ(told(queue.delaySetUs), "queue_ms=12.3");
    EXPECT_EQ(told(queue.delaySetUs + DrwaPrograms::kDelayOldUs - 1), "queue_ms=12.3");
    EXPECT_EQ(told(queue.delaySetUs + DrwaPrograms::kDelayOldUs), "queue_ms=unknown");
    queue.delaySetUs = 0;
    mBpf->put("queues", mBpf->devs().at(mRmnet1).queue, queue);
    EXPECT_EQ(told(0), "queue_ms=unknown");
}

TEST_F(DrwaProgramsTest, TheProgramsClockIsMonotonic) {
    timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    const uint32_t now = DrwaBpf().nowUs();
    clock_gettime(CLOCK_MONOTONIC, &after);
    const auto us = [](const timespec& time) {
        return static_cast<uint32_t>(time.tv_sec * 1000000ull + time.tv_nsec / 1000);
    };
    EXPECT_LE(now - us(before), us(after) - us(before));
}

// Against what was last wanted: with interfaces that come and go, filters that are taken away, a
// priority that is another's, and a kernel that fails.
TEST_F(DrwaProgramsTest, RandomLives) {
    const uint32_t seed = std::random_device()();
    SCOPED_TRACE(StringPrintf("seed %u", seed));
    std::mt19937 random(seed);
    const auto below = [&](uint32_t end) -> uint32_t { return random() % end; };
    const char* const names[] = {"rmnet0", "rmnet1", "eth0", "tun0"};
    std::map<uint32_t, std::string> wanted;
    std::set<uint32_t> theirs;
    for (int step = 0; step < 3000; step++) {
        const std::string ifName = names[below(std::size(names))];
        const uint32_t index = mBpf->indexOf(ifName);
        switch (below(8)) {
            case 0:
                if (index == 0) {
                    mBpf->addInterface(ifName);
                } else {
                    mBpf->removeInterface(index);
                    wanted.erase(index);
                    theirs.erase(index);
                }
                break;
            case 1:
                mBpf->removeClsact(index);
                theirs.erase(index);
                break;
            case 2:
                if (index == 0 || wanted.count(index)) break;
                mBpf->filters[{index, below(2) ? Hook::kIngress : Hook::kEgress}] = {"matchall"};
                mBpf->clsacts.insert(index);
                theirs.insert(index);
                break;
            default: {
                const std::string value = below(3) ? StringPrintf("%u %u %u %u", 100 + below(901),
                                                                  below(3), below(2), below(2))
                                                   : kOff;
                const int failing = below(4) ? 0 : mBpf->changes + 1 + below(8);
                mBpf->onChange = [=](int number) { return number == failing ? EIO : 0; };
                const int error = errorOfSetting(ifName, value);
                const bool failed = failing && mBpf->changes >= failing;
                mBpf->onChange = [](int) { return 0; };
                if (index == 0) {
                    ASSERT_EQ(error, ENODEV);
                    break;
                }
                if (error == 0) {
                    wanted.erase(index);
                    if (value != kOff) wanted[index] = value;
                } else {
                    ASSERT_EQ(error, failed && error == EIO ? EIO : EEXIST);
                    ASSERT_TRUE(error == EIO || theirs.count(index));
                    ASSERT_EQ(errorOfSetting(ifName, kOff), 0);
                    wanted.erase(index);
                }
                ASSERT_TRUE(value == kOff || error != 0 || !theirs.count(index));
            }
        }
        std::map<uint32_t, uint32_t> queues;
        std::set<uint32_t> slots;
        for (const auto& [each, dev] : mBpf->devs()) {
            if (mBpf->names.count(each) == 0) continue;
            ASSERT_EQ(wanted.count(each), 1u) << step;
            ASSERT_EQ(value(mBpf->names[each]), wanted[each]) << step;
            ASSERT_TRUE(slots.insert(dev.slot).second) << step;
            if (dev.number != 0) {
                ASSERT_EQ(queues.emplace(dev.number, dev.queue).first->second, dev.queue) << step;
            } else {
                const auto devs = mBpf->devs();
                const uint32_t queue = dev.queue;
                const auto isThere = [&](const auto& one) {
                    return mBpf->names.count(one.first) && one.second.queue == queue;
                };
                ASSERT_EQ(std::count_if(devs.begin(), devs.end(), isThere), 1) << step;
            }
        }
        for (const auto& [each, value] : wanted) {
            ASSERT_EQ(mBpf->devs().count(each), 1u) << step;
            // Filters may have been taken away; to say it again brings them back
            ASSERT_EQ(errorOfSetting(mBpf->names[each], value), 0) << step;
            ASSERT_TRUE(isOn(each)) << step;
        }
        for (const auto& [key, filter] : mBpf->filters) {
            ASSERT_TRUE(filter.kind == "matchall" || wanted.count(key.first)) << step;
        }
    }
}

}  // namespace net
}  // namespace android
