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

#include "DrwaNetlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <vector>

#include <android-base/unique_fd.h>

namespace android {
namespace net {

using base::ErrnoError;
using base::Error;
using base::Result;
using base::unique_fd;

namespace {

// The kernel's MAX_ERRNO.
constexpr int kMaxErrno = 4095;

// The kernel fills no more than this at a time.
constexpr size_t kDatagramBytes = 32768;

std::string pad(std::string bytes) {
    bytes.resize(NLMSG_ALIGN(bytes.size()));
    return bytes;
}

}  // namespace

std::string netlinkAttribute(uint16_t type, const std::string& payload) {
    rtattr header = {};
    header.rta_len = RTA_LENGTH(payload.size());
    header.rta_type = type;
    return pad(bytesOf(header) + payload);
}

std::string netlinkMessage(uint16_t type, uint16_t flags, const std::string& body) {
    nlmsghdr header = {};
    header.nlmsg_len = NLMSG_LENGTH(body.size());
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    return pad(bytesOf(header) + body);
}

std::string_view dropBytes(std::string_view bytes, size_t count) {
    return bytes.substr(std::min(count, bytes.size()));
}

Result<void> askNetlink(const char* who, int protocol, const std::string& message,
                        const DrwaReaderFn& reader) {
    const unique_fd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, protocol));
    if (fd == -1) return ErrnoError() << who << ": socket";
    if (send(fd, message.data(), message.size(), 0) == -1) return ErrnoError() << who << ": send";
    std::vector<char> buffer(kDatagramBytes);
    while (true) {
        const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
        if (size == -1) return ErrnoError() << who << ": recv";
        auto done = reader(std::string_view(buffer.data(), size));
        if (!done.ok()) return done.error();
        if (*done) return {};
    }
}

Result<bool> readMessages(const char* who, std::string_view datagram,
                          const DrwaMessageFn& onMessage) {
    if (datagram.empty()) return Error(EBADMSG) << who << ": an empty datagram";
    while (!datagram.empty()) {
        nlmsghdr header;
        if (!extract(datagram, &header) || header.nlmsg_len < sizeof(header) ||
            header.nlmsg_len > datagram.size()) {
            return Error(EBADMSG) << who << ": a message is cut off";
        }
        if (header.nlmsg_flags & NLM_F_DUMP_INTR) {
            return Error(EINTR) << who << ": a list changed while it was read";
        }
        const std::string_view body = dropBytes(datagram.substr(0, header.nlmsg_len), NLMSG_HDRLEN);
        if (header.nlmsg_type == NLMSG_DONE) {
            // A list that failed in the middle ends with its errno; what is missing here is 0.
            int32_t error;
            extract(body, &error);
            if (error >= 0) return true;
            if (error < -kMaxErrno) return Error(EBADMSG) << who << ": an end without a code";
            return Error(-error) << who << ": a list that failed";
        }
        if (header.nlmsg_type == NLMSG_ERROR) {
            nlmsgerr error;
            if (!extract(body, &error) || error.error > 0 || error.error < -kMaxErrno) {
                return Error(EBADMSG) << who << ": an error without a code";
            }
            // 0 acknowledges.
            if (error.error == 0) return true;
            return Error(-error.error) << who;
        }
        auto taken = onMessage(header.nlmsg_type, body);
        if (!taken.ok()) return taken.error();
        datagram = dropBytes(datagram, NLMSG_ALIGN(header.nlmsg_len));
    }
    return false;
}

Result<void> readAttributes(const char* who, std::string_view attributes,
                            const DrwaAttributeFn& onAttribute) {
    rtattr header;
    while (extract(attributes, &header)) {
        if (header.rta_len < sizeof(header) || header.rta_len > attributes.size()) {
            return Error(EBADMSG) << who << ": an attribute is cut off";
        }
        onAttribute(header.rta_type & NLA_TYPE_MASK,
                    dropBytes(attributes.substr(0, header.rta_len), RTA_LENGTH(0)));
        attributes = dropBytes(attributes, RTA_ALIGN(header.rta_len));
    }
    return {};
}

}  // namespace net
}  // namespace android
