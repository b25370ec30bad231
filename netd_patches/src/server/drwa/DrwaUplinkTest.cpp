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

#include "DrwaUplink.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <android-base/file.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "FakeRoute.h"

using android::base::Error;
using android::base::Result;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

namespace android {
namespace net {

constexpr char kOne[] = "drwa_up 6d000000 root 20000us, fq_codel 80010000 6d000001";

class DrwaUplinkTest : public testing::Test {
  protected:
    DrwaUplinkTest() {
        mRoute.addInterface("rmnet0");
        mRoute.addInterface("rmnet1", 3);
        mRoute.addInterface("wlan0");
    }

    int errorOfSetting(const std::string& ifName, int targetMs) {
        auto set = mUplink.setTarget(ifName, targetMs);
        return set.ok() ? 0 : set.error().code();
    }

    // -1 and the errno if that fails.
    int target(const std::string& ifName) {
        auto target = mUplink.getTarget(ifName);
        return target.ok() ? *target : -target.error().code();
    }

    std::vector<std::string> dump() {
        std::vector<std::string> lines;
        mUplink.dump([&](const std::string& line) { lines.push_back(line); });
        return lines;
    }

    FakeRoute mRoute;
    const TemporaryDir mSysModule;
    const std::string mModule = std::string(mSysModule.path) + "/sch_drwa_up";
    DrwaUplink mUplink{[this](const std::string& message, const DrwaReaderFn& reader) {
                           return mRoute.ask(message, reader);
                       },
                       mModule};
};

TEST_F(DrwaUplinkTest, AttachesAndDetaches) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    EXPECT_EQ(target("rmnet0"), 20);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet1"));
    EXPECT_TRUE(mRoute.hasDefaultTree("wlan0"));
    EXPECT_EQ(errorOfSetting("rmnet0", 0), 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet0"));
    EXPECT_EQ(target("rmnet0"), 0);
}

TEST_F(DrwaUplinkTest, OffTouchesNothing) {
    EXPECT_EQ(errorOfSetting("rmnet0", 0), 0);
    mRoute.setRoot("wlan0", {0x80010000, TC_H_ROOT, "rmnet_sch"});
    EXPECT_EQ(errorOfSetting("wlan0", 0), 0);
    EXPECT_EQ(target("wlan0"), 0);
    EXPECT_EQ(mRoute.changes, 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet0"));
}

TEST_F(DrwaUplinkTest, EveryQueueOfAnInterfaceHasItsOwn) {
    EXPECT_EQ(errorOfSetting("rmnet1", 5), 0);
    EXPECT_EQ(mRoute.tree("rmnet1"),
              "mq 6d000000 root, drwa_up 6d010000 6d000001 5000us, fq_codel 80010000 6d010001,"
              " drwa_up 6d020000 6d000002 5000us, fq_codel 80020000 6d020001,"
              " drwa_up 6d030000 6d000003 5000us, fq_codel 80030000 6d030001");
    EXPECT_EQ(target("rmnet1"), 5);
    EXPECT_EQ(errorOfSetting("rmnet1", 0), 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet1"));
}

// The kernel makes no interface with more: one that tells of them is not to be believed.
TEST_F(DrwaUplinkTest, QueuesBeyondTheHandlesHaveNone) {
    mRoute.addInterface("rmnet2", 4096);
    EXPECT_EQ(errorOfSetting("rmnet2", 5), 0);
    EXPECT_THAT(mRoute.tree("rmnet2"), HasSubstr("drwa_up 7d000000 6d001000 5000us"));
    mRoute.addInterface("rmnet3", 4097);
    EXPECT_EQ(errorOfSetting("rmnet3", 5), E2BIG);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet3"));
    EXPECT_EQ(target("rmnet3"), 0);
}

TEST_F(DrwaUplinkTest, QualcommsHaveItsMux) {
    mRoute.setMux("rmnet0", 1);
    mRoute.setMux("rmnet1", 254);
    for (const char* ifName : {"rmnet0", "rmnet1"}) EXPECT_EQ(errorOfSetting(ifName, 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"),
              "drwa_up 6d000000 root 20000us mux 1, fq_codel 80010000 6d000001");
    for (const char* queue : {"drwa_up 6d010000 6d000001 20000us mux 254, fq_codel",
                              "drwa_up 6d030000 6d000003 20000us mux 254, fq_codel"}) {
        EXPECT_THAT(mRoute.tree("rmnet1"), HasSubstr(queue));
    }
    EXPECT_THAT(dump(), AllOf(Contains("    rmnet0 uplink=20ms root=drwa_up 6d00: below=fq_codel"
                                       " mux=1"),
                              Contains(HasSubstr("below=fq_codel mux=254"))));
    EXPECT_EQ(errorOfSetting("rmnet1", 40), 0);
    EXPECT_EQ(mRoute.forgotten, 0);
    EXPECT_THAT(mRoute.tree("rmnet1"), HasSubstr("6d000002 40000us mux 254"));
    EXPECT_EQ(errorOfSetting("rmnet1", 0), 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet1"));
}

TEST_F(DrwaUplinkTest, NumbersThatAreNoMux) {
    mRoute.setMux("rmnet0", 1, "vlan");
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    // A driver that does not tell it
    mRoute.setMux("rmnet1", 0);
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    EXPECT_THAT(mRoute.tree("rmnet1"), HasSubstr("mq 6d000000 root"));
    // More than a mux_id has
    mRoute.setMux("wlan0", 256);
    EXPECT_EQ(errorOfSetting("wlan0", 20), 0);
    EXPECT_THAT(mRoute.tree("wlan0"), Not(HasSubstr("mux")));
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("mux="))));
}

TEST_F(DrwaUplinkTest, KernelThatKnowsNoMux) {
    mRoute.knowsMux = false;
    mRoute.setMux("rmnet0", 1);
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    EXPECT_THAT(dump(), Contains("    rmnet0 uplink=20ms root=drwa_up 6d00: below=fq_codel"));
}

TEST_F(DrwaUplinkTest, DefaultThatIsNoFifoStaysBelow) {
    mRoute.defaultKind = "rmnet_sch";
    mRoute.addInterface("rmnet2");
    mRoute.addInterface("rmnet3", 2);
    EXPECT_EQ(errorOfSetting("rmnet2", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet2"), "drwa_up 6d000000 root 20000us, rmnet_sch 80010000 6d000001");
    EXPECT_EQ(errorOfSetting("rmnet3", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet3"),
              "mq 6d000000 root, drwa_up 6d010000 6d000001 20000us, rmnet_sch 80020000 6d010001,"
              " drwa_up 6d020000 6d000002 20000us, rmnet_sch 80030000 6d020001");
    EXPECT_THAT(dump(), Contains("    rmnet2 uplink=20ms root=drwa_up 6d00: below=rmnet_sch"));
    for (const char* fifo : {"noqueue", "pfifo", "bfifo"}) {
        mRoute.defaultKind = fifo;
        mRoute.addInterface(fifo);
        EXPECT_EQ(errorOfSetting(fifo, 20), 0);
        EXPECT_THAT(mRoute.tree(fifo), HasSubstr(", fq_codel "));
    }
}

TEST_F(DrwaUplinkTest, Links) {
    mRoute.setMux("rmnet1", 2);
    mRoute.setLower("rmnet1", 4);
    mRoute.setLower("wlan0", 2, true);
    auto links = mUplink.getLinks();
    ASSERT_TRUE(links.ok());
    ASSERT_THAT(*links, SizeIs(4));
    EXPECT_TRUE(links->at(0).loopback);
    const DrwaLink& link = links->at(2);
    EXPECT_EQ(link.ifName, "rmnet1");
    EXPECT_EQ(link.index, 3);
    EXPECT_EQ(link.txQueues, 3u);
    EXPECT_EQ(link.mux, 2);
    EXPECT_EQ(link.lower, 4);
    EXPECT_EQ(links->at(3).ifName, "wlan0");
    EXPECT_EQ(links->at(3).index, 4);
    EXPECT_EQ(links->at(3).mux + links->at(3).lower, 0);
}

TEST_F(DrwaUplinkTest, ChangesTheTargetInPlace) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(errorOfSetting("rmnet0", 200), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), "drwa_up 6d000000 root 200000us, fq_codel 80010000 6d000001");
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    EXPECT_EQ(errorOfSetting("rmnet1", 40), 0);
    EXPECT_THAT(mRoute.tree("rmnet1"),
                AllOf(HasSubstr("6d000001 40000us"), HasSubstr("6d000003 40000us")));
    EXPECT_EQ(target("rmnet1"), 40);
}

TEST_F(DrwaUplinkTest, ChangeThatFailsLeavesTheFormerTarget) {
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    const std::string before = mRoute.tree("rmnet1");
    const int first = mRoute.changes;
    mRoute.onChange = [&](int change) { return change == first + 3 ? ENOMEM : 0; };
    EXPECT_EQ(errorOfSetting("rmnet1", 40), ENOMEM);
    EXPECT_EQ(mRoute.tree("rmnet1"), before);
}

TEST_F(DrwaUplinkTest, AllOrNothing) {
    for (const std::string ifName : {"rmnet0", "rmnet1"}) {
        const int steps = ifName == "rmnet0" ? 2 : 7;
        for (int step = 1; step <= steps; step++) {
            SCOPED_TRACE(ifName + " " + std::to_string(step));
            const int before = mRoute.changes;
            mRoute.onChange = [&](int change) { return change == before + step ? ENOMEM : 0; };
            EXPECT_EQ(errorOfSetting(ifName, 20), ENOMEM);
            EXPECT_TRUE(mRoute.hasDefaultTree(ifName));
            EXPECT_EQ(mRoute.changes - before, step + (step == 1 ? 0 : 1));
        }
        mRoute.onChange = [](int) { return 0; };
        EXPECT_EQ(errorOfSetting(ifName, 20), 0);
    }
}

TEST_F(DrwaUplinkTest, WhatCannotBeTakenBackIsTold) {
    mRoute.onChange = [](int change) { return change == 2 ? ENOMEM : change == 3 ? EPERM : 0; };
    auto set = mUplink.setTarget("rmnet0", 20);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code(), ENOMEM);
    EXPECT_THAT(set.error().message(),
                AllOf(HasSubstr("Cannot add fq_codel"), HasSubstr("; it stays: ")));
}

TEST_F(DrwaUplinkTest, SomebodyElsesRootStays) {
    for (const FakeRoute::Qdisc& root : {FakeRoute::Qdisc{0x80010000, TC_H_ROOT, "rmnet_sch"},
                                         FakeRoute::Qdisc{0x10000, TC_H_ROOT, "mq"},
                                         FakeRoute::Qdisc{0x6d000000, TC_H_ROOT, "htb"}}) {
        mRoute.setRoot("rmnet0", root);
        const std::string before = mRoute.tree("rmnet0");
        EXPECT_EQ(errorOfSetting("rmnet0", 20), EBUSY);
        EXPECT_EQ(target("rmnet0"), 0);
        EXPECT_EQ(errorOfSetting("rmnet0", 0), 0);
        EXPECT_TRUE(mUplink.reset().ok());
        EXPECT_EQ(mRoute.tree("rmnet0"), before);
    }
    EXPECT_EQ(mRoute.changes, 0);
}

TEST_F(DrwaUplinkTest, SomebodyWhoIsFasterStays) {
    mRoute.onChange = [&](int change) {
        if (change == 1) mRoute.setRoot("rmnet0", {0x10000, TC_H_ROOT, "htb"});
        return 0;
    };
    EXPECT_EQ(errorOfSetting("rmnet0", 20), EBUSY);
    EXPECT_EQ(mRoute.tree("rmnet0"), "htb 10000 root");
    // Between its list of qdiscs and the removal of ours
    mRoute.setRoot("rmnet0", {0x6d000000, TC_H_ROOT, "drwa_up", 20000});
    mRoute.onChange = [&](int) {
        mRoute.setRoot("rmnet0", {0x20000, TC_H_ROOT, "htb"});
        return 0;
    };
    EXPECT_EQ(errorOfSetting("rmnet0", 0), EINVAL);
    EXPECT_EQ(mRoute.tree("rmnet0"), "htb 20000 root");
}

TEST_F(DrwaUplinkTest, SomebodyWhoIsFasterThanTheListStays) {
    mRoute.setRoot("rmnet0", {0x6d000000, TC_H_ROOT, "drwa_up", 20000});
    DrwaUplink uplink([&](const std::string& message, const DrwaReaderFn& reader) {
        auto answered = mRoute.ask(message, reader);
        nlmsghdr header;
        memcpy(&header, message.data(), sizeof(header));
        if (header.nlmsg_type == RTM_GETQDISC) {
            mRoute.setRoot("rmnet0", {0x20000, TC_H_ROOT, "htb"});
        }
        return answered;
    });
    EXPECT_FALSE(uplink.setTarget("rmnet0", 0).ok());
    EXPECT_EQ(mRoute.tree("rmnet0"), "htb 20000 root");
}

TEST_F(DrwaUplinkTest, BadTargets) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    for (const int bad : {-1, 1, 4, 201, 1000, INT_MIN, INT_MAX}) {
        EXPECT_EQ(errorOfSetting("rmnet0", bad), EINVAL);
    }
    for (const char* bad : {"", "20 ", "twenty", "20ms", "2147483648"}) {
        auto set = mUplink.setTarget("rmnet0", bad);
        ASSERT_FALSE(set.ok()) << bad;
        EXPECT_EQ(set.error().code(), EINVAL);
    }
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    EXPECT_TRUE(mUplink.setTarget("rmnet0", std::string("5")).ok());
    EXPECT_EQ(target("rmnet0"), 5);
}

TEST_F(DrwaUplinkTest, NamesOfNoInterface) {
    for (const std::string& bad : {std::string("nosuch0"), std::string(""), std::string("all"),
                                   std::string("rmnet0\0x", 8)}) {
        EXPECT_EQ(errorOfSetting(bad, 20), ENODEV);
        EXPECT_EQ(target(bad), -ENODEV);
        auto states = mUplink.getStates({"rmnet0", bad});
        ASSERT_FALSE(states.ok());
        EXPECT_EQ(states.error().code(), ENODEV);
    }
    EXPECT_EQ(mRoute.changes, 0);
}

TEST_F(DrwaUplinkTest, InterfaceThatGoesMeanwhile) {
    mRoute.onChange = [&](int) {
        mRoute.removeInterface("rmnet0");
        return 0;
    };
    EXPECT_EQ(errorOfSetting("rmnet0", 20), ENODEV);
    mRoute.onChange = [&](int change) {
        if (change == 3) mRoute.removeInterface("wlan0");
        return 0;
    };
    EXPECT_EQ(errorOfSetting("wlan0", 20), ENODEV);
}

TEST_F(DrwaUplinkTest, InterfaceThatWasNeverUp) {
    mRoute.takeDown("rmnet0");
    EXPECT_EQ(target("rmnet0"), 0);
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
}

TEST_F(DrwaUplinkTest, KernelWithoutIt) {
    mRoute.unknownKinds = {"drwa_up"};
    for (const char* ifName : {"rmnet0", "rmnet1"}) {
        EXPECT_EQ(target(ifName), -ENOENT);
        EXPECT_EQ(errorOfSetting(ifName, 20), ENOENT);
        EXPECT_EQ(errorOfSetting(ifName, 0), 0);
        EXPECT_TRUE(mRoute.hasDefaultTree(ifName));
    }
    EXPECT_EQ(mRoute.changes, 0);
    EXPECT_TRUE(mUplink.reset().ok());
    EXPECT_EQ(dump().back(), "  This kernel has no drwa_up.");
    EXPECT_TRUE(mRoute.hasDefaultTree("lo"));
}

TEST_F(DrwaUplinkTest, KernelWithoutItIsAskedForItsModuleOnce) {
    mRoute.unknownKinds = {"drwa_up"};
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(target("rmnet0"), -ENOENT);
        EXPECT_EQ(errorOfSetting("rmnet1", 20), ENOENT);
        EXPECT_EQ(dump().back(), "  This kernel has no drwa_up.");
    }
    EXPECT_EQ(mRoute.moduleRequests, 1);
}

TEST_F(DrwaUplinkTest, ModuleThatIsLoadedLaterIsFound) {
    mRoute.unknownKinds = {"drwa_up"};
    EXPECT_EQ(target("rmnet0"), -ENOENT);
    // It is there, but its init function has not run yet.
    ASSERT_EQ(mkdir(mModule.c_str(), 0700), 0);
    EXPECT_EQ(errorOfSetting("rmnet0", 20), ENOENT);
    mRoute.unknownKinds = {};
    EXPECT_EQ(target("rmnet0"), 0);
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
}

TEST_F(DrwaUplinkTest, ModuleThatIsUnloadedIsMissed) {
    ASSERT_EQ(mkdir(mModule.c_str(), 0700), 0);
    EXPECT_EQ(target("rmnet0"), 0);
    ASSERT_EQ(rmdir(mModule.c_str()), 0);
    mRoute.unknownKinds = {"drwa_up"};
    for (int i = 0; i < 3; i++) EXPECT_EQ(errorOfSetting("rmnet0", 20), ENOENT);
    EXPECT_EQ(target("rmnet0"), -ENOENT);
    EXPECT_EQ(dump().back(), "  This kernel has no drwa_up.");
    // Once to attach it, and once to be sure
    EXPECT_EQ(mRoute.moduleRequests, 2);
}

TEST_F(DrwaUplinkTest, KernelWithoutFqCodel) {
    mRoute.unknownKinds = {"fq_codel"};
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(mRoute.tree("rmnet0"), "drwa_up 6d000000 root 20000us");
    EXPECT_THAT(dump(), Contains("    rmnet0 uplink=20ms root=drwa_up 6d00:"));
}

TEST_F(DrwaUplinkTest, ResetTakesAwayWhatIsOurs) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    mRoute.addInterface("rmnet2", 2);
    // As if netd had died at once
    mRoute.setRoot("rmnet2", {0x6d000000, TC_H_ROOT, "mq"});
    mRoute.addInterface("rmnet3");
    mRoute.setRoot("rmnet3", {0x80550000, TC_H_ROOT, "drwa_up", 300});
    mRoute.setRoot("wlan0", {0x10000, TC_H_ROOT, "fq"});
    EXPECT_TRUE(mUplink.reset().ok());
    for (const char* ifName : {"rmnet0", "rmnet1", "rmnet2", "rmnet3"}) {
        EXPECT_TRUE(mRoute.hasDefaultTree(ifName)) << ifName;
    }
    EXPECT_EQ(mRoute.tree("wlan0"), "fq 10000 root");
}

