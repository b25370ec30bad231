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

#include "DrwaUplink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include <android-base/parseint.h>
#include <android-base/stringprintf.h>

namespace android {
namespace net {

using base::Error;
using base::ParseInt;
using base::Result;
using base::StringPrintf;

namespace {

constexpr char kWho[] = "rtnetlink";

constexpr char kGate[] = "drwa_up";
constexpr char kLeaf[] = "fq_codel";
constexpr char kMulti[] = "mq";

// Of Qualcomm's modems.
constexpr char kModem[] = "rmnet";

// TCA_DRWA_UP_TARGET of <linux/drwa_up.h>, in microseconds, and a value that the kernel refuses.
constexpr uint16_t kTarget = 1;
constexpr uint32_t kBadTargetUs = 0;
// TCA_DRWA_UP_MUX
constexpr uint16_t kMux = 2;

// Of our root, and, with what follows, of an mq's queues; the kernel has no more of these.
constexpr uint32_t kRootHandle = 0x6d000000;
constexpr uint32_t kMaxTxQueues = 0x1000;
constexpr uint32_t kMajor = 0x10000;
// The only one of a drwa_up.
constexpr uint32_t kClass = 1;

constexpr int kLoopback = 1;

// Interfaces come in bursts, as when a modem starts.
constexpr int kListTries = 5;

uint32_t majorOf(uint32_t handle) {
    return handle & ~(kMajor - 1);
}

// As tc writes it.
std::string handleText(uint32_t handle) {
    return StringPrintf("%x:", handle / kMajor);
}

std::string textOf(std::string_view payload) {
    return std::string(payload.substr(0, payload.find('\0')));
}

std::string phaseText(uint32_t phase) {
    static const char* const kPhases[] = {"start", "hold", "drain", "open"};
    return phase < std::size(kPhases) ? kPhases[phase] : std::to_string(phase);
}

std::string toString(const DrwaUpStats& stats) {
    return StringPrintf(
            "rate=%.2fMb/s window=%uB inFlight=%uB delay=%.1fms rtt=%.1fms phase=%s "
            "marks=%u answers=%u drains=%u jumps=%u opened=%u shorts=%u told=%u",
            8 * stats.rate / 1e6, stats.windowBytes, stats.inFlightBytes, stats.delayUs / 1e3,
            stats.ageUs / 1e3, phaseText(stats.phase).c_str(), stats.marks, stats.answers,
            stats.drains, stats.jumps, stats.opened, stats.shorts, stats.told);
}

// The kernel's defaults that do no more than keep packets in their order, or keep none.
bool isFifo(const std::string& kind) {
    static const char* const kFifos[] = {"", "noop", "noqueue", "pfifo", "pfifo_fast", "bfifo"};
    return std::find(std::begin(kFifos), std::end(kFifos), kind) != std::end(kFifos);
}

// Reads what IFLA_LINKINFO holds.
Result<void> readMux(std::string_view linkInfo, uint8_t* mux) {
    std::string kind;
    std::string_view data;
    auto read = readAttributes(kWho, linkInfo, [&](uint16_t attribute, std::string_view payload) {
        if (attribute == IFLA_INFO_KIND) kind = textOf(payload);
        if (attribute == IFLA_INFO_DATA) data = payload;
    });
    // What other kinds have by the same number is something else.
    if (!read.ok() || kind != kModem) return read;
    return readAttributes(kWho, data, [&](uint16_t attribute, std::string_view payload) {
        uint16_t found;
        if (attribute == IFLA_RMNET_MUX_ID && extract(payload, &found) && found <= UINT8_MAX) {
            *mux = found;
        }
    });
}

Result<void> readLink(std::string_view body, DrwaLink* link) {
    ifinfomsg info;
    if (!extract(body, &info)) return Error(EBADMSG) << kWho << ": a link is cut off";
    link->index = info.ifi_index;
    link->loopback = (info.ifi_flags & IFF_LOOPBACK) != 0;
    std::string_view linkInfo;
    bool elsewhere = false;
    auto read = readAttributes(kWho, dropBytes(body, NLMSG_ALIGN(sizeof(info))),
                               [&](uint16_t attribute, std::string_view payload) {
                                   if (attribute == IFLA_IFNAME) link->ifName = textOf(payload);
                                   if (attribute == IFLA_NUM_TX_QUEUES)
                                       extract(payload, &link->txQueues);
                                   if (attribute == IFLA_LINK) extract(payload, &link->lower);
                                   if (attribute == IFLA_LINK_NETNSID) elsewhere = true;
                                   if (attribute == IFLA_LINKINFO) linkInfo = payload;
                               });
    if (elsewhere) link->lower = 0;
    return read.ok() ? readMux(linkInfo, &link->mux) : read;
}

bool isGone(int error) {
    return error == ENODEV || error == ENOENT;
}

}  // namespace

Result<std::vector<DrwaLink>> chooseLinks(const std::vector<DrwaLink>& links,
                                          const std::vector<std::string>& ifNames) {
    std::vector<DrwaLink> chosen;
    if (ifNames.empty()) {
        std::copy_if(links.begin(), links.end(), std::back_inserter(chosen),
                     [](const DrwaLink& link) { return !link.loopback; });
    }
    for (const std::string& ifName : ifNames) {
        const auto found = std::find_if(links.begin(), links.end(),
                                        [&](const DrwaLink& one) { return one.ifName == ifName; });
        if (found == links.end()) return Error(ENODEV) << ifName;
        chosen.push_back(*found);
    }
    return chosen;
}

DrwaUplink::DrwaUplink(AskFn ask, std::string module)
    : mAsk(std::move(ask)), mModule(std::move(module)) {}

Result<void> DrwaUplink::reset() {
    std::lock_guard guard(mMutex);
    auto qdiscs = readQdiscs();
    if (!qdiscs.ok()) return qdiscs.error();
    Result<void> first = {};
    for (const Qdisc& qdisc : *qdiscs) {
        // An mq of ours may have no gates yet: netd may have died while it put them there.
        const bool ours =
                qdisc.kind == kGate || (qdisc.kind == kMulti && qdisc.handle == kRootHandle);
        if (qdisc.parent != TC_H_ROOT || !ours) continue;
        auto removed = remove(qdisc);
        if (!removed.ok() && !isGone(removed.error().code()) && first.ok()) first = removed;
    }
    return first;
}

Result<void> DrwaUplink::setTarget(const std::string& ifName, int targetMs) {
    std::lock_guard guard(mMutex);
    auto result = set(ifName, targetMs);
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

Result<void> DrwaUplink::setTarget(const std::string& ifName, const std::string& targetMs) {
    int target;
    if (!ParseInt(targetMs, &target)) return setTarget(ifName, -1);
    return setTarget(ifName, target);
}

Result<void> DrwaUplink::set(const std::string& ifName, int targetMs) {
    auto link = findLink(ifName);
    if (!link.ok()) return link.error();
    if (targetMs != kOff && (targetMs < kMinTargetMs || targetMs > kMaxTargetMs)) {
        return Error(EINVAL) << "The target is neither " << kOff << " nor from " << kMinTargetMs
                             << " to " << kMaxTargetMs << " ms";
    }
    auto tree = readTree(link->index);
    if (!tree.ok()) return tree.error();
    if (targetMs == kOff) return tree->isOurs() ? remove(*tree->root) : Result<void>{};
    const uint32_t targetUs = 1000 * targetMs;
    if (tree->isOurs()) return change(*tree, targetUs);
    if (tree->root && tree->root->handle != 0) {
        return Error(EBUSY) << "The root of " << ifName << " is " << tree->root->kind << " "
                            << handleText(tree->root->handle) << ", which somebody has set";
    }
    if (!kernelHasIt()) return Error(ENOENT) << "This kernel has no " << kGate;
    auto attached = attach(*link, isFifo(tree->leaf) ? kLeaf : tree->leaf, targetUs);
    // Its module may have been unloaded.
    if (!attached.ok() && attached.error().code() == ENOENT) mKernelHasIt.reset();
    return attached;
}

Result<int> DrwaUplink::getTarget(const std::string& ifName) {
    std::lock_guard guard(mMutex);
    auto link = findLink(ifName);
    if (!link.ok()) return link.error();
    auto tree = readTree(link->index);
    if (!tree.ok()) return tree.error();
    if (tree->isOurs()) return tree->gates.front().targetUs / 1000;
    if (!kernelHasIt()) return Error(ENOENT) << "This kernel has no " << kGate;
    return kOff;
}

Result<std::vector<DrwaUplinkState>> DrwaUplink::getStates(
        const std::vector<std::string>& ifNames) const {
    auto links = getLinks();
    if (!links.ok()) return links.error();
    auto chosen = chooseLinks(*links, ifNames);
    if (!chosen.ok()) return chosen.error();
    auto qdiscs = readQdiscs();
    if (!qdiscs.ok()) return qdiscs.error();
    std::vector<DrwaUplinkState> states;
    for (const DrwaLink& link : *chosen) {
        const Tree tree = treeOf(link.index, *qdiscs);
        DrwaUplinkState state;
        state.ifName = link.ifName;
        if (tree.root) {
            state.root = tree.root->kind;
            state.handle = tree.root->handle;
        }
        if (tree.isOurs()) {
            state.targetMs = tree.gates.front().targetUs / 1000;
            state.leaf = tree.leaf;
            state.mux = tree.gates.front().mux;
        }
        for (const Qdisc& gate : tree.gates) {
            const uint32_t number = gate.parent == TC_H_ROOT ? 0 : gate.parent % kMajor;
            state.queues.push_back({number, gate.stats});
        }
        states.push_back(std::move(state));
    }
    return states;
}

void DrwaUplink::dump(const std::function<void(const std::string&)>& println) {
    println("DrwaUplink");
    std::map<std::string, std::string> refusals;
    {
        std::lock_guard guard(mMutex);
        println(StringPrintf("  setTarget: %d done, %d refused", mDone, mRefused));
        if (!kernelHasIt()) {
            println(StringPrintf("  This kernel has no %s.", kGate));
            return;
        }
        refusals = mRefusals;
    }
    auto states = getStates();
    if (!states.ok()) {
        println("  " + states.error().message());
        return;
    }
    println("  Interfaces whose uplinks are held to a target, and what their qdiscs tell:");
    for (const DrwaUplinkState& state : *states) {
        if (state.targetMs == kOff) continue;
        for (const std::string& line : format({state})) println("    " + line);
    }
    println("  Interfaces whose uplinks were to be held, and why they are not:");
    for (const DrwaUplinkState& state : *states) {
        const auto refusal = refusals.find(state.ifName);
        if (refusal != refusals.end()) println("    " + state.ifName + ": " + refusal->second);
    }
}

std::vector<std::string> DrwaUplink::format(const std::vector<DrwaUplinkState>& states) {
    std::vector<std::string> lines;
    for (const DrwaUplinkState& state : states) {
        lines.push_back(StringPrintf("%s uplink=%dms root=%s", state.ifName.c_str(), state.targetMs,
                                     state.root.empty() ? "none" : state.root.c_str()));
        if (state.handle != 0) lines.back() += " " + handleText(state.handle);
        if (!state.leaf.empty()) lines.back() += " below=" + state.leaf;
        if (state.mux != 0) lines.back() += " mux=" + std::to_string(state.mux);
        for (const auto& [number, stats] : state.queues) {
            // Up to 31, of which a phone uses a few.
            if (number != 0 && stats.marks + stats.shorts + stats.told == 0) continue;
            const std::string queue = number != 0 ? StringPrintf("queue=%u ", number) : "";
            lines.push_back("  " + queue + toString(stats));
        }
    }
    return lines;
}

Result<void> DrwaUplink::askRtnetlink(const std::string& message, const DrwaReaderFn& reader) {
    return askNetlink(kWho, NETLINK_ROUTE, message, reader);
}

Result<void> DrwaUplink::request(uint16_t type, uint16_t flags, const std::string& body,
                                 const DrwaMessageFn& onMessage) const {
    return mAsk(netlinkMessage(type, NLM_F_REQUEST | flags, body),
                [&](std::string_view datagram) { return readMessages(kWho, datagram, onMessage); });
}

// A list that was interrupted may lack the interface that matters, which is no ENODEV.
Result<void> DrwaUplink::list(uint16_t type, const std::string& body,
                              const std::function<void()>& onStart,
                              const DrwaMessageFn& onMessage) const {
    for (int left = kListTries - 1;; left--) {
        onStart();
        auto read = request(type, NLM_F_DUMP, body, onMessage);
        if (read.ok() || read.error().code() != EINTR || left == 0) return read;
    }
}

Result<std::vector<DrwaLink>> DrwaUplink::getLinks() const {
    std::vector<DrwaLink> links;
    auto read = list(
            RTM_GETLINK, bytesOf(ifinfomsg{}), [&] { links.clear(); },
            [&](uint16_t type, std::string_view body) -> Result<void> {
                if (type != RTM_NEWLINK) return {};
                links.emplace_back();
                return readLink(body, &links.back());
            });
    if (!read.ok()) return Error() << "Cannot list interfaces: " << read.error();
    return links;
}

Result<DrwaLink> DrwaUplink::findLink(const std::string& ifName) const {
    auto links = getLinks();
    if (!links.ok()) return links.error();
    for (DrwaLink& link : *links) {
        if (link.ifName == ifName) return std::move(link);
    }
    return Error(ENODEV) << "Cannot find an interface";
}

Result<std::vector<DrwaUplink::Qdisc>> DrwaUplink::readQdiscs() const {
    std::vector<Qdisc> qdiscs;
    auto read = list(
            RTM_GETQDISC, bytesOf(tcmsg{}), [&] { qdiscs.clear(); },
            [&](uint16_t type, std::string_view body) -> Result<void> {
                if (type != RTM_NEWQDISC) return {};
                tcmsg tc;
                if (!extract(body, &tc)) return Error(EBADMSG) << kWho << ": a qdisc is cut off";
                Qdisc qdisc = {tc.tcm_ifindex, tc.tcm_handle, tc.tcm_parent, ""};
                std::string_view options;
                auto attributes = readAttributes(kWho, dropBytes(body, NLMSG_ALIGN(sizeof(tc))),
                                                 [&](uint16_t attribute, std::string_view payload) {
                                                     if (attribute == TCA_KIND)
                                                         qdisc.kind = textOf(payload);
                                                     if (attribute == TCA_OPTIONS)
                                                         options = payload;
                                                     if (attribute == TCA_XSTATS) {
                                                         extract(payload, &qdisc.stats);
                                                     }
                                                 });
                if (attributes.ok() && qdisc.kind == kGate) {
                    attributes = readAttributes(kWho, options,
                                                [&](uint16_t attribute, std::string_view payload) {
                                                    if (attribute == kTarget)
                                                        extract(payload, &qdisc.targetUs);
                                                    if (attribute == kMux)
                                                        extract(payload, &qdisc.mux);
                                                });
                }
                qdiscs.push_back(std::move(qdisc));
                return attributes;
            });
    if (!read.ok()) return Error() << "Cannot list qdiscs: " << read.error();
    return qdiscs;
}

DrwaUplink::Tree DrwaUplink::treeOf(int ifIndex, const std::vector<Qdisc>& qdiscs) {
    Tree tree;
    for (const Qdisc& qdisc : qdiscs) {
        if (qdisc.ifIndex == ifIndex && qdisc.parent == TC_H_ROOT) tree.root = qdisc;
    }
    if (!tree.root) return tree;
    const bool multi = tree.root->kind == kMulti && tree.root->handle == kRootHandle;
    if (tree.root->kind == kGate) tree.gates = {*tree.root};
    for (const Qdisc& qdisc : qdiscs) {
        const bool below = qdisc.ifIndex == ifIndex && majorOf(qdisc.parent) == kRootHandle;
        if (multi && below && qdisc.kind == kGate) tree.gates.push_back(qdisc);
    }
    // The kernel lists them in the order of a hash.
    std::sort(tree.gates.begin(), tree.gates.end(),
              [](const Qdisc& a, const Qdisc& b) { return a.handle < b.handle; });
    // The first queue of a default mq has that parent, too.
    const uint32_t first = tree.isOurs() ? tree.gates.front().handle | kClass : kClass;
    if (!tree.isOurs() && tree.root->kind != kMulti) tree.leaf = tree.root->kind;
    for (const Qdisc& qdisc : qdiscs) {
        if (qdisc.ifIndex == ifIndex && qdisc.parent == first) tree.leaf = qdisc.kind;
    }
    return tree;
}

Result<DrwaUplink::Tree> DrwaUplink::readTree(int ifIndex) const {
    auto qdiscs = readQdiscs();
    if (!qdiscs.ok()) return qdiscs.error();
    return treeOf(ifIndex, *qdiscs);
}

Result<void> DrwaUplink::write(uint16_t type, uint16_t flags, const Qdisc& qdisc) const {
    tcmsg tc = {};
    tc.tcm_ifindex = qdisc.ifIndex;
    tc.tcm_handle = qdisc.handle;
    tc.tcm_parent = qdisc.parent;
    std::string body = bytesOf(tc) + netlinkAttribute(TCA_KIND, qdisc.kind + '\0');
    if (qdisc.kind == kGate && type == RTM_NEWQDISC) {
        std::string options = netlinkAttribute(kTarget, bytesOf(qdisc.targetUs));
        // Said again, it would make the gate forget what it was told.
        if (qdisc.mux != 0 && (flags & NLM_F_CREATE)) {
            options += netlinkAttribute(kMux, bytesOf(qdisc.mux));
        }
        body += netlinkAttribute(TCA_OPTIONS | NLA_F_NESTED, options);
    }
    return request(type, NLM_F_ACK | flags, body,
                   [](uint16_t, std::string_view) -> Result<void> { return {}; });
}

// By a message that cannot succeed: no kernel lists its kinds, and one that it does not know is the
// first that it complains of. But it runs modprobe for that, so it is asked twice only if there is
// a module by now.
bool DrwaUplink::kernelHasIt() {
    if (mKernelHasIt && (*mKernelHasIt || access(mModule.c_str(), F_OK) != 0)) return *mKernelHasIt;
    auto tried = write(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL,
                       {kLoopback, kRootHandle, TC_H_ROOT, kGate, kBadTargetUs});
    mKernelHasIt = tried.ok() || tried.error().code() != ENOENT;
    return *mKernelHasIt;
}

Result<void> DrwaUplink::attach(const DrwaLink& link, const std::string& leaf, uint32_t targetUs) {
    const Qdisc root = {link.index, kRootHandle, TC_H_ROOT, link.txQueues > 1 ? kMulti : kGate,
                        targetUs,   link.mux};
    auto created = write(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, root);
    if (!created.ok()) {
        const int error = created.error().code();
        // Somebody was faster.
        return Error(error == EEXIST ? EBUSY : error) << "Cannot set the root of " << link.ifName;
    }
    auto added = addBelow(root, leaf, link.txQueues, targetUs);
    if (added.ok()) return {};
    auto removed = remove(root);
    if (removed.ok() || isGone(removed.error().code())) return added;
    return Error(added.error().code())
           << added.error().message() << "; it stays: " << removed.error().message();
}

Result<void> DrwaUplink::addBelow(const Qdisc& root, const std::string& leaf, uint32_t txQueues,
                                  uint32_t targetUs) const {
    if (root.kind == kGate) return addLeaf(root, leaf);
    if (txQueues > kMaxTxQueues) return Error(E2BIG) << txQueues << " queues";
    for (uint32_t queue = 1; queue <= txQueues; queue++) {
        const Qdisc gate = {
                root.ifIndex, root.handle + queue * kMajor, root.handle | queue, kGate, targetUs,
                root.mux};
        auto created = write(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, gate);
        if (!created.ok()) {
            return Error() << "Cannot add " << kGate << " of queue " << queue << ": "
                           << created.error();
        }
        auto added = addLeaf(gate, leaf);
        if (!added.ok()) return added;
    }
    return {};
}

Result<void> DrwaUplink::addLeaf(const Qdisc& gate, const std::string& leaf) const {
    auto added = write(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL,
                       {gate.ifIndex, 0, gate.handle | kClass, leaf});
    if (added.ok() || added.error().code() == ENOENT) return {};
    return Error() << "Cannot add " << leaf << ": " << added.error();
}

Result<void> DrwaUplink::change(const Tree& tree, uint32_t targetUs) const {
    std::vector<Qdisc> former;
    for (const Qdisc& gate : tree.gates) {
        Qdisc wanted = gate;
        wanted.targetUs = targetUs;
        auto changed = write(RTM_NEWQDISC, 0 /* flags */, wanted);
        if (!changed.ok()) {
            for (const Qdisc& done : former) write(RTM_NEWQDISC, 0 /* flags */, done);
            return Error() << "Cannot change the target: " << changed.error();
        }
        former.push_back(gate);
    }
    return {};
}

// Named by kind and handle, so that the kernel refuses if it is another one by now.
Result<void> DrwaUplink::remove(const Qdisc& root) const {
    auto removed = write(RTM_DELQDISC, 0 /* flags */, root);
    if (!removed.ok()) return Error() << "Cannot remove " << root.kind << ": " << removed.error();
    return {};
}

}  // namespace net
}  // namespace android
