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

#include "DrwaSockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <memory>

#include <android-base/stringprintf.h>

namespace android {
namespace net {

using base::ErrnoError;
using base::Error;
using base::Result;
using base::StringPrintf;

namespace {

// TCP_ESTABLISHED, of <netinet/tcp.h>, which cannot be had together with <linux/tcp.h> everywhere.
constexpr int kEstablished = 1;

constexpr char kWho[] = "inet_diag";

constexpr uint32_t kReceivingMs = 1000;

// tcpi_rcv_wnd, which the headers of many builds do not have.
constexpr size_t kRcvWndOffset = offsetof(tcp_info, tcpi_snd_wnd) + sizeof(tcp_info::tcpi_snd_wnd);

// IPv4 in IPv6 comes out as IPv4.
std::string addressBytes(int family, const uint32_t (&address)[4]) {
    const char* bytes = reinterpret_cast<const char*>(address);
    if (family == AF_INET) return std::string(bytes, sizeof(in_addr));
    in6_addr v6;
    memcpy(&v6, address, sizeof(v6));
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return std::string(bytes + 12, sizeof(in_addr));
    return std::string(bytes, sizeof(v6));
}

std::string endpoint(const std::string& address, uint16_t port) {
    const bool v4 = address.size() == sizeof(in_addr);
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(v4 ? AF_INET : AF_INET6, address.data(), text, sizeof(text));
    return StringPrintf(v4 ? "%s:%u" : "[%s]:%u", text, ntohs(port));
}

void readTcpInfo(std::string_view bytes, DrwaSocket* socket) {
    tcp_info info;
    extract(bytes, &info);
    socket->receivedBytes = info.tcpi_bytes_received;
    socket->quietMs = info.tcpi_last_data_recv;
    socket->rttUs = info.tcpi_rcv_rtt;
    // The kernel has ~0 before the first sample.
    socket->minRttUs = info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt;
    socket->windowIsLimit = !extract(dropBytes(bytes, kRcvWndOffset), &socket->windowBytes);
    if (socket->windowIsLimit) socket->windowBytes = info.tcpi_rcv_ssthresh;
}

Result<void> parseSocket(std::string_view body, const DrwaInterfaceFn& interfaceOf,
                         std::vector<DrwaSocket>* sockets) {
    inet_diag_msg message;
    if (!extract(body, &message)) return Error(EBADMSG) << kWho << ": a socket is cut off";
    const int family = message.idiag_family;
    if (family != AF_INET && family != AF_INET6) return {};
    const std::string local = addressBytes(family, message.id.idiag_src);
    const std::string remote = addressBytes(family, message.id.idiag_dst);
    DrwaSocket socket = {};
    socket.cookie = uint64_t{message.id.idiag_cookie[1]} << 32 | message.id.idiag_cookie[0];
    socket.uid = message.idiag_uid;
    socket.ifName = interfaceOf(message.id.idiag_if, local);
    socket.local = endpoint(local, message.id.idiag_sport);
    socket.remote = endpoint(remote, message.id.idiag_dport);

    auto read = readAttributes(kWho, dropBytes(body, NLMSG_ALIGN(sizeof(message))),
                               [&](uint16_t type, std::string_view payload) {
                                   if (type == INET_DIAG_INFO) readTcpInfo(payload, &socket);
                               });
    if (!read.ok()) return read.error();
    sockets->push_back(std::move(socket));
    return {};
}

// Puts those first that |more| holds greater, and drops what is beyond |limit|.
template <typename More>
void keepFirst(std::vector<DrwaFlow>* flows, size_t limit, More more) {
    std::sort(flows->begin(), flows->end(), more);
    if (flows->size() > limit) flows->resize(limit);
}

uint64_t queueMinUs(const DrwaSocket& socket) {
    if (socket.minRttUs == 0) return 0;
    return std::max(socket.rttUs, socket.minRttUs) - socket.minRttUs;
}

// Interfaces by index and by address, as of now.
Result<DrwaInterfaceFn> interfaces() {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) == -1) return ErrnoError() << "getifaddrs";
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, freeifaddrs);
    std::map<std::string, std::string> byAddress;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr) continue;
        uint32_t address[4] = {};
        const int family = one->ifa_addr->sa_family;
        if (family == AF_INET) {
            memcpy(address, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                   sizeof(in_addr));
        } else if (family == AF_INET6) {
            memcpy(address, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr,
                   sizeof(in6_addr));
        } else {
            continue;
        }
        byAddress.emplace(addressBytes(family, address), one->ifa_name);
    }
    return [byAddress](uint32_t ifIndex, const std::string& localAddress) -> std::string {
        char name[IF_NAMESIZE];
        if (ifIndex != 0 && if_indextoname(ifIndex, name) != nullptr) return name;
        const auto found = byAddress.find(localAddress);
        return found == byAddress.end() ? "" : found->second;
    };
}

}  // namespace

