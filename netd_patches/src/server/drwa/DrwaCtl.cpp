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

#include "DrwaCtl.h"

#include <getopt.h>

#include <android-base/parseint.h>
#include <json/json.h>

namespace android {
namespace net {

using base::Error;
using base::ParseInt;
using base::Result;
using std::chrono::milliseconds;

namespace {

constexpr char kHelp[] =
        R"(Usage: drwactl [--json] show [INTERFACE...]
       drwactl set INTERFACE=LAMBDA...
       drwactl [--json] [--interval MS] watch [INTERFACE...]

Shows and sets what the kernel holds the receive windows of TCP connections to.

  show   lambda of the interfaces, by default of all
  set    lambda of all the interfaces, or of none and an error. Needs root. For
         experiments: the framework sets it anew when a network changes.
  watch  show, and with it the connections that receive the most, until Ctrl-C

LAMBDA and "lambda" are in hundredths of the path's bandwidth-delay product:
0 is off, else it is from 100 to 1000. The kernel's default is 0.

  --interval MS  milliseconds from one look to the next, from 10; default: 1000
  --json         one JSON value in a line instead of text; each look is a line.
                 Rates are in bits/s, windows in bytes, times in microseconds.
  --help         this text

Of a connection's RTT there is the average and the least, of the time that its
packets wait in queues the bounds that follow from the RTT and from the window.
A window with "<=" (JSON: "window_is_limit") is a limit, as kernels before 6.2
do not tell the window itself.

Exit codes: 0 done, 1 the kernel refused, 2 wrong arguments.
)";

struct Options {
    bool json = false;
    bool help = false;
    int intervalMs = 1000;
};

Json::Value toJson(const DrwaFlow& flow) {
    const DrwaSocket& socket = flow.socket;
    Json::Value value;
    value["local"] = socket.local;
    value["remote"] = socket.remote;
    value["uid"] = socket.uid;
    value["rate_bps"] = flow.bitsPerSecond;
    value["window_bytes"] = socket.windowBytes;
    value["window_is_limit"] = socket.windowIsLimit;
    value["rtt_us"] = socket.rttUs;
    value["min_rtt_us"] = socket.minRttUs;
    value["queue_min_us"] = Json::UInt64{flow.queueMinUs};
    value["queue_max_us"] = Json::UInt64{flow.queueMaxUs};
    return value;
}

Json::Value toJson(const std::vector<DrwaLambda>& lambdas, const std::vector<DrwaFlow>& flows) {
    Json::Value interfaces(Json::arrayValue);
    for (const auto& [ifName, lambda] : lambdas) {
        Json::Value value;
        value["interface"] = ifName;
        value["lambda"] = lambda;
        value["connections"] = Json::Value(Json::arrayValue);
        for (const DrwaFlow& flow : flows) {
            if (flow.socket.ifName == ifName) value["connections"].append(toJson(flow));
        }
        interfaces.append(value);
    }
    return interfaces;
}

void print(const Options& options, const std::vector<DrwaLambda>& lambdas,
           const std::vector<DrwaFlow>& flows, std::ostream& out) {
    if (options.json) {
        Json::StreamWriterBuilder builder;
        builder["indentation"] = "";
        out << Json::writeString(builder, toJson(lambdas, flows)) << std::endl;
        return;
    }
    for (const std::string& line : DrwaController::format(lambdas, flows)) out << line << "\n";
    out << std::flush;
}

Result<std::vector<DrwaLambda>> parseSettings(const std::vector<std::string>& words) {
    std::vector<DrwaLambda> lambdas;
    for (const std::string& word : words) {
        const size_t equals = word.find('=');
        int lambda;
        if (equals == std::string::npos || !ParseInt(word.substr(equals + 1), &lambda)) {
            return Error() << "\"" << word << "\" is not INTERFACE=LAMBDA";
        }
        lambdas.push_back({word.substr(0, equals), lambda});
    }
    if (lambdas.empty()) return Error() << "set needs INTERFACE=LAMBDA";
    return lambdas;
}

Result<std::vector<DrwaLambda>> getSome(const DrwaController& controller,
                                        const std::vector<std::string>& ifNames) {
    auto lambdas = controller.getLambdas(ifNames);
    if (lambdas.ok() && lambdas->empty()) return Error() << "This kernel has no DRWA";
    return lambdas;
}

Result<void> show(const Options& options, const std::vector<std::string>& ifNames,
                  const DrwaController& controller, std::ostream& out) {
    auto lambdas = getSome(controller, ifNames);
    if (!lambdas.ok()) return lambdas.error();
    print(options, *lambdas, {}, out);
    return {};
}

Result<void> watch(const Options& options, const std::vector<std::string>& ifNames,
                   const DrwaController& controller, const DrwaWaitFn& wait, std::ostream& out) {
    auto before = controller.readSockets();
    if (!before.ok()) return before.error();
    while (wait(milliseconds(options.intervalMs))) {
        auto lambdas = getSome(controller, ifNames);
        if (!lambdas.ok()) return lambdas.error();
        auto after = controller.readSockets();
        if (!after.ok()) return after.error();
        print(options, *lambdas, busiestDrwaFlows(*before, *after, DrwaController::kMaxFlows), out);
        before = std::move(after);
    }
    return {};
}

// Returns the words that are no options.
Result<std::vector<std::string>> parseOptions(int argc, char* const argv[], Options* options) {
    const option kOptions[] = {
            {"help", no_argument, nullptr, 'h'},
            {"interval", required_argument, nullptr, 'i'},
            {"json", no_argument, nullptr, 'j'},
            {},
    };
    // From the start, also when called again.
    optind = 0;
    // Messages are ours.
    opterr = 0;
    int found;
    while ((found = getopt_long(argc, argv, "h", kOptions, nullptr)) != -1) {
        switch (found) {
            case 'h':
                options->help = true;
                break;
            case 'i':
                if (!ParseInt(optarg, &options->intervalMs, 10)) {
                    return Error() << "\"" << optarg << "\" is no interval in ms, from 10";
                }
                break;
            case 'j':
                options->json = true;
                break;
            default:
                return Error() << "\"" << argv[optind - 1] << "\" is no option, or lacks its value";
        }
    }
    return std::vector<std::string>(argv + optind, argv + argc);
}

int usage(const std::string& message, std::ostream& err) {
    err << "drwactl: " << message << "; see drwactl --help\n";
    return 2;
}

}  // namespace

int drwactl(int argc, char* const argv[], DrwaController& controller, const DrwaWaitFn& wait,
            std::ostream& out, std::ostream& err) {
    Options options;
    auto parsed = parseOptions(argc, argv, &options);
    if (!parsed.ok()) return usage(parsed.error().message(), err);
    if (options.help) {
        out << kHelp;
        return 0;
    }
    if (parsed->empty()) return usage("a command is missing", err);
    const std::string& command = parsed->front();
    const std::vector<std::string> words(parsed->begin() + 1, parsed->end());

    Result<void> done = {};
    if (command == "show") {
        done = show(options, words, controller, out);
    } else if (command == "set") {
        auto lambdas = parseSettings(words);
        if (!lambdas.ok()) return usage(lambdas.error().message(), err);
        done = controller.setLambdas(*lambdas);
    } else if (command == "watch") {
        done = watch(options, words, controller, wait, out);
    } else {
        return usage("\"" + command + "\" is no command", err);
    }
    if (done.ok()) return 0;
    err << "drwactl: " << done.error().message() << "\n";
    return 1;
}

}  // namespace net
}  // namespace android
