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
#include <errno.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <android-base/unique_fd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using android::base::Result;
using android::base::unique_fd;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace android {
namespace net {
namespace {

// Bytes of struct tcp_info as of Linux 5.4 to 6.1, and 6.2.
constexpr size_t kInfoBytes = offsetof(tcp_info, tcpi_snd_wnd) + sizeof(uint32_t);
constexpr size_t kInfoBytesWithWindow = kInfoBytes + sizeof(uint32_t);

std::string netlink(uint16_t type, const std::string& body) {
    return netlinkMessage(type, 0 /* flags */, body);
}

std::string done() {
    return netlink(NLMSG_DONE, bytesOf(0));
}

tcp_info tcpInfo() {
    tcp_info info = {};
    info.tcpi_rcv_ssthresh = 65536;
    info.tcpi_rcv_rtt = 90000;
    info.tcpi_min_rtt = 60000;
    info.tcpi_bytes_received = 5'000'000'000;
    info.tcpi_last_data_recv = 1234;
    return info;
}

std::string infoBytes(const tcp_info& info, size_t size, uint32_t window = 0) {
    std::string bytes = bytesOf(info).substr(0, kInfoBytes) + bytesOf(window);
    bytes.resize(size);
    return bytes;
}

inet_diag_msg diagMessage(int family, const char* local, const char* remote) {
    inet_diag_msg message = {};
    message.idiag_family = family;
    message.idiag_uid = 10123;
    message.id.idiag_cookie[0] = 7;
    message.id.idiag_cookie[1] = 1;
    message.id.idiag_sport = htons(40000);
    message.id.idiag_dport = htons(443);
    EXPECT_EQ(inet_pton(family, local, message.id.idiag_src), 1);
    EXPECT_EQ(inet_pton(family, remote, message.id.idiag_dst), 1);
    return message;
}

std::string socketMessage(const inet_diag_msg& message, const std::string& attributes) {
    return netlink(SOCK_DIAG_BY_FAMILY, bytesOf(message) + attributes);
}

// "rmnet0" has 192.0.2.1 and 2001:db8::1, "if3" the index 3.
std::string interfaceOf(uint32_t ifIndex, const std::string& address) {
    if (ifIndex == 3) return "if3";
    char v4[4];
    char v6[16];
    inet_pton(AF_INET, "192.0.2.1", v4);
    inet_pton(AF_INET6, "2001:db8::1", v6);
    return address == std::string(v4, 4) || address == std::string(v6, 16) ? "rmnet0" : "";
}

struct Parsed {
    Result<bool> done;
    std::vector<DrwaSocket> sockets;
};

Parsed parse(const std::string& datagram) {
    // Of just that size, for AddressSanitizer.
    const std::vector<char> exact(datagram.begin(), datagram.end());
    std::vector<DrwaSocket> sockets;
    auto done = parseDrwaSockets({exact.data(), exact.size()}, interfaceOf, &sockets);
    return {std::move(done), std::move(sockets)};
}

std::string v4Socket() {
    return socketMessage(
            diagMessage(AF_INET, "192.0.2.1", "198.51.100.1"),
            netlinkAttribute(INET_DIAG_INFO, infoBytes(tcpInfo(), kInfoBytesWithWindow, 50000)));
}

}  // namespace

TEST(DrwaSocketsTest, Socket) {
    auto parsed = parse(v4Socket());
    ASSERT_TRUE(parsed.done.ok());
    EXPECT_FALSE(*parsed.done);
    ASSERT_THAT(parsed.sockets, SizeIs(1));
    const DrwaSocket& socket = parsed.sockets[0];
    EXPECT_EQ(socket.cookie, 0x100000007u);
    EXPECT_EQ(socket.uid, 10123u);
    EXPECT_EQ(socket.ifName, "rmnet0");
    EXPECT_EQ(socket.local, "192.0.2.1:40000");
    EXPECT_EQ(socket.remote, "198.51.100.1:443");
    EXPECT_EQ(socket.receivedBytes, 5'000'000'000u);
    EXPECT_EQ(socket.quietMs, 1234u);
    EXPECT_EQ(socket.windowBytes, 50000u);
    EXPECT_FALSE(socket.windowIsLimit);
    EXPECT_EQ(socket.rttUs, 90000u);
    EXPECT_EQ(socket.minRttUs, 60000u);
}

TEST(DrwaSocketsTest, Ipv6Socket) {
    auto parsed = parse(socketMessage(diagMessage(AF_INET6, "2001:db8::1", "2001:db8::2"), ""));
    ASSERT_THAT(parsed.sockets, SizeIs(1));
    EXPECT_EQ(parsed.sockets[0].ifName, "rmnet0");
    EXPECT_EQ(parsed.sockets[0].local, "[2001:db8::1]:40000");
}

TEST(DrwaSocketsTest, Ipv4InAnIpv6Socket) {
    auto parsed = parse(
            socketMessage(diagMessage(AF_INET6, "::ffff:192.0.2.1", "::ffff:198.51.100.1"), ""));
    ASSERT_THAT(parsed.sockets, SizeIs(1));
    EXPECT_EQ(parsed.sockets[0].ifName, "rmnet0");
    EXPECT_EQ(parsed.sockets[0].remote, "198.51.100.1:443");
}

TEST(DrwaSocketsTest, BoundInterfaceComesFirst) {
    auto message = diagMessage(AF_INET, "192.0.2.1", "198.51.100.1");
    message.id.idiag_if = 3;
    EXPECT_EQ(parse(socketMessage(message, "")).sockets.at(0).ifName, "if3");
}

TEST(DrwaSocketsTest, OtherFamiliesAreLeftOut) {
    auto message = diagMessage(AF_INET, "192.0.2.1", "198.51.100.1");
    message.idiag_family = AF_UNIX;
    auto parsed = parse(socketMessage(message, ""));
    EXPECT_TRUE(parsed.done.ok());
    EXPECT_THAT(parsed.sockets, IsEmpty());
}

TEST(DrwaSocketsTest, TcpInfoOfAnyKernel) {
    const auto message = diagMessage(AF_INET, "192.0.2.1", "198.51.100.1");
    for (size_t size = 0; size <= kInfoBytesWithWindow + 100; size++) {
        SCOPED_TRACE(size);
        const std::string info = infoBytes(tcpInfo(), size, 50000);
        auto parsed = parse(socketMessage(message, netlinkAttribute(INET_DIAG_INFO, info)));
        ASSERT_TRUE(parsed.done.ok());
        ASSERT_THAT(parsed.sockets, SizeIs(1));
        const DrwaSocket& socket = parsed.sockets[0];
        EXPECT_EQ(socket.windowIsLimit, size < kInfoBytesWithWindow);
        if (size >= kInfoBytesWithWindow) {
            EXPECT_EQ(socket.windowBytes, 50000u);
        } else if (size >= kInfoBytes) {
            EXPECT_EQ(socket.windowBytes, 65536u);
        }
        if (size >= kInfoBytes) EXPECT_EQ(socket.minRttUs, 60000u);
    }
}

TEST(DrwaSocketsTest, NoRttYet) {
    tcp_info info = tcpInfo();
    info.tcpi_min_rtt = UINT32_MAX;
    auto parsed =
            parse(socketMessage(diagMessage(AF_INET, "192.0.2.1", "198.51.100.1"),
                                netlinkAttribute(INET_DIAG_INFO, infoBytes(info, kInfoBytes))));
    EXPECT_EQ(parsed.sockets.at(0).minRttUs, 0u);
}

TEST(DrwaSocketsTest, SeveralMessages) {
    auto parsed = parse(v4Socket() + netlink(NLMSG_NOOP, "abc") + v4Socket() + done() + v4Socket());
    ASSERT_TRUE(parsed.done.ok());
    EXPECT_TRUE(*parsed.done);
    EXPECT_THAT(parsed.sockets, SizeIs(2));
}

TEST(DrwaSocketsTest, UnknownAttributes) {
    auto parsed = parse(socketMessage(
            diagMessage(AF_INET, "192.0.2.1", "198.51.100.1"),
            netlinkAttribute(99, "12345") +
                    netlinkAttribute(INET_DIAG_INFO,
                                     infoBytes(tcpInfo(), kInfoBytesWithWindow, 50000)) +
                    netlinkAttribute(99, std::string(kInfoBytesWithWindow, 'x'))));
    EXPECT_EQ(parsed.sockets.at(0).windowBytes, 50000u);
}

TEST(DrwaSocketsTest, ErrorOfTheKernel) {
    nlmsgerr error = {};
    error.error = -EACCES;
    auto parsed = parse(netlink(NLMSG_ERROR, bytesOf(error)));
    ASSERT_FALSE(parsed.done.ok());
    EXPECT_EQ(parsed.done.error().code(), EACCES);
    for (const int noErrno : {EACCES, -4096, INT_MIN}) {
        error.error = noErrno;
        EXPECT_EQ(parse(netlink(NLMSG_ERROR, bytesOf(error))).done.error().code(), EBADMSG);
    }
}

TEST(DrwaSocketsTest, EveryCutIsNoticed) {
    const std::string whole = v4Socket();
    for (size_t size = 0; size < whole.size(); size++) {
        auto parsed = parse(whole.substr(0, size));
        ASSERT_FALSE(parsed.done.ok()) << size;
        EXPECT_EQ(parsed.done.error().code(), EBADMSG);
    }
    // Cut within, with lengths that fit the outside.
    const inet_diag_msg message = diagMessage(AF_INET, "192.0.2.1", "198.51.100.1");
    const std::string info = netlinkAttribute(INET_DIAG_INFO, infoBytes(tcpInfo(), kInfoBytes));
    for (size_t size = 0; size < sizeof(message); size++) {
        auto parsed = parse(netlink(SOCK_DIAG_BY_FAMILY, bytesOf(message).substr(0, size)));
        ASSERT_FALSE(parsed.done.ok()) << size;
    }
    for (size_t size = sizeof(rtattr); size < info.size(); size++) {
        ASSERT_FALSE(parse(socketMessage(message, info.substr(0, size))).done.ok()) << size;
    }
}

TEST(DrwaSocketsTest, LengthsThatLie) {
    for (const uint32_t length : {0u, 15u, UINT32_MAX}) {
        std::string datagram = netlink(NLMSG_NOOP, "abc");
        memcpy(datagram.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof(length));
        EXPECT_FALSE(parse(datagram).done.ok()) << length;
    }
    for (const uint16_t length : {0, 3, 0xffff}) {
        std::string datagram = v4Socket();
        memcpy(datagram.data() + NLMSG_LENGTH(sizeof(inet_diag_msg)), &length, sizeof(length));
        EXPECT_FALSE(parse(datagram).done.ok()) << length;
    }
}

class DrwaFlowsTest : public testing::Test {
  protected:
    // A connection that received |bytes| in half a second.
    void add(uint64_t cookie, uint64_t bytes, uint32_t window = 0, uint32_t rttUs = 0,
             uint32_t minRttUs = 0) {
        DrwaSocket socket = {};
        socket.cookie = cookie;
        socket.receivedBytes = 1000;
        mBefore.sockets.push_back(socket);
        socket.receivedBytes += bytes;
        socket.windowBytes = window;
        socket.rttUs = rttUs;
        socket.minRttUs = minRttUs;
        mAfter.sockets.push_back(socket);
    }

    std::vector<DrwaFlow> flows(size_t limit = 10) {
        return busiestDrwaFlows(mBefore, mAfter, limit);
    }

    DrwaSnapshot mBefore = {steady_clock::time_point(milliseconds(1000)), {}};
    DrwaSnapshot mAfter = {steady_clock::time_point(milliseconds(1500)), {}};
};

TEST_F(DrwaFlowsTest, BusiestFirst) {
    add(1, 1000);
    add(2, 0);
    add(3, 3000);
    add(4, 2000);
    const auto all = flows();
    ASSERT_THAT(all, SizeIs(3));
    EXPECT_EQ(all[0].socket.cookie, 3u);
    EXPECT_EQ(all[0].bitsPerSecond, 48000);
    EXPECT_EQ(all[2].socket.cookie, 1u);
    EXPECT_THAT(flows(2), SizeIs(2));
}

TEST_F(DrwaFlowsTest, SocketsThatCameOrWent) {
    add(1, 1000);
    add(2, 1000);
    mBefore.sockets.erase(mBefore.sockets.begin());
    mAfter.sockets.pop_back();
    EXPECT_THAT(flows(), IsEmpty());
}

TEST_F(DrwaFlowsTest, TimeStandsStill) {
    add(1, 1000);
    mAfter.time = mBefore.time;
    EXPECT_THAT(flows(), IsEmpty());
}

TEST_F(DrwaFlowsTest, Queue) {
    // 1 MB/s: the window takes 100 ms.
    add(1, 500'000, 100'000, 90'000, 60'000);
    const auto flow = flows().at(0);
    EXPECT_EQ(flow.queueMinUs, 30'000u);
    EXPECT_EQ(flow.queueMaxUs, 40'000u);
    EXPECT_THAT(toString(flow), HasSubstr("rate=8.00Mb/s window=100000B rtt=90.0ms minRtt=60.0ms "
                                          "queue=30.0..40.0ms"));
}

TEST_F(DrwaFlowsTest, QueueOfAKernelThatTellsTheLeastRtt) {
    add(1, 500'000, 100'000, 59'000, 60'000);
    EXPECT_EQ(flows().at(0).queueMinUs, 0u);
    EXPECT_EQ(flows().at(0).queueMaxUs, 40'000u);
}

TEST_F(DrwaFlowsTest, QueueBoundsAreInOrder) {
    add(1, 500'000, 1000, 90'000, 60'000);
    EXPECT_EQ(flows().at(0).queueMinUs, 30'000u);
    EXPECT_EQ(flows().at(0).queueMaxUs, 30'000u);
}

TEST_F(DrwaFlowsTest, NoQueueWithoutRtt) {
    add(1, 500'000, 100'000, 90'000, 0);
    EXPECT_EQ(flows().at(0).queueMinUs, 0u);
    EXPECT_EQ(flows().at(0).queueMaxUs, 0u);
}

TEST_F(DrwaFlowsTest, WindowThatIsALimit) {
    add(1, 500'000, 100'000);
    mAfter.sockets[0].windowIsLimit = true;
    EXPECT_THAT(toString(flows().at(0)), HasSubstr("window<=100000B"));
}

TEST_F(DrwaFlowsTest, ReceivingNow) {
    add(1, 1000);
    add(2, 3000, 100'000, 90'000, 60'000);
    add(3, 2000);
    add(4, 9000);
    add(5, 0);
    mAfter.sockets[2].quietMs = 1000;
    mAfter.sockets[3].quietMs = 1001;
    mAfter.sockets[4].receivedBytes = 0;
    const auto all = receivingDrwaFlows(mAfter, 10);
    ASSERT_THAT(all, SizeIs(3));
    EXPECT_EQ(all[0].socket.cookie, 2u);
    EXPECT_EQ(all[1].socket.cookie, 3u);
    EXPECT_EQ(all[2].socket.cookie, 1u);
    EXPECT_THAT(toString(all[0]), HasSubstr("received=4000B window=100000B rtt=90.0ms "
                                            "minRtt=60.0ms queue>=30.0ms"));
    EXPECT_THAT(receivingDrwaFlows(mAfter, 2), SizeIs(2));
}

// The kernel that the test runs on, whatever it is.
class ThisKernelTest : public testing::TestWithParam<int> {};

TEST_P(ThisKernelTest, ReadsAConnection) {
    const int family = GetParam();
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    } address = {};
    socklen_t length = family == AF_INET ? sizeof(address.v4) : sizeof(address.v6);
    address.any.sa_family = family;
    if (family == AF_INET) {
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        address.v6.sin6_addr = in6addr_loopback;
    }
    const unique_fd listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener, &address.any, length) != 0) {
        GTEST_SKIP() << "no loopback of this family: " << strerror(errno);
    }
    ASSERT_EQ(listen(listener, 1), 0);
    ASSERT_EQ(getsockname(listener, &address.any, &length), 0);
    const unique_fd client(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client, &address.any, length), 0);
    const unique_fd server(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    const std::string text(1234, 'x');
    ASSERT_EQ(write(client, text.data(), text.size()), 1234);
    std::vector<char> received(text.size());
    ASSERT_EQ(recv(server, received.data(), received.size(), MSG_WAITALL), 1234);

    auto snapshot = readDrwaSockets();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().message();
    const uint16_t port = ntohs(family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    const std::string local = (family == AF_INET ? "127.0.0.1:" : "[::1]:") + std::to_string(port);
    int found = 0;
    for (const DrwaSocket& socket : snapshot->sockets) {
        if (socket.local != local) continue;
        found++;
        EXPECT_EQ(socket.ifName, "lo");
        EXPECT_EQ(socket.receivedBytes, 1234u);
        EXPECT_GT(socket.windowBytes, 1000u);
        EXPECT_EQ(socket.uid, getuid());
    }
    EXPECT_EQ(found, 1);
}

INSTANTIATE_TEST_SUITE_P(Families, ThisKernelTest, testing::Values(AF_INET, AF_INET6));

TEST(ThisKernelErrorTest, RefusalIsReported) {
    const auto ignore = [](std::string_view datagram) -> Result<bool> {
        std::vector<DrwaSocket> sockets;
        return parseDrwaSockets(datagram, interfaceOf, &sockets);
    };
    auto dumped = dumpEstablished(255, ignore);
    ASSERT_FALSE(dumped.ok());
    EXPECT_EQ(dumped.error().code(), EINVAL) << dumped.error().message();
}

}  // namespace net
}  // namespace android
