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

#include <algorithm>
#include <optional>
#include <string_view>

#include <android-base/parseint.h>
#include <android-base/strings.h>
#include <json/json.h>

namespace android {
namespace net {

using base::Error;
using base::Join;
using base::ParseInt;
using base::Result;
using std::chrono::milliseconds;

namespace {

constexpr char kHelp[] =
        R"(Usage: drwactl [--json] show [INTERFACE...]
       drwactl set INTERFACE=LAMBDA[@QUEUE]...
       drwactl [--json] [--interval MS] watch [INTERFACE...]
       drwactl [--json] uplink [INTERFACE...]
       drwactl uplink INTERFACE=TARGET
       drwactl [--json] modem [INTERFACE...]

Shows and sets what the kernel holds the receive windows of TCP connections to,
and the queue that uploads build up in the modem.

  show   lambda of the interfaces, by default of all, their queue, and what the
         kernel has counted there
  set    lambda of all the interfaces, or of none and an error. Needs root. For
         experiments: the framework sets it anew when a network changes.
  watch  show, and with it the connections that receive the most, until Ctrl-C
  uplink the target of the interfaces, by default of all, their root qdisc, and
         what drwa_up has measured there; or sets the target of one, or fails
         and changes nothing. Needs root. For experiments, as set.
  modem  what this kernel has to tell of what waits in the modem, and of the
         interfaces, by default of all, what that depends on. Needs root.

LAMBDA and "lambda" are in hundredths of the path's bandwidth-delay product:
0 is off, else it is from 100 to 1000. The kernel's default is 0.

QUEUE and "queue" tell which interfaces share a queue of the radio's: those
with the same number. 0 is a queue of its own, and the kernel's default.
Without @QUEUE, set leaves it as it is. A kernel with older patches knows none.

TARGET and "uplink" tell how long packets may wait in the modem on their way up:
milliseconds from 5 to 200, or 0, which leaves the interface's qdiscs alone, as
they are without anybody's wish. A root qdisc that somebody has set stays.

Of an uplink, "mux" is the mux_id of Qualcomm's by which drwa_up hears what the
modem's driver tells. Each transmit queue that has sent something has a line, in
which "told" is 1 where the driver tells of it. Of a modem,

  dfc_flow_ind, dfc_adjust_grant  are the driver's tracepoints that tell of
                   grants, what the modem still takes
  dfc_flow_check   is that which tells whose grant a packet uses
  rmnet_qmap_send  is its function by which a grant is asked for
  drwa_up_dfc      is DRWA's module that hears and asks
  queues, over     tell into how many queues the driver sorts, and what the
                   interface goes over
  bql              is the limit of byte queue limits, "none" where the driver
                   does not tell when bytes have left: look after an upload

and what cannot be looked for is "unknown", or null.

What is counted, since the interface came: the connections that came under
control, their rounds of about an RTT each, and the segments that offered less
than they would have ("capped"). Of the rounds, percentiles of the time that
packets waited in queues, and of the RTT without that. The kernel counts in
bins, so that a percentile is told by the edge of its bin.

