# SPDX-License-Identifier: Apache-2.0
"""How the platform's loader comes to the programs of a host that cannot change its module.

Models have what the places are of: a table of sections, and the folders with what they allow. What
the description makes of a model is compiled and run. The originals are the trees of releases.toml.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from drwatool import trees
from drwatool.described import RefusedError, place, read_series
from placing import assert_reverts, placed

STEPS = read_series(*trees.described_in("system_bpf"))
RULE = "drwa/Android.bp"
TYPES = """\
#include <stdio.h>
#include <string.h>

enum bpf_prog_type {
    BPF_PROG_TYPE_UNSPEC,
    BPF_PROG_TYPE_SOCKET_FILTER,
    BPF_PROG_TYPE_SCHED_CLS,
    BPF_PROG_TYPE_PERF_EVENT,
};
enum bpf_attach_type { BPF_ATTACH_TYPE_UNSPEC };
enum class domain { platform, vendor };
#define arraysize(array) (sizeof(array) / sizeof(*(array)))
#define domainToBitmask(which) (1ull << static_cast<int>(which))
struct Location {
    const char* dir;
    const char* prefix;
    unsigned long long allowedDomainBitmask = 0;
    const bpf_prog_type* allowedProgTypes;
    size_t allowedProgTypesLength;
};
"""
SECTIONS = """\
struct sectionType {
    const char* name;
    bpf_prog_type type;
    bpf_attach_type expected_attach_type = BPF_ATTACH_TYPE_UNSPEC;
};
sectionType sectionNameTypes[] = {
        {"perf_event/",    BPF_PROG_TYPE_PERF_EVENT%s},
        {"skfilter/",      BPF_PROG_TYPE_SOCKET_FILTER%s},
};
"""
FOLDERS = """\
constexpr bpf_prog_type kPlatformAllowedProgTypes[] = {
        BPF_PROG_TYPE_PERF_EVENT,
        BPF_PROG_TYPE_SOCKET_FILTER,
};

// What a vendor may
constexpr bpf_prog_type kVendorAllowedProgTypes[] = {
        BPF_PROG_TYPE_SOCKET_FILTER,
};

const Location locations[] = {
        // The system
        {
                .dir = "/system/etc/bpf/",
                .prefix = "",
%s                .allowedProgTypes = kPlatformAllowedProgTypes,
                .allowedProgTypesLength = arraysize(kPlatformAllowedProgTypes),
        },
        // The vendor
        {
                .dir = "/vendor/etc/bpf/",
                .prefix = "vendor/",
%s                .allowedProgTypes = kVendorAllowedProgTypes,
                .allowedProgTypesLength = arraysize(kVendorAllowedProgTypes),
        },
};
"""
# Prints where the section of each argument is loaded from, and pinned.
MAIN = """\
int main(int argc, char* argv[]) {
    for (int i = 1; i < argc; i++) {
        bpf_prog_type type = BPF_PROG_TYPE_UNSPEC;
        for (const auto& each : sectionNameTypes) {
            if (!strncmp(argv[i], each.name, strlen(each.name))) type = each.type;
        }
        for (const auto& location : locations) {
            for (size_t j = 0; type && j < location.allowedProgTypesLength; j++) {
                if (location.allowedProgTypes[j] != type) continue;
                printf("%s %s %s\\n", argv[i], location.dir, location.prefix);
            }
        }
    }
}
"""
ATTACH = ", BPF_ATTACH_TYPE_UNSPEC"
DOMAIN = "                .allowedDomainBitmask = domainToBitmask(domain::{}),\n"


@dataclass(frozen=True)
class Release:
    """Where a tree of it has both, and how."""

    sections: str
    folders: str
    attach: str = ""
    domains: bool = False

    @property
    def files(self) -> dict[str, str]:
        domains = tuple(
            DOMAIN.format(name) if self.domains else "" for name in ("platform", "vendor")
        )
        files = {self.sections: SECTIONS % (self.attach, self.attach)}
        files[self.folders] = files.get(self.folders, "") + FOLDERS % domains
        return files


RELEASES = {
    "14": Release("libbpf_android/Loader.cpp", "bpfloader/BpfLoader.cpp", ATTACH, True),
    "15": Release("loader/Loader.cpp", "loader/BpfLoader.cpp", ATTACH),
    "15 QPR1 to 16": Release("loader/Loader.cpp", "loader/Loader.cpp"),
}


def loaded(files: dict[str, str], release: Release, folder: Path) -> list[str]:
    """Where a loader of these files takes each kind of program from."""
    text = "".join(files[path] for path in dict.fromkeys([release.sections, release.folders]))
    (folder / "loader.cpp").write_text(TYPES + text + MAIN)
    command = ["c++", "-std=c++20", "-Wall", "-Werror", "loader.cpp", "-o", "loader"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    programs = ["schedcls/ingress_drwa", "skfilter/any", "perf_event/any"]
    done = subprocess.run(
        [folder / "loader", *programs], capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("name", RELEASES)
def test_ours_alone_is_loaded_from_our_folder(name: str, tmp_path: Path) -> None:
    release = RELEASES[name]
    before = loaded(release.files, release, tmp_path)
    assert not any("schedcls" in line for line in before)
    _, after = placed(STEPS, release.files)
    lines = loaded(after, release, tmp_path)
    assert [line for line in lines if line not in before] == [
        "schedcls/ingress_drwa /system/etc/bpf/drwa/ "
    ]
    assert [line for line in lines if line in before] == before


@pytest.mark.parametrize("name", RELEASES)
def test_the_object_goes_where_the_loader_looks(name: str) -> None:
    series, after = placed(STEPS, RELEASES[name].files)
    assert len(series.steps) == 2 and not series.left_out
    assert after[RULE].count("sub_dir") == 1
    assert '    sub_dir: "drwa",\n' in after[RULE]


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_as_it_was_after_a_revert(name: str) -> None:
    assert_reverts(STEPS, RELEASES[name].files)


def test_a_loader_that_nobody_has_seen_is_refused() -> None:
    """It would leave the programs out, and say nothing. That of test_listed_loader.py is known."""
    vendors = 'sectionType sectionNameTypes[] = {\n        {"skfilter/", SOCKET_FILTER},\n};\n'
    files = {"loader/bpfloader.rs": "const FILE_ARR: &[BpfFileDesc] = &[];\n"}
    with pytest.raises(RefusedError) as error:
        place(STEPS, (files | {"loader/Loader.cpp": vendors}).get)
    (refusal,) = error.value.refusals
    assert refusal.startswith("loader/Loader.cpp: the section of the programs: not found")


def test_the_pins_are_those_that_netd_opens() -> None:
    """Without a prefix, as the loader names them: the object's file, then what is in there."""
    netd = trees.TOP / "netd_patches/src/server/drwa"
    header = (netd / "DrwaPrograms.h").read_text()
    source = (netd / "DrwaPrograms.cpp").read_text()
    assert 'kPins[] = "/sys/fs/bpf/";' in header
    assert '"map_drwa_drwa_"' in source
    assert '"prog_drwa_schedcls_%s_drwa"' in source
    assert 'name: "drwa.o"' in (trees.TOP / "kernel/bpf/android/Android.bp").read_text()
