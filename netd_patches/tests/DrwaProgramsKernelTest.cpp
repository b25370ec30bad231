// SPDX-License-Identifier: Apache-2.0
//
// Runs on a kernel without DRWA, whose programs and maps a loader has pinned, and which has dummy0.

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "DrwaPrograms.h"

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

namespace android {
namespace net {

constexpr char kOn[] = "125 100 0 1";

class DrwaProgramsKernelTest : public testing::Test {
  protected:
    ~DrwaProgramsKernelTest() override {
        EXPECT_TRUE(mPrograms.reset().ok());
        // Whatever of it a test has left
        if (system("tc qdisc del dev dummy0 clsact 2> /dev/null") != 0) return;
    }

    static void run(const std::string& command) {
        EXPECT_EQ(system(command.c_str()), 0) << command;
    }

    static std::string outputOf(const std::string& command) {
        FILE* output = popen(command.c_str(), "r");
        std::string text;
        for (int c; (c = getc(output)) != EOF;) text += static_cast<char>(c);
        EXPECT_EQ(pclose(output), 0) << command;
        return text;
    }

    static std::string filters(const std::string& ifName, const std::string& hook) {
        return outputOf("tc filter show dev " + ifName + " " + hook);
    }

    static std::string filters(const std::string& ifName) {
        return filters(ifName, "ingress") + filters(ifName, "egress");
    }

    static bool hasPrograms(const std::string& ifName) {
        const bool in = filters(ifName, "ingress").find("drwa_ingress") != std::string::npos;
        const bool out = filters(ifName, "egress").find("drwa_egress") != std::string::npos;
        EXPECT_EQ(in, out) << ifName;
        return in;
    }

    int errorOfSetting(const std::string& ifName, const std::string& value) {
        auto set = mPrograms.set(ifName, value);
        return set.ok() ? 0 : set.error().code();
    }

    std::string value(const std::string& ifName) {
        auto value = mPrograms.get(ifName);
        return value.ok() ? *value : value.error().message();
    }

    std::vector<std::string> dump() {
        std::vector<std::string> lines;
        mPrograms.dump([&](const std::string& line) { lines.push_back(line); });
        return lines;
    }