TEST_F(DrwaUplinkTest, ResetTriesAll) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    EXPECT_EQ(errorOfSetting("wlan0", 20), 0);
    const int before = mRoute.changes;
    mRoute.onChange = [&](int change) {
        if (change == before + 1) return EPERM;
        if (change == before + 2) mRoute.removeInterface("rmnet1");
        return 0;
    };
    auto reset = mUplink.reset();
    ASSERT_FALSE(reset.ok());
    EXPECT_EQ(reset.error().code(), EPERM);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    EXPECT_TRUE(mRoute.hasDefaultTree("wlan0"));
}

TEST_F(DrwaUplinkTest, StatesOfAllButTheLoopback) {
    EXPECT_EQ(errorOfSetting("rmnet1", 20), 0);
    mRoute.setRoot("wlan0", {0x80010000, TC_H_ROOT, "rmnet_sch"});
    mRoute.addInterface("down0");
    mRoute.takeDown("down0");
    auto states = mUplink.getStates();
    ASSERT_TRUE(states.ok());
    EXPECT_THAT(*states, SizeIs(4));
    EXPECT_THAT(DrwaUplink::format(*states),
                ElementsAre("rmnet0 uplink=0ms root=pfifo_fast",
                            "rmnet1 uplink=20ms root=mq 6d00: below=fq_codel",
                            "wlan0 uplink=0ms root=rmnet_sch 8001:", "down0 uplink=0ms root=none"));
    mRoute.xstats = bytesOf(DrwaUpStats{.shorts = 1});
    states = mUplink.getStates({"rmnet1"});
    ASSERT_TRUE(states.ok());
    EXPECT_THAT(DrwaUplink::format(*states),
                ElementsAre(HasSubstr("below="), StartsWith("  queue=1 rate=0.00Mb/s"),
                            StartsWith("  queue=2 "), StartsWith("  queue=3 ")));
    auto named = mUplink.getStates({"wlan0", "lo"});
    ASSERT_TRUE(named.ok());
    EXPECT_THAT(*named, ElementsAre(Field(&DrwaUplinkState::ifName, "wlan0"),
                                    Field(&DrwaUplinkState::ifName, "lo")));
}

