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

#include "DrwaCtl.h"

#include <errno.h>

#include <sstream>

#include <android-base/strings.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/json.h>

#include "FakeProc.h"
#include "FakeRoute.h"

using android::base::Error;
using android::base::Result;
using android::base::Split;
using android::base::Trim;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

namespace android {
namespace net {

class DrwaCtlTest : public testing::Test {
  protected:
    DrwaCtlTest() {
        mProc.addKnob("rmnet0");
        mProc.addKnob("wlan0", "150\n");
        mRoute.addInterface("rmnet0");
        mRoute.addInterface("wlan0");
    }

    // Runs it with the given words; what it printed is in mOut and mErr.
    int run(std::vector<std::string> words) {
        words.insert(words.begin(), "drwactl");
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        mOut.str("");
        mErr.str("");
        return drwactl(
                static_cast<int>(words.size()), argv.data(), mController, mUplink, mModem,
                [this](milliseconds duration) {
                    mWaits.push_back(duration);
                    mNow += duration;
                    // 8 Mb/s, then 16 Mb/s
                    mReceivedBytes += 1000 * duration.count() * mWaits.size();
                    return static_cast<int>(mWaits.size()) <= mLooks;
                },
                mOut, mErr);
    }

    void expectUsage(const std::vector<std::string>& words, const std::string& message) {
        SCOPED_TRACE(testing::PrintToString(words));
        EXPECT_EQ(run(words), 2);
        EXPECT_EQ(mOut.str(), "");
        EXPECT_EQ(mErr.str(), "drwactl: " + message + "; see drwactl --help\n");
    }

    FakeProc mProc;
    uint64_t mReceivedBytes = 0;
    milliseconds mNow{0};
    int mLooks = 2;
    int mSocketsError = 0;
    std::vector<milliseconds> mWaits;
    std::ostringstream mOut;
    std::ostringstream mErr;
    DrwaController mController{
            mProc.path(), [this]() -> Result<DrwaSnapshot> {
                if (mSocketsError != 0) return Error(mSocketsError) << "sockets";
                DrwaSocket socket = {};
                socket.ifName = "rmnet0";
                socket.remote = "[2001:db8::2]:443";
                socket.receivedBytes = mReceivedBytes;
                socket.windowBytes = 100'000;
                socket.rttUs = 90'000;
                socket.minRttUs = 60'000;
                return DrwaSnapshot{std::chrono::steady_clock::time_point(mNow), {socket}};
            }};
    void writeFile(const std::string& path, const std::string& content) {
        const std::string file = mRoot.path + path;
        CHECK_EQ(system(("mkdir -p " + android::base::Dirname(file)).c_str()), 0);
        CHECK(android::base::WriteStringToFile(content, file));
    }

