// SPDX-License-Identifier: Apache-2.0
//
// Runs on a kernel with DRWA, in a network name space that has rmnet0 with a download over it, and
// dummy0.

#include <errno.h>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "DrwaController.h"

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
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

}  // namespace net
}  // namespace android
