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

#pragma once

#include <linux/bpf.h>

#include <android-base/unique_fd.h>

namespace android {
namespace net {
namespace drwa {

// Attaches a program of netd's own, as bpf::attachProgram() does. Where a program of DRWA's is to
// be attached to the same hook, it leaves room for it. Returns 0, or -1 with errno.
int attachNetdProgram(bpf_attach_type type, const base::unique_fd& program,
                      const base::unique_fd& cgroup);

// Attaches all programs of DRWA's, or none of them, to what netd's own programs are attached to by
// now. Whether they are attached is what the map "attached" tells the policy in the system server.
// What fails is logged: without them, DRWA is idle.
void attachPrograms(const base::unique_fd& cgroup);

}  // namespace drwa
}  // namespace net
}  // namespace android
