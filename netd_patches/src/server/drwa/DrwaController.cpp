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

#include "DrwaController.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <thread>

#include <android-base/file.h>
#include <android-base/parseint.h>
#include <android-base/stringprintf.h>
#include <android-base/strings.h>
#include <android-base/unique_fd.h>

namespace android {
namespace net {

using base::ErrnoError;
using base::Error;
using base::ParseInt;
using base::ReadFileToString;
using base::Result;
using base::StringPrintf;
using base::Trim;
using base::unique_fd;
using base::WriteStringToFd;

namespace {

// The kernel's rules for names, less the two folders beside the interfaces' that are none. A name
// may come out of a parcel with a NUL inside, where a path would end.
bool isInterfaceName(const std::string& name) {
    if (name.empty() || name.size() >= IFNAMSIZ) return false;
    if (name == "." || name == ".." || name == "all" || name == "default") return false;
    return std::none_of(name.begin(), name.end(), [](unsigned char c) {
        return c == '\0' || c == '/' || c == ':' || isspace(c);
    });
}

// Text of a client's or the kernel's, which may have ends of lines, for a message.
std::string printable(const std::string& name) {
    std::string text;
    for (const unsigned char c : name) {
        if (isprint(c)) {
            text += c;
        } else {
            text += StringPrintf("\\x%02x", c);
        }
    }
    return text;
}

Result<void> checkNames(const std::vector<std::string>& ifNames) {
    std::set<std::string> seen;
    for (const std::string& ifName : ifNames) {
        if (!isInterfaceName(ifName)) {
            return Error(EINVAL) << "\"" << printable(ifName) << "\" is no name of an interface";
        }
        if (!seen.insert(ifName).second) return Error(EINVAL) << ifName << " is named twice";
    }
    return {};
}

std::vector<std::string> namesOf(const std::vector<DrwaLambda>& lambdas) {
    std::vector<std::string> ifNames;
    ifNames.reserve(lambdas.size());
    for (const DrwaLambda& lambda : lambdas) ifNames.push_back(lambda.ifName);
    return ifNames;
}

bool isGone(int error) {
    return error == ENODEV || error == ENOENT;
}

}  // namespace

DrwaController::DrwaController(std::string proc, ReadSocketsFn readSockets, SleepFn sleep)
    : mProc(std::move(proc)), mReadSockets(std::move(readSockets)), mSleep(std::move(sleep)) {}

Result<void> DrwaController::reset() {
    std::lock_guard guard(mMutex);
    auto ifNames = listInterfaces();
    if (!ifNames.ok()) return ifNames.error();
    Result<void> first = {};
    for (const std::string& ifName : *ifNames) {
        for (const Knob& knob : {kLambda, kQueue}) {
            auto written = writeKnob(ifName, knob, kOff);
            if (!written.ok() && !isGone(written.error().code()) && first.ok()) first = written;
        }
    }
    return first;
}

// What has to be written in turn.
Result<std::vector<DrwaController::Write>> DrwaController::plan(
        const std::vector<DrwaLambda>& lambdas) const {
    std::vector<Write> writes;
    for (const auto& [ifName, lambda, queue] : lambdas) {
        auto present = readKnob(ifName, kLambda);
        if (!present.ok()) return present.error();
        const auto set = writes.insert(writes.end(), {ifName, kLambda, lambda, *present});
        if (!queue) continue;
        auto presentQueue = readKnob(ifName, kQueue);
        if (!presentQueue.ok()) return presentQueue.error();
        // While lambda is on, connections learn from their queue, and it from them.
        writes.insert(lambda == kOff ? writes.end() : set, {ifName, kQueue, *queue, *presentQueue});
    }
    return writes;
}

Result<void> DrwaController::setLambdas(const std::vector<DrwaLambda>& lambdas) {
    std::lock_guard guard(mMutex);
    auto names = checkNames(namesOf(lambdas));
    if (!names.ok()) return names.error();
    for (const auto& [ifName, lambda, queue] : lambdas) {
        if (lambda != kOff && (lambda < kMinLambda || lambda > kMaxLambda)) {
            return Error(EINVAL) << ifName << ": lambda " << lambda << " is neither " << kOff
                                 << " nor from " << kMinLambda << " to " << kMaxLambda;
        }
        if (queue.value_or(kOff) < 0) {
            return Error(EINVAL) << ifName << ": queue " << *queue << " is negative";
        }
    }
    auto writes = plan(lambdas);
    if (!writes.ok()) return writes.error();
    for (auto write = writes->begin(); write != writes->end(); write++) {
        auto written = writeKnob(write->ifName, write->knob, write->value);
        if (written.ok()) continue;
        Error error;
        error << written.error();
        while (write != writes->begin()) {
            write--;
            auto restored = writeKnob(write->ifName, write->knob, write->former);
            if (!restored.ok() && !isGone(restored.error().code())) {
                error << "; it stays: " << restored.error().message();
            }
        }
        return error;
    }
    return {};
}

Result<std::vector<DrwaLambda>> DrwaController::getLambdas(
        const std::vector<std::string>& ifNames) const {
    std::lock_guard guard(mMutex);
    auto names = checkNames(ifNames);
    if (!names.ok()) return names.error();
    auto all = ifNames.empty() ? listInterfaces() : ifNames;
    if (!all.ok()) return all.error();
    std::vector<DrwaLambda> lambdas;
    for (const std::string& ifName : *all) {
        auto lambda = readKnobs(ifName);
        if (lambda.ok()) {
            lambdas.push_back(std::move(*lambda));
        } else if (!ifNames.empty() || !isGone(lambda.error().code())) {
            return lambda.error();
        }
    }
    return lambdas;
}

Result<std::vector<DrwaCounters>> DrwaController::readCounters() const {
    const std::string path = mProc + "/net/tcp_drwa";
    std::string text;
    if (ReadFileToString(path, &text)) return parseDrwaCounters(text);
    if (errno == ENOENT) return std::vector<DrwaCounters>{};
    return ErrnoError() << "Cannot read " << path;
}

Result<std::vector<DrwaFlow>> DrwaController::readFlows(bool rates) const {
    auto first = readSockets();
    if (!first.ok()) return first.error();
    if (!rates) return receivingDrwaFlows(*first, kMaxFlows);
    mSleep(kDumpInterval);
    auto second = readSockets();
    if (!second.ok()) return second.error();
    return busiestDrwaFlows(*first, *second, kMaxFlows);
}

void DrwaController::dump(const std::function<void(const std::string&)>& println,
                          bool rates) const {
    println("DrwaController");
    const auto lambdas = getLambdas();
    if (!lambdas.ok()) {
        println("  " + lambdas.error().message());
        return;
    }
    if (lambdas->empty()) {
        println("  This kernel has no DRWA.");
        return;
    }
    auto counters = readCounters();
    if (!counters.ok()) {
        println("  " + counters.error().message());
        counters = std::vector<DrwaCounters>{};
    }
    auto flows = readFlows(rates);
    if (!flows.ok()) {
        println("  " + flows.error().message());
        flows = std::vector<DrwaFlow>{};
    }
    println("  Interfaces, lambda in hundredths (0: off), queue (0: their own), what was counted "
            "since"
            " they came, and their busiest connections:");
    for (const std::string& line : format(*lambdas, *counters, *flows)) println("    " + line);
}

std::vector<std::string> DrwaController::format(const std::vector<DrwaLambda>& lambdas,
                                                const std::vector<DrwaCounters>& counters,
                                                const std::vector<DrwaFlow>& flows) {
    std::vector<std::string> lines;
    for (const auto& [ifName, lambda, queue] : lambdas) {
        lines.push_back(StringPrintf("%s lambda=%d", ifName.c_str(), lambda));
        if (queue) lines.back() += StringPrintf(" queue=%d", *queue);
        for (const DrwaCounters& counted : counters) {
            if (counted.ifName != ifName) continue;
            for (const std::string& line : toLines(counted)) lines.push_back("  " + line);
        }
        for (const DrwaFlow& flow : flows) {
            if (flow.socket.ifName == ifName) lines.push_back("  " + toString(flow));
        }
    }
    return lines;
}

void DrwaController::sleepFor(std::chrono::milliseconds duration) {
    std::this_thread::sleep_for(duration);
}

std::string DrwaController::confPath(const std::string& ifName) const {
    return mProc + "/sys/net/ipv4/conf/" + ifName;
}

std::string DrwaController::knobPath(const std::string& ifName, const Knob& knob) const {
    return confPath(ifName) + "/" + knob.file;
}

// The interfaces that have lambda, by name.
Result<std::vector<std::string>> DrwaController::listInterfaces() const {
    const std::string path = confPath("");
    const std::unique_ptr<DIR, decltype(&closedir)> dir(opendir(path.c_str()), closedir);
    if (!dir) return ErrnoError() << "Cannot list " << path;
    std::vector<std::string> ifNames;
    while (const dirent* entry = readdir(dir.get())) {
        const std::string name = entry->d_name;
        if (isInterfaceName(name) && access(knobPath(name, kLambda).c_str(), F_OK) == 0) {
            ifNames.push_back(name);
        }
    }
    std::sort(ifNames.begin(), ifNames.end());
    return ifNames;
}

Result<int> DrwaController::readKnob(const std::string& ifName, const Knob& knob) const {
    std::string content;
    if (!ReadFileToString(knobPath(ifName, knob), &content, true /* follow_symlinks */)) {
        return Error(missingOr(ifName, errno)) << "Cannot read " << knob.name << " of " << ifName;
    }
    int value;
    if (!ParseInt(Trim(content), &value, kOff)) {
        return Error(EPROTO) << ifName << " has the " << knob.name << " \"" << printable(content)
                             << "\"";
    }
    return value;
}

Result<DrwaLambda> DrwaController::readKnobs(const std::string& ifName) const {
    auto lambda = readKnob(ifName, kLambda);
    if (!lambda.ok()) return lambda.error();
    auto queue = readKnob(ifName, kQueue);
    if (queue.ok()) return DrwaLambda{ifName, *lambda, *queue};
    if (!isGone(queue.error().code())) return queue.error();
    return DrwaLambda{ifName, *lambda};
}

Result<void> DrwaController::writeKnob(const std::string& ifName, const Knob& knob,
                                       int value) const {
    // Not WriteStringToFile(): its O_CREAT asks SELinux for leave to add a file to procfs.
    const unique_fd fd(open(knobPath(ifName, knob).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (fd == -1 || !WriteStringToFd(std::to_string(value), fd)) {
        return Error(missingOr(ifName, errno)) << "Cannot set " << knob.name << " of " << ifName;
    }
    return {};
}

// A missing file means a missing interface or a kernel without DRWA.
int DrwaController::missingOr(const std::string& ifName, int error) const {
    if (error != ENOENT) return error;
    return access(confPath(ifName).c_str(), F_OK) == 0 ? ENOENT : ENODEV;
}

}  // namespace net
}  // namespace android
