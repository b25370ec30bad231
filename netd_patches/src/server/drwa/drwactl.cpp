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

#include <signal.h>

#include <iostream>

#include "DrwaCtl.h"

using android::net::DrwaController;
using android::net::drwactl;
using android::net::DrwaModem;
using android::net::DrwaUplink;

namespace {

// Blocked, so that they end drwactl between two lines and never within one.
sigset_t endSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    return signals;
}

bool waitUnlessEnded(std::chrono::milliseconds duration) {
    const sigset_t signals = endSignals();
    const timespec timeout = {.tv_sec = duration.count() / 1000,
                              .tv_nsec = duration.count() % 1000 * 1000000};
    // It fails when time is up, and after a stop with Ctrl-Z.
    return sigtimedwait(&signals, nullptr, &timeout) == -1;
}

}  // namespace

int main(int argc, char* argv[]) {
    const sigset_t signals = endSignals();
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    DrwaController controller;
    DrwaUplink uplink;
    return drwactl(argc, argv, controller, uplink, DrwaModem(), waitUnlessEnded, std::cout,
                   std::cerr);
}
