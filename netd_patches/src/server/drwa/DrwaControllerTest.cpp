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

#include "DrwaController.h"

#include <errno.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "FakeProc.h"

using android::base::Error;
using android::base::Result;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace android {
namespace net {

bool operator==(const DrwaLambda& a, const DrwaLambda& b) {
    return a.ifName == b.ifName && a.lambda == b.lambda && a.queue == b.queue;
}

void PrintTo(const DrwaLambda& lambda, std::ostream* out) {
    *out << lambda.ifName << "=" << lambda.lambda;
    if (lambda.queue) *out << "@" << *lambda.queue;
}

class DrwaControllerTest : public testing::Test {
  protected:
    DrwaControllerTest() {
        mProc.addKnob("rmnet0");
        mProc.addKnob("v4-rmnet0");
        mProc.addKnob("wlan0", "150\n");
    }

    void expectUnchanged() {
        EXPECT_EQ(mProc.read("rmnet0"), "0\n");
        EXPECT_EQ(mProc.read("v4-rmnet0"), "0\n");
        EXPECT_EQ(mProc.read("wlan0"), "150\n");
    }

    void expectRefused(const std::vector<DrwaLambda>& lambdas, int error,
                       const std::string& message) {
        SCOPED_TRACE(testing::PrintToString(lambdas));
        auto result = mController.setLambdas(lambdas);
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().code(), error) << result.error().message();
        EXPECT_THAT(result.error().message(), HasSubstr(message));
        expectUnchanged();
    }

    void expectUnreadable(const std::vector<std::string>& ifNames, int error) {
        SCOPED_TRACE(testing::PrintToString(ifNames));
        auto lambdas = mController.getLambdas(ifNames);
        ASSERT_FALSE(lambdas.ok());
        EXPECT_EQ(lambdas.error().code(), error) << lambdas.error().message();
    }

    // What dump() prints, with sockets that receive 100 kB in a tenth of a second.
    std::vector<std::string> dump(bool rates = false) {
        std::vector<std::string> lines;
        mController.dump([&](const std::string& line) { lines.push_back(line); }, rates);
        return lines;
    }

    // The line of rmnet0's connection in a dump; the loopback's has no interface with lambda.
    static std::string connectionOf(const std::vector<std::string>& lines) {
        EXPECT_THAT(lines, Contains("    wlan0 lambda=150"));
        EXPECT_THAT(lines, Contains(HasSubstr(" from ")).Times(1));
        const auto rmnet0 = std::find(lines.begin(), lines.end(), "    rmnet0 lambda=0");
        return rmnet0 == lines.end() || rmnet0 + 1 == lines.end() ? "" : *(rmnet0 + 1);
    }

    DrwaSocket socket(uint64_t cookie, const std::string& ifName) {
        DrwaSocket socket = {};
        socket.cookie = cookie;
        socket.ifName = ifName;
        socket.local = "192.0.2.1:40000";
        socket.remote = "198.51.100.1:443";
        socket.receivedBytes = mReceivedBytes;
        return socket;
    }

    FakeProc mProc;
    uint64_t mReceivedBytes = 0;
    milliseconds mNow{0};
    int mSocketsError = 0;
    std::vector<std::string> mSocketInterfaces = {"rmnet0", "lo"};
    DrwaController mController{
            mProc.path(),
            [this]() -> Result<DrwaSnapshot> {
                if (mSocketsError != 0) return Error(mSocketsError) << "no sockets";
                DrwaSnapshot snapshot = {std::chrono::steady_clock::time_point(mNow), {}};
                uint64_t cookie = 0;
                for (const auto& ifName : mSocketInterfaces) {
                    snapshot.sockets.push_back(socket(cookie++, ifName));
                }
                return snapshot;
            },
            [this](milliseconds duration) {
                mNow += duration;
                mReceivedBytes += 1000 * duration.count();
            }};
};

TEST_F(DrwaControllerTest, SetsSeveralInterfaces) {
    ASSERT_TRUE(mController.setLambdas({{"rmnet0", 125}, {"v4-rmnet0", 1000}, {"wlan0", 0}}).ok());
    EXPECT_EQ(mProc.read("rmnet0"), "125");
    EXPECT_EQ(mProc.read("v4-rmnet0"), "1000");
    EXPECT_EQ(mProc.read("wlan0"), "0");
}

TEST_F(DrwaControllerTest, SetsQueues) {
    mProc.addKnobs("rmnet1", "0\n", "0\n");
    mProc.addKnobs("v4-rmnet1", "125\n", "101\n");
    ASSERT_TRUE(mController.setLambdas({{"rmnet1", 125, 100}, {"v4-rmnet1", 0, 0}}).ok());
    EXPECT_EQ(mProc.read("rmnet1"), "125");
    EXPECT_EQ(mProc.readQueue("rmnet1"), "100");
    EXPECT_EQ(mProc.read("v4-rmnet1"), "0");
    EXPECT_EQ(mProc.readQueue("v4-rmnet1"), "0");
    ASSERT_TRUE(mController.setLambdas({{"rmnet1", 0}}).ok());
    EXPECT_EQ(mProc.readQueue("rmnet1"), "100");
    auto lambdas = mController.getLambdas({"rmnet1", "rmnet0"});
    ASSERT_TRUE(lambdas.ok());
    EXPECT_THAT(*lambdas, ElementsAre(DrwaLambda{"rmnet1", 0, 100}, DrwaLambda{"rmnet0", 0}));
}

TEST_F(DrwaControllerTest, QueueThatCannotBe) {
    mProc.addKnobs("rmnet1", "0\n", "0\n");
    expectRefused({{"wlan0", 200}, {"rmnet1", 150, -1}}, EINVAL, "rmnet1: queue -1 is negative");
    // Here the kernel knows none.
    expectRefused({{"wlan0", 200}, {"rmnet0", 150, 100}}, ENOENT, "Cannot read queue of rmnet0");
}

// The interface is on only while it is in its queue, so that the order is told by what is left.
TEST_F(DrwaControllerTest, QueueIsThereAsLongAsLambda) {
    mProc.addKnobs("rmnet1", "0\n", "0\n");
    mProc.sealQueue("rmnet1");
    EXPECT_EQ(mController.setLambdas({{"rmnet1", 150, 100}}).error().code(), EPERM);
    // lambda was not written yet, or it had no end of line now.
    EXPECT_EQ(mProc.read("rmnet1"), "0\n");
    mProc.write("rmnet1", "150\n");
    EXPECT_EQ(mController.setLambdas({{"rmnet1", 0, 0}}).error().code(), EPERM);
    // It was, and came back.
    EXPECT_EQ(mProc.read("rmnet1"), "150");
}

TEST_F(DrwaControllerTest, FormerQueuesComeBackWhenAWriteFails) {
    mProc.addKnobs("rmnet1", "150\n", "7\n");
    mProc.addSealedKnob("rmnet2");
    EXPECT_FALSE(mController.setLambdas({{"rmnet1", 200, 100}, {"rmnet2", 150}}).ok());
    EXPECT_EQ(mProc.read("rmnet1"), "150");
    EXPECT_EQ(mProc.readQueue("rmnet1"), "7");
}

TEST_F(DrwaControllerTest, SetsNothingWhenAskedForNothing) {
    EXPECT_TRUE(mController.setLambdas({}).ok());
    expectUnchanged();
}

TEST_F(DrwaControllerTest, TakesTheWholeRange) {
    for (const int lambda : {100, 101, 999, 1000, 0}) {
        EXPECT_TRUE(mController.setLambdas({{"rmnet0", lambda}}).ok()) << lambda;
        EXPECT_EQ(mProc.read("rmnet0"), std::to_string(lambda));
    }
}

TEST_F(DrwaControllerTest, RefusesOtherLambdas) {
    for (const int lambda : {-1, 1, 99, 1001, INT32_MAX, INT32_MIN}) {
        expectRefused({{"wlan0", 200}, {"rmnet0", lambda}}, EINVAL,
                      "lambda " + std::to_string(lambda));
    }
}

TEST_F(DrwaControllerTest, RefusesWhatIsNoNameOfAnInterface) {
    const std::string with_nul("rmnet0\0wlan0", 12);
    for (const std::string& name :
         {std::string(), std::string("."), std::string(".."), std::string("all"),
          std::string("default"), std::string("rmnet0/"), std::string("../conf/rmnet0"),
          std::string("rmnet0:1"), std::string("rmnet 0"), std::string("rmnet0\n"), with_nul,
          std::string("0123456789abcdef")}) {
        expectRefused({{"wlan0", 200}, {name, 150}}, EINVAL, "is no name of an interface");
        expectUnreadable({"wlan0", name}, EINVAL);
    }
}

TEST_F(DrwaControllerTest, MessagesAreOfPrintableCharacters) {
    auto result = mController.setLambdas({{"a\nb", 150}});
    EXPECT_THAT(result.error().message(), HasSubstr("\"a\\x0ab\""));
}

TEST_F(DrwaControllerTest, RefusesAnInterfaceNamedTwice) {
    expectRefused({{"rmnet0", 150}, {"wlan0", 0}, {"rmnet0", 200}}, EINVAL,
                  "rmnet0 is named twice");
    expectUnreadable({"rmnet0", "rmnet0"}, EINVAL);
}

TEST_F(DrwaControllerTest, MissingInterface) {
    expectRefused({{"wlan0", 200}, {"rmnet1", 150}}, ENODEV, "rmnet1");
    expectUnreadable({"wlan0", "rmnet1"}, ENODEV);
}

TEST_F(DrwaControllerTest, InterfaceWithoutLambda) {
    expectRefused({{"wlan0", 200}, {"lo", 150}}, ENOENT, "lo");
    expectUnreadable({"wlan0", "lo"}, ENOENT);
}

TEST_F(DrwaControllerTest, FormerValuesComeBackWhenAWriteFails) {
    mProc.addSealedKnob("rmnet1");
    const std::vector<DrwaLambda> lambdas = {{"wlan0", 200}, {"rmnet0", 150}, {"rmnet1", 150}};
    auto result = mController.setLambdas(lambdas);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), EPERM);
    EXPECT_THAT(result.error().message(), HasSubstr("Cannot set lambda of rmnet1"));
    EXPECT_EQ(mProc.read("wlan0"), "150");
    EXPECT_EQ(mProc.read("rmnet0"), "0");
}