TEST_F(DrwaUplinkTest, StatisticsOfAnyLength) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    DrwaUpStats stats = {.rate = 625000,
                         .windowBytes = 30000,
                         .inFlightBytes = 20000,
                         .delayUs = 12345,
                         .ageUs = 45678,
                         .phase = 1,
                         .marks = 2,
                         .answers = 3,
                         .drains = 4,
                         .jumps = 5,
                         .opened = 6,
                         .shorts = 7,
                         .told = 1};
    for (const size_t more : {0, 100}) {
        mRoute.xstats = bytesOf(stats) + std::string(more, 'x');
        EXPECT_THAT(dump(),
                    Contains("      rate=5.00Mb/s window=30000B inFlight=20000B delay=12.3ms"
                             " rtt=45.7ms phase=hold marks=2 answers=3 drains=4 jumps=5"
                             " opened=6 shorts=7 told=1"));
    }
    for (size_t size = 0; size < sizeof(stats); size += 4) {
        mRoute.xstats = bytesOf(stats).substr(0, size);
        auto states = mUplink.getStates({"rmnet0"});
        ASSERT_TRUE(states.ok());
        const DrwaUpStats& read = states->at(0).queues.at(0).stats;
        EXPECT_EQ(read.rate, size >= 4 ? 625000u : 0u);
        EXPECT_EQ(read.windowBytes, size >= 12 ? 30000u : 0u);
        EXPECT_EQ(read.shorts, size >= 52 ? 7u : 0u);
    }
    stats.phase = 4;
    mRoute.xstats = bytesOf(stats);
    EXPECT_THAT(dump(), Contains(HasSubstr(" phase=4 ")));
}

