# SPDX-License-Identifier: GPL-2.0-only
"""The programs in the form of Android's loader, without a tree of its."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from objects import sections

KERNEL = Path(__file__).resolve().parents[2]

# What drwa.c takes from the header of Android's module, whose own form needs a tree of it
# (frameworks/series/tests).
ANDROID_HEADER = """
#define SECTION(name) __attribute__((section(name), used))
#define AID_ROOT 0
#define AID_SYSTEM 1000
#define BPFLOADER_MIN_VER 0u
#define BPFLOADER_MAX_VER 0x10000u
enum { OPTIONAL = 1, LOAD_ON_ENG = 0, LOAD_ON_USER = 0, LOAD_ON_USERDEBUG = 0 };
struct kver_uint { unsigned int kver; };
#define KVER_(v) ((struct kver_uint){ .kver = (v) })
#define KVER(a, b, c) KVER_(((a) << 24) + ((b) << 16) + (c))
#define KVER_4_14 KVER(4, 14, 0)
#define KVER_INF KVER_(0xFFFFFFFFu)
struct bpf_map_def {
	unsigned int type, key_size, value_size, max_entries, map_flags, uid, gid, mode;
	unsigned int bpfloader_min_ver, bpfloader_max_ver, min_kver, max_kver;
	char selinux_context[32];
};
#define BPF_ANNOTATE_KV_PAIR(name, id, what) struct annotate_ ## name { id key; what value; }
#define DEFINE_BPF_PROG_EXT(hook, uid, gid, name, min, max, ...) \
	SECTION("progs/" hook) int name
static void *(*bpf_map_lookup_elem_unsafe)(const void *map, const void *key) = (void *)1;
static int (*bpf_map_update_elem_unsafe)(const void *map, const void *key, const void *value,
	unsigned long long flags) = (void *)2;
static int (*bpf_map_delete_elem_unsafe)(const void *map, const void *key) = (void *)3;
static unsigned long long (*bpf_ktime_get_ns)(void) = (void *)5;
#define LICENSE(name) char _license[] SECTION("license") = (name)
#include <linux/bpf.h>
"""
ANDROID_SECTIONS = {"schedcls/ingress/drwa", "schedcls/egress/drwa"}


def test_androids_form_compiles(tmp_path: Path) -> None:
    """From the files that the patches put there; some names are macros there, and not here."""
    top = KERNEL.parent
    series = top / "frameworks/series/packages_modules_Connectivity/0004-drwa-bpf/places.toml"
    module = tmp_path / "drwa/bpf"
    for source, target in tomllib.loads(series.read_text())["copy"].items():
        to = tmp_path / target
        to.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (top / source).is_dir() else shutil.copy
        copy(top / source, to)
    (tmp_path / "bpf_helpers.h").write_text(ANDROID_HEADER)
    flags = re.findall(r'"(-[^"]+)"', (module / "Android.bp").read_text())
    assert "-Werror" in flags
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    command = [
        "clang",
        "--target=bpf",
        "-ffreestanding",
        "-O2",
        "-c",
        "-Wextra",
        *flags,
    ]
    command += ["-D__always_inline=__attribute__((__always_inline__))", f"-I{tmp_path}"]
    command += [f"-I{module}", "-idirafter", f"/usr/include/{multiarch}"]
    command += [str(module / "drwa.c"), "-o", str(tmp_path / "drwa.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = {section.name for section in sections(tmp_path / "drwa.o") if section.data}
    found = {name.removeprefix("progs/") for name in names if name.startswith("progs/")}
    assert found == ANDROID_SECTIONS
