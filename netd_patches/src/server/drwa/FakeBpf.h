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

#ifndef FAKE_BPF_H
#define FAKE_BPF_H

#include <errno.h>
#include <fcntl.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <android-base/logging.h>

#include "DrwaBpf.h"

namespace android {
namespace net {

// A kernel's maps, programs and filters, with the interfaces that a test gives it.
class FakeBpf : public DrwaBpf {
  public:
    static constexpr uint32_t kIngressId = 11, kEgressId = 12, kPlaces = 64;

    // What a loader has pinned.
    std::map<std::string, uint32_t> valueBytes = {
            {"/sys/fs/bpf/map_drwa_drwa_devs", sizeof(DrwaBpfDev)},
            {"/sys/fs/bpf/map_drwa_drwa_queues", sizeof(DrwaBpfQueue)},
            {"/sys/fs/bpf/map_drwa_drwa_counts", sizeof(DrwaBpfCounts)},
    };
    std::map<std::string, uint32_t> programIds = {
            {"/sys/fs/bpf/prog_drwa_schedcls_ingress_drwa", kIngressId},
            {"/sys/fs/bpf/prog_drwa_schedcls_egress_drwa", kEgressId},
    };

    std::map<uint32_t, std::string> names;
    std::map<std::string, uint32_t> linkBytes;
    std::set<uint32_t> clsacts;
    // By interface and hook, at the priority.
    mutable std::map<std::pair<uint32_t, Hook>, Filter> filters;

    uint32_t now = 0;

    // Called ahead of each change, by its number from 1 on; an errno refuses it.
    std::function<int(int)> onChange = [](int) { return 0; };
    mutable int changes = 0;

    uint32_t addInterface(const std::string& ifName, uint32_t l2 = 0) {
        names[++mLastIndex] = ifName;
        linkBytes[ifName] = l2;
        return mLastIndex;
    }

    // Its filters go with it, and its entry stays.
    void removeInterface(uint32_t index) {
        names.erase(index);
        removeClsact(index);
    }

    void removeClsact(uint32_t index) {
        clsacts.erase(index);
        for (Hook hook : {Hook::kIngress, Hook::kEgress}) filters.erase({index, hook});
    }

    template <typename T>
    std::map<uint32_t, T> valuesOf(const std::string& map) const {
        std::map<uint32_t, T> values;
        for (const auto& [key, bytes] : mMaps["/sys/fs/bpf/map_drwa_drwa_" + map]) {
            CHECK(extract(bytes, &values[key]));
        }
        return values;
    }

    std::map<uint32_t, DrwaBpfDev> devs() const { return valuesOf<DrwaBpfDev>("devs"); }

    template <typename T>
    void put(const std::string& map, uint32_t key, const T& value) {
        mMaps["/sys/fs/bpf/map_drwa_drwa_" + map][key] = bytesOf(value);
    }

    bool hasProgram(uint32_t index, Hook hook) const {
        const auto filter = filters.find({index, hook});
        const uint32_t program = hook == Hook::kIngress ? kIngressId : kEgressId;
        return filter != filters.end() && filter->second.program == program;
    }

    base::Result<base::unique_fd> open(const std::string& pin) const override {
        if (!valueBytes.count(pin) && !programIds.count(pin)) {
            return base::Error(ENOENT) << "Cannot open " << pin;
        }
        base::unique_fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        CHECK(fd != -1);
        mOpen[fd] = pin;
        return fd;
    }

    base::Result<uint32_t> valueBytesOf(int map) const override {
        return valueBytes.at(mOpen.at(map));
    }

    base::Result<uint32_t> idOf(int program) const override {
        return programIds.at(mOpen.at(program));
    }

    base::Result<std::vector<uint32_t>> keysOf(int map, size_t limit) const override {
        std::vector<uint32_t> keys;
        for (const auto& [key, value] : mMaps[mOpen.at(map)]) {
            if (keys.size() < limit) keys.push_back(key);
        }
        return keys;
    }

