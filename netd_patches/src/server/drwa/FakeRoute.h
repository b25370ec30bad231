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

#ifndef FAKE_ROUTE_H
#define FAKE_ROUTE_H

#include <errno.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <android-base/logging.h>
#include <android-base/stringprintf.h>

#include "DrwaNetlink.h"

namespace android {
namespace net {

// A kernel's rtnetlink, with the interfaces that a test gives it, by the rules of sch_api.c: who
// may replace which qdisc, and what is there when nobody has set any.
class FakeRoute {
  public:
    struct Qdisc {
        uint32_t handle;
        uint32_t parent;
        std::string kind;
        uint32_t targetUs = 0;
        uint32_t mux = 0;
    };

    FakeRoute() { addInterface("lo", 1, IFF_LOOPBACK); }

    void addInterface(const std::string& ifName, uint32_t txQueues = 1, unsigned flags = 0) {
        mLinks[mNextIndex++] = {ifName, txQueues, flags, defaultTree(txQueues)};
    }

    // Makes it one of Qualcomm's, or another |kind| that has a number in the same place.
    void setMux(const std::string& ifName, uint16_t mux, const std::string& kind = "rmnet") {
        find(ifName).kind = kind;
        find(ifName).mux = mux;
    }

    // What it goes over, in this name space or in another one
    void setLower(const std::string& ifName, int index, bool elsewhere = false) {
        find(ifName).lower = index;
        find(ifName).lowerIsElsewhere = elsewhere;
    }

    // /proc/sys/net/core/default_qdisc, before interfaces come
    std::string defaultKind = "pfifo_fast";

    // A drwa_up that is too old for TCA_DRWA_UP_MUX ignores it, as the kernel does with what tc
    // sends.
    bool knowsMux = true;

    // How often a gate has forgotten what the modem told, as it does when its mux is said again.
    int forgotten = 0;

    void removeInterface(const std::string& ifName) {
        for (auto link = mLinks.begin(); link != mLinks.end(); link++) {
            if (link->second.ifName == ifName) {
                mLinks.erase(link);
                return;
            }
        }
    }

    // As a device that was never up.
    void takeDown(const std::string& ifName) { find(ifName).tree.clear(); }

    // As a vendor's daemon, or tc, does.
    void setRoot(const std::string& ifName, const Qdisc& root) { find(ifName).tree = {root}; }

    // As "mq 6d000000 root, drwa_up 6d010000 6d000001 20000, ...", without what is the default's.
    std::string tree(const std::string& ifName) {
        std::string text;
        for (const Qdisc& qdisc : find(ifName).tree) {
            if (qdisc.handle == 0) continue;
            text += (text.empty() ? "" : ", ") + qdisc.kind;
            text += base::StringPrintf(" %x ", qdisc.handle);
            text += qdisc.parent == TC_H_ROOT ? "root" : base::StringPrintf("%x", qdisc.parent);
            if (qdisc.targetUs != 0) text += base::StringPrintf(" %uus", qdisc.targetUs);
            if (qdisc.mux != 0) text += base::StringPrintf(" mux %u", qdisc.mux);
        }
        return text;
    }

    bool hasDefaultTree(const std::string& ifName) {
        return tree(ifName).empty() && !find(ifName).tree.empty();
    }

    // How many lists of |interruptedList| are interrupted: they lack |interruptedAt|, and the
    // kernel says so with the next message, or with the last one if nothing else is left.
    int interruptions = 0;
    uint16_t interruptedList = RTM_GETLINK;
    std::string interruptedAt;

    // What lists end with, an errno or 0, and how far they come if it is one: to the first entry.
    int listError = 0;

    // What the kernel refuses as unknown.
    std::set<std::string> unknownKinds;

    // How often modprobe was run for such a kind.
    int moduleRequests = 0;

    // The statistics of all drwa_up.
    std::string xstats;

    // Called ahead of each change, by its number from 1 on; an errno refuses it.
    std::function<int(int)> onChange = [](int) { return 0; };

    // All changes that were asked for, and what became of them. Looking for a kind is none.
    int changes = 0;

    // As askNetlink().
    base::Result<void> ask(const std::string& message, const DrwaReaderFn& reader) {
        nlmsghdr header;
        CHECK(extract(message, &header));
        CHECK_EQ(header.nlmsg_len, message.size());
        CHECK(header.nlmsg_flags & NLM_F_REQUEST);
        const std::string body = message.substr(NLMSG_HDRLEN);
        std::vector<std::string> answer;
        switch (header.nlmsg_type) {
            case RTM_GETLINK:
                CHECK_EQ(header.nlmsg_flags & NLM_F_DUMP, NLM_F_DUMP);
                answer = links();
                break;
            case RTM_GETQDISC:
                CHECK_EQ(header.nlmsg_flags & NLM_F_DUMP, NLM_F_DUMP);
                answer = qdiscs();
                break;
            default:
                CHECK(header.nlmsg_flags & NLM_F_ACK);
                nlmsgerr error = {};
                error.error = -change(header, body);
                answer = {netlinkMessage(NLMSG_ERROR, 0, bytesOf(error))};
        }
        // Two at a time, as a kernel whose buffer is full. An end of its own ends a dump.
        for (size_t i = 0; i < answer.size(); i += 2) {
            auto done = reader(answer[i] + (i + 1 < answer.size() ? answer[i + 1] : ""));
            if (!done.ok()) return done.error();
            if (*done) return {};
        }
        LOG(FATAL) << "An answer without an end";
        return {};
    }

