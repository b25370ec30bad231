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

#include <errno.h>

#include <map>
#include <optional>

#include <fuzzer/FuzzedDataProvider.h>

#include "DrwaController.h"
#include "FakeProc.h"

using android::net::DrwaController;
using android::net::DrwaLambda;
using android::net::FakeProc;
using android::net::parseDrwaCounters;

namespace {

const std::vector<std::string> kInterfaces = {"rmnet0", "wlan0", "sealed0"};

FakeProc& makeProc() {
    static FakeProc proc;
    proc.addKnobs("rmnet0", "0", "0");
    proc.addKnob("wlan0");
    proc.addSealedKnob("sealed0");
    return proc;
}

std::string anyName(FuzzedDataProvider& data) {
    return data.ConsumeBool() ? data.PickValueInArray({"rmnet0", "wlan0", "sealed0", "lo", "all"})
                              : data.ConsumeRandomLengthString(20);
}

int anyLambda(FuzzedDataProvider& data) {
    return data.ConsumeBool() ? data.ConsumeIntegralInRange<int>(90, 1010)
                              : data.ConsumeIntegral<int>();
}

std::optional<int> anyQueue(FuzzedDataProvider& data) {
    switch (data.ConsumeIntegralInRange(0, 2)) {
        case 0:
            return std::nullopt;
        case 1:
            return data.ConsumeIntegralInRange<int>(-1, 2);
        default:
            return data.ConsumeIntegral<int>();
    }
}

std::string anyKnob(FuzzedDataProvider& data) {
    return data.ConsumeBool() ? std::to_string(anyLambda(data)) + "\n"
                              : data.ConsumeRandomLengthString(40);
}

}  // namespace

// What a shell may ask for, and what the kernel's files may hold. A call leaves what it was asked
// for, or what was there. Of the interfaces, rmnet0 alone has a queue.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static FakeProc& proc = makeProc();
    FuzzedDataProvider data(bytes, size);
    proc.write("rmnet0", anyKnob(data));
    proc.write("wlan0", anyKnob(data));
    DrwaController controller(proc.path());

    for (int calls = 0; calls < 8 && data.remaining_bytes() > 0; calls++) {
        std::map<std::string, std::string> before;
        for (const auto& ifName : kInterfaces) before[ifName] = proc.read(ifName);
        std::string queue = proc.readQueue("rmnet0");
        std::vector<DrwaLambda> lambdas;
        std::vector<std::string> ifNames;
        for (int i = data.ConsumeIntegralInRange(0, 4); i > 0; i--) {
            lambdas.push_back({anyName(data), anyLambda(data), anyQueue(data)});
            ifNames.push_back(lambdas.back().ifName);
        }
        const auto set = controller.setLambdas(lambdas);
        if (set.ok()) {
            for (const auto& [ifName, lambda, wantedQueue] : lambdas) {
                CHECK_EQ(proc.read(ifName), std::to_string(lambda));
                before.erase(ifName);
                if (wantedQueue) queue = std::to_string(*wantedQueue);
            }
        } else {
            CHECK_GT(set.error().code(), 0);
        }
        for (const auto& [ifName, content] : before) {
            // A value that came back has no end of line, and no sign or zeros before it.
            const std::string now = proc.read(ifName);
            if (now != content) CHECK_EQ(std::stoi(now), std::stoi(content));
        }
        CHECK_EQ(proc.readQueue("rmnet0"), queue);
        const auto got = controller.getLambdas(ifNames);
        CHECK(got.ok() || got.error().code() > 0);
        if (set.ok() && !lambdas.empty()) {
            CHECK(got.ok());
            for (size_t i = 0; i < lambdas.size(); i++) {
                CHECK_EQ((*got)[i].lambda, lambdas[i].lambda);
            }
        }
    }
    // Fails at the interface that cannot be written, and at no other.
    CHECK_EQ(controller.reset().error().code(), EPERM);
    CHECK_EQ(proc.read("rmnet0"), "0");
    CHECK_EQ(proc.read("wlan0"), "0");
    CHECK_EQ(proc.readQueue("rmnet0"), "0");

    const auto counters = parseDrwaCounters(data.ConsumeRemainingBytesAsString());
    if (!counters.ok()) {
        CHECK_EQ(counters.error().code(), EPROTO);
        return 0;
    }
    for (const auto& counted : *counters) {
        for (const auto& line : toLines(counted)) CHECK(!line.empty());
    }
    return 0;
}
