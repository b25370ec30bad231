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

// A model of bpf/loader/NetBpfLoad.cpp in Android 16 QPR2, for what its list makes of the fate of
// an object. The original is in LineageOS/android_packages_modules_Connectivity, 42374b293fb3.

#include "Model.h"

const bool isAtLeast26Q1 = false;

// One that is not there ends the loader. The object says where it is pinned.
static int loadProg(const char* const path) {
    return loadModel(path, "");
}

static int loadProgByLibbpf(const char* const path) {
    return loadModel(path, "libbpf ");
}

static bool loadObject(const char* const progPath, const bool useLibbpf = false) {
    return !(useLibbpf ? loadProgByLibbpf(progPath) : loadProg(progPath));
}

#define APEXROOT "/apex/com.android.tethering"
#define BPFROOT APEXROOT "/etc/bpf/mainline/"

static bool loadAllObjects() {
    bool libbpf = isAtLeast26Q1;
    if (!loadObject(BPFROOT "offload.o")) return false;
    if (isAtLeastT) {
        if (!loadObject(BPFROOT "clatd.o", libbpf)) return false;
        if (!loadObject(BPFROOT "netd.o", libbpf)) return false;
    }
    return true;
}

int main() {
    return loadAllObjects() ? 0 : 38;
}