TEST_F(DrwaUplinkTest, DumpTellsWhy) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    mRoute.setRoot("wlan0", {0x80010000, TC_H_ROOT, "rmnet_sch"});
    EXPECT_EQ(errorOfSetting("wlan0", 20), EBUSY);
    EXPECT_EQ(errorOfSetting("nosuch0", 20), ENODEV);
    EXPECT_THAT(dump(), AllOf(Contains("  setTarget: 1 done, 2 refused"),
                              Contains("    rmnet0 uplink=20ms root=drwa_up 6d00: below=fq_codel"),
                              Contains("    wlan0: The root of wlan0 is rmnet_sch 8001:, which "
                                       "somebody has set: Device or resource busy")));
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("rmnet1"))));
    EXPECT_EQ(errorOfSetting("wlan0", 0), 0);
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("wlan0"))));
    EXPECT_EQ(errorOfSetting("rmnet1", 1), EINVAL);
    EXPECT_THAT(dump(), Contains(HasSubstr("rmnet1: ")));
    mRoute.removeInterface("rmnet1");
    EXPECT_THAT(dump(), Not(Contains(HasSubstr("rmnet1"))));
}

TEST_F(DrwaUplinkTest, ListThatIsInterruptedIsAskedForAgain) {
    for (const uint16_t list : {RTM_GETLINK, RTM_GETQDISC}) {
        // Before another one, and before the end
        for (const char* ifName : {"rmnet0", "wlan0"}) {
            mRoute.interruptedList = list;
            mRoute.interruptedAt = ifName;
            EXPECT_EQ(errorOfSetting(ifName, 20), 0);
            mRoute.interruptions = 2;
            EXPECT_EQ(target(ifName), 20);
            mRoute.interruptions = 2;
            EXPECT_EQ(errorOfSetting(ifName, 0), 0);
            EXPECT_EQ(mRoute.interruptions, 0);
            EXPECT_TRUE(mRoute.hasDefaultTree(ifName));
        }
    }
    // What came before the interruption is not there twice.
    mRoute.interruptedAt = "wlan0";
    mRoute.interruptedList = RTM_GETLINK;
    mRoute.interruptions = 1;
    auto links = mUplink.getLinks();
    ASSERT_TRUE(links.ok());
    EXPECT_THAT(*links, SizeIs(4));
}

