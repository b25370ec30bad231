// SPDX-License-Identifier: Apache-2.0

#include <signal.h>

#include <iostream>

#include "DrwaCtl.h"

using android::net::DrwaController;
using android::net::drwactl;

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
    return drwactl(argc, argv, controller, waitUnlessEnded, std::cout, std::cerr);
}
