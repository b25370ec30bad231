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

// Loads the object of DRWA's programs with the loader of an AOSP tree, into the kernel of this
// machine, and attaches them beside programs that stand in for netd's, in a cgroup of its own.
// Needs root.

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include <android-base/unique_fd.h>
#include <gtest/gtest.h>

#ifdef WHOLE_LOADER
// Newer ones are one file, with its main().
#define main netBpfLoadMain
#include WHOLE_LOADER
#undef main
#undef LOG_TAG
#else
#include "BpfSyscallWrappers.h"
#include "loader.h"
#endif

#include "DrwaPrograms.h"

// The machine's libraries know no properties: a user build.
namespace android {
namespace base {
std::string GetProperty(const std::string& name, const std::string& fallback) {
    return name == "ro.build.type" ? "user" : fallback;
}
}  // namespace base
}  // namespace android

namespace android {
namespace net {
namespace {

using base::unique_fd;
using std::string;

const string kPins = "/sys/fs/bpf/netd_readonly/";
constexpr bpf_attach_type kHooks[] = {
        BPF_CGROUP_SETSOCKOPT,
        BPF_CGROUP_INET_SOCK_RELEASE,
        BPF_CGROUP_INET_INGRESS,
        BPF_CGROUP_SOCK_OPS,
};
constexpr gid_t kNetBwAcct = 3007;

bool load(const string& object) {
#ifdef WHOLE_LOADER
    return !bpf::loadProg(object.c_str(), LOADER_VERSION, "netd_readonly/");
#else
    bool critical = true;
    const bpf::Location location = {.dir = "", .prefix = "netd_readonly/"};
#ifdef LOADER_VERSION
    return !bpf::loadProg(object.c_str(), &critical, LOADER_VERSION, location) && !critical;
#else
    return !bpf::loadProg(object.c_str(), &critical, location) && !critical;
#endif
#endif
}

// A program that lets all pass.
unique_fd pass(bpf_attach_type hook) {
    const bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1},
                             {.code = BPF_JMP | BPF_EXIT}};
    bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCK_OPS};
    if (hook == BPF_CGROUP_INET_INGRESS) load.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
    if (hook == BPF_CGROUP_INET_SOCK_RELEASE) load.prog_type = BPF_PROG_TYPE_CGROUP_SOCK;
    if (hook == BPF_CGROUP_SETSOCKOPT) load.prog_type = BPF_PROG_TYPE_CGROUP_SOCKOPT;
    load.expected_attach_type = hook;
    load.insns = bpf::ptr_to_u64(code);
    load.insn_cnt = 2;
    load.license = bpf::ptr_to_u64("GPL");
    return unique_fd(bpf::bpf(BPF_PROG_LOAD, load));
}

struct Attached {
    uint32_t flags;
    std::vector<uint32_t> ids;
};

Attached attached(const unique_fd& cgroup, bpf_attach_type hook) {
    uint32_t ids[8] = {};
    bpf_attr query = {.query = {.target_fd = static_cast<__u32>(cgroup.get()),
                                .attach_type = hook,
                                .prog_ids = bpf::ptr_to_u64(ids),
                                .prog_cnt = 8}};
    EXPECT_EQ(0, bpf::bpf(BPF_PROG_QUERY, &query));
    return {query.query.attach_flags, {ids, ids + query.query.prog_cnt}};
}

uint32_t idOf(const unique_fd& program) {
    return bpf::bpfGetFdProgId(program);
}

uint32_t told() {
    unique_fd map(bpf::mapRetrieveRO((kPins + "map_drwa_drwa_attached").c_str()));
    uint32_t key = 0, value = ~0U;
    EXPECT_EQ(0, bpf::findMapEntry(map, &key, &value));
    return value;
}

class DrwaProgramsTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(0, mount("bpf", "/sys/fs/bpf", "bpf", 0, nullptr));
        for (const char* folder : {"netd_readonly", "netd_shared"}) {
            ASSERT_EQ(0, mkdir((string("/sys/fs/bpf/") + folder).c_str(), 0777));
        }
        mFolder = string(getenv("CGROUP")) + "/drwa-" + std::to_string(getpid());
        ASSERT_EQ(0, mkdir(mFolder.c_str(), 0755)) << mFolder;
        mCgroup.reset(open(mFolder.c_str(), O_RDONLY | O_DIRECTORY));
        ASSERT_TRUE(mCgroup.ok());
    }

    void TearDown() override {
        mCgroup.reset();
        rmdir(mFolder.c_str());
        umount2("/sys/fs/bpf", MNT_DETACH);
    }

    // What netd does at its start.
    void startNetd() {
        for (const auto& [hook, program] : mNetds) {
            ASSERT_EQ(0, drwa::attachNetdProgram(hook, program, mCgroup)) << strerror(errno);
        }
        drwa::attachPrograms(mCgroup);
        for (const auto& [hook, program] : mNetds) {
            // With these, BpfHandler aborts netd.
            EXPECT_EQ(idOf(program), static_cast<uint32_t>(bpf::queryProgram(mCgroup, hook)));
        }
    }

    void expectAllAttached() {
        for (bpf_attach_type hook : kHooks) {
            const Attached found = attached(mCgroup, hook);
            EXPECT_EQ(BPF_F_ALLOW_MULTI, found.flags) << hook;
            const bool netds = hook != BPF_CGROUP_SOCK_OPS;
            ASSERT_EQ(netds ? 2U : 1U, found.ids.size()) << hook;
        }
        EXPECT_EQ(1U, told());
    }

    void expectNetdsAlone() {
        for (const auto& [hook, program] : mNetds) {
            EXPECT_EQ(std::vector<uint32_t>{idOf(program)}, attached(mCgroup, hook).ids) << hook;
        }
    }

    string mFolder;
    unique_fd mCgroup;
    // Android 15's: 14 has that of ingress alone.
    std::vector<std::pair<bpf_attach_type, unique_fd>> mNetds = [] {
        std::vector<std::pair<bpf_attach_type, unique_fd>> programs;
        for (bpf_attach_type hook :
             {BPF_CGROUP_INET_INGRESS, BPF_CGROUP_SETSOCKOPT, BPF_CGROUP_INET_SOCK_RELEASE}) {
            programs.emplace_back(hook, pass(hook));
        }
        return programs;
    }();
};

TEST_F(DrwaProgramsTest, loaderPinsAllWithItsMode) {
    ASSERT_TRUE(load(getenv("OBJECT")));
    const std::pair<const char*, mode_t> expected[] = {
            {"map_drwa_drwa_attached", 0640}, {"map_drwa_drwa_devs", 0060},
            {"map_drwa_drwa_queues", 0040},   {"map_drwa_drwa_socks", 0040},
            {"map_drwa_drwa_stats", 0040},
    };
    for (const auto& [name, mode] : expected) {
        struct stat found;
        ASSERT_EQ(0, stat((kPins + name).c_str(), &found)) << name;
        EXPECT_EQ(mode, found.st_mode & 0777) << name;
        EXPECT_EQ(kNetBwAcct, found.st_gid) << name;
        EXPECT_EQ(0U, found.st_uid) << name;
    }
    for (const char* name : {"cgroupskb_ingress_drwa", "cgroupsockrelease_drwa", "setsockopt_drwa",
                             "sockops_drwa_rounds"}) {
        EXPECT_EQ(0, access((kPins + "prog_drwa_" + name).c_str(), F_OK)) << name;
    }
    EXPECT_EQ(0U, told());
}

