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

// A model of bpf/loader/NetBpfLoad.cpp in Android 17, for what its list makes of the fate of an
// object. The original is in rigaz29/android_packages_modules_Connectivity, 6d3239ac327b.

#include "Model.h"

const bool isAtLeast26Q2 = true;

inline bool isAtLeastKernelVersion(unsigned, unsigned, unsigned) {
    return false;
}

// One that is not there ends the loader. The object says where it is pinned.
static int loadProg(const char* const path) {
    return loadModel(path, "");
}

static int loadProgByLibbpf(const char* const path) {
    return loadModel(path, "libbpf ");
}

static bool loadObject(const char* const progPath, const bool useLibbpf = true) {
    return !(useLibbpf ? loadProgByLibbpf(progPath) : loadProg(progPath));
}

#define APEXROOT "/apex/com.android.tethering"
#define BPFROOT APEXROOT "/etc/bpf/mainline/"

static bool loadAllObjects() {
    bool funcs = isAtLeast26Q2 && isAtLeastKernelVersion(6, 6, 118);

    if (!loadObject(BPFROOT "offload.o", /*libbpf*/ false)) return false;
    if (!loadObject(BPFROOT "clatd.o")) return false;
    if (funcs) {
        if (!loadObject(BPFROOT "netd@funcs.o")) return false;
    } else {
        if (!loadObject(BPFROOT "netd.o")) return false;
    }
    return true;
}

int main() {
    return loadAllObjects() ? 0 : 38;
}