TEST_F(DrwaUplinkTest, ListThatIsAlwaysInterruptedIsNoAnswer) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    mRoute.interruptedAt = "rmnet0";
    for (const uint16_t list : {RTM_GETLINK, RTM_GETQDISC}) {
        mRoute.interruptedList = list;
        mRoute.interruptions = 1000;
        EXPECT_EQ(errorOfSetting("rmnet0", 0), EINTR);
        EXPECT_EQ(target("rmnet0"), -EINTR);
        EXPECT_GT(mRoute.interruptions, 900);
        EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
    }
    EXPECT_EQ(mUplink.reset().error().code(), EINTR);
    mRoute.interruptions = 0;
    EXPECT_EQ(errorOfSetting("rmnet0", 0), 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet0"));
}

TEST_F(DrwaUplinkTest, ListThatFailsInTheMiddleIsNoAnswer) {
    EXPECT_EQ(errorOfSetting("rmnet0", 20), 0);
    mRoute.listError = ENOMEM;
    EXPECT_EQ(errorOfSetting("rmnet0", 0), ENOMEM);
    EXPECT_EQ(target("rmnet0"), -ENOMEM);
    mRoute.listError = INT_MAX;
    EXPECT_EQ(target("rmnet0"), -EBADMSG);
    EXPECT_EQ(mRoute.tree("rmnet0"), kOne);
}

TEST_F(DrwaUplinkTest, KernelThatDoesNotAnswer) {
    DrwaUplink uplink([](const std::string&, const DrwaReaderFn&) -> Result<void> {
        return Error(EACCES) << "rtnetlink: send";
    });
    EXPECT_EQ(uplink.setTarget("rmnet0", 20).error().code(), EACCES);
    EXPECT_EQ(uplink.getTarget("rmnet0").error().code(), EACCES);
    EXPECT_EQ(uplink.getStates().error().code(), EACCES);
    EXPECT_EQ(uplink.reset().error().code(), EACCES);
    std::vector<std::string> lines;
    uplink.dump([&](const std::string& line) { lines.push_back(line); });
    EXPECT_THAT(lines.back(), HasSubstr("Cannot list interfaces: rtnetlink: send"));
}

}  // namespace net
}  // namespace android
