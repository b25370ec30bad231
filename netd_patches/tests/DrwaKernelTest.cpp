// SPDX-License-Identifier: Apache-2.0
//
// Runs on a kernel with DRWA, in a network name space that has rmnet0 with a download over it, and
// dummy0.

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "DrwaController.h"
#include "DrwaUplink.h"

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

namespace android {
namespace net {

class DrwaKernelTest : public testing::Test {
  protected:
    ~DrwaKernelTest() override { EXPECT_TRUE(mController.reset().ok()); }

    int errorOfSetting(const std::vector<DrwaLambda>& lambdas) {
        auto set = mController.setLambdas(lambdas);
        return set.ok() ? 0 : set.error().code();
    }

    std::vector<int> lambdas() {
        std::vector<int> values;
        auto all = mController.getLambdas({"dummy0", "rmnet0"});
        EXPECT_TRUE(all.ok());
        for (const DrwaLambda& one : *all) values.push_back(one.lambda);
        return values;
    }

    std::vector<int> queues() {
        std::vector<int> values;
        auto all = mController.getLambdas({"dummy0", "rmnet0"});
        EXPECT_TRUE(all.ok());
        for (const DrwaLambda& one : *all) values.push_back(one.queue.value_or(-1));
        return values;
    }

    DrwaController mController;
};

TEST_F(DrwaKernelTest, SetsAndResets) {
    EXPECT_THAT(lambdas(), ElementsAre(0, 0));
    EXPECT_EQ(errorOfSetting({{"rmnet0", 1000}, {"dummy0", 100}}), 0);
    EXPECT_THAT(lambdas(), ElementsAre(100, 1000));
    ASSERT_TRUE(mController.reset().ok());
    EXPECT_THAT(lambdas(), ElementsAre(0, 0));
}

TEST_F(DrwaKernelTest, SetsQueues) {
    EXPECT_EQ(errorOfSetting({{"rmnet0", 150, 101}, {"dummy0", 0, 101}}), 0);
    EXPECT_EQ(errorOfSetting({{"rmnet0", 200}}), 0);
    EXPECT_EQ(errorOfSetting({{"rmnet0", 200, -1}}), EINVAL);
    EXPECT_THAT(queues(), ElementsAre(101, 101));
    ASSERT_TRUE(mController.reset().ok());
    EXPECT_THAT(queues(), ElementsAre(0, 0));
}

TEST_F(DrwaKernelTest, CountersAreOfInterfacesThatHaveLambda) {
    auto counters = mController.readCounters();
    ASSERT_TRUE(counters.ok()) << counters.error().message();
    EXPECT_THAT(*counters, UnorderedElementsAre(Field(&DrwaCounters::ifName, "dummy0"),
                                                Field(&DrwaCounters::ifName, "rmnet0")));
    for (const DrwaCounters& counted : *counters) {
        EXPECT_GT(counted.delayRounds.size(), 1u);
        EXPECT_EQ(counted.rttRounds.size(), counted.delayRounds.size());
    }
}

TEST_F(DrwaKernelTest, ListsWhatTheKernelGoverns) {
    auto all = mController.getLambdas();
    ASSERT_TRUE(all.ok());
    EXPECT_THAT(*all, ElementsAre(Field(&DrwaLambda::ifName, "dummy0"),
                                  Field(&DrwaLambda::ifName, "rmnet0")));
}

TEST_F(DrwaKernelTest, AllOrNothing) {
    EXPECT_EQ(errorOfSetting({{"dummy0", 150}, {"nosuch0", 150}}), ENODEV);
    EXPECT_EQ(errorOfSetting({{"dummy0", 150}, {"lo", 150}}), ENOENT);
    EXPECT_EQ(errorOfSetting({{"dummy0", 150}, {"rmnet0", 99}}), EINVAL);
    EXPECT_THAT(lambdas(), ElementsAre(0, 0));
}

TEST_F(DrwaKernelTest, InterfaceThatGoes) {
    ASSERT_EQ(system("ip link add dummy1 type dummy"), 0);
    EXPECT_EQ(errorOfSetting({{"dummy1", 150}}), 0);
    ASSERT_EQ(system("ip link del dummy1"), 0);
    EXPECT_EQ(errorOfSetting({{"dummy1", 150}}), ENODEV);
    EXPECT_TRUE(mController.reset().ok());
}

TEST_F(DrwaKernelTest, DumpShowsTheDownload) {
    for (const bool rates : {false, true}) {
        std::vector<std::string> lines;
        mController.dump([&](const std::string& line) { lines.push_back(line); }, rates);
        ASSERT_THAT(lines, Contains("    rmnet0 lambda=0 queue=0"));
        // The last of its interface's, which is the last.
        EXPECT_THAT(lines.back(), HasSubstr("10.0.0.2:"));
        EXPECT_THAT(lines.back(), HasSubstr("from 10.0.0.1:5001 uid=0 "));
        EXPECT_THAT(lines.back(), HasSubstr(rates ? " rate=" : " received="));
    }
}

// What tc shows of an interface's qdiscs, but for their statistics.
std::string qdiscs(const std::string& ifName) {
    const std::unique_ptr<FILE, decltype(&pclose)> pipe(
            popen(("tc qdisc show dev " + ifName).c_str(), "r"), pclose);
    std::string text;
    for (int c; (c = getc(pipe.get())) != EOF;) text += static_cast<char>(c);
    return text;
}

class DrwaUplinkKernelTest : public testing::Test {
  protected:
    DrwaUplinkKernelTest() {
        run("ip link add multi0 numtxqueues 3 type dummy");
        run("ip link set multi0 up");
        run("ip link set dummy0 up");
    }