    base::Result<void> read(int map, uint32_t key, void* value, size_t bytes) const override {
        CHECK_EQ(bytes, valueBytes.at(mOpen.at(map)));
        const auto& values = mMaps[mOpen.at(map)];
        const auto found = values.find(key);
        if (found != values.end()) {
            memcpy(value, found->second.data(), bytes);
        } else if (isArray(map)) {
            memset(value, 0, bytes);
        } else {
            return base::Error(ENOENT);
        }
        return {};
    }

    base::Result<void> write(int map, uint32_t key, const void* value,
                             size_t bytes) const override {
        CHECK_EQ(bytes, valueBytes.at(mOpen.at(map)));
        if (const int error = change()) return base::Error(error);
        auto& values = mMaps[mOpen.at(map)];
        if (isArray(map) && key >= kPlaces) return base::Error(E2BIG);
        if (!values.count(key) && values.size() == kPlaces) return base::Error(E2BIG);
        values[key] = std::string(static_cast<const char*>(value), bytes);
        return {};
    }

    base::Result<void> erase(int map, uint32_t key) const override {
        if (const int error = change()) return base::Error(error);
        return mMaps[mOpen.at(map)].erase(key) ? base::Result<void>{} : base::Error(ENOENT);
    }

    uint32_t indexOf(const std::string& ifName) const override {
        for (const auto& [index, name] : names) {
            if (name == ifName) return index;
        }
        return 0;
    }

    std::string nameOf(uint32_t index) const override {
        const auto name = names.find(index);
        return name == names.end() ? "" : name->second;
    }

    uint32_t nowUs() const override { return now; }

    base::Result<uint32_t> linkBytesOf(const std::string& ifName) const override {
        const uint32_t bytes = linkBytes.at(ifName);
        if (bytes > 14) return base::Error(ENOTSUP) << "Packets of " << ifName;
        return bytes;
    }

    base::Result<std::optional<Filter>> filterOf(uint32_t index, Hook hook) const override {
        if (!names.count(index)) return base::Error(ENODEV);
        const auto filter = filters.find({index, hook});
        if (filter == filters.end()) return std::optional<Filter>();
        return std::optional<Filter>(filter->second);
    }

    base::Result<void> addClsact(uint32_t index) const override {
        if (const int error = change()) return base::Error(error);
        if (!names.count(index)) return base::Error(ENODEV);
        return const_cast<FakeBpf*>(this)->clsacts.insert(index).second ? base::Result<void>{}
                                                                        : base::Error(EEXIST);
    }

    base::Result<void> addFilter(uint32_t index, Hook hook, int program) const override {
        if (const int error = change()) return base::Error(error);
        if (!clsacts.count(index)) return base::Error(EINVAL);
        const auto present = filters.find({index, hook});
        if (present != filters.end() && present->second.kind != "bpf") return base::Error(EINVAL);
        if (present != filters.end() && present->second.program) return base::Error(EEXIST);
        filters[{index, hook}] = {"bpf", programIds.at(mOpen.at(program))};
        return {};
    }

    base::Result<void> removeFilter(uint32_t index, Hook hook) const override {
        if (const int error = change()) return base::Error(error);
        if (!names.count(index)) return base::Error(ENODEV);
        if (!clsacts.count(index)) return base::Error(EINVAL);
        const auto egress = filters.find({index, Hook::kEgress});
        if (hook == Hook::kIngress && egress != filters.end() && egress->second.program) {
            ADD_FAILURE() << "egress is alone: it writes windows that nobody renews";
        }
        return filters.erase({index, hook}) ? base::Result<void>{} : base::Error(ENOENT);
    }

  private:
    int change() const { return onChange(++changes); }

    bool isArray(int map) const { return mOpen.at(map) != "/sys/fs/bpf/map_drwa_drwa_devs"; }

    uint32_t mLastIndex = 1;
    mutable std::map<int, std::string> mOpen;
    mutable std::map<std::string, std::map<uint32_t, std::string>> mMaps;
};

}  // namespace net
}  // namespace android

#endif  // FAKE_BPF_H