TEST_F(DrwaControllerTest, WhatDoesNotComeBackIsNamed) {
    mProc.addSealableKnob("eth0", "150");
    std::thread slow = mProc.addSlowKnob("rmnet1", [this] {
        while (mProc.read("eth0") != "200") std::this_thread::yield();
        mProc.seal("eth0");
    });
    mProc.addSealedKnob("rmnet2");
    auto result = mController.setLambdas({{"eth0", 200}, {"rmnet1", 150}, {"rmnet2", 150}});
    slow.join();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), EPERM);
    EXPECT_EQ(
            result.error().message(),
            "Cannot set lambda of rmnet2: Operation not permitted; it stays: Cannot set lambda of "
            "eth0: Operation not permitted");
    EXPECT_EQ(mProc.read("eth0"), "200");
}

TEST_F(DrwaControllerTest, WhatTheKernelSaysHasToBeANumber) {
    for (const char* content : {"", "\n", "x", "1 2", "-1", "99999999999", "150x"}) {
        mProc.addKnob("rmnet1", content);
        expectRefused({{"wlan0", 200}, {"rmnet1", 150}}, EPROTO, "rmnet1 has the lambda");
        expectUnreadable({"rmnet1"}, EPROTO);
        mProc.removeInterface("rmnet1");
    }
}

