// SPDX-License-Identifier: Apache-2.0

#ifndef DRWA_CTL_H
#define DRWA_CTL_H

#include <chrono>
#include <functional>
#include <ostream>

#include "DrwaController.h"

namespace android {
namespace net {

// Waits; returns false when the user wants an end.
using DrwaWaitFn = std::function<bool(std::chrono::milliseconds)>;

// The command drwactl, whose --help is its manual. Returns its exit code: 0, 1 when the kernel
// refuses, 2 when the arguments make no sense.
int drwactl(int argc, char* const argv[], DrwaController& controller, const DrwaWaitFn& wait,
            std::ostream& out, std::ostream& err);

}  // namespace net
}  // namespace android

#endif  // DRWA_CTL_H
