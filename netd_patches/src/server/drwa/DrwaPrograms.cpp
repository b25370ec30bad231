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

#include "DrwaPrograms.h"

#include <errno.h>

#include <algorithm>
#include <iterator>

#include <android-base/parseint.h>
#include <android-base/stringprintf.h>
#include <android-base/strings.h>

#include "DrwaCounters.h"

namespace android {
namespace net {

using base::Error;
using base::ParseUint;
using base::Result;
using base::Split;
using base::StringPrintf;
using base::unique_fd;

namespace {

using Hook = DrwaBpf::Hook;

constexpr Hook kHooks[] = {Hook::kIngress, Hook::kEgress};
constexpr char kOff[] = "0";

// Who knows more: the loader goes on without the programs.
constexpr char kLoaders[] = "bpfloader LibBpfLoader BpfLoader-rs";

std::string pinOf(const std::string& name) {
    return DrwaPrograms::kPins + name;
}

bool isGone(int error) {
    return error == ENODEV || error == ENOENT;
}

}  // namespace

DrwaPrograms::DrwaPrograms(std::unique_ptr<DrwaBpf> bpf) : mBpf(std::move(bpf)) {}

Result<void> DrwaPrograms::reset() {
    std::lock_guard guard(mMutex);
    auto pins = open();
    if (!pins.ok()) return pins.error().code() == ENOENT ? Result<void>{} : pins.error();
    auto indices = mBpf->keysOf(pins->devs, kPlaces);
    if (!indices.ok()) return indices.error();
    Result<void> first = {};
    for (const uint32_t index : *indices) {
        auto off = switchOff(*pins, index);
        if (!off.ok() && first.ok()) first = off;
    }
    return first;
}

Result<void> DrwaPrograms::set(const std::string& ifName, const std::string& value) {
    std::lock_guard guard(mMutex);
    auto result = change(ifName, value);
    if (result.ok()) {
        mDone++;
        mRefusals.erase(ifName);
    } else {
        mRefused++;
        // Without an interface there is nothing to tell of it.
        if (result.error().code() != ENODEV) mRefusals[ifName] = result.error().message();
    }
    return result;
}

Result<void> DrwaPrograms::change(const std::string& ifName, const std::string& value) {
    auto wanted = parse(value);
    if (!wanted.ok()) return wanted.error();
    const uint32_t index = mBpf->indexOf(ifName);
    if (index == 0) return Error(ENODEV) << "Cannot find an interface";
    auto pins = open();
    if (!pins.ok()) return pins.error();
    auto devs = readDevs(*pins);
    if (!devs.ok()) return devs.error();
    for (auto dev = devs->begin(); dev != devs->end();) {
        // An index may be another interface's one day.
        if (!mBpf->nameOf(dev->first).empty()) {
            dev++;
            continue;
        }
        auto erased = mBpf->erase(pins->devs, dev->first);
        if (!erased.ok() && !isGone(erased.error().code())) return erased;
        dev = devs->erase(dev);
    }
    if (wanted->lambda == 0) return devs->count(index) ? switchOff(*pins, index) : Result<void>{};
    auto on = switchOn(*pins, *devs, index, ifName, *wanted);
    if (on.ok()) return {};
    auto off = switchOff(*pins, index);
    if (off.ok()) return on;
    return Error() << on.error() << "; it stays: " << off.error().message();
}

Result<DrwaPrograms::Wanted> DrwaPrograms::parse(const std::string& value) {
    if (value == kOff) return Wanted{};
    const std::vector<std::string> words = Split(value, " ");
    Wanted wanted;
    uint32_t aqm, clients;
    if (words.size() != 4 || !ParseUint(words[0], &wanted.lambda, kMaxLambda) ||
        !ParseUint(words[1], &wanted.queue) || !ParseUint(words[2], &aqm, 1u) ||
        !ParseUint(words[3], &clients, 1u) || wanted.lambda < kMinLambda) {
        return Error(EINVAL) << "Neither " << kOff << " nor a lambda from " << kMinLambda << " to "
                             << kMaxLambda << ", a queue, and two of 0 and 1";
    }
    wanted.aqm = aqm != 0;
    wanted.clients = clients != 0;
    return wanted;
}

std::string DrwaPrograms::format(const DrwaBpfDev& dev) {
    return StringPrintf("%u %u %u %d", dev.lambda, dev.number, dev.aqm, dev.local == 0);
}

Result<unique_fd> DrwaPrograms::openMap(const std::string& name, size_t bytes) const {
    const std::string pin = pinOf("map_drwa_drwa_" + name);
    auto map = mBpf->open(pin);
    if (!map.ok()) return map;
    auto found = mBpf->valueBytesOf(*map);
    if (!found.ok()) return Error() << pin << ": " << found.error();
    // The kernel would write them behind the end of ours.
    if (*found != bytes) {
        return Error(EPROTO) << pin << " has values of " << *found << " bytes, not " << bytes;
    }
    return map;
}

Result<DrwaPrograms::Pins> DrwaPrograms::open() const {
    Pins pins;
    const auto refuse = [](auto error) -> Result<Pins> {
        if (error.code() != ENOENT) return error;
        return Error() << error << "; for why, see logcat -d -s " << kLoaders;
    };
    const struct {
        const char* name;
        size_t bytes;
        unique_fd* fd;
    } maps[] = {
            {"devs", sizeof(DrwaBpfDev), &pins.devs},
            {"queues", sizeof(DrwaBpfQueue), &pins.queues},
            {"counts", sizeof(DrwaBpfCounts), &pins.counts},
    };
    for (const auto& [name, bytes, fd] : maps) {
        auto map = openMap(name, bytes);
        if (!map.ok()) return refuse(map.error());
        *fd = std::move(*map);
    }
    for (size_t i = 0; i < std::size(kHooks); i++) {
        auto program =
                mBpf->open(pinOf(StringPrintf("prog_drwa_schedcls_%s_drwa", toString(kHooks[i]))));
        if (!program.ok()) return refuse(program.error());
        auto id = mBpf->idOf(*program);
        if (!id.ok()) return id.error();
        pins.programs[i] = std::move(*program);
        pins.ids[i] = *id;
    }
    return pins;
}

Result<DrwaPrograms::Devs> DrwaPrograms::readDevs(const Pins& pins) const {
    auto indices = mBpf->keysOf(pins.devs, kPlaces);
    if (!indices.ok()) return indices.error();
    Devs devs;
    for (const uint32_t index : *indices) {
        auto dev = mBpf->read<DrwaBpfDev>(pins.devs, index);
        if (!dev.ok()) return dev.error();
        devs[index] = *dev;
    }
    return devs;
}

Result<void> DrwaPrograms::switchOn(const Pins& pins, const Devs& devs, uint32_t index,
                                    const std::string& ifName, const Wanted& wanted) const {
    auto dev = choose(pins, devs, index, ifName, wanted);
    if (!dev.ok()) return dev.error();
    auto written = mBpf->write(pins.devs, index, *dev);
    if (!written.ok()) return written;
    return attach(pins, index, ifName, *dev);
}

// Without an entry, a filter of this priority is another's: so the entry goes last. Egress first:
// alone, it would write windows that nobody renews.
Result<void> DrwaPrograms::switchOff(const Pins& pins, uint32_t index) const {
    for (size_t i = std::size(kHooks); i-- > 0;) {
        auto filter = mBpf->filterOf(index, kHooks[i]);
        if (!filter.ok()) {
            if (isGone(filter.error().code())) continue;
            return filter.error();
        }
        if (!*filter || (*filter)->program != pins.ids[i]) continue;
        auto removed = mBpf->removeFilter(index, kHooks[i]);
        if (removed.ok() || isGone(removed.error().code())) continue;
        // What the kernel says where the qdisc has gone since.
        if (removed.error().code() != EINVAL) return removed;
    }
    auto erased = mBpf->erase(pins.devs, index);
    return erased.ok() || isGone(erased.error().code()) ? Result<void>{} : erased;
}

Result<DrwaBpfDev> DrwaPrograms::choose(const Pins& pins, const Devs& devs, uint32_t index,
                                        const std::string& ifName, const Wanted& wanted) const {
    DrwaBpfDev dev = {};
    const auto known = devs.find(index);
    if (known != devs.end()) {
        dev = known->second;
    } else {
        auto l2 = mBpf->linkBytesOf(ifName);
        if (!l2.ok()) return l2.error();
        auto slot = takeSlot(pins, devs);
        if (!slot.ok()) return slot.error();
        dev.l2 = *l2;
        dev.slot = *slot;
        dev.priority = DrwaBpf::kPriority;
    }
    if (known == devs.end() || dev.number != wanted.queue) {
        auto queue = chooseQueue(pins, devs, index, wanted.queue);
        if (!queue.ok()) return queue.error();
        dev.queue = *queue;
    }
    dev.lambda = wanted.lambda;
    dev.number = wanted.queue;
    dev.local = !wanted.clients;
    dev.aqm = wanted.aqm;
    return dev;
}

// Empties a place that no interface counts in.
Result<uint32_t> DrwaPrograms::takeSlot(const Pins& pins, const Devs& devs) const {
    for (uint32_t slot = 0; slot < kPlaces; slot++) {
        if (std::any_of(devs.begin(), devs.end(),
                        [&](const auto& one) { return one.second.slot == slot; })) {
            continue;
        }
        auto emptied = mBpf->write(pins.counts, slot, DrwaBpfCounts{});
        if (!emptied.ok()) return emptied.error();
        return slot;
    }
    return Error(ENOSPC) << "Too many interfaces are on";
}

// The place of the queue that others with this number are in, or one where no other is: its own, or
// one that is emptied. There are as many as interfaces.
Result<uint32_t> DrwaPrograms::chooseQueue(const Pins& pins, const Devs& devs, uint32_t index,
                                           uint32_t number) const {
    for (const auto& [other, dev] : devs) {
        if (other != index && number != 0 && dev.number == number) return dev.queue;
    }
    const auto isAnothers = [&](uint32_t queue) {
        return std::any_of(devs.begin(), devs.end(), [&](const auto& one) {
            return one.first != index && one.second.queue == queue;
        });
    };
    const auto known = devs.find(index);
    if (known != devs.end() && !isAnothers(known->second.queue)) return known->second.queue;
    uint32_t queue = 0;
    while (isAnothers(queue)) queue++;
    auto emptied = mBpf->write(pins.queues, queue, DrwaBpfQueue{});
    if (!emptied.ok()) return emptied.error();
    return queue;
}

Result<void> DrwaPrograms::attach(const Pins& pins, uint32_t index, const std::string& ifName,
                                  const DrwaBpfDev& dev) const {
    std::vector<size_t> missing;
    for (size_t i = 0; i < std::size(kHooks); i++) {
        auto attached = isAttached(pins, index, kHooks[i], ifName);
        if (!attached.ok()) return attached.error();
        if (!*attached) missing.push_back(i);
    }
    if (missing.empty()) return {};
    // What passed while filters were away was not seen: the programs must take no offer from before
    // for the last one.
    auto counts = mBpf->read<DrwaBpfCounts>(pins.counts, dev.slot);
    if (!counts.ok()) return counts.error();
    counts->joined = 0;
    auto written = mBpf->write(pins.counts, dev.slot, *counts);
    if (!written.ok()) return written;
    // netd makes the qdisc for networks that are no VPNs.
    auto clsact = mBpf->addClsact(index);
    if (!clsact.ok() && clsact.error().code() != EEXIST) {
        return Error() << "Cannot add clsact to " << ifName << ": " << clsact.error();
    }
    for (const size_t i : missing) {
        auto added = addFilter(index, kHooks[i], pins.programs[i]);
        if (!added.ok()) {
            return Error() << "Cannot attach to " << ifName << "'s " << toString(kHooks[i]) << ": "
                           << added.error();
        }
    }
    return {};
}

Result<bool> DrwaPrograms::isAttached(const Pins& pins, uint32_t index, Hook hook,
                                      const std::string& ifName) const {
    auto filter = mBpf->filterOf(index, hook);
    if (!filter.ok()) return filter.error();
    if (!*filter) return false;
    const uint32_t program = (*filter)->program;
    if (program == pins.ids[static_cast<size_t>(hook)]) return true;
    if ((*filter)->kind == "bpf" && program == 0) return false;
    return Error(EEXIST) << "Priority " << DrwaBpf::kPriority << " at " << ifName << "'s "
                         << toString(hook) << " is another's, a filter of kind " << (*filter)->kind;
}

// Somebody may have been faster.
Result<void> DrwaPrograms::addFilter(uint32_t index, Hook hook, int program) const {
    auto added = mBpf->addFilter(index, hook, program);
    if (!added.ok() && added.error().code() == EINVAL) {
        return Error(EEXIST) << "another filter has priority " << DrwaBpf::kPriority;
    }
    return added;
}

Result<std::string> DrwaPrograms::get(const std::string& ifName) const {
    std::lock_guard guard(mMutex);
    const uint32_t index = mBpf->indexOf(ifName);
    if (index == 0) return Error(ENODEV) << "Cannot find an interface";
    auto pins = open();
    if (!pins.ok()) return pins.error();
    auto dev = mBpf->read<DrwaBpfDev>(pins->devs, index);
    if (dev.ok()) return format(*dev);
    if (dev.error().code() == ENOENT) return kOff;
    return dev.error();
}

void DrwaPrograms::dump(const std::function<void(const std::string&)>& println) const {
    std::lock_guard guard(mMutex);
    println("DrwaPrograms");
    println(StringPrintf("  set: %d done, %d refused", mDone, mRefused));
    auto pins = open();
    if (!pins.ok()) {
        println("  " + pins.error().message());
        return;
    }
    auto devs = readDevs(*pins);
    if (!devs.ok()) {
        println("  " + devs.error().message());
        return;
    }
    println("  Interfaces that BPF programs govern, and what was counted since they do:");
    for (const auto& [index, dev] : *devs) {
        for (const std::string& line : describe(*pins, index, dev)) println("    " + line);
    }
    println("  Interfaces that were to be governed, and why they are not:");
    for (const auto& [ifName, refusal] : mRefusals) {
        // As of uplinks, nothing of an interface that has gone since.
        if (mBpf->indexOf(ifName) != 0) println("    " + ifName + ": " + refusal);
    }
}

// What UDP is judged by.
std::string DrwaPrograms::describeDelay(const Pins& pins, const DrwaBpfDev& dev) const {
    auto queue = mBpf->read<DrwaBpfQueue>(pins.queues, dev.queue);
    if (!queue.ok() || queue->delaySetUs == 0) return "unknown";
    if (mBpf->nowUs() - queue->delaySetUs >= kDelayOldUs) return "unknown";
    return StringPrintf("%.1f", queue->delayUs / 1000.0);
}

std::vector<std::string> DrwaPrograms::describe(const Pins& pins, uint32_t index,
                                                const DrwaBpfDev& dev) const {
    const std::string ifName = mBpf->nameOf(index);
    std::string line = ifName.empty() ? StringPrintf("index %u", index) : ifName;
    line += StringPrintf(" lambda=%u queue=%u aqm=%u clients=%d", dev.lambda, dev.number, dev.aqm,
                         dev.local == 0);
    for (size_t i = 0; i < std::size(kHooks); i++) {
        auto attached = isAttached(pins, index, kHooks[i], ifName);
        if (!attached.ok() || !*attached) {
            line += StringPrintf(", no program at its %s", toString(kHooks[i]));
        }
    }
    auto counts = mBpf->read<DrwaBpfCounts>(pins.counts, dev.slot);
    if (!counts.ok()) return {line, "  " + counts.error().message()};
    const DrwaCounters counters = {
            ifName,
            counts->flows,
            counts->rounds,
            counts->capped,
            {std::begin(counts->delayUs), std::end(counts->delayUs)},
            {std::begin(counts->rttUs), std::end(counts->rttUs)},
    };
    std::vector<std::string> lines = {
            line,
            StringPrintf("  bytes that came=%llu, of which no TCP=%llu unknown=%llu mptcp=%llu "
                         "signed=%llu clients=%llu",
                         static_cast<unsigned long long>(counts->came),
                         static_cast<unsigned long long>(counts->notTcp),
                         static_cast<unsigned long long>(counts->unknown),
                         static_cast<unsigned long long>(counts->mptcp),
                         static_cast<unsigned long long>(counts->isSigned),
                         static_cast<unsigned long long>(counts->clients)),
    };
    if (dev.aqm != 0) {
        lines.push_back(
                StringPrintf("  UDP: flows=%llu dropped=%llu deaf=%llu tunnels=%llu "
                             "queue_ms=%s",
                             static_cast<unsigned long long>(counts->udpFlows),
                             static_cast<unsigned long long>(counts->udpDropped),
                             static_cast<unsigned long long>(counts->udpDeaf),
                             static_cast<unsigned long long>(counts->udpTunnels),
                             describeDelay(pins, dev).c_str()));
    }
    for (const std::string& counted : toLines(counters)) lines.push_back("  " + counted);
    return lines;
}

}  // namespace net
}  // namespace android
