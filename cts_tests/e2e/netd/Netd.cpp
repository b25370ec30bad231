// SPDX-License-Identifier: Apache-2.0
//
// What DRWA needs of netd, as a process of its own: INetd's two calls for /proc/sys/net and what it
// tells its listeners of interfaces, with the uplinks and BPF programs that take the form of such
// files; the qdisc that an interface has while it is in a network; what "dumpsys netd" prints of
// all that, and the reset at the start. A unix-domain socket stands in for binder:
//
//   request: the number of words, then the words; answer: an errno or 0, then a text.
//
// Everything ends with a NUL. After registerUnsolicitedEventListener, the connection brings events,
// in the form of requests: the listener's method, the name of an interface, and whether its link is
// up, if that is told.

#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <android-base/file.h>
#include <android-base/parseint.h>
#include <android-base/strings.h>
#include <android-base/unique_fd.h>

#include "DrwaBpf.h"
#include "DrwaController.h"
#include "DrwaNetlink.h"
#include "DrwaPrograms.h"
#include "DrwaUplink.h"

using android::base::ErrnoError;
using android::base::Error;
using android::base::Result;
using android::base::unique_fd;
using android::net::DrwaBpf;
using android::net::DrwaController;
using android::net::DrwaPrograms;
using android::net::DrwaUplink;

namespace {

using Words = std::vector<std::string>;

// As NetdNativeService and InterfaceController have it, with their errors.
Result<std::string> pathOf(const std::string& version, const std::string& which,
                           const std::string& ifName, const std::string& parameter) {
    std::string path = "/proc/sys/net/";
    if (version == "4") {
        path += "ipv4/";
    } else if (version == "6") {
        path += "ipv6/";
    } else {
        return Error(EAFNOSUPPORT) << "Bad IP version";
    }
    if (which == "1") {
        path += "conf/";
    } else if (which == "2") {
        path += "neigh/";
    } else {
        return Error(EINVAL) << "Bad category";
    }
    for (const std::string& part : {ifName, parameter}) {
        if (part.empty() || part == "." || part == ".." || part.find('/') != std::string::npos) {
            return Error(EINVAL) << "Bad path";
        }
    }
    if (ifName == "all" || ifName == "default") return Error(EINVAL) << "Bad interface";
    return path + ifName + "/" + parameter;
}

// As RouteController's maybeModifyQdiscClsact(): filters go with the qdisc.
Result<void> modifyClsact(const std::string& ifName, uint16_t type, uint16_t flags) {
    tcmsg tc = {};
    tc.tcm_family = AF_UNSPEC;
    tc.tcm_ifindex = static_cast<int>(DrwaBpf().indexOf(ifName));
    tc.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
    tc.tcm_parent = TC_H_CLSACT;
    const std::string body = android::net::bytesOf(tc) +
                             android::net::netlinkAttribute(TCA_KIND, std::string("clsact") + '\0');
    const std::string message =
            android::net::netlinkMessage(type, NLM_F_REQUEST | NLM_F_ACK | flags, body);
    return android::net::askNetlink("netd", NETLINK_ROUTE, message, [](std::string_view datagram) {
        return android::net::readMessages(
                "netd", datagram, [](uint16_t, std::string_view) -> Result<void> { return {}; });
    });
}

// The interfaces of networks that are no VPNs, by their ids.
class Networks {
  public:
    void add(const std::string& network, const std::string& ifName) {
        const std::lock_guard lock(mMutex);
        mInterfaces.emplace(network, ifName);
        tell("add clsact to " + ifName,
             modifyClsact(ifName, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL));
    }

    void destroy(const std::string& network) {
        const std::lock_guard lock(mMutex);
        const auto [begin, end] = mInterfaces.equal_range(network);
        for (auto each = begin; each != end; each++) {
            tell("take clsact from " + each->second, modifyClsact(each->second, RTM_DELQDISC, 0));
        }
        mInterfaces.erase(begin, end);
    }

  private:
    // As there: logged, and no error for whoever calls.
    static void tell(const std::string& what, const Result<void>& done) {
        if (!done.ok()) {
            fprintf(stderr, "netd: cannot %s: %s\n", what.c_str(), done.error().message().c_str());
        }
    }

