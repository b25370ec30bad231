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

// A model of bpf/loader/NetBpfLoad.cpp in Android 16 QPR1, for what its list makes of the fate of
// an object. The original is in LineageOS/android_packages_modules_Connectivity, c7f07b6a1302.

#include "Model.h"

#define APEXROOT "/apex/com.android.tethering"
#define BPFROOT APEXROOT "/etc/bpf/mainline/"

// One that is not there is an error like others.
static int loadProg(const char* const path, const unsigned int, const char* const prefix) {
    if (access(objectNamed(path).c_str(), F_OK)) return -1;
    return loadModel(path, prefix);
}

static int loadObject(const unsigned int bpfloader_ver, const char* const prefix,
                      const char* const fname) {
    const std::string path = std::string(BPFROOT) + fname;
    return loadProg(path.c_str(), bpfloader_ver, prefix) ? 1 : 0;
}

static int loadAllObjects(const unsigned int bpfloader_ver) {
    if (loadObject(bpfloader_ver, "tethering/", "offload.o")) return 1;
    if (isAtLeastT) {
        if (loadObject(bpfloader_ver, "net_shared/", "clatd.o")) return 1;
        if (loadObject(bpfloader_ver, "netd_shared/", "netd.o")) return 1;
    }
    return 0;
}

int main() {
    return loadAllObjects(48);
}