// O_CREAT would make a file where the kernel has none any more, and ask SELinux for that.
TEST_F(DrwaControllerTest, KnobThatGoesOnceItWasRead) {
    std::thread knob = mProc.addFleetingKnob("rmnet1");
    auto result = mController.setLambdas({{"wlan0", 200}, {"rmnet1", 150}});
    knob.join();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ENOENT) << result.error().message();
    EXPECT_FALSE(mProc.hasKnob("rmnet1"));
    EXPECT_EQ(mProc.read("wlan0"), "150");
}

TEST_F(DrwaControllerTest, InterfacesThatGoOnceTheyWereListedAreNone) {
    mProc.addKnob("rmnet1");
    std::thread knob = mProc.addFleetingKnob("eth0", [this] {
        mProc.removeInterface("rmnet0");
        mProc.removeKnob("rmnet1");
    });
    auto lambdas = mController.getLambdas();
    knob.join();
    ASSERT_TRUE(lambdas.ok()) << lambdas.error().message();
    EXPECT_THAT(*lambdas, ElementsAre(DrwaLambda{"eth0", 0}, DrwaLambda{"v4-rmnet0", 0},
                                      DrwaLambda{"wlan0", 150}));
}

TEST_F(DrwaControllerTest, GetsInTheOrderAskedFor) {
    auto lambdas = mController.getLambdas({"wlan0", "rmnet0"});
    ASSERT_TRUE(lambdas.ok());
    EXPECT_THAT(*lambdas, ElementsAre(DrwaLambda{"wlan0", 150}, DrwaLambda{"rmnet0", 0}));
}