TEST_F(DrwaProgramsTest, kernelHasOneProgramWithoutTheFlag) {
    const bpf_attach_type hook = BPF_CGROUP_INET_INGRESS;
    unique_fd first = pass(hook), second = pass(hook);
    ASSERT_EQ(0, bpf::attachProgram(hook, first, mCgroup));
    EXPECT_EQ(-1, bpf::attachProgram(hook, second, mCgroup, BPF_F_ALLOW_MULTI));
    EXPECT_EQ(EPERM, errno);
    EXPECT_EQ(0, bpf::attachProgram(hook, second, mCgroup));
    EXPECT_EQ(std::vector<uint32_t>{idOf(second)}, attached(mCgroup, hook).ids);
}

TEST_F(DrwaProgramsTest, kernelTakesNoProgramTwiceWithTheFlag) {
    const bpf_attach_type hook = BPF_CGROUP_INET_INGRESS;
    unique_fd first = pass(hook), second = pass(hook);
    ASSERT_EQ(0, bpf::attachProgram(hook, first, mCgroup, BPF_F_ALLOW_MULTI));
    ASSERT_EQ(0, bpf::attachProgram(hook, second, mCgroup, BPF_F_ALLOW_MULTI));
    EXPECT_EQ(-1, bpf::attachProgram(hook, first, mCgroup, BPF_F_ALLOW_MULTI));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, bpf::attachProgram(hook, second, mCgroup));
    EXPECT_EQ(EPERM, errno);
}

TEST_F(DrwaProgramsTest, isAttachedBesideNetds) {
    ASSERT_TRUE(load(getenv("OBJECT")));
    startNetd();
    expectAllAttached();
}

TEST_F(DrwaProgramsTest, staysAttachedWhileNetdRestarts) {
    ASSERT_TRUE(load(getenv("OBJECT")));
    startNetd();
    const Attached before = attached(mCgroup, BPF_CGROUP_INET_INGRESS);
    startNetd();
    expectAllAttached();
    EXPECT_EQ(before.ids, attached(mCgroup, BPF_CGROUP_INET_INGRESS).ids);
}

TEST_F(DrwaProgramsTest, changesNothingWhereItIsNotLoaded) {
    startNetd();
    expectNetdsAlone();
    EXPECT_EQ(0U, attached(mCgroup, BPF_CGROUP_INET_INGRESS).flags);
    EXPECT_TRUE(attached(mCgroup, BPF_CGROUP_SOCK_OPS).ids.empty());
    startNetd();
    expectNetdsAlone();
}

TEST_F(DrwaProgramsTest, isIdleIfTheKernelRefusedOneProgram) {
    ASSERT_TRUE(load(getenv("OBJECT")));
    ASSERT_EQ(0, unlink((kPins + "prog_drwa_sockops_drwa_rounds").c_str()));
    startNetd();
    expectNetdsAlone();
    EXPECT_EQ(0U, told());
}

TEST_F(DrwaProgramsTest, isIdleIfAHookIsTaken) {
    ASSERT_TRUE(load(getenv("OBJECT")));
    unique_fd vendors = pass(BPF_CGROUP_SOCK_OPS);
    ASSERT_EQ(0, bpf::attachProgram(BPF_CGROUP_SOCK_OPS, vendors, mCgroup));
    startNetd();
    expectNetdsAlone();
    EXPECT_EQ(std::vector<uint32_t>{idOf(vendors)}, attached(mCgroup, BPF_CGROUP_SOCK_OPS).ids);
    EXPECT_EQ(0U, told());
}

TEST_F(DrwaProgramsTest, netdStartsWhereItsProgramWasAttachedAlone) {
    startNetd();
    ASSERT_TRUE(load(getenv("OBJECT")));
    startNetd();
    expectNetdsAlone();
    EXPECT_EQ(0U, told());
}

}  // namespace
}  // namespace net
}  // namespace android

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // The loader pins below /sys/fs/bpf, which is the machine's own.
    if (unshare(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) {
        perror("unshare");
        return 77;
    }
    return RUN_ALL_TESTS();
}