    ~DrwaUplinkKernelTest() override {
        EXPECT_TRUE(mUplink.reset().ok());
        run("ip link del multi0");
    }

    static void run(const std::string& command) {
        EXPECT_EQ(system(command.c_str()), 0) << command;
    }

    int errorOfSetting(const std::string& ifName, int targetMs) {
        auto set = mUplink.setTarget(ifName, targetMs);
        return set.ok() ? 0 : set.error().code();
    }

    int target(const std::string& ifName) {
        auto target = mUplink.getTarget(ifName);
        return target.ok() ? *target : -target.error().code();
    }

    DrwaUplink mUplink;
};

TEST_F(DrwaUplinkKernelTest, AttachesAndRestores) {
    for (const char* ifName : {"dummy0", "multi0"}) {
        SCOPED_TRACE(ifName);
        const std::string before = qdiscs(ifName);
        EXPECT_EQ(target(ifName), 0);
        EXPECT_EQ(errorOfSetting(ifName, 0), 0);
        EXPECT_EQ(qdiscs(ifName), before);
        EXPECT_EQ(errorOfSetting(ifName, 20), 0);
        EXPECT_EQ(target(ifName), 20);
        EXPECT_THAT(qdiscs(ifName), AllOf(HasSubstr("qdisc drwa_up 6d0"), HasSubstr("fq_codel")));
        EXPECT_EQ(errorOfSetting(ifName, 0), 0);
        EXPECT_EQ(target(ifName), 0);
        EXPECT_EQ(qdiscs(ifName), before);
    }
}

TEST_F(DrwaUplinkKernelTest, EveryQueueHasItsOwn) {
    ASSERT_EQ(errorOfSetting("multi0", 20), 0);
    auto states = mUplink.getStates({"multi0"});
    ASSERT_TRUE(states.ok());
    EXPECT_EQ(states->at(0).root, "mq");
    EXPECT_EQ(states->at(0).leaf, "fq_codel");
    EXPECT_EQ(states->at(0).queues.size(), 3u);
    for (const char* queue :
         {"6d01: parent 6d00:1", "6d02: parent 6d00:2", "6d03: parent 6d00:3"}) {
        EXPECT_THAT(qdiscs("multi0"), HasSubstr(std::string("qdisc drwa_up ") + queue));
    }
    EXPECT_EQ(errorOfSetting("multi0", 5), 0);
    EXPECT_EQ(target("multi0"), 5);
}

// The kernel's, but multi0 is one of Qualcomm's: the lab's kernels have no rmnet.
android::base::Result<void> askWithRmnet(const std::string& message, const DrwaReaderFn& reader) {
    const std::string linkInfo = netlinkAttribute(
            IFLA_LINKINFO,
            netlinkAttribute(IFLA_INFO_KIND, std::string("rmnet") + '\0') +
                    netlinkAttribute(IFLA_INFO_DATA,
                                     netlinkAttribute(IFLA_RMNET_MUX_ID, bytesOf(uint16_t{7}))));
    return askNetlink("test", NETLINK_ROUTE, message, [&](std::string_view datagram) {
        std::string told;
        while (!datagram.empty()) {
            nlmsghdr header;
            extract(datagram, &header);
            std::string one(datagram.substr(0, NLMSG_ALIGN(header.nlmsg_len)));
            if (header.nlmsg_type == RTM_NEWLINK && one.find("multi0") != std::string::npos) {
                one = netlinkMessage(RTM_NEWLINK, NLM_F_MULTI, one.substr(NLMSG_HDRLEN) + linkInfo);
            }
            told += one;
            datagram = dropBytes(datagram, NLMSG_ALIGN(header.nlmsg_len));
        }
        return reader(told);
    });
}

TEST_F(DrwaUplinkKernelTest, QualcommsHaveItsMux) {
    const std::string before = qdiscs("multi0");
    DrwaUplink uplink(askWithRmnet);
    ASSERT_TRUE(uplink.setTarget("multi0", 20).ok());
    // As the kernel tells
    for (const int targetMs : {20, 40}) {
        ASSERT_TRUE(uplink.setTarget("multi0", targetMs).ok());
        auto states = mUplink.getStates({"multi0"});
        ASSERT_TRUE(states.ok());
        EXPECT_EQ(states->at(0).mux, 7u);
        EXPECT_EQ(states->at(0).targetMs, targetMs);
        EXPECT_EQ(states->at(0).queues.size(), 3u);
    }
    ASSERT_TRUE(uplink.setTarget("multi0", 0).ok());
    EXPECT_EQ(qdiscs("multi0"), before);
}

TEST_F(DrwaUplinkKernelTest, DefaultThatIsNoFifoStaysBelow) {
    // The first name space alone has it.
    const std::string sysctl =
            "nsenter --net=/proc/1/ns/net sh -c 'echo %s >"
            "/proc/sys/net/core/default_qdisc'";
    const auto setDefault = [&](const std::string& kind) {
        run(std::string(sysctl).replace(sysctl.find("%s"), 2, kind));
    };
    setDefault("codel");
    run("ip tuntap add other0 mode tun");
    run("ip link set other0 up");
    setDefault("pfifo_fast");
    EXPECT_THAT(qdiscs("other0"), HasSubstr("qdisc codel 0: root"));
    EXPECT_EQ(errorOfSetting("other0", 20), 0);
    auto states = mUplink.getStates({"other0"});
    ASSERT_TRUE(states.ok());
    EXPECT_EQ(states->at(0).leaf, "codel");
    run("ip link del other0");
}

TEST_F(DrwaUplinkKernelTest, ChangesTheTargetInPlace) {
    ASSERT_EQ(errorOfSetting("dummy0", 5), 0);
    EXPECT_EQ(errorOfSetting("dummy0", 200), 0);
    EXPECT_EQ(target("dummy0"), 200);
    for (const int bad : {-1, 1, 4, 201}) EXPECT_EQ(errorOfSetting("dummy0", bad), EINVAL);
    EXPECT_EQ(target("dummy0"), 200);
}

TEST_F(DrwaUplinkKernelTest, SomebodyElsesRootStays) {
    for (const char* root : {"pfifo limit 100", "handle 6d00: fq_codel", "handle 1: prio"}) {
        run(std::string("tc qdisc add dev dummy0 root ") + root);
        const std::string before = qdiscs("dummy0");
        EXPECT_EQ(errorOfSetting("dummy0", 20), EBUSY);
        EXPECT_EQ(target("dummy0"), 0);
        EXPECT_EQ(errorOfSetting("dummy0", 0), 0);
        EXPECT_TRUE(mUplink.reset().ok());
        EXPECT_EQ(qdiscs("dummy0"), before);
        run("tc qdisc del dev dummy0 root");
    }
    run("tc qdisc add dev multi0 root handle 6c00: mq");
    const std::string before = qdiscs("multi0");
    EXPECT_EQ(errorOfSetting("multi0", 20), EBUSY);
    EXPECT_TRUE(mUplink.reset().ok());
    EXPECT_EQ(qdiscs("multi0"), before);
}

TEST_F(DrwaUplinkKernelTest, ResetTakesAwayWhatIsOurs) {
    const std::string dummy = qdiscs("dummy0"), multi = qdiscs("multi0");
    ASSERT_EQ(errorOfSetting("dummy0", 20), 0);
    ASSERT_EQ(errorOfSetting("multi0", 20), 0);
    // As the next netd
    EXPECT_TRUE(DrwaUplink().reset().ok());
    EXPECT_EQ(qdiscs("dummy0"), dummy);
    EXPECT_EQ(qdiscs("multi0"), multi);
    // One that had died in the middle of it
    run("tc qdisc add dev multi0 root handle 6d00: mq");
    EXPECT_TRUE(DrwaUplink().reset().ok());
    EXPECT_EQ(qdiscs("multi0"), multi);
}

TEST_F(DrwaUplinkKernelTest, InterfacesThatAreDownOrGo) {
    run("ip link add down0 type dummy");
    EXPECT_EQ(errorOfSetting("down0", 20), 0);
    EXPECT_EQ(target("down0"), 20);
    run("ip link set down0 up");
    EXPECT_EQ(target("down0"), 20);
    // Linux before 6.2 renames none that is up.
    run("ip link set down0 name other0 || "
        "{ ip link set down0 down && ip link set down0 name other0; }");
    EXPECT_EQ(target("other0"), 20);
    run("ip link del other0");
    EXPECT_EQ(target("other0"), -ENODEV);
    EXPECT_EQ(errorOfSetting("other0", 0), ENODEV);
}

TEST_F(DrwaUplinkKernelTest, LooksWithoutATrace) {
    const std::string before = qdiscs("lo");
    EXPECT_EQ(target("dummy0"), 0);
    EXPECT_EQ(qdiscs("lo"), before);
    EXPECT_THAT(qdiscs("lo"), Not(HasSubstr("drwa_up")));
}

TEST_F(DrwaUplinkKernelTest, DumpShowsIt) {
    ASSERT_EQ(errorOfSetting("dummy0", 20), 0);
    // It has the root that the download's link is made of
    EXPECT_EQ(errorOfSetting("rmnet0", 20), EBUSY);
    std::vector<std::string> lines;
    mUplink.dump([&](const std::string& line) { lines.push_back(line); });
    EXPECT_THAT(lines, AllOf(Contains("    dummy0 uplink=20ms root=drwa_up 6d00: below=fq_codel"),
                             Contains(HasSubstr(" phase=start ")),
                             Contains(HasSubstr("    rmnet0: The root of rmnet0 is netem "))));
}

}  // namespace net
}  // namespace android
