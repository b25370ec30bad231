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

#ifndef DRWA_MODEM_H
#define DRWA_MODEM_H

#include <stdint.h>

#include <optional>
#include <string>
#include <vector>

#include "DrwaUplink.h"

namespace android {
namespace net {

// What this phone's kernel has to tell of what waits in the modem; what cannot be looked for is
// absent.
struct DrwaModemState {
    // The tracepoints of Qualcomm's driver that carry grants: what the modem still takes, and that
    // less what is on its way there.
    std::optional<bool> flowInd;
    std::optional<bool> adjustGrant;
    // The tracepoint that tells which of the modem's queues a packet takes.
    std::optional<bool> flowCheck;
    // The driver's function by which a grant is asked for; before Linux 5.4 it has none.
    std::optional<bool> qmapSend;
    // DRWA's module that hears the one and asks by the other, or the same built in.
    std::optional<bool> dfc;

    struct Interface {
        std::string ifName;
        uint32_t txQueues;
        // As in DrwaLink.
        uint8_t mux;
        // What it goes over; empty: nothing, or something in another network name space.
        std::string over;
        // The largest of its queues' limits, which byte queue limits set where a driver tells them
        // when bytes have left; absent: none does, or nothing has been sent yet.
        std::optional<uint32_t> bqlBytes;
    };
    std::vector<Interface> interfaces;
};

class DrwaModem {
  public:
    // |root| stands in for / in tests.
    explicit DrwaModem(std::string root = "");

    // Looks at the kernel, and at |ifNames| of the given links; without any, at all but the
    // loopback. ENODEV: one of them is not there.
    base::Result<DrwaModemState> read(const std::vector<DrwaLink>& links,
                                      const std::vector<std::string>& ifNames) const;

    // One line for the kernel, and one for each interface.
    static std::vector<std::string> format(const DrwaModemState& state);

  private:
    bool exists(const std::string& path) const;
    std::optional<bool> hasTracepoint(const std::string& name) const;
    void readSymbols(DrwaModemState* state) const;
    std::optional<uint32_t> readBql(const std::string& ifName) const;

    const std::string mRoot;
};

}  // namespace net
}  // namespace android

#endif  // DRWA_MODEM_H
