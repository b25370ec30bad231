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

#include "DrwaBpf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace android {
namespace net {

using base::ErrnoError;
using base::Error;
using base::Result;
using base::unique_fd;

namespace {

constexpr char kWho[] = "rtnetlink";

// What libbpf's users have as well: the first of a priority.
constexpr uint32_t kHandle = 1;

// Filters come and go in bursts, as when a network does.
constexpr int kListTries = 5;

// Headers of a kernel that is older than Android's may lack ARPHRD_RAWIP.
constexpr unsigned kRawIp = 519;

// The same, of kernels from before GKI: MediaTek's ARPHRD_PUREIP, as on 4.19, and what rmnet had on
// Qualcomm's up to 4.9.
constexpr unsigned kMediatekRawIp = 520, kQualcommRawIp = 530;

int bpf(int command, bpf_attr* attr) {
    return static_cast<int>(syscall(__NR_bpf, command, attr, sizeof(*attr)));
}

uint64_t pointer(const void* value) {
    return reinterpret_cast<uintptr_t>(value);
}

Result<void> resultOf(int status, const char* what) {
    if (status == -1) return ErrnoError() << what;
    return {};
}

template <typename Info>
Result<Info> infoOf(int fd) {
    Info info = {};
    bpf_attr attr = {};
    attr.info.bpf_fd = fd;
    attr.info.info_len = sizeof(info);
    attr.info.info = pointer(&info);
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == -1) return ErrnoError() << "BPF_OBJ_GET_INFO_BY_FD";
    return info;
}

uint32_t parentOf(DrwaBpf::Hook hook) {
    return TC_H_MAKE(TC_H_CLSACT,
                     hook == DrwaBpf::Hook::kIngress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

tcmsg filterAt(uint32_t index, DrwaBpf::Hook hook) {
    tcmsg tc = {};
    tc.tcm_family = AF_UNSPEC;
    tc.tcm_ifindex = static_cast<int>(index);
    tc.tcm_handle = kHandle;
    tc.tcm_parent = parentOf(hook);
    tc.tcm_info = TC_H_MAKE(DrwaBpf::kPriority << 16, htons(ETH_P_ALL));
    return tc;
}

std::string kindOf(const char* kind) {
    return netlinkAttribute(TCA_KIND, std::string(kind) + '\0');
}

// Reads one of the answers of a list of filters.
Result<void> readFilter(std::string_view body, std::optional<DrwaBpf::Filter>* filter) {
    tcmsg tc;
    if (!extract(body, &tc)) return Error(EBADMSG) << kWho << ": a filter is cut off";
    if (TC_H_MAJ(tc.tcm_info) >> 16 != DrwaBpf::kPriority) return {};
    if (!*filter) filter->emplace();
    std::string_view options;
    auto read = readAttributes(kWho, dropBytes(body, NLMSG_ALIGN(sizeof(tc))),
                               [&](uint16_t attribute, std::string_view payload) {
                                   if (attribute == TCA_KIND)
                                       (*filter)->kind = payload.substr(0, payload.find('\0'));
                                   if (attribute == TCA_OPTIONS) options = payload;
                               });
    // Ahead of the filters, the list has their kind alone.
    if (!read.ok() || tc.tcm_handle != kHandle) return read;
    return readAttributes(kWho, options, [&](uint16_t attribute, std::string_view payload) {
        if (attribute == TCA_BPF_ID) extract(payload, &(*filter)->program);
    });
}

}  // namespace

const char* toString(DrwaBpf::Hook hook) {
    return hook == DrwaBpf::Hook::kIngress ? "ingress" : "egress";
}

Result<unique_fd> DrwaBpf::open(const std::string& pin) const {
    bpf_attr attr = {};
    attr.pathname = pointer(pin.c_str());
    unique_fd fd(bpf(BPF_OBJ_GET, &attr));
    if (fd == -1) return ErrnoError() << "Cannot open " << pin;
    return fd;
}

Result<uint32_t> DrwaBpf::valueBytesOf(int map) const {
    auto info = infoOf<bpf_map_info>(map);
    if (!info.ok()) return info.error();
    if (info->key_size != sizeof(uint32_t)) return Error(EPROTO) << "Keys are no numbers";
    return info->value_size;
}

Result<uint32_t> DrwaBpf::idOf(int program) const {
    auto info = infoOf<bpf_prog_info>(program);
    if (!info.ok()) return info.error();
    return info->id;
}

Result<std::vector<uint32_t>> DrwaBpf::keysOf(int map, size_t limit) const {
    std::vector<uint32_t> keys;
    uint32_t key = 0, next = 0;
    bpf_attr attr = {};
    attr.map_fd = map;
    attr.next_key = pointer(&next);
    while (keys.size() < limit) {
        if (bpf(BPF_MAP_GET_NEXT_KEY, &attr) == -1) {
            if (errno == ENOENT) break;
            return ErrnoError() << "BPF_MAP_GET_NEXT_KEY";
        }
        key = next;
        keys.push_back(key);
        attr.key = pointer(&key);
    }
    return keys;
}

Result<void> DrwaBpf::read(int map, uint32_t key, void* value, size_t) const {
    bpf_attr attr = {};
    attr.map_fd = map;
    attr.key = pointer(&key);
    attr.value = pointer(value);
    return resultOf(bpf(BPF_MAP_LOOKUP_ELEM, &attr), "BPF_MAP_LOOKUP_ELEM");
}

Result<void> DrwaBpf::write(int map, uint32_t key, const void* value, size_t) const {
    bpf_attr attr = {};
    attr.map_fd = map;
    attr.key = pointer(&key);
    attr.value = pointer(value);
    attr.flags = BPF_ANY;
    return resultOf(bpf(BPF_MAP_UPDATE_ELEM, &attr), "BPF_MAP_UPDATE_ELEM");
}

Result<void> DrwaBpf::erase(int map, uint32_t key) const {
    bpf_attr attr = {};
    attr.map_fd = map;
    attr.key = pointer(&key);
    return resultOf(bpf(BPF_MAP_DELETE_ELEM, &attr), "BPF_MAP_DELETE_ELEM");
}

uint32_t DrwaBpf::indexOf(const std::string& ifName) const {
    return if_nametoindex(ifName.c_str());
}

std::string DrwaBpf::nameOf(uint32_t index) const {
    char name[IF_NAMESIZE];
    return if_indextoname(index, name) ? name : "";
}

uint32_t DrwaBpf::nowUs() const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint32_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

Result<uint32_t> DrwaBpf::linkBytesOf(const std::string& ifName) const {
    const unique_fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd == -1) return ErrnoError() << "socket";
    ifreq request = {};
    ifName.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    if (ioctl(fd, SIOCGIFHWADDR, &request) == -1) return ErrnoError() << ifName;
    const unsigned kind = request.ifr_hwaddr.sa_family;
    utsname kernel = {};
    if (uname(&kernel) == -1) return ErrnoError() << "uname";
    const auto bytes = linkBytesOfKind(kind, kernel.release);
    if (bytes) return *bytes;
    return Error(ENOTSUP) << "Packets of " << ifName << " (ARPHRD " << kind << ") cannot be read";
}

// As isEthernet() of libtcutils has it, and of tunnels.
std::optional<uint32_t> DrwaBpf::linkBytesOfKind(unsigned kind, const std::string& release) {
    unsigned major = 0, minor = 0;
    sscanf(release.c_str(), "%u.%u", &major, &minor);
    switch (kind) {
        case ARPHRD_ETHER:
            return ETH_HLEN;
        case ARPHRD_NONE:
        case ARPHRD_PPP:
        case ARPHRD_TUNNEL:
        case ARPHRD_TUNNEL6:
        case kRawIp:
            return 0;
        case kMediatekRawIp:
        case kQualcommRawIp:
            if (std::pair(major, minor) < std::pair(5u, 11u)) return 0;
            return {};
        default:
            return {};
    }
}

Result<std::optional<DrwaBpf::Filter>> DrwaBpf::filterOf(uint32_t index, Hook hook) const {
    tcmsg tc = filterAt(index, hook);
    // Of a list, these would be what it is to be of.
    tc.tcm_handle = 0;
    tc.tcm_info = 0;
    const std::string message =
            netlinkMessage(RTM_GETTFILTER, NLM_F_REQUEST | NLM_F_DUMP, bytesOf(tc));
    for (int left = kListTries - 1;; left--) {
        std::optional<Filter> filter;
        auto read = askNetlink(kWho, NETLINK_ROUTE, message, [&](std::string_view datagram) {
            return readMessages(kWho, datagram,
                                [&](uint16_t type, std::string_view body) -> Result<void> {
                                    if (type != RTM_NEWTFILTER) return {};
                                    return readFilter(body, &filter);
                                });
        });
        if (read.ok()) return filter;
        if (read.error().code() != EINTR || left == 0) return read.error();
    }
}

Result<void> DrwaBpf::change(uint16_t type, uint16_t flags, const std::string& body) const {
    const std::string message = netlinkMessage(type, NLM_F_REQUEST | NLM_F_ACK | flags, body);
    return askNetlink(kWho, NETLINK_ROUTE, message, [](std::string_view datagram) {
        return readMessages(kWho, datagram,
                            [](uint16_t, std::string_view) -> Result<void> { return {}; });
    });
}

Result<void> DrwaBpf::addClsact(uint32_t index) const {
    tcmsg tc = {};
    tc.tcm_family = AF_UNSPEC;
    tc.tcm_ifindex = static_cast<int>(index);
    tc.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
    tc.tcm_parent = TC_H_CLSACT;
    return change(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, bytesOf(tc) + kindOf("clsact"));
}

Result<void> DrwaBpf::addFilter(uint32_t index, Hook hook, int program) const {
    const std::string options =
            netlinkAttribute(TCA_BPF_FD, bytesOf(static_cast<uint32_t>(program))) +
            netlinkAttribute(TCA_BPF_NAME, std::string("drwa_") + toString(hook) + '\0') +
            netlinkAttribute(TCA_BPF_FLAGS, bytesOf(uint32_t{TCA_BPF_FLAG_ACT_DIRECT}));
    return change(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL,
                  bytesOf(filterAt(index, hook)) + kindOf("bpf") +
                          netlinkAttribute(TCA_OPTIONS | NLA_F_NESTED, options));
}

// With its handle: all of the priority would go without it.
Result<void> DrwaBpf::removeFilter(uint32_t index, Hook hook) const {
    return change(RTM_DELTFILTER, 0 /* flags */, bytesOf(filterAt(index, hook)) + kindOf("bpf"));
}

}  // namespace net
}  // namespace android