    std::mutex mMutex;
    std::multimap<std::string, std::string> mInterfaces;
};

struct Controllers {
    DrwaController controller;
    DrwaUplink uplink;
    DrwaPrograms programs;
    Networks networks;
};

// As NetdNativeService's patch has it.
bool isNoFile(const Words& words, const char* name) {
    return words[1] == "4" && words[2] == "1" && words[4] == name;
}

Result<std::string> getProcSysNet(Controllers& controllers, const Words& words) {
    if (isNoFile(words, DrwaUplink::kParameter)) {
        auto target = controllers.uplink.getTarget(words[3]);
        if (!target.ok()) return target.error();
        return std::to_string(*target);
    }
    if (isNoFile(words, DrwaPrograms::kParameter)) return controllers.programs.get(words[3]);
    auto path = pathOf(words[1], words[2], words[3], words[4]);
    if (!path.ok()) return path.error();
    std::string value;
    if (!android::base::ReadFileToString(*path, &value)) return ErrnoError();
    return android::base::Trim(value);
}

Result<std::string> setProcSysNet(Controllers& controllers, const Words& words) {
    if (isNoFile(words, DrwaUplink::kParameter)) {
        auto set = controllers.uplink.setTarget(words[3], words[5]);
        if (!set.ok()) return set.error();
        return "";
    }
    if (isNoFile(words, DrwaPrograms::kParameter)) {
        auto set = controllers.programs.set(words[3], words[5]);
        if (!set.ok()) return set.error();
        return "";
    }
    auto path = pathOf(words[1], words[2], words[3], words[4]);
    if (!path.ok()) return path.error();
    if (!android::base::WriteStringToFile(words[5], *path)) return ErrnoError();
    return "";
}

Result<std::string> call(Controllers& controllers, const Words& words) {
    const std::string method = words.empty() ? "" : words[0];
    if (method == "getProcSysNet" && words.size() == 5) return getProcSysNet(controllers, words);
    if (method == "setProcSysNet" && words.size() == 6) return setProcSysNet(controllers, words);
    if (method == "networkAddInterface" && words.size() == 3) {
        controllers.networks.add(words[1], words[2]);
        return "";
    }
    if (method == "networkDestroy" && words.size() == 2) {
        controllers.networks.destroy(words[1]);
        return "";
    }
    if (method == "registerUnsolicitedEventListener" && words.size() == 1) return "";
    if (method == "dump" && words.size() == 1) {
        std::string text;
        const auto println = [&](const std::string& line) { text += line + "\n"; };
        controllers.controller.dump(println, false /* rates */);
        controllers.uplink.dump(println);
        controllers.programs.dump(println);
        return text;
    }
    return Error(EOPNOTSUPP) << "No such call";
}

using Stream = std::unique_ptr<FILE, decltype(&fclose)>;

std::optional<std::string> readWord(FILE* stream) {
    std::string word;
    for (int c; (c = getc(stream)) != EOF;) {
        if (c == '\0') return word;
        word += static_cast<char>(c);
    }
    return std::nullopt;
}

std::optional<Words> readWords(FILE* stream) {
    const auto count = readWord(stream);
    size_t left;
    if (!count || !android::base::ParseUint(*count, &left)) return std::nullopt;
    Words words;
    while (left-- > 0) {
        auto word = readWord(stream);
        if (!word) return std::nullopt;
        words.push_back(*word);
    }
    return words;
}

// The connections of those who want to hear of interfaces.
class Listeners {
  public:
    // The answer is the first that the client hears.
    void add(unique_fd client, const std::string& answer) {
        const std::lock_guard lock(mMutex);
        if (android::base::WriteStringToFd(answer, client)) mClients.push_back(std::move(client));
    }

    void tell(const Words& event) {
        std::string text = std::to_string(event.size()) + '\0';
        for (const std::string& word : event) text += word + '\0';
        const auto gone = [&](const unique_fd& client) {
            return !android::base::WriteStringToFd(text, client);
        };
        const std::lock_guard lock(mMutex);
        mClients.erase(std::remove_if(mClients.begin(), mClients.end(), gone), mClients.end());
    }

  private:
    std::mutex mMutex;
    std::vector<unique_fd> mClients;
};

unique_fd listenTo(int protocol, unsigned groups) {
    unique_fd netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, protocol));
    const sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    if (bind(netlink, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        perror("netlink");
        exit(1);
    }
    return netlink;
}