  private:
    struct Link {
        std::string ifName;
        uint32_t txQueues;
        unsigned flags;
        std::vector<Qdisc> tree;
        std::string kind = "dummy";
        uint16_t mux = 0;
        int lower = 0;
        bool lowerIsElsewhere = false;
    };

    std::vector<Qdisc> defaultTree(uint32_t txQueues) const {
        if (txQueues == 1) return {{0, TC_H_ROOT, defaultKind}};
        std::vector<Qdisc> tree = {{0, TC_H_ROOT, "mq"}};
        for (uint32_t queue = 1; queue <= txQueues; queue++) {
            tree.push_back({0, queue, defaultKind});
        }
        return tree;
    }

    Link& find(const std::string& ifName) {
        for (auto& [index, link] : mLinks) {
            if (link.ifName == ifName) return link;
        }
        LOG(FATAL) << ifName;
        abort();
    }

    // Leaves what belongs to |interruptedAt| out of a list.
    class Interruption {
      public:
        Interruption(const FakeRoute& route, bool active) : mRoute(route), mActive(active) {}

        bool skips(const std::string& ifName) {
            const bool skipped = mActive && ifName == mRoute.interruptedAt;
            if (skipped) mFlags = NLM_F_MULTI | NLM_F_DUMP_INTR;
            return skipped;
        }

        uint16_t takeFlags() { return std::exchange(mFlags, NLM_F_MULTI); }

      private:
        const FakeRoute& mRoute;
        const bool mActive;
        uint16_t mFlags = NLM_F_MULTI;
    };

    bool isInterrupted(uint16_t list) {
        return list == interruptedList && interruptions > 0 && interruptions-- > 0;
    }

    std::vector<std::string> links() {
        std::vector<std::string> answer;
        Interruption interruption(*this, isInterrupted(RTM_GETLINK));
        for (const auto& [index, link] : mLinks) {
            if (interruption.skips(link.ifName)) continue;
            ifinfomsg info = {};
            info.ifi_index = index;
            info.ifi_flags = link.flags;
            std::string linkInfo = netlinkAttribute(IFLA_INFO_KIND, link.kind + '\0');
            if (link.mux != 0) {
                linkInfo += netlinkAttribute(
                        IFLA_INFO_DATA,
                        netlinkAttribute(IFLA_RMNET_MUX_ID, bytesOf(link.mux)) +
                                netlinkAttribute(IFLA_RMNET_FLAGS, bytesOf(ifla_rmnet_flags{})));
            }
            std::string body = bytesOf(info) + netlinkAttribute(IFLA_IFNAME, link.ifName + '\0') +
                               netlinkAttribute(IFLA_NUM_TX_QUEUES, bytesOf(link.txQueues));
            if (!(link.flags & IFF_LOOPBACK)) body += netlinkAttribute(IFLA_LINKINFO, linkInfo);
            if (link.lower != 0) body += netlinkAttribute(IFLA_LINK, bytesOf(link.lower));
            if (link.lowerIsElsewhere) body += netlinkAttribute(IFLA_LINK_NETNSID, bytesOf(0));
            answer.push_back(netlinkMessage(RTM_NEWLINK, interruption.takeFlags(), body));
        }
        if (listError != 0) answer.resize(1);
        answer.push_back(netlinkMessage(NLMSG_DONE, interruption.takeFlags(), bytesOf(-listError)));
        return answer;
    }

