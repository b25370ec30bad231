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

#ifndef DRWA_CTL_H
#define DRWA_CTL_H

#include <chrono>
#include <functional>
#include <ostream>

#include "DrwaController.h"
#include "DrwaModem.h"
#include "DrwaUplink.h"

namespace android {
namespace net {

// Waits; returns false when the user wants an end.
using DrwaWaitFn = std::function<bool(std::chrono::milliseconds)>;

// The command drwactl, whose --help is its manual. Returns its exit code: 0, 1 when the kernel
// refuses, 2 when the arguments make no sense.
int drwactl(int argc, char* const argv[], DrwaController& controller, DrwaUplink& uplink,
            const DrwaModem& modem, const DrwaWaitFn& wait, std::ostream& out, std::ostream& err);

}  // namespace net
}  // namespace android

#endif  // DRWA_CTL_H
