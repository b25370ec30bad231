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

#ifndef FAKE_PROC_H
#define FAKE_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <thread>

#include <android-base/file.h>
#include <android-base/logging.h>
#include <android-base/unique_fd.h>

namespace android {
namespace net {

// A folder like /proc, with the interfaces that a test gives it.
class FakeProc {
  public:
    FakeProc() {
        for (const char* folder : {"/net", "/sys", "/sys/net", "/sys/net/ipv4"}) {
            CHECK_EQ(mkdir((path() + folder).c_str(), 0755), 0);
        }
        CHECK_EQ(mkdir(conf("").c_str(), 0755), 0);
        for (const char* name : {"all", "default", "lo"}) addInterface(name);
    }

    std::string path() const { return mFolder.path; }

    // An interface as on a kernel without DRWA.
    void addInterface(const std::string& ifName) {
        CHECK_EQ(mkdir(conf(ifName).c_str(), 0755), 0);
        CHECK(base::WriteStringToFile("0\n", conf(ifName) + "/forwarding"));
    }

    // An interface as on a kernel that knows lambda alone, and no queues.
    void addKnob(const std::string& ifName, const std::string& content = "0\n") {
        addInterface(ifName);
        write(ifName, content);
    }

    void addKnobs(const std::string& ifName, const std::string& lambda, const std::string& queue) {
        addKnob(ifName, lambda);
        CHECK(base::WriteStringToFile(queue, queueKnob(ifName)));
    }

    // A queue that can be read, and refuses to be written with EPERM, even by root.
    void sealQueue(const std::string& ifName) {
        const std::string content = readQueue(ifName);
        CHECK_EQ(unlink(queueKnob(ifName).c_str()), 0);
        linkToMemory(ifName + "'s queue", queueKnob(ifName), content);
        seal(ifName + "'s queue");
    }

    // A knob that can be read, and refuses to be written with EPERM, even by root.
    void addSealedKnob(const std::string& ifName, const std::string& content = "0\n") {
        addSealableKnob(ifName, content);
        seal(ifName);
    }

    // A knob that seal() makes such a one.
    void addSealableKnob(const std::string& ifName, const std::string& content = "0\n") {
        addInterface(ifName);
        linkToMemory(ifName, knob(ifName), content);
    }

    void seal(const std::string& ifName) {
        const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
        CHECK_NE(fcntl(mSealable.at(ifName), F_ADD_SEALS, seals), -1);
    }

    // A knob of 0 that is read once, and then takes nothing before |first| has returned, which has
    // to wait for something that is written after that. Who writes waits for the thread.
    std::thread addSlowKnob(const std::string& ifName, std::function<void()> first) {
        addInterface(ifName);
        CHECK_EQ(mkfifo(knob(ifName).c_str(), 0600), 0);
        return std::thread([path = knob(ifName), first, &reader = mSlowReader] {
            CHECK(base::WriteStringToFile("0\n", path));
            first();
            reader.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
        });
    }

    // A knob of 0 that is gone once it has been read; |meanwhile| is called while it is read.
    // Whoever reads it waits for the thread, and the thread for it.
    std::thread addFleetingKnob(const std::string& ifName, std::function<void()> meanwhile = {}) {
        addInterface(ifName);
        CHECK_EQ(mkfifo(knob(ifName).c_str(), 0600), 0);
        return std::thread([path = knob(ifName), meanwhile] {
            const base::unique_fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
            CHECK_EQ(unlink(path.c_str()), 0);
            if (meanwhile) meanwhile();
            CHECK(base::WriteStringToFd("0\n", fd));
        });
    }

    // What becomes of an interface that loses its knob alone, as while it is renamed.
    void removeKnob(const std::string& ifName) { CHECK_EQ(unlink(knob(ifName).c_str()), 0); }

    bool hasKnob(const std::string& ifName) const {
        return access(knob(ifName).c_str(), F_OK) == 0;
    }

    void removeInterface(const std::string& ifName) {
        unlink(knob(ifName).c_str());
        unlink(queueKnob(ifName).c_str());
        unlink((conf(ifName) + "/forwarding").c_str());
        CHECK_EQ(rmdir(conf(ifName).c_str()), 0);
    }

    // In one step, so that nobody reads an empty knob.
    void write(const std::string& ifName, const std::string& content) {
        const std::string next = knob(ifName) + ".next";
        CHECK(base::WriteStringToFile(content, next));
        CHECK_EQ(rename(next.c_str(), knob(ifName).c_str()), 0);
    }

    // What a knob holds; empty without it.
    std::string read(const std::string& ifName) const {
        std::string content;
        base::ReadFileToString(knob(ifName), &content, true /* follow_symlinks */);
        return content;
    }

    // What a knob of the queue holds; empty without it.
    std::string readQueue(const std::string& ifName) const {
        std::string content;
        base::ReadFileToString(queueKnob(ifName), &content, true /* follow_symlinks */);
        return content;
    }

    void writeCounters(const std::string& content) {
        CHECK(base::WriteStringToFile(content, path() + "/net/tcp_drwa"));
    }

  private:
    std::string conf(const std::string& ifName) const {
        return path() + "/sys/net/ipv4/conf/" + ifName;
    }
    std::string knob(const std::string& ifName) const { return conf(ifName) + "/tcp_drwa_lambda"; }
    std::string queueKnob(const std::string& ifName) const {
        return conf(ifName) + "/tcp_drwa_queue";
    }

    // Makes a file of what seal() finds by |name|.
    void linkToMemory(const std::string& name, const std::string& file,
                      const std::string& content) {
        auto& fd = mSealable[name];
        fd.reset(memfd_create("sealable", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        CHECK(base::WriteStringToFd(content, fd));
        const std::string target = "/proc/self/fd/" + std::to_string(fd.get());
        CHECK_EQ(symlink(target.c_str(), file.c_str()), 0);
    }

    TemporaryDir mFolder;
    std::map<std::string, base::unique_fd> mSealable;
    base::unique_fd mSlowReader;
};

}  // namespace net
}  // namespace android

#endif  // FAKE_PROC_H