TEST_F(DrwaControllerTest, GetsAllThatHaveLambdaByName) {
    mProc.addKnob("eth0", "1000\n");
    auto lambdas = mController.getLambdas();
    ASSERT_TRUE(lambdas.ok());
    EXPECT_THAT(*lambdas, ElementsAre(DrwaLambda{"eth0", 1000}, DrwaLambda{"rmnet0", 0},
                                      DrwaLambda{"v4-rmnet0", 0}, DrwaLambda{"wlan0", 150}));
}

TEST_F(DrwaControllerTest, ResetSwitchesAllOff) {
    mProc.addKnobs("rmnet1", "1000\n", "100\n");
    ASSERT_TRUE(mController.reset().ok());
    EXPECT_EQ(mProc.readQueue("rmnet1"), "0");
    for (const char* ifName : {"rmnet0", "v4-rmnet0", "wlan0", "rmnet1"}) {
        EXPECT_EQ(mProc.read(ifName), "0") << ifName;
    }
    for (const char* ifName : {"all", "default", "lo"}) EXPECT_EQ(mProc.read(ifName), "") << ifName;
}

TEST_F(DrwaControllerTest, ResetTriesAllAndReturnsTheFirstError) {
    mProc.addSealedKnob("rmnet1", "150\n");
    auto result = mController.reset();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), EPERM);
    EXPECT_EQ(mProc.read("wlan0"), "0");
}

TEST_F(DrwaControllerTest, KernelWithoutDrwa) {
    for (const char* ifName : {"rmnet0", "v4-rmnet0", "wlan0"}) {
        mProc.removeInterface(ifName);
        mProc.addInterface(ifName);
    }
    EXPECT_TRUE(mController.reset().ok());
    auto lambdas = mController.getLambdas();
    ASSERT_TRUE(lambdas.ok());
    EXPECT_THAT(*lambdas, IsEmpty());
    auto result = mController.setLambdas({{"rmnet0", 150}});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ENOENT);
    EXPECT_THAT(dump(), Contains("  This kernel has no DRWA."));
}

TEST_F(DrwaControllerTest, WithoutProc) {
    DrwaController controller("/nonexistent");
    EXPECT_EQ(controller.reset().error().code(), ENOENT);
    EXPECT_EQ(controller.getLambdas().error().code(), ENOENT);
    EXPECT_EQ(controller.setLambdas({{"rmnet0", 150}}).error().code(), ENODEV);
}

