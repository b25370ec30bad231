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

// What the models of loaders share: objects whose file says how they load. OBJECTS is their folder,
// PINNED the file that has what came of it.

#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#define ALOGW(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

const bool isAtLeastT = true;

inline std::string objectNamed(const std::string& path) {
    return std::string(getenv("OBJECTS")) + path.substr(path.rfind('/'));
}

// "good", "bad", or anything else for one that no loader survives.
inline int loadModel(const std::string& path, const std::string& where) {
    std::string fate;
    std::ifstream(objectNamed(path)) >> fate;
    if (fate == "bad") return -1;
    if (fate != "good") abort();
    std::ofstream(getenv("PINNED"), std::ios::app)
            << where << path.substr(path.rfind('/') + 1) << "\n";
    return 0;
}
