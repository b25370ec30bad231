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

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <android-base/logging.h>
#include <fuzzer/FuzzedDataProvider.h>

#include "DrwaUplink.h"

using android::base::Error;
using android::base::Result;
using android::net::bytesOf;
using android::net::DrwaReaderFn;
using android::net::DrwaUplink;
using android::net::extract;
using android::net::netlinkAttribute;
using android::net::netlinkMessage;

namespace {

// Right most of the time, or little of the rest would be reached.
std::string anyBytes(FuzzedDataProvider& data, std::string right) {
    switch (data.ConsumeIntegralInRange(0, 15)) {
        case 0:
            return data.ConsumeRandomLengthString(300);
        case 1:
            right.resize(data.ConsumeIntegralInRange<size_t>(0, right.size()));
            return right;
        default:
            return right;
    }
}

std::string anyLink(FuzzedDataProvider& data) {
    ifinfomsg info = {};
    info.ifi_index = data.ConsumeIntegralInRange(0, 3);
    info.ifi_flags = data.ConsumeBool() ? IFF_LOOPBACK : 0;
    const uint32_t queues = data.ConsumeIntegralInRange(0, 5);
    const std::string name = data.ConsumeBool() ? "rmnet0" : data.ConsumeRandomLengthString(20);
    const std::string mux = bytesOf(data.ConsumeIntegral<uint16_t>());
    const std::string kind = data.ConsumeBool() ? "rmnet" : "vlan";
    const std::string linkInfo =
            netlinkAttribute(IFLA_INFO_KIND, kind) +
            netlinkAttribute(IFLA_INFO_DATA, anyBytes(data, netlinkAttribute(IFLA_RMNET_MUX_ID,
                                                                             anyBytes(data, mux))));
    return netlinkMessage(
            RTM_NEWLINK, 0,
            anyBytes(data,
                     bytesOf(info) + netlinkAttribute(IFLA_IFNAME, anyBytes(data, name)) +
                             netlinkAttribute(IFLA_NUM_TX_QUEUES, anyBytes(data, bytesOf(queues))) +
                             netlinkAttribute(IFLA_LINKINFO, anyBytes(data, linkInfo))));
}

std::string anyQdisc(FuzzedDataProvider& data) {
    tcmsg tc = {};
    tc.tcm_ifindex = data.ConsumeIntegralInRange(0, 3);
    tc.tcm_handle = data.PickValueInArray<uint32_t>({0, 0x6d000000, 0x6d010000, 0x80010000});
    tc.tcm_parent =
            data.PickValueInArray<uint32_t>({TC_H_ROOT, 0x6d000000, 0x6d000001, 0xfffffff1});
    const std::string kind = data.PickValueInArray({"drwa_up", "mq", "fq_codel", "rmnet_sch"});
    const std::string target = bytesOf(data.ConsumeIntegral<uint32_t>());
    const std::string mux = bytesOf(data.ConsumeIntegralInRange<uint32_t>(0, 256));
    return netlinkMessage(
            RTM_NEWQDISC, 0,
            anyBytes(data,
                     bytesOf(tc) + netlinkAttribute(TCA_KIND, anyBytes(data, kind + '\0')) +
                             netlinkAttribute(
                                     TCA_OPTIONS,
                                     anyBytes(data, netlinkAttribute(1, anyBytes(data, target)) +
                                                            netlinkAttribute(2, mux))) +
                             netlinkAttribute(TCA_XSTATS, data.ConsumeRandomLengthString(100))));
}

std::string anyAnswer(FuzzedDataProvider& data, uint16_t type) {
    std::string datagram;
    while (data.ConsumeBool()) {
        datagram += type == RTM_GETLINK ? anyLink(data) : anyQdisc(data);
    }
    nlmsgerr error = {};
    error.error = -data.ConsumeIntegralInRange(-1, 140);
    const bool isDump = type == RTM_GETLINK || type == RTM_GETQDISC;
    datagram += isDump ? netlinkMessage(NLMSG_DONE, 0, "")
                       : netlinkMessage(NLMSG_ERROR, 0, anyBytes(data, bytesOf(error)));
    return anyBytes(data, datagram);
}

}  // namespace

// What a client may ask for, and any answers of the kernel.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    FuzzedDataProvider data(bytes, size);
    DrwaUplink uplink([&](const std::string& message, const DrwaReaderFn& reader) -> Result<void> {
        nlmsghdr header;
        CHECK(extract(message, &header));
        CHECK_EQ(header.nlmsg_len, message.size());
        while (data.remaining_bytes() > 0) {
            // Of just that size, for AddressSanitizer.
            const std::string answer = anyAnswer(data, header.nlmsg_type);
            const std::vector<char> exact(answer.begin(), answer.end());
            auto done = reader({exact.data(), exact.size()});
            if (!done.ok()) return done.error();
            if (*done) return {};
        }
        return Error(EPIPE) << "no more";
    });
    while (data.remaining_bytes() > 0) {
        const std::string ifName =
                data.ConsumeBool() ? "rmnet0" : data.ConsumeRandomLengthString(20);
        switch (data.ConsumeIntegralInRange(0, 4)) {
            case 0: {
                const auto set = uplink.setTarget(ifName, data.ConsumeRandomLengthString(4));
                CHECK(set.ok() || set.error().code() != 0);
                break;
            }
            case 1: {
                const auto set = uplink.setTarget(ifName, data.ConsumeIntegralInRange(-1, 210));
                CHECK(set.ok() || set.error().code() != 0);
                break;
            }
            case 2: {
                const auto target = uplink.getTarget(ifName);
                CHECK(target.ok() || target.error().code() != 0);
                break;
            }
            case 3:
                uplink.reset();
                break;
            default:
                uplink.dump([](const std::string& line) { CHECK(!line.empty()); });
        }
    }
    return 0;
}
