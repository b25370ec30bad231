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

// What sources of AOSP take from bionic and from its newer libraries, ahead of each of them.

#pragma once

#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <android-base/strings.h>
#include <android-base/unique_fd.h>

// glibc has names of this in its structures, above.
#define __unused __attribute__((unused))

#define ELF_ST_TYPE(info) ((info)&0xf)

namespace android {
namespace base {
inline std::vector<std::string> Tokenize(const std::string& text, const std::string& separators) {
    std::vector<std::string> words = Split(text, separators);
    words.erase(std::remove(words.begin(), words.end(), ""), words.end());
    return words;
}
}  // namespace base
}  // namespace android

inline size_t strlcpy(char* to, const char* from, size_t size) {
    snprintf(to, size, "%s", from);
    return strlen(from);
}