    std::vector<std::string> qdiscs() {
        std::vector<std::string> answer;
        Interruption interruption(*this, isInterrupted(RTM_GETQDISC));
        for (const auto& [index, link] : mLinks) {
            if (interruption.skips(link.ifName)) continue;
            // In no order, as the kernel lists a hash
            const std::vector<Qdisc> tree(link.tree.rbegin(), link.tree.rend());
            for (const Qdisc& qdisc : tree) {
                tcmsg tc = {};
                tc.tcm_ifindex = index;
                tc.tcm_handle = qdisc.handle;
                tc.tcm_parent = qdisc.parent;
                std::string body = bytesOf(tc) + netlinkAttribute(TCA_KIND, qdisc.kind + '\0');
                if (qdisc.kind == "drwa_up") {
                    std::string options = netlinkAttribute(1, bytesOf(qdisc.targetUs));
                    if (knowsMux) options += netlinkAttribute(2, bytesOf(qdisc.mux));
                    body += netlinkAttribute(TCA_OPTIONS, options);
                    body += netlinkAttribute(TCA_XSTATS, xstats);
                }
                answer.push_back(netlinkMessage(RTM_NEWQDISC, interruption.takeFlags(), body));
            }
            // Whatever Android's BPF programs hang on
            tcmsg tc = {};
            tc.tcm_ifindex = index;
            tc.tcm_handle = 0xffff0000;
            tc.tcm_parent = TC_H_CLSACT;
            answer.push_back(netlinkMessage(RTM_NEWQDISC, interruption.takeFlags(),
                                            bytesOf(tc) + netlinkAttribute(TCA_KIND, "clsact")));
        }
        if (listError != 0) answer.resize(1);
        answer.push_back(netlinkMessage(NLMSG_DONE, interruption.takeFlags(), bytesOf(-listError)));
        return answer;
    }

    // Returns an errno.
    int change(const nlmsghdr& header, const std::string& body) {
        tcmsg tc;
        CHECK(extract(body, &tc));
        Qdisc wanted = {tc.tcm_handle, tc.tcm_parent, ""};
        std::string options;
        CHECK(readAttributes("test", dropBytes(body, sizeof(tc)),
                             [&](uint16_t type, std::string_view payload) {
                                 if (type == TCA_KIND)
                                     wanted.kind = payload.substr(0, payload.size() - 1);
                                 if (type == TCA_OPTIONS) options = payload;
                             })
                      .ok());
        bool isMuxSaid = false;
        CHECK(readAttributes("test", options, [&](uint16_t type, std::string_view payload) {
                  CHECK(type == 1 || type == 2);
                  if (type == 1) CHECK(extract(payload, &wanted.targetUs));
                  if (type == 2 && knowsMux) {
                      CHECK(extract(payload, &wanted.mux));
                      isMuxSaid = true;
                  }
              }).ok());
        if (wanted.mux > 255) return ERANGE;
        const auto link = mLinks.find(tc.tcm_ifindex);
        if (link == mLinks.end()) return ENODEV;
        if (!(link->second.flags & IFF_LOOPBACK)) {
            const int error = onChange(++changes);
            if (error != 0) return error;
            if (mLinks.count(tc.tcm_ifindex) == 0) return ENODEV;
        }
        auto& tree = link->second.tree;
        const auto present = std::find_if(tree.begin(), tree.end(), [&](const Qdisc& qdisc) {
            return qdisc.parent == wanted.parent && qdisc.handle != 0;
        });
        if (header.nlmsg_type == RTM_DELQDISC) {
            if (present == tree.end()) return ENOENT;
            if (present->handle != wanted.handle || present->kind != wanted.kind) return EINVAL;
            CHECK_EQ(wanted.parent, TC_H_ROOT);
            tree = defaultTree(link->second.txQueues);
            return 0;
        }
        CHECK_EQ(header.nlmsg_type, RTM_NEWQDISC);
        if (header.nlmsg_flags & NLM_F_CREATE) {
            CHECK(header.nlmsg_flags & NLM_F_EXCL);
            return create(link->second, wanted, present == tree.end());
        }
        if (present == tree.end() || present->handle != wanted.handle) return ENOENT;
        if (present->kind != wanted.kind) return EINVAL;
        if (!isGoodTarget(wanted)) return EINVAL;
        present->targetUs = wanted.targetUs;
        forgotten += isMuxSaid;
        return 0;
    }

    int create(Link& link, Qdisc wanted, bool isFree) {
        if (!isFree) return EEXIST;
        const auto& tree = link.tree;
        if (wanted.parent != TC_H_ROOT &&
            std::none_of(tree.begin(), tree.end(), [&](const Qdisc& qdisc) {
                return qdisc.handle == (wanted.parent & 0xffff0000);
            })) {
            return ENOENT;
        }
        if (unknownKinds.count(wanted.kind)) {
            moduleRequests++;
            return ENOENT;
        }
        if (!isGoodTarget(wanted)) return EINVAL;
        if (wanted.kind == "mq" && link.txQueues == 1) return EOPNOTSUPP;
        if (wanted.handle == 0) wanted.handle = mNextHandle += 0x10000;
        if (wanted.parent == TC_H_ROOT) link.tree.clear();
        link.tree.push_back(wanted);
        return 0;
    }

    static bool isGoodTarget(const Qdisc& qdisc) {
        return qdisc.kind != "drwa_up" || (qdisc.targetUs >= 1000 && qdisc.targetUs <= 1000000);
    }

    std::map<int, Link> mLinks;
    int mNextIndex = 1;
    uint32_t mNextHandle = 0x80000000;
};

}  // namespace net
}  // namespace android

#endif  // FAKE_ROUTE_H
