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

#define LOG_TAG "NetdDrwa"

#include "DrwaPrograms.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <log/log.h>

#include "BpfSyscallWrappers.h"

namespace android {
namespace net {
namespace drwa {

using base::unique_fd;

namespace {

#define DRWA_PIN_PATH "/sys/fs/bpf/netd_readonly/"

constexpr char kAttachedMap[] = DRWA_PIN_PATH "map_drwa_drwa_attached";

struct Program {
    bpf_attach_type type;
    const char* path;
};

// The one that acts comes last.
constexpr Program kPrograms[] = {
        {BPF_CGROUP_SETSOCKOPT, DRWA_PIN_PATH "prog_drwa_setsockopt_drwa"},
        {BPF_CGROUP_INET_SOCK_RELEASE, DRWA_PIN_PATH "prog_drwa_cgroupsockrelease_drwa"},
        {BPF_CGROUP_INET_INGRESS, DRWA_PIN_PATH "prog_drwa_cgroupskb_ingress_drwa"},
        {BPF_CGROUP_SOCK_OPS, DRWA_PIN_PATH "prog_drwa_sockops_drwa_rounds"},
};

bool isShared(bpf_attach_type type) {
    const bool ours = std::any_of(std::begin(kPrograms), std::end(kPrograms),
                                  [type](const Program& program) { return program.type == type; });
    return ours && !access(kAttachedMap, F_OK);
}

// Programs are beside each other only if all of them were attached with BPF_F_ALLOW_MULTI. Without,
// the second one would take the place of the first.
int attachBesideOthers(bpf_attach_type type, const unique_fd& program, const unique_fd& cgroup) {
    if (!bpf::attachProgram(type, program, cgroup, BPF_F_ALLOW_MULTI)) return 0;
    if (errno != EINVAL) return -1;
    // They stay attached while netd is restarted. The kernel takes none twice, but in its own
    // place.
    return bpf::bpf(BPF_PROG_ATTACH, {
                                             .target_fd = static_cast<__u32>(cgroup.get()),
                                             .attach_bpf_fd = static_cast<__u32>(program.get()),
                                             .attach_type = type,
                                             .attach_flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE,
                                             .replace_bpf_fd = static_cast<__u32>(program.get()),
                                     });
}

void tellPolicy(const unique_fd& map, uint32_t attached) {
    const uint32_t key = 0;
    if (bpf::writeToMapEntry(map, &key, &attached, BPF_ANY)) {
        ALOGE("Cannot write %s: %s", kAttachedMap, strerror(errno));
    }
}

}  // namespace

int attachNetdProgram(bpf_attach_type type, const unique_fd& program, const unique_fd& cgroup) {
    if (isShared(type)) {
        if (!attachBesideOthers(type, program, cgroup)) return 0;
        ALOGW("No room for DRWA beside hook %d: %s", type, strerror(errno));
    }
    return bpf::attachProgram(type, program, cgroup);
}

void attachPrograms(const unique_fd& cgroup) {
    if (access(kAttachedMap, F_OK)) {
        ALOGI("DRWA's programs are not loaded: kernel older than 5.15, or the loader's log has "
              "more");
        return;
    }
    unique_fd map(bpf::mapRetrieveRW(kAttachedMap));
    if (!map.ok()) {
        ALOGE("Cannot open %s: %s", kAttachedMap, strerror(errno));
        return;
    }
    std::vector<std::pair<bpf_attach_type, unique_fd>> attached;
    for (const Program& program : kPrograms) {
        unique_fd fd(bpf::retrieveProgram(program.path));
        if (!fd.ok() || attachBesideOthers(program.type, fd, cgroup)) {
            ALOGE("DRWA is idle, %s: %s", program.path, strerror(errno));
            continue;
        }
        attached.emplace_back(program.type, std::move(fd));
    }
    if (attached.size() < std::size(kPrograms)) {
        tellPolicy(map, 0);
        // No others: of a hook that has one program alone, the kernel would detach that one,
        // whosever it is.
        for (const auto& [type, program] : attached) {
            bpf::detachSingleProgram(type, program, cgroup);
        }
        return;
    }
    tellPolicy(map, 1);
    ALOGI("DRWA's programs are attached");
}

}  // namespace drwa
}  // namespace net
}  // namespace android
