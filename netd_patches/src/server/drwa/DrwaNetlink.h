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

#ifndef DRWA_NETLINK_H
#define DRWA_NETLINK_H

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include <android-base/result.h>

namespace android {
namespace net {

// Netlink messages, put together and taken apart. Nothing need be aligned.

template <typename T>
std::string bytesOf(const T& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// An attribute, and a message whose header has room for no more than these.
std::string netlinkAttribute(uint16_t type, const std::string& payload);
std::string netlinkMessage(uint16_t type, uint16_t flags, const std::string& body);

// Copies a structure that may be longer or shorter than ours. What is missing stays 0. Returns
// whether it was all there.
template <typename T>
bool extract(std::string_view bytes, T* value) {
    memset(value, 0, sizeof(*value));
    // Nothing may be nowhere, which memcpy() must not be given.
    if (!bytes.empty()) memcpy(value, bytes.data(), std::min(bytes.size(), sizeof(*value)));
    return bytes.size() >= sizeof(*value);
}

// What is behind the first |count| bytes, or nothing.
std::string_view dropBytes(std::string_view bytes, size_t count);

// Gives one datagram of an answer to |reader|, and further ones until |reader| returns true or an
// error.
using DrwaReaderFn = std::function<base::Result<bool>(std::string_view datagram)>;

// Sends a message to a protocol, as NETLINK_ROUTE, and reads what the kernel answers. Returns the
// errno of a failed system call, or the reader's error. |who| is for messages, here and below.
base::Result<void> askNetlink(const char* who, int protocol, const std::string& message,
                              const DrwaReaderFn& reader);

// Takes the messages in a datagram one by one. Returns whether the answer ends here;
//   EBADMSG   the datagram, or a message in it, is cut off;
//   EINTR     the kernel says that what it lists has changed meanwhile: any of it may be missing;
//   other     the error that the kernel answers with, or that of |onMessage|.
using DrwaMessageFn = std::function<base::Result<void>(uint16_t type, std::string_view body)>;
base::Result<bool> readMessages(const char* who, std::string_view datagram,
                                const DrwaMessageFn& onMessage);

// Takes attributes one by one. EBADMSG: one of them is cut off.
using DrwaAttributeFn = std::function<void(uint16_t type, std::string_view payload)>;
base::Result<void> readAttributes(const char* who, std::string_view attributes,
                                  const DrwaAttributeFn& onAttribute);

}  // namespace net
}  // namespace android

#endif  // DRWA_NETLINK_H