  --interval MS  milliseconds from one look to the next, from 10; default: 1000
  --json         one JSON value in a line instead of text; each look is a line.
                 Rates are in bits/s, windows in bytes, times in microseconds.
                 Histograms have the count of each bin, "bin_start_us" where the
                 bins begin. "queue" and "counters" are null where the kernel
                 has none, "root" and "leaf" where there is no such qdisc, and
                 "mux", "over" and "bql_bytes" where there is none.
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

// All that there is to tell, of one moment.
struct Look {
    std::vector<DrwaLambda> lambdas;
    std::vector<DrwaCounters> counters;
    std::vector<DrwaFlow> flows = {};
};

Json::Value toJson(const std::vector<uint64_t>& bins) {
    Json::Value value(Json::arrayValue);
    for (const uint64_t count : bins) value.append(Json::UInt64{count});
    return value;
}

Json::Value toJson(const DrwaCounters& counters) {
    Json::Value value;
    value["sockets"] = Json::UInt64{counters.sockets};
    value["rounds"] = Json::UInt64{counters.rounds};
    value["capped"] = Json::UInt64{counters.capped};
    value["delay_rounds"] = toJson(counters.delayRounds);
    value["rtt_rounds"] = toJson(counters.rttRounds);
    std::vector<uint64_t> starts;
    while (starts.size() < std::max(counters.delayRounds.size(), counters.rttRounds.size())) {
        starts.push_back(drwaBinStartUs(starts.size()));
    }
    value["bin_start_us"] = toJson(starts);
    return value;
}

Json::Value toJson(const Look& look) {
    Json::Value interfaces(Json::arrayValue);
    for (const auto& [ifName, lambda, queue] : look.lambdas) {
        Json::Value value;
        value["interface"] = ifName;
        value["lambda"] = lambda;
        value["queue"] = queue ? Json::Value(*queue) : Json::Value();
        value["counters"] = Json::Value();
        for (const DrwaCounters& counters : look.counters) {
            if (counters.ifName == ifName) value["counters"] = toJson(counters);
        }
        value["connections"] = Json::Value(Json::arrayValue);
        for (const DrwaFlow& flow : look.flows) {
            if (flow.socket.ifName == ifName) value["connections"].append(toJson(flow));
        }
        interfaces.append(value);
    }
    return interfaces;
}

Json::Value textOrNull(const std::string& text) {
    return text.empty() ? Json::Value() : Json::Value(text);
}

Json::Value numberOrNull(uint32_t number) {
    return number == 0 ? Json::Value() : Json::Value(number);
}

Json::Value toJson(std::optional<bool> found) {
    return found ? Json::Value(*found) : Json::Value();
}

Json::Value toJson(const DrwaUpStats& stats) {
    Json::Value value;
    value["rate_bps"] = Json::UInt64{8 * stats.rate};
    value["window_bytes"] = stats.windowBytes;
    value["in_flight_bytes"] = stats.inFlightBytes;
    value["delay_us"] = stats.delayUs;
    value["rtt_us"] = stats.ageUs;
    value["phase"] = stats.phase;
    value["marks"] = stats.marks;
    value["answers"] = stats.answers;
    value["drains"] = stats.drains;
    value["jumps"] = stats.jumps;
    value["opened"] = stats.opened;
    value["shorts"] = stats.shorts;
    value["told"] = stats.told;
    return value;
}

Json::Value toJson(const std::vector<DrwaUplinkState>& states) {
    Json::Value interfaces(Json::arrayValue);
    for (const DrwaUplinkState& state : states) {
        Json::Value value;
        value["interface"] = state.ifName;
        value["target_ms"] = state.targetMs;
        value["root"] = textOrNull(state.root);
        value["leaf"] = textOrNull(state.leaf);
        value["mux"] = numberOrNull(state.mux);
        value["queues"] = Json::Value(Json::arrayValue);
        for (const auto& [number, stats] : state.queues) {
            Json::Value queue = toJson(stats);
            queue["queue"] = numberOrNull(number);
            value["queues"].append(queue);
        }
        interfaces.append(value);
    }
    return interfaces;
}

Json::Value toJson(const DrwaModemState& state) {
    Json::Value value;
    value["dfc_flow_ind"] = toJson(state.flowInd);
    value["dfc_adjust_grant"] = toJson(state.adjustGrant);
    value["dfc_flow_check"] = toJson(state.flowCheck);
    value["rmnet_qmap_send"] = toJson(state.qmapSend);
    value["drwa_up_dfc"] = toJson(state.dfc);
    value["interfaces"] = Json::Value(Json::arrayValue);
    for (const DrwaModemState::Interface& one : state.interfaces) {
        Json::Value interface;
        interface["interface"] = one.ifName;
        interface["queues"] = one.txQueues;
        interface["mux"] = numberOrNull(one.mux);
        interface["over"] = textOrNull(one.over);
        interface["bql_bytes"] = numberOrNull(one.bqlBytes.value_or(0));
        value["interfaces"].append(interface);
    }
    return value;
}

void print(const Options& options, const Json::Value& json, const std::vector<std::string>& lines,
           std::ostream& out) {
    if (options.json) {
        Json::StreamWriterBuilder builder;
        builder["indentation"] = "";
        out << Json::writeString(builder, json) << std::endl;
        return;
    }
    for (const std::string& line : lines) out << line << "\n";
    out << std::flush;
}

void print(const Options& options, const Look& look, std::ostream& out) {
    print(options, toJson(look), DrwaController::format(look.lambdas, look.counters, look.flows),
          out);
}

// Takes INTERFACE=LAMBDA[@QUEUE]. A name may have both signs, and the numbers have none.
std::optional<DrwaLambda> parseSetting(const std::string& word) {
    DrwaLambda setting;
    const size_t equals = word.rfind('=');
    if (equals == std::string::npos) return std::nullopt;
    setting.ifName = word.substr(0, equals);
    const size_t at = word.find('@', equals);
    const size_t lambdaLength = at == std::string::npos ? at : at - equals - 1;
    if (!ParseInt(word.substr(equals + 1, lambdaLength), &setting.lambda)) return std::nullopt;
    if (at == std::string::npos) return setting;
    int queue;
    if (!ParseInt(word.substr(at + 1), &queue)) return std::nullopt;
    setting.queue = queue;
    return setting;
}

Result<std::vector<DrwaLambda>> parseSettings(const std::vector<std::string>& words) {
    std::vector<DrwaLambda> lambdas;
    for (const std::string& word : words) {
        const auto setting = parseSetting(word);
        if (!setting) return Error() << "\"" << word << "\" is not INTERFACE=LAMBDA[@QUEUE]";
        lambdas.push_back(*setting);
    }
    if (lambdas.empty()) return Error() << "set needs INTERFACE=LAMBDA[@QUEUE]";
    return lambdas;
}

Result<Look> look(const DrwaController& controller, const std::vector<std::string>& ifNames) {
    auto lambdas = controller.getLambdas(ifNames);
    if (!lambdas.ok()) return lambdas.error();
    if (lambdas->empty()) return Error() << "This kernel has no DRWA";
    auto counters = controller.readCounters();
    if (!counters.ok()) return counters.error();
    return Look{*lambdas, *counters};
}

Result<void> show(const Options& options, const std::vector<std::string>& ifNames,
                  const DrwaController& controller, std::ostream& out) {
    auto now = look(controller, ifNames);
    if (!now.ok()) return now.error();
    print(options, *now, out);
    return {};
}

Result<void> watch(const Options& options, const std::vector<std::string>& ifNames,
                   const DrwaController& controller, const DrwaWaitFn& wait, std::ostream& out) {
    auto before = controller.readSockets();
    if (!before.ok()) return before.error();
    while (wait(milliseconds(options.intervalMs))) {
        auto now = look(controller, ifNames);
        if (!now.ok()) return now.error();
        auto after = controller.readSockets();
        if (!after.ok()) return after.error();
        now->flows = busiestDrwaFlows(*before, *after, DrwaController::kMaxFlows);
        print(options, *now, out);
        before = std::move(after);
    }
    return {};
}

Result<void> showUplinks(const Options& options, const std::vector<std::string>& ifNames,
                         const DrwaUplink& uplink, std::ostream& out) {
    auto states = uplink.getStates(ifNames);
    if (!states.ok()) return states.error();
    print(options, toJson(*states), DrwaUplink::format(*states), out);
    return {};
}

Result<void> showModem(const Options& options, const std::vector<std::string>& ifNames,
                       const DrwaUplink& uplink, const DrwaModem& modem, std::ostream& out) {
    auto links = uplink.getLinks();
    if (!links.ok()) return links.error();
    auto state = modem.read(*links, ifNames);
    if (!state.ok()) return state.error();
    print(options, toJson(*state), DrwaModem::format(*state), out);
    return {};
}

// Whether one word is the other with at most so many letters more, less or changed.
bool isNear(std::string_view one, std::string_view other, size_t edits) {
    while (!one.empty() && !other.empty() && one[0] == other[0]) {
        one.remove_prefix(1);
        other.remove_prefix(1);
    }
    if (one.empty() || other.empty()) return one.size() + other.size() <= edits;
    return edits > 0 &&
           (isNear(one.substr(1), other, edits - 1) || isNear(one, other.substr(1), edits - 1) ||
            isNear(one.substr(1), other.substr(1), edits - 1));
}

// What is wrong with a word that is none of these names, and which one or two may be meant.
std::string unknown(const std::string& word, const std::vector<std::string>& names,
                    const std::string& otherwise) {
    const std::string quoted = "\"" + word + "\" is ";
    const std::string given = word.substr(0, word.find('='));
    for (size_t edits = 1; edits <= 2; edits++) {
        std::vector<std::string> meant;
        for (const std::string& name : names) {
            const bool begins = !given.empty() && name.rfind(given, 0) == 0;
            // Half of a short name is any word, and a name itself lacks something else.
            if (given != name && edits <= name.size() / 2 &&
                (begins || isNear(given, name, edits))) {
                meant.push_back(name);
            }
        }
        meant.resize(std::min<size_t>(meant.size(), 2));
        if (!meant.empty()) return quoted + "unknown: did you mean " + Join(meant, " or ") + "?";
    }
    return quoted + otherwise;
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
                return Error() << unknown(argv[optind - 1], {"--help", "--interval", "--json"},
                                          "no option, or lacks its value");
        }
    }
    return std::vector<std::string>(argv + optind, argv + argc);
}

int usage(const std::string& message, std::ostream& err) {
    // A question is the help.
    err << "drwactl: " << message << (message.back() == '?' ? "\n" : "; see drwactl --help\n");
    return 2;
}

}  // namespace

int drwactl(int argc, char* const argv[], DrwaController& controller, DrwaUplink& uplink,
            const DrwaModem& modem, const DrwaWaitFn& wait, std::ostream& out, std::ostream& err) {
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
    } else if (command == "uplink" && words.size() == 1 &&
               words[0].rfind('=') != std::string::npos) {
        const size_t equals = words[0].rfind('=');
        done = uplink.setTarget(words[0].substr(0, equals), words[0].substr(equals + 1));
    } else if (command == "uplink") {
        done = showUplinks(options, words, uplink, out);
    } else if (command == "modem") {
        done = showModem(options, words, uplink, modem, out);
    } else {
        return usage(unknown(command, {"show", "set", "watch", "uplink", "modem"}, "no command"),
                     err);
    }
    if (done.ok()) return 0;
    err << "drwactl: " << done.error().message() << "\n";
    return 1;
}

}  // namespace net
}  // namespace android
