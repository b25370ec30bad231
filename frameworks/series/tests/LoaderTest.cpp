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
// machine, and attaches them by the paths that the policy gives to TcUtils. Needs root.

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

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

using std::string;

const string kPins = "/sys/fs/bpf/net_shared/";
constexpr gid_t kSystem = 1000;

bool load(const string& object) {
#ifdef WHOLE_LOADER
    return !bpf::loadProg(object.c_str(), LOADER_VERSION, "net_shared/");
#else
    bool critical = true;
    const bpf::Location location = {.dir = "", .prefix = "net_shared/"};
#ifdef LOADER_VERSION
    return !bpf::loadProg(object.c_str(), &critical, LOADER_VERSION, location) && !critical;
#else
    return !bpf::loadProg(object.c_str(), &critical, location) && !critical;
#endif
#endif
}

// As our place in the loader's list has it, where there is a list: in a process of its own.
bool loadApart(const string& object) {
    const pid_t child = fork();
    if (child == 0) _exit(load(object) ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

class LoaderTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(0, mount("bpf", "/sys/fs/bpf", "bpf", 0, nullptr));
        ASSERT_EQ(0, mkdir("/sys/fs/bpf/net_shared", 0777));
        ASSERT_TRUE(loadApart(getenv("OBJECT")));
    }

    void TearDown() override { umount2("/sys/fs/bpf", MNT_DETACH); }
};

TEST_F(LoaderTest, pinsAllForTheSystemServer) {
    for (const char* name : {"map_drwa_drwa_devs", "map_drwa_drwa_queues", "map_drwa_drwa_counts",
                             "map_drwa_drwa_flows"}) {
        struct stat found;
        ASSERT_EQ(0, stat((kPins + name).c_str(), &found)) << name;
        EXPECT_EQ(0660U, found.st_mode & 0777) << name;
        EXPECT_EQ(kSystem, found.st_gid) << name;
        EXPECT_EQ(0U, found.st_uid) << name;
    }
    for (const char* name : {"ingress", "egress"}) {
        const string path = kPins + "prog_drwa_schedcls_" + name + "_drwa";
        struct stat found;
        ASSERT_EQ(0, stat(path.c_str(), &found)) << path;
        EXPECT_EQ(0440U, found.st_mode & 0777) << path;
        EXPECT_EQ(kSystem, found.st_gid) << path;
    }
}

TEST_F(LoaderTest, whatIsNoObjectIsNotLoaded) {
    EXPECT_FALSE(loadApart("/proc/self/exe"));
    EXPECT_FALSE(loadApart("/nowhere/drwa.o"));
}

TEST_F(LoaderTest, theyAreFiltersOfAnInterface) {
    ASSERT_EQ(0, system("tc qdisc add dev lo clsact"));
    for (const string name : {"ingress", "egress"}) {
        const string filter = "tc filter add dev lo " + name + " prio 1 protocol all bpf " +
                              "object-pinned " + kPins + "prog_drwa_schedcls_" + name +
                              "_drwa direct-action";
        EXPECT_EQ(0, system(filter.c_str()));
    }
    EXPECT_EQ(0, system("tc filter show dev lo egress | grep -q 'direct-action.* jited'"));
    EXPECT_EQ(0, system("tc qdisc del dev lo clsact"));
}

}  // namespace
}  // namespace net
}  // namespace android

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // The loader pins below /sys/fs/bpf, which is the machine's own, as its interfaces are.
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) {
        perror("unshare");
        return 77;
    }
    return RUN_ALL_TESTS();
}