TEST_F(DrwaControllerTest, CallsDoNotMix) {
    std::atomic<bool> mixed = false;
    const auto setBoth = [this](int lambda) {
        for (int i = 0; i < 200; i++) {
            EXPECT_TRUE(mController.setLambdas({{"rmnet0", lambda}, {"v4-rmnet0", lambda}}).ok());
        }
    };
    std::thread one(setBoth, 100);
    std::thread two(setBoth, 200);
    for (int i = 0; i < 400; i++) {
        auto lambdas = mController.getLambdas({"rmnet0", "v4-rmnet0"});
        ASSERT_TRUE(lambdas.ok()) << lambdas.error().message();
        if (lambdas->front().lambda != lambdas->back().lambda) mixed = true;
    }
    one.join();
    two.join();
    EXPECT_FALSE(mixed);
}

TEST_F(DrwaControllerTest, InterfacesComeAndGo) {
    std::atomic<bool> done = false;
    std::thread flapping([&] {
        while (!done) {
            mProc.addKnob("rmnet1");
            mProc.removeInterface("rmnet1");
        }
    });
    for (int i = 0; i < 1000; i++) {
        auto reset = mController.reset();
        EXPECT_TRUE(reset.ok()) << reset.error().message();
        auto lambdas = mController.getLambdas();
        EXPECT_TRUE(lambdas.ok()) << lambdas.error().message();
    }
    done = true;
    flapping.join();
}

TEST_F(DrwaControllerTest, DumpShowsConnectionsBelowTheirInterface) {
    mReceivedBytes = 70'000;
    const std::string line = connectionOf(dump());
    EXPECT_THAT(line, HasSubstr("192.0.2.1:40000 from 198.51.100.1:443"));
    EXPECT_THAT(line, HasSubstr("received=70000B"));
    // It did not wait.
    EXPECT_EQ(mNow, milliseconds(0));
}

TEST_F(DrwaControllerTest, DumpOfRatesTakesAMoment) {
    EXPECT_THAT(connectionOf(dump(true /* rates */)), HasSubstr("rate=8.00Mb/s"));
    EXPECT_EQ(mNow, DrwaController::kDumpInterval);
}

TEST_F(DrwaControllerTest, DumpShowsQueuesAndCounters) {
    mProc.addKnobs("rmnet1", "125\n", "100\n");
    mProc.writeCounters("rmnet1 sockets=1 rounds=2 capped=3 delay_us=0,2,0 rtt_us=0,0,2\n");
    mSocketInterfaces = {"rmnet1"};
    mReceivedBytes = 70'000;
    const auto lines = dump();
    const auto rmnet1 = std::find(lines.begin(), lines.end(), "    rmnet1 lambda=125 queue=100");
    ASSERT_GT(lines.end() - rmnet1, 4);
    EXPECT_EQ(rmnet1[1], "      connections=1 rounds=2 capped=3");
    EXPECT_EQ(rmnet1[2], "      queueing delay: p50<2.0ms p95<2.0ms p99<2.0ms");
    EXPECT_EQ(rmnet1[3], "      RTT without it: p50>=2.0ms p95>=2.0ms p99>=2.0ms");
    EXPECT_THAT(rmnet1[4], HasSubstr("192.0.2.1:40000 from"));
}

TEST_F(DrwaControllerTest, CountersThatMakeNoSense) {
    mProc.writeCounters("rmnet0 rounds=x\n");
    EXPECT_EQ(mController.readCounters().error().code(), EPROTO);
    EXPECT_THAT(dump(), AllOf(Contains(HasSubstr("What the kernel counted is no number: rounds=x")),
                              Contains("    wlan0 lambda=150")));
}

TEST_F(DrwaControllerTest, DumpWithoutSocketsShowsTheRest) {
    mSocketsError = EACCES;
    for (const bool rates : {false, true}) {
        EXPECT_THAT(dump(rates),
                    AllOf(Contains(HasSubstr("no sockets")), Contains("    wlan0 lambda=150")));
    }
}

}  // namespace net
}  // namespace android
