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

#include "DrwaModem.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include <android-base/file.h>
#include <android-base/parseint.h>
#include <android-base/stringprintf.h>
#include <android-base/strings.h>

namespace android {
namespace net {

using base::ParseUint;
using base::ReadFileToString;
using base::Result;
using base::StartsWith;
using base::StringPrintf;
using base::Trim;

namespace {

constexpr char kSend[] = "rmnet_qmap_send";
constexpr char kModule[] = "drwa_up_dfc";

const char* textOf(std::optional<bool> found) {
    return !found ? "unknown" : *found ? "yes" : "no";
}

}  // namespace

DrwaModem::DrwaModem(std::string root) : mRoot(std::move(root)) {}

bool DrwaModem::exists(const std::string& path) const {
    return access((mRoot + path).c_str(), F_OK) == 0;
}

std::optional<bool> DrwaModem::hasTracepoint(const std::string& name) const {
    for (const char* mount : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
        const std::string events = std::string(mount) + "/events";
        if (exists(events)) return exists(events + "/dfc/" + name);
    }
    return std::nullopt;
}

// Built in, the module has no folder; its init function is listed then, and then alone.
void DrwaModem::readSymbols(DrwaModemState* state) const {
    const bool loaded = exists(std::string("/sys/module/") + kModule);
    if (loaded) state->dfc = true;
    std::ifstream symbols(mRoot + "/proc/kallsyms");
    // A line is "0000000000000000 T name", and "\t[module]" behind it.
    std::string line, address, type, name;
    if (!std::getline(symbols, line)) return;
    state->qmapSend = false;
    state->dfc = loaded;
    do {
        std::istringstream(line) >> address >> type >> name;
        if (name == kSend) state->qmapSend = true;
        if (name == std::string(kModule) + "_init") state->dfc = true;
    } while (std::getline(symbols, line));
}

std::optional<uint32_t> DrwaModem::readBql(const std::string& ifName) const {
    const std::string queues = mRoot + "/sys/class/net/" + ifName + "/queues";
    const std::unique_ptr<DIR, decltype(&closedir)> folder(opendir(queues.c_str()), closedir);
    uint32_t most = 0;
    while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
        const std::string file = queues + "/" + entry->d_name + "/byte_queue_limits/limit";
        std::string text;
        uint32_t limit;
        if (StartsWith(entry->d_name, "tx-") && ReadFileToString(file, &text, true) &&
            ParseUint(Trim(text), &limit)) {
            most = std::max(most, limit);
        }
    }
    return most == 0 ? std::nullopt : std::make_optional(most);
}

Result<DrwaModemState> DrwaModem::read(const std::vector<DrwaLink>& links,
                                       const std::vector<std::string>& ifNames) const {
    DrwaModemState state;
    state.flowInd = hasTracepoint("dfc_flow_ind");
    state.adjustGrant = hasTracepoint("dfc_adjust_grant");
    state.flowCheck = hasTracepoint("dfc_flow_check");
    readSymbols(&state);
    auto chosen = chooseLinks(links, ifNames);
    if (!chosen.ok()) return chosen.error();
    for (const DrwaLink& link : *chosen) {
        const auto lower = std::find_if(links.begin(), links.end(), [&](const DrwaLink& one) {
            return one.index == link.lower;
        });
        state.interfaces.push_back({link.ifName, link.txQueues, link.mux,
                                    lower == links.end() ? "" : lower->ifName,
                                    readBql(link.ifName)});
    }
    return state;
}

std::vector<std::string> DrwaModem::format(const DrwaModemState& state) {
    std::vector<std::string> lines = {
            StringPrintf("dfc_flow_ind=%s dfc_adjust_grant=%s dfc_flow_check=%s rmnet_qmap_send=%s "
                         "drwa_up_dfc=%s",
                         textOf(state.flowInd), textOf(state.adjustGrant), textOf(state.flowCheck),
                         textOf(state.qmapSend), textOf(state.dfc))};
    for (const DrwaModemState::Interface& one : state.interfaces) {
        lines.push_back(StringPrintf("%s queues=%u", one.ifName.c_str(), one.txQueues));
        if (one.mux != 0) lines.back() += StringPrintf(" mux=%u", one.mux);
        if (!one.over.empty()) lines.back() += " over=" + one.over;
        lines.back() += " bql=" + (one.bqlBytes ? std::to_string(*one.bqlBytes) + "B" : "none");
    }
    return lines;
}

}  // namespace net
}  // namespace android