Result<void> dumpEstablished(uint8_t family, const DrwaReaderFn& reader) {
    inet_diag_req_v2 request = {};
    request.sdiag_family = family;
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
    request.idiag_states = 1 << kEstablished;
    return askNetlink(
            kWho, NETLINK_SOCK_DIAG,
            netlinkMessage(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, bytesOf(request)),
            reader);
}

Result<bool> parseDrwaSockets(std::string_view datagram, const DrwaInterfaceFn& interfaceOf,
                              std::vector<DrwaSocket>* sockets) {
    return readMessages(kWho, datagram, [&](uint16_t type, std::string_view body) -> Result<void> {
        if (type != SOCK_DIAG_BY_FAMILY) return {};
        return parseSocket(body, interfaceOf, sockets);
    });
}

Result<DrwaSnapshot> readDrwaSockets() {
    auto interfaceOf = interfaces();
    if (!interfaceOf.ok()) return interfaceOf.error();
    DrwaSnapshot snapshot = {.time = std::chrono::steady_clock::now(), .sockets = {}};
    for (const uint8_t family : {AF_INET, AF_INET6}) {
        auto dumped = dumpEstablished(family, [&](std::string_view datagram) {
            return parseDrwaSockets(datagram, *interfaceOf, &snapshot.sockets);
        });
        if (!dumped.ok()) return dumped.error();
    }
    return snapshot;
}

std::vector<DrwaFlow> busiestDrwaFlows(const DrwaSnapshot& before, const DrwaSnapshot& after,
                                       size_t limit) {
    using std::chrono::duration;
    const double seconds = duration<double>(after.time - before.time).count();
    if (seconds <= 0) return {};
    std::map<uint64_t, uint64_t> receivedBefore;
    for (const DrwaSocket& socket : before.sockets) {
        receivedBefore.emplace(socket.cookie, socket.receivedBytes);
    }
    std::vector<DrwaFlow> flows;
    for (const DrwaSocket& socket : after.sockets) {
        const auto earlier = receivedBefore.find(socket.cookie);
        if (earlier == receivedBefore.end() || socket.receivedBytes <= earlier->second) continue;
        const double bytesPerSecond = (socket.receivedBytes - earlier->second) / seconds;
        DrwaFlow flow = {socket, 8 * bytesPerSecond, queueMinUs(socket), 0};
        if (socket.minRttUs != 0) {
            const double windowUs = socket.windowBytes / bytesPerSecond * 1e6;
            flow.queueMaxUs = std::max<double>(flow.queueMinUs, windowUs - socket.minRttUs);
        }
        flows.push_back(std::move(flow));
    }
    keepFirst(&flows, limit, [](const DrwaFlow& a, const DrwaFlow& b) {
        return a.bitsPerSecond > b.bitsPerSecond;
    });
    return flows;
}

std::vector<DrwaFlow> receivingDrwaFlows(const DrwaSnapshot& now, size_t limit) {
    std::vector<DrwaFlow> flows;
    for (const DrwaSocket& socket : now.sockets) {
        if (socket.receivedBytes == 0 || socket.quietMs > kReceivingMs) continue;
        flows.push_back({socket, 0, queueMinUs(socket), 0});
    }
    keepFirst(&flows, limit, [](const DrwaFlow& a, const DrwaFlow& b) {
        return a.socket.receivedBytes > b.socket.receivedBytes;
    });
    return flows;
}

std::string toString(const DrwaFlow& flow) {
    const DrwaSocket& socket = flow.socket;
    const bool rateIsKnown = flow.bitsPerSecond > 0;
    const std::string received =
            rateIsKnown ? StringPrintf("rate=%.2fMb/s", flow.bitsPerSecond / 1e6)
                        : StringPrintf("received=%" PRIu64 "B", socket.receivedBytes);
    const std::string queue =
            rateIsKnown ? StringPrintf("=%.1f..%.1f", flow.queueMinUs / 1e3, flow.queueMaxUs / 1e3)
                        : StringPrintf(">=%.1f", flow.queueMinUs / 1e3);
    return StringPrintf("%s from %s uid=%u %s window%s%uB rtt=%.1fms minRtt=%.1fms queue%sms",
                        socket.local.c_str(), socket.remote.c_str(), socket.uid, received.c_str(),
                        socket.windowIsLimit ? "<=" : "=", socket.windowBytes, socket.rttUs / 1e3,
                        socket.minRttUs / 1e3, queue.c_str());
}

}  // namespace net
}  // namespace android
