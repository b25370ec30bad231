# SPDX-License-Identifier: GPL-2.0-only
"""The programs in the forms of Android's loaders, without a tree of its."""

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from objects import sections, visited, why_not

KERNEL = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Object:
    path: Path
    programs: set[str]  # the sections of what the kernel runs


# What drwa.c takes from the headers of Android's module, whose own form needs a tree of it
# (frameworks/series/tests): of what all of them have, and of each kind.
COMMON = """
#define SECTION(name) __attribute__((section(name), used))
#define AID_ROOT 0
#define AID_SYSTEM 1000
struct kver_uint { unsigned int kver; };
#define KVER_(v) ((struct kver_uint){ .kver = (v) })
#define KVER(a, b, c) KVER_(((a) << 24) + ((b) << 16) + (c))
#define KVER_4_14 KVER(4, 14, 0)
#define KVER_INF KVER_(0xFFFFFFFFu)
static void *(*bpf_map_lookup_elem_unsafe)(const void *map, const void *key) = (void *)1;
static int (*bpf_map_update_elem_unsafe)(const void *map, const void *key, const void *value,
	unsigned long long flags) = (void *)2;
static int (*bpf_map_delete_elem_unsafe)(const void *map, const void *key) = (void *)3;
static unsigned long long (*bpf_ktime_get_ns)(void) = (void *)5;
#define LICENSE(name) char _license[] SECTION("license") = (name)
#include <linux/bpf.h>
"""
# Until Android 16 QPR1
OLD = """
#define BPFLOADER_MAX_VER 0x10000u
struct bpf_map_def {
	unsigned int type, key_size, value_size, max_entries, map_flags, uid, gid, mode;
	unsigned int bpfloader_min_ver, bpfloader_max_ver, min_kver, max_kver;
	char selinux_context[32], pin_subdir[32];
};
#define BPF_ANNOTATE_KV_PAIR(name, id, what) struct annotate_ ## name { id key; what value; }
#define DEFINE_OPTIONAL_BPF_PROG_KVER(hook, uid, gid, name, min) \\
	const unsigned int SECTION("progs") name ## _def = BPFLOADER_MIN_VER; \\
	SECTION(hook) int name
"""
# Since 16 QPR2; VERSION is the macro that an object has to have.
NEW = """
#ifndef BPF_OBJ_NAME
#error "no name"
#endif
#define IS_NET_SHARED(folder) _Static_assert(!__builtin_strcmp(folder, "net_shared"), "folder")
#define BPF_PROG_TYPE_schedcls BPF_PROG_TYPE_SCHED_CLS
struct bpf_map_def { int min; char pin_location[70]; };
struct bpf_prog_def { int type, min; char pin_location[70]; };
#define DEFINE_BPF_MAP_GRW(name, kind, id, what, entries, group) \\
	IS_NET_SHARED(DEFAULT_BPF_PIN_SUBDIR); \\
	const struct bpf_map_def SECTION(".android_maps") name ## _def = { VERSION, \\
		"/sys/fs/bpf/" DEFAULT_BPF_PIN_SUBDIR "/map_" BPF_OBJ_NAME "_" #name }; \\
	struct { int (*type)[BPF_MAP_TYPE_ ## kind]; __typeof__(id) *key; __typeof__(what) *value; \\
		int (*max_entries)[entries]; } name SECTION(".maps"); \\
	static inline __attribute__((unused)) what *bpf_ ## name ## _lookup_elem(const id *key) \\
	{ return bpf_map_lookup_elem_unsafe(&name, key); };
#define DEFINE_BPF_PROG_KVER(TYPE, NAME, VER, group, min) \\
	const struct bpf_prog_def SECTION(".android_progs") TYPE ## _ ## NAME ## _ ## VER ## _def = { \\
		BPF_PROG_TYPE_ ## TYPE, VERSION, "/sys/fs/bpf/" DEFAULT_BPF_PIN_SUBDIR "/prog_" \\
		BPF_OBJ_NAME "_" #TYPE "_" #NAME }; \\
	SECTION(#TYPE "/" #NAME "$" #VER) long TYPE ## _ ## NAME ## _ ## VER
"""
OLD_PROGRAMS = {"schedcls/ingress_drwa", "schedcls/egress_drwa"}
NEW_PROGRAMS = {f"{name}$" for name in OLD_PROGRAMS}
HEADERS = {
    "14": ("#define BPFLOADER_T_VERSION 19u\n" + OLD, OLD_PROGRAMS),
    "15 to 16 QPR1": ("#define BPFLOADER_MAINLINE_T_VERSION (42u + 1u)\n" + OLD, OLD_PROGRAMS),
    "16 QPR2": (
        "#define BPFLOADER_MAINLINE_T_VERSION 3300\n#define VERSION BPFLOADER_MIN_VER\n" + NEW,
        NEW_PROGRAMS,
    ),
    "17": (
        "#define NETBPFLOAD_T_VER 3300\n#define VERSION NETBPFLOAD_MINAPI_VER\n" + NEW,
        NEW_PROGRAMS,
    ),
}
# The policy looks for these: DrwaBpfKnobs.PATH.
PINS = "/sys/fs/bpf/net_shared/"
MAPS = ("devs", "queues", "counts", "flows", "udp")
# Of OLD's struct bpf_map_def.
MAP_BYTES = 112
FOLDERS_AT = 48


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Object:
    """From the files that the patches put there; some names are macros there, and not here."""
    header, programs = HEADERS[request.param]
    folder = tmp_path_factory.mktemp("android")
    top = KERNEL.parent
    series = top / "frameworks/series/packages_modules_Connectivity/0004-drwa-bpf/places.toml"
    module = folder / "drwa/bpf"
    for source, target in tomllib.loads(series.read_text())["copy"].items():
        to = folder / target
        to.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (top / source).is_dir() else shutil.copy
        copy(top / source, to)
    (folder / "bpf_helpers.h").write_text(COMMON + header)
    found = re.findall(r'"(-[^"]+)"', (module / "Android.bp").read_text())
    # Soong gives them to a shell
    flags = [word for flag in found for word in flag.split()]
    assert "-Werror" in flags
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    command = ["clang", "--target=bpf", "-ffreestanding", "-O2", "-g", "-c", "-Wextra", *flags]
    command += ["-D__always_inline=__attribute__((__always_inline__))", f"-I{folder}"]
    command += [f"-I{module}", "-idirafter", f"/usr/include/{multiarch}"]
    command += [str(module / "drwa.c"), "-o", str(folder / "drwa.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Object(folder / "drwa.o", programs)


@pytest.mark.parametrize("compiled", HEADERS, indirect=True)
def test_androids_form_compiles(compiled: Object) -> None:
    """Loaders since 16 QPR2 abort() over a section with two slashes; all look for the relocations
    right behind it.
    """
    names = [section.name for section in sections(compiled.path) if section.data]
    assert {name for name in names if name[0] != "." and "/" in name} == compiled.programs
    for name in compiled.programs:
        assert name.count("/") == 1
        assert names[names.index(name) + 1] == f".rel{name}"


@pytest.mark.parametrize("compiled", ["14", "15 to 16 QPR1"], indirect=True)
def test_the_old_form_names_no_folder(compiled: Object) -> None:
    """The loader has it, and abort()s over an object with one of its own."""
    (maps,) = (each.data for each in sections(compiled.path) if each.name == "maps")
    defined = [maps[at : at + MAP_BYTES] for at in range(0, len(maps), MAP_BYTES)]
    assert len(defined) == len(MAPS)
    assert all(not any(each[FOLDERS_AT:]) for each in defined)


@pytest.mark.parametrize("compiled", ["16 QPR2", "17"], indirect=True)
def test_the_new_form_pins_where_the_policy_looks(compiled: Object) -> None:
    found = {section.name: section.data for section in sections(compiled.path)}
    for name in MAPS:
        assert f"{PINS}map_drwa_drwa_{name}\0".encode() in found[".android_maps"]
    for name in "ingress", "egress":
        assert f"{PINS}prog_drwa_schedcls_{name}_drwa\0".encode() in found[".android_progs"]


@pytest.mark.parametrize("compiled", ["16 QPR2", "17"], indirect=True)
def test_a_kernel_takes_the_new_form(compiled: Object) -> None:
    """Of the old one, frameworks/series/tests/test_programs.py tells."""
    if why := why_not():
        pytest.skip(why)
    assert visited(compiled.path).keys() == {"schedcls_ingress_drwa_", "schedcls_egress_drwa_"}