    DrwaPrograms mPrograms;
    DrwaBpf mBpf;
};

TEST_F(DrwaProgramsKernelTest, AttachesAndDetaches) {
    EXPECT_EQ(value("dummy0"), "0");
    EXPECT_EQ(errorOfSetting("dummy0", kOn), 0);
    EXPECT_EQ(value("dummy0"), kOn);
    EXPECT_TRUE(hasPrograms("dummy0"));
    for (const char* hook : {"ingress", "egress"}) {
        EXPECT_THAT(filters("dummy0", hook),
                    AllOf(HasSubstr("protocol all pref 1 bpf"), HasSubstr("handle 0x1 "),
                          HasSubstr("direct-action")));
    }
    const int changes = 3;
    for (int i = 0; i < changes; i++) EXPECT_EQ(errorOfSetting("dummy0", kOn), 0);
    EXPECT_EQ(errorOfSetting("dummy0", "200 0 1 0"), 0);
    EXPECT_EQ(value("dummy0"), "200 0 1 0");
    EXPECT_EQ(errorOfSetting("dummy0", "0"), 0);
    EXPECT_EQ(value("dummy0"), "0");
    EXPECT_FALSE(hasPrograms("dummy0"));
    EXPECT_EQ(errorOfSetting("dummy0", "0"), 0);
}

TEST_F(DrwaProgramsKernelTest, ComesBackAfterTheQdisc) {
    ASSERT_EQ(errorOfSetting("dummy0", kOn), 0);
    run("tc qdisc del dev dummy0 clsact");
    EXPECT_FALSE(hasPrograms("dummy0"));
    EXPECT_THAT(dump(), Contains(HasSubstr(", no program at its ingress")));
    EXPECT_EQ(errorOfSetting("dummy0", kOn), 0);
    EXPECT_TRUE(hasPrograms("dummy0"));
    run("tc filter del dev dummy0 egress pref 1");
    EXPECT_EQ(errorOfSetting("dummy0", kOn), 0);
    EXPECT_TRUE(hasPrograms("dummy0"));
}

// As of tethering's and 464xlat's, and of whoever was first at the priority.
TEST_F(DrwaProgramsKernelTest, FiltersOfOthersStay) {
    run("tc qdisc add dev dummy0 clsact");
    for (const char* pref : {"2", "4"}) {
        run(std::string("tc filter add dev dummy0 ingress pref ") + pref +
            " bpf da pinned /sys/fs/bpf/prog_drwa_schedcls_egress_drwa");
    }
    const std::string before = filters("dummy0");
    ASSERT_EQ(errorOfSetting("dummy0", kOn), 0);
    EXPECT_THAT(filters("dummy0", "ingress"),
                AllOf(HasSubstr("pref 1 "), HasSubstr("pref 2 "), HasSubstr("pref 4 ")));
    EXPECT_EQ(errorOfSetting("dummy0", "0"), 0);
    EXPECT_EQ(filters("dummy0"), before);
    run("tc filter add dev dummy0 egress pref 1 bpf da pinned"
        " /sys/fs/bpf/prog_drwa_schedcls_ingress_drwa");
    const std::string taken = filters("dummy0");
    EXPECT_EQ(errorOfSetting("dummy0", kOn), EEXIST);
    EXPECT_EQ(filters("dummy0"), taken);
    EXPECT_EQ(value("dummy0"), "0");
    EXPECT_THAT(dump(), Contains(HasSubstr("dummy0: Priority 1 at dummy0's egress is another's, a "
                                           "filter of kind bpf")));
    EXPECT_TRUE(mPrograms.reset().ok());
    EXPECT_EQ(filters("dummy0"), taken);
}

TEST_F(DrwaProgramsKernelTest, PacketsCrossThem) {
    ASSERT_EQ(errorOfSetting("dummy0", kOn), 0);
    auto devs = mBpf.open("/sys/fs/bpf/map_drwa_drwa_devs");
    auto counts = mBpf.open("/sys/fs/bpf/map_drwa_drwa_counts");
    ASSERT_TRUE(devs.ok() && counts.ok());
    auto dev = mBpf.read<DrwaBpfDev>(*devs, mBpf.indexOf("dummy0"));
    ASSERT_TRUE(dev.ok());
    EXPECT_EQ(dev->l2, 14u);
    const auto sent = [&] { return mBpf.read<DrwaBpfCounts>(*counts, dev->slot)->sent; };
    EXPECT_EQ(sent(), 0u);
    // Nobody is there.
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    ASSERT_EQ(inet_pton(AF_INET, "192.0.2.2", &to.sin_addr), 1);
    const base::unique_fd udp(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const std::string data(500, 'x');
    const auto send = [&] {
        return sendto(udp, data.data(), data.size(), 0, reinterpret_cast<sockaddr*>(&to),
                      sizeof(to));
    };
    for (int i = 0; i < 3; i++) ASSERT_EQ(send(), 500);
    const uint64_t after = sent();
    EXPECT_GE(after, 3u * 400);
    ASSERT_EQ(errorOfSetting("dummy0", "0"), 0);
    ASSERT_EQ(send(), 500);
    EXPECT_EQ(sent(), after);
}

TEST_F(DrwaProgramsKernelTest, ResetTakesAwayWhatIsOurs) {
    ASSERT_EQ(errorOfSetting("dummy0", kOn), 0);
    // As the next netd
    EXPECT_TRUE(DrwaPrograms().reset().ok());
    EXPECT_FALSE(hasPrograms("dummy0"));
    EXPECT_EQ(value("dummy0"), "0");
}

TEST_F(DrwaProgramsKernelTest, InterfacesThatGoOrChangeTheirNames) {
    run("ip link add gone0 type dummy");
    ASSERT_EQ(errorOfSetting("gone0", kOn), 0);
    run("ip link set gone0 name other0");
    EXPECT_EQ(value("other0"), kOn);
    run("ip link del other0");
    EXPECT_EQ(errorOfSetting("other0", "0"), ENODEV);
    auto devs = mBpf.open("/sys/fs/bpf/map_drwa_drwa_devs");
    ASSERT_TRUE(devs.ok());
    EXPECT_EQ(mBpf.keysOf(*devs, DrwaPrograms::kPlaces)->size(), 1u);
    EXPECT_EQ(errorOfSetting("dummy0", "0"), 0);
    EXPECT_EQ(mBpf.keysOf(*devs, DrwaPrograms::kPlaces)->size(), 0u);
}

TEST_F(DrwaProgramsKernelTest, KindsOfLinks) {
    run("ip tuntap add tun0 mode tun");
    EXPECT_EQ(*mBpf.linkBytesOf("tun0"), 0u);
    EXPECT_EQ(*mBpf.linkBytesOf("dummy0"), 14u);
    EXPECT_EQ(errorOfSetting("lo", kOn), ENOTSUP);
    EXPECT_EQ(errorOfSetting("tun0", kOn), 0);
    run("ip link del tun0");
}

TEST_F(DrwaProgramsKernelTest, TellsOfNoPrograms) {
    run("mv /sys/fs/bpf/prog_drwa_schedcls_egress_drwa /sys/fs/bpf/elsewhere");
    EXPECT_EQ(errorOfSetting("dummy0", kOn), ENOENT);
    EXPECT_THAT(value("dummy0"),
                HasSubstr("Cannot open /sys/fs/bpf/prog_drwa_schedcls_egress_drwa: No such file"));
    EXPECT_TRUE(mPrograms.reset().ok());
    run("mv /sys/fs/bpf/elsewhere /sys/fs/bpf/prog_drwa_schedcls_egress_drwa");
}

}  // namespace net
}  // namespace android