    TemporaryDir mRoot;
    DrwaModem mModem{mRoot.path};
    FakeRoute mRoute;
    DrwaUplink mUplink{[this](const std::string& message, const DrwaReaderFn& reader) {
        return mRoute.ask(message, reader);
    }};
};

TEST_F(DrwaCtlTest, Show) {
    EXPECT_EQ(run({"show"}), 0);
    EXPECT_EQ(mOut.str(), "rmnet0 lambda=0\nwlan0 lambda=150\n");
    EXPECT_EQ(run({"show", "wlan0"}), 0);
    EXPECT_EQ(mOut.str(), "wlan0 lambda=150\n");
    EXPECT_EQ(mErr.str(), "");
}

TEST_F(DrwaCtlTest, ShowJson) {
    for (const auto& words : {std::vector<std::string>{"--json", "show"}, {"show", "--json"}}) {
        EXPECT_EQ(run(words), 0);
        EXPECT_EQ(mOut.str(),
                  "[{\"connections\":[],\"counters\":null,\"interface\":\"rmnet0\","
                  "\"lambda\":0,\"queue\":null},"
                  "{\"connections\":[],\"counters\":null,\"interface\":\"wlan0\","
                  "\"lambda\":150,\"queue\":null}]\n");
    }
}

TEST_F(DrwaCtlTest, ShowQueueAndCounters) {
    mProc.addKnobs("rmnet1", "125\n", "100\n");
    mProc.writeCounters("rmnet1 sockets=1 rounds=5 capped=3 delay_us=4,1,0 rtt_us=0,0,5\n");
    EXPECT_EQ(run({"show", "rmnet1"}), 0);
    EXPECT_EQ(mOut.str(),
              "rmnet1 lambda=125 queue=100\n"
              "  connections=1 rounds=5 capped=3\n"
              "  queueing delay: p50<1.0ms p95<2.0ms p99<2.0ms\n"
              "  RTT without it: p50>=2.0ms p95>=2.0ms p99>=2.0ms\n");
    EXPECT_EQ(run({"--json", "show", "rmnet1"}), 0);
    EXPECT_EQ(mOut.str(),
              "[{\"connections\":[],\"counters\":{\"bin_start_us\":[0,1024,2048],\"capped\":3,"
              "\"delay_rounds\":[4,1,0],\"rounds\":5,\"rtt_rounds\":[0,0,5],\"sockets\":1},"
              "\"interface\":\"rmnet1\",\"lambda\":125,\"queue\":100}]\n");
    mProc.writeCounters("rmnet1 rounds=x\n");
    EXPECT_EQ(run({"show"}), 1);
    EXPECT_THAT(mErr.str(), StartsWith("drwactl: What the kernel counted is no number: rounds=x"));
}

TEST_F(DrwaCtlTest, Set) {
    EXPECT_EQ(run({"set", "rmnet0=125", "wlan0=0"}), 0);
    EXPECT_EQ(mOut.str() + mErr.str(), "");
    EXPECT_EQ(mProc.read("rmnet0"), "125");
    EXPECT_EQ(mProc.read("wlan0"), "0");
}

TEST_F(DrwaCtlTest, SetQueue) {
    mProc.addKnobs("rmnet1", "0\n", "0\n");
    mProc.addKnobs("a=b@c", "0\n", "7\n");
    EXPECT_EQ(run({"set", "rmnet1=125@100", "a=b@c=150"}), 0);
    EXPECT_EQ(mProc.read("rmnet1"), "125");
    EXPECT_EQ(mProc.readQueue("rmnet1"), "100");
    EXPECT_EQ(mProc.read("a=b@c"), "150");
    EXPECT_EQ(mProc.readQueue("a=b@c"), "7\n");
    EXPECT_EQ(run({"set", "rmnet1=125@-1"}), 1);
    EXPECT_THAT(mErr.str(), StartsWith("drwactl: rmnet1: queue -1 is negative"));
    EXPECT_EQ(run({"set", "rmnet0=125@100"}), 1);
    EXPECT_EQ(mErr.str(), "drwactl: Cannot read queue of rmnet0: No such file or directory\n");
}

TEST_F(DrwaCtlTest, WhatTheKernelRefuses) {
    EXPECT_EQ(run({"set", "rmnet0=125", "rmnet1=125"}), 1);
    EXPECT_EQ(mErr.str(), "drwactl: Cannot read lambda of rmnet1: No such device\n");
    EXPECT_EQ(mProc.read("rmnet0"), "0\n");
    EXPECT_EQ(run({"set", "rmnet0=50"}), 1);
    EXPECT_THAT(mErr.str(), StartsWith("drwactl: rmnet0: lambda 50 is neither 0 nor from 100"));
    EXPECT_EQ(run({"show", "rmnet1"}), 1);
    EXPECT_EQ(run({"watch", "rmnet1"}), 1);
    mSocketsError = EACCES;
    EXPECT_EQ(run({"watch"}), 1);
    EXPECT_EQ(mErr.str(), "drwactl: sockets: Permission denied\n");
}

TEST_F(DrwaCtlTest, KernelWithoutDrwa) {
    mProc.removeInterface("rmnet0");
    mProc.removeInterface("wlan0");
    for (const char* command : {"show", "watch"}) {
        EXPECT_EQ(run({command}), 1);
        EXPECT_EQ(mErr.str(), "drwactl: This kernel has no DRWA\n");
    }
}

TEST_F(DrwaCtlTest, WatchUntilTheUserEndsIt) {
    EXPECT_EQ(run({"watch", "rmnet0"}), 0);
    EXPECT_EQ(mWaits, std::vector<milliseconds>(3, milliseconds(1000)));
    const auto lines = Split(Trim(mOut.str()), "\n");
    ASSERT_EQ(lines.size(), 4u) << mOut.str();
    EXPECT_EQ(lines[0], "rmnet0 lambda=0");
    EXPECT_THAT(lines[1], HasSubstr("rate=8.00Mb/s"));
    EXPECT_EQ(lines[2], "rmnet0 lambda=0");
    EXPECT_THAT(lines[3], HasSubstr("rate=16.00Mb/s"));
}

TEST_F(DrwaCtlTest, WatchJson) {
    EXPECT_EQ(run({"watch", "--interval=500", "--json"}), 0);
    EXPECT_EQ(mWaits.front(), milliseconds(500));
    std::istringstream lines(mOut.str());
    std::string line;
    for (int look = 0; look < mLooks; look++) {
        ASSERT_TRUE(std::getline(lines, line));
        Json::Value interfaces;
        std::istringstream(line) >> interfaces;
        ASSERT_EQ(interfaces.size(), 2u);
        EXPECT_EQ(interfaces[0]["interface"], "rmnet0");
        EXPECT_EQ(interfaces[1]["connections"].size(), 0u);
        const Json::Value& connection = interfaces[0]["connections"][0];
        EXPECT_EQ(connection["remote"], "[2001:db8::2]:443");
        EXPECT_EQ(connection["rate_bps"], 8e6 * (look + 1));
        EXPECT_EQ(connection["window_bytes"].asUInt(), 100'000u);
        EXPECT_EQ(connection["window_is_limit"], false);
        EXPECT_EQ(connection["rtt_us"].asUInt(), 90'000u);
        EXPECT_EQ(connection["min_rtt_us"].asUInt(), 60'000u);
        EXPECT_EQ(connection["queue_min_us"].asUInt(), 30'000u);
        EXPECT_EQ(connection["queue_max_us"].asUInt(), look == 0 ? 40'000u : 30'000u);
    }
    EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(DrwaCtlTest, ProposesWhatWasMeant) {
    const std::pair<std::vector<std::string>, std::string> meant[] = {
            {{"shwo"}, "show"},
            {{"sett", "rmnet0=125"}, "set"},
            {{"wacth"}, "watch"},
            {{"uplnk"}, "uplink"},
            {{"moden"}, "modem"},
            {{"s"}, "show or set"},
            {{"--jsno", "show"}, "--json"},
            {{"--intreval=9", "watch"}, "--interval"},
            {{"--halp"}, "--help"},
    };
    for (const auto& [words, name] : meant) {
        SCOPED_TRACE(words[0]);
        EXPECT_EQ(run(words), 2);
        EXPECT_EQ(mErr.str(),
                  "drwactl: \"" + words[0] + "\" is unknown: did you mean " + name + "?\n");
    }
}

TEST_F(DrwaCtlTest, WrongArguments) {
    expectUsage({}, "a command is missing");
    expectUsage({"list"}, "\"list\" is no command");
    expectUsage({""}, "\"\" is no command");
    expectUsage({"--json=1"}, "\"--json=1\" is no option, or lacks its value");
    expectUsage({"--yaml", "show"}, "\"--yaml\" is no option, or lacks its value");
    expectUsage({"watch", "--interval"}, "\"--interval\" is no option, or lacks its value");
    expectUsage({"watch", "--interval=9"}, "\"9\" is no interval in ms, from 10");
    expectUsage({"watch", "--interval=1s"}, "\"1s\" is no interval in ms, from 10");
    expectUsage({"set"}, "set needs INTERFACE=LAMBDA[@QUEUE]");
    for (const char* word :
         {"rmnet0", "rmnet0=1.5", "rmnet0=", "rmnet0=125@", "rmnet0=125@x", "rmnet0=@100"}) {
        expectUsage({"set", word}, std::string("\"") + word + "\" is not INTERFACE=LAMBDA[@QUEUE]");
    }
}

TEST_F(DrwaCtlTest, HelpGivesUnits) {
    EXPECT_EQ(run({"--help"}), 0);
    for (const char* text : {"hundredths", "from 100 to 1000", "microseconds", "bits/s", "bytes"}) {
        EXPECT_THAT(mOut.str(), HasSubstr(text));
    }
    EXPECT_EQ(mErr.str(), "");
}

TEST_F(DrwaCtlTest, Uplink) {
    EXPECT_EQ(run({"uplink", "rmnet0=20"}), 0);
    EXPECT_EQ(mOut.str() + mErr.str(), "");
    EXPECT_EQ(run({"uplink"}), 0);
    EXPECT_EQ(mOut.str(),
              "rmnet0 uplink=20ms root=drwa_up 6d00: below=fq_codel\n"
              "  rate=0.00Mb/s window=0B inFlight=0B delay=0.0ms rtt=0.0ms phase=start marks=0"
              " answers=0 drains=0 jumps=0 opened=0 shorts=0 told=0\n"
              "wlan0 uplink=0ms root=pfifo_fast\n");
    EXPECT_EQ(run({"uplink", "wlan0"}), 0);
    EXPECT_EQ(mOut.str(), "wlan0 uplink=0ms root=pfifo_fast\n");
    EXPECT_EQ(run({"uplink", "rmnet0=0"}), 0);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet0"));
}

TEST_F(DrwaCtlTest, UplinkJson) {
    mRoute.setMux("rmnet0", 1);
    EXPECT_EQ(run({"uplink", "rmnet0=5"}), 0);
    mRoute.takeDown("wlan0");
    EXPECT_EQ(run({"--json", "uplink"}), 0);
    EXPECT_EQ(
            mOut.str(),
            "[{\"interface\":\"rmnet0\",\"leaf\":\"fq_codel\",\"mux\":1,\"queues\":[{\"answers\":0,"
            "\"delay_us\":0,\"drains\":0,\"in_flight_bytes\":0,\"jumps\":0,"
            "\"marks\":0,\"opened\":0,\"phase\":0,\"queue\":null,\"rate_bps\":0,\"rtt_us\":0,"
            "\"shorts\":0,\"told\":0,\"window_bytes\":0}],\"root\":\"drwa_up\",\"target_ms\":5},"
            "{\"interface\":\"wlan0\",\"leaf\":null,\"mux\":null,\"queues\":[],\"root\":null,"
            "\"target_ms\":0}]\n");
}

TEST_F(DrwaCtlTest, ModemThatTellsNothing) {
    EXPECT_EQ(run({"modem"}), 0);
    EXPECT_EQ(mOut.str(),
              "dfc_flow_ind=unknown dfc_adjust_grant=unknown dfc_flow_check=unknown"
              " rmnet_qmap_send=unknown drwa_up_dfc=unknown\n"
              "rmnet0 queues=1 bql=none\n"
              "wlan0 queues=1 bql=none\n");
    writeFile("/sys/kernel/tracing/events/enable", "0\n");
    writeFile("/proc/kallsyms", "0000000000000000 T rmnet_qmap_send_agg\t[rmnet_core]\n");
    EXPECT_EQ(run({"--json", "modem", "wlan0"}), 0);
    EXPECT_EQ(mOut.str(),
              "{\"dfc_adjust_grant\":false,\"dfc_flow_check\":false,\"dfc_flow_ind\":false,\"drwa_"
              "up_dfc\":false,"
              "\"interfaces\":[{\"bql_bytes\":null,\"interface\":\"wlan0\",\"mux\":null,"
              "\"over\":null,\"queues\":1}],\"rmnet_qmap_send\":false}\n");
    EXPECT_EQ(run({"modem", "nosuch0"}), 1);
    EXPECT_EQ(mErr.str(), "drwactl: nosuch0: No such device\n");
}

TEST_F(DrwaCtlTest, ModemThatTells) {
    mRoute.addInterface("rmnet_ipa0");
    mRoute.addInterface("rmnet1", 31);
    mRoute.setMux("rmnet1", 2);
    mRoute.setLower("rmnet1", 4);
    for (const char* event : {"dfc_flow_ind", "dfc_flow_check"}) {
        writeFile(std::string("/sys/kernel/debug/tracing/events/dfc/") + event + "/id", "1\n");
    }
    writeFile("/proc/kallsyms",
              "0000000000000000 T rmnet_qmap_send\t[rmnet_core]\n"
              "0000000000000000 T rmnet_other\t[rmnet_core]\n");
    writeFile("/sys/module/drwa_up_dfc/refcnt", "0\n");
    for (const char* queue : {"rx-0", "tx-1", "tx-2", "tx-3"}) {
        writeFile("/sys/class/net/rmnet_ipa0/queues/" + std::string(queue) +
                          "/byte_queue_limits/limit",
                  std::string(queue) == "rx-0"   ? "9000\n"
                  : queue == std::string("tx-2") ? "3000\n"
                                                 : "0\n");
    }
    writeFile("/sys/class/net/rmnet1/queues/tx-0/byte_queue_limits/limit", "0\n");
    EXPECT_EQ(run({"modem", "rmnet1", "rmnet_ipa0"}), 0);
    EXPECT_EQ(mOut.str(),
              "dfc_flow_ind=yes dfc_adjust_grant=no dfc_flow_check=yes rmnet_qmap_send=yes"
              " drwa_up_dfc=yes\n"
              "rmnet1 queues=31 mux=2 over=rmnet_ipa0 bql=none\n"
              "rmnet_ipa0 queues=1 bql=3000B\n");
    EXPECT_EQ(run({"--json", "modem", "rmnet1", "rmnet_ipa0"}), 0);
    EXPECT_EQ(mOut.str(),
              "{\"dfc_adjust_grant\":false,\"dfc_flow_check\":true,\"dfc_flow_ind\":true,\"drwa_"
              "up_dfc\":true,"
              "\"interfaces\":[{\"bql_bytes\":null,\"interface\":\"rmnet1\",\"mux\":2,"
              "\"over\":\"rmnet_ipa0\",\"queues\":31},{\"bql_bytes\":3000,"
              "\"interface\":\"rmnet_ipa0\",\"mux\":null,\"over\":null,\"queues\":1}],"
              "\"rmnet_qmap_send\":true}\n");
}

TEST_F(DrwaCtlTest, ModemWithTheModuleBuiltIn) {
    writeFile("/proc/kallsyms", "ffffffff81000000 t drwa_up_dfc_init\n");
    EXPECT_EQ(run({"modem"}), 0);
    EXPECT_THAT(mOut.str(), HasSubstr("rmnet_qmap_send=no drwa_up_dfc=yes\n"));
}

TEST_F(DrwaCtlTest, UplinkThatIsRefused) {
    mRoute.setRoot("wlan0", {0x80010000, TC_H_ROOT, "rmnet_sch"});
    for (const char* refused : {"wlan0=20", "rmnet0=4", "rmnet0=201", "rmnet0=", "nosuch0=20"}) {
        EXPECT_EQ(run({"uplink", refused}), 1) << refused;
        EXPECT_THAT(mErr.str(), StartsWith("drwactl: "));
        EXPECT_EQ(mOut.str(), "");
    }
    EXPECT_EQ(run({"uplink", "nosuch0"}), 1);
    // Of one alone, so that it is done or not
    EXPECT_EQ(run({"uplink", "rmnet0=20", "wlan0=20"}), 1);
    EXPECT_TRUE(mRoute.hasDefaultTree("rmnet0"));
    EXPECT_EQ(mRoute.tree("wlan0"), "rmnet_sch 80010000 root");
}

}  // namespace net
}  // namespace android