// What NetlinkHandler makes of "ACTION=add", "SUBSYSTEM=net", "INTERFACE=rmnet0" and others, each
// with a NUL at its end. It knows no action for a new name.
void onUevent(Listeners& listeners, std::string_view message) {
    std::string action, subsystem, ifName;
    while (!message.empty()) {
        const std::string line(message.substr(0, message.find('\0')));
        message.remove_prefix(std::min(line.size() + 1, message.size()));
        if (line.rfind("ACTION=", 0) == 0) action = line.substr(7);
        if (line.rfind("SUBSYSTEM=", 0) == 0) subsystem = line.substr(10);
        if (line.rfind("INTERFACE=", 0) == 0) ifName = line.substr(10);
    }
    if (subsystem != "net") return;
    if (action == "add") listeners.tell({"onInterfaceAdded", ifName});
    if (action == "remove") listeners.tell({"onInterfaceRemoved", ifName});
}

// As NetlinkEvent: any RTM_NEWLINK is the link's state.
void onRouteMessage(Listeners& listeners, const nlmsghdr* message, size_t size) {
    for (; NLMSG_OK(message, size); message = NLMSG_NEXT(message, size)) {
        if (message->nlmsg_type != RTM_NEWLINK) continue;
        const auto* info = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
        if (info->ifi_flags & IFF_LOOPBACK) continue;
        size_t left = IFLA_PAYLOAD(message);
        for (const rtattr* attribute = IFLA_RTA(info); RTA_OK(attribute, left);
             attribute = RTA_NEXT(attribute, left)) {
            if (attribute->rta_type != IFLA_IFNAME) continue;
            listeners.tell({"onInterfaceLinkStateChanged",
                            static_cast<const char*>(RTA_DATA(attribute)),
                            info->ifi_flags & IFF_LOWER_UP ? "1" : "0"});
        }
    }
}

// As NetlinkManager; does not return.
void watchInterfaces(Listeners& listeners, unique_fd uevents, unique_fd routes) {
    alignas(nlmsghdr) char message[16384];
    for (;;) {
        pollfd fds[] = {{uevents, POLLIN, 0}, {routes, POLLIN, 0}};
        if (poll(fds, std::size(fds), -1) < 0) continue;
        if (fds[0].revents) {
            const ssize_t size = recv(uevents, message, sizeof(message), 0);
            if (size > 0) onUevent(listeners, {message, static_cast<size_t>(size)});
        }
        if (fds[1].revents) {
            const ssize_t size = recv(routes, message, sizeof(message), 0);
            if (size > 0) onRouteMessage(listeners, reinterpret_cast<nlmsghdr*>(message), size);
        }
    }
}

void serve(Controllers& controllers, Listeners& listeners, unique_fd client) {
    const Stream in(fdopen(dup(client), "r"), fclose);
    while (const auto words = readWords(in.get())) {
        auto result = call(controllers, *words);
        std::string answer = std::to_string(result.ok() ? 0 : result.error().code());
        answer += '\0' + (result.ok() ? *result : result.error().message()) + '\0';
        if (*words == Words{"registerUnsolicitedEventListener"}) {
            listeners.add(std::move(client), answer);
            return;
        }
        if (!android::base::WriteStringToFd(answer, client)) return;
    }
}

}  // namespace

int main(int argc, char* argv[]) {
    sockaddr_un address = {AF_UNIX, ""};
    if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path)) {
        fprintf(stderr, "usage: drwa_netd SOCKET\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    Controllers controllers;
    // As Controllers::init()
    for (const auto& reset : {controllers.controller.reset(), controllers.uplink.reset(),
                              controllers.programs.reset()}) {
        if (!reset.ok()) fprintf(stderr, "netd: %s\n", reset.error().message().c_str());
    }

    Listeners listeners;
    std::thread(watchInterfaces, std::ref(listeners), listenTo(NETLINK_KOBJECT_UEVENT, 1),
                listenTo(NETLINK_ROUTE, RTMGRP_LINK))
            .detach();

    strcpy(address.sun_path, argv[1]);
    unlink(argv[1]);
    const unique_fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener, SOMAXCONN) != 0) {
        perror(argv[1]);
        return 1;
    }
    for (;;) {
        unique_fd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (client == -1) continue;
        std::thread(serve, std::ref(controllers), std::ref(listeners), std::move(client)).detach();
    }
}
