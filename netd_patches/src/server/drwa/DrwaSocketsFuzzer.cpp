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

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <android-base/logging.h>
#include <fuzzer/FuzzedDataProvider.h>

#include "DrwaSockets.h"

using android::net::busiestDrwaFlows;
using android::net::bytesOf;
using android::net::DrwaSnapshot;
using android::net::DrwaSocket;
using android::net::parseDrwaSockets;
using android::net::receivingDrwaFlows;
using std::chrono::microseconds;
using std::chrono::steady_clock;

namespace {

// Lengths are right most of the time, or little of the rest would be reached.
template <typename T>
T anyLength(FuzzedDataProvider& data, size_t length) {
    return data.ConsumeIntegralInRange(0, 15) == 0 ? data.ConsumeIntegral<T>() : length;
}

std::string anyAttribute(FuzzedDataProvider& data) {
    const std::string payload = data.ConsumeRandomLengthString(300);
    rtattr header = {};
    header.rta_len = anyLength<uint16_t>(data, RTA_LENGTH(payload.size()));
    header.rta_type = data.ConsumeBool() ? INET_DIAG_INFO : data.ConsumeIntegral<uint16_t>();
    std::string bytes = bytesOf(header) + payload;
    bytes.resize(RTA_ALIGN(bytes.size()));
    return bytes;
}

std::string anyMessage(FuzzedDataProvider& data) {
    std::string body = data.ConsumeBytesAsString(sizeof(inet_diag_msg));
    if (!body.empty() && data.ConsumeBool()) body[0] = data.ConsumeBool() ? AF_INET : AF_INET6;
    while (data.ConsumeBool()) body += anyAttribute(data);
    nlmsghdr header = {};
    header.nlmsg_len = anyLength<uint32_t>(data, NLMSG_LENGTH(body.size()));
    header.nlmsg_type = data.PickValueInArray<uint16_t>(
            {SOCK_DIAG_BY_FAMILY, SOCK_DIAG_BY_FAMILY, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP});
    std::string bytes = bytesOf(header) + body;
    bytes.resize(NLMSG_ALIGN(bytes.size()));
    return bytes;
}

DrwaSnapshot anySnapshot(FuzzedDataProvider& data, int64_t timeUs) {
    DrwaSnapshot snapshot = {steady_clock::time_point(microseconds(timeUs)), {}};
    // Of just that size, for AddressSanitizer.
    std::string datagram;
    while (data.ConsumeBool()) datagram += anyMessage(data);
    datagram += data.ConsumeRandomLengthString(20);
    const std::vector<char> exact(datagram.begin(), datagram.end());
    const auto done = parseDrwaSockets(
            {exact.data(), exact.size()},
            [](uint32_t ifIndex, const std::string& address) {
                CHECK(address.size() == 4 || address.size() == 16);
                return ifIndex == 0 ? "" : "rmnet0";
            },
            &snapshot.sockets);
    CHECK(done.ok() || done.error().code() != 0);
    return snapshot;
}

}  // namespace

// Two answers of the kernel to a dump, and what they make together.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    FuzzedDataProvider data(bytes, size);
    const int64_t elapsedUs = data.ConsumeIntegralInRange<int64_t>(-1, 1000000000);
    const DrwaSnapshot before = anySnapshot(data, 0);
    const DrwaSnapshot after = anySnapshot(data, elapsedUs);
    const auto flows = busiestDrwaFlows(before, after, 10);
    CHECK_LE(flows.size(), 10u);
    for (const auto& flow : flows) {
        CHECK_GT(flow.bitsPerSecond, 0);
        CHECK_LE(flow.queueMinUs, flow.queueMaxUs);
        CHECK(!toString(flow).empty());
    }
    const auto receiving = receivingDrwaFlows(after, 10);
    CHECK_LE(receiving.size(), 10u);
    for (const auto& flow : receiving) CHECK(!toString(flow).empty());
    return 0;
}
