# SPDX-License-Identifier: Apache-2.0
"""Which Android release and kernel line the trees hold, and which series belong to them."""

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drwatool.errors import UnsupportedError, UsageError
from drwatool.git import SUBMODULE, Repository

# Of this repository.
TOP = Path(__file__).resolve().parents[2]
FRAMEWORKS = TOP / "frameworks"
KERNEL = TOP / "kernel"
KERNEL_PROJECT = "kernel"
HOSTS = ("A", "B")
# The versions that INetd was frozen at, by the Android that came with them; 14 had 13 before QPR3.
INETD_VERSIONS = {13: "14", 14: "14", 15: "15", 17: "16"}
BEFORE = "13 or older"
NEWER = "newer than all known"
OLDEST_KERNEL = (4, 19)
IN_KERNEL = ("Kconfig", "Makefile", "net/ipv4")
KERNEL_SUBMODULE = re.compile(r"(?:^|/)(?:common|[^/]*kernel[^/]*)$")
# For host A's programs, which need no patch to the kernel: see kernel/bpf/android/drwa.c.
OLDEST_FOR_PROGRAMS = (4, 14)


@dataclass(frozen=True)
class Choice:
    """A release or a line, and what in the tree made it the choice."""

    name: str
    why: str


@dataclass(frozen=True)
class Kind:
    """A tree of a release that differs from the release's others."""

    name: str
    has: str = ""  # by what it is told from those that follow: "FILE: TEXT", or "!FILE: TEXT"
    series: str = ""  # the name of its series in commits, if that is not the release's
    refused: bool = False


@dataclass(frozen=True)
class Project:
    """A git tree, and the series for it."""

    name: str
    folder: Path
    series: str  # its name in commits, e.g. packages_modules_Connectivity/15
    patches: tuple[Path, ...] = ()  # made when the tree is looked at
    kinds: tuple[Kind, ...] = ()
    prefix: str = ""  # where in the git tree a kernel is, with a slash at its end
    notes: tuple[str, ...] = ()  # where the series went, and what was left out
    refusals: tuple[str, ...] = ()  # the places that the tree lacks
    untried: bool = False  # the rest goes without it where it has no place
    # By the patch's name, what a tree that has the series may have had in its place
    guesses: dict[str, list[str]] = field(default_factory=dict)
    base: str = ""  # the commit ahead of the one that brought the series' first file
    remains: bool = False  # a part of the series is there, of which no commit may tell

    @property
    def described(self) -> tuple[Path, Path]:
        """The folder that describes its series, and the one that new files are taken from."""
        return described_in(self.name)


@dataclass(frozen=True)
class Trees:
    """What a command works on."""

    android: Choice | None
    kernel: Choice | None
    projects: tuple[Project, ...]
    missing: tuple[str, ...]  # projects with a series that this AOSP tree does not hold
    needed: tuple[str, ...]  # those of them that the host is made of
    aosp_folder: Path | None
    kernel_folder: Path | None
    nearest: str = ""  # the release whose series a release gets that has none


def releases() -> dict[str, Any]:
    return tomllib.loads((FRAMEWORKS / "releases.toml").read_text())


def lines() -> dict[str, Any]:
    """The kernel lines that are built and tested here."""
    return tomllib.loads((KERNEL / "lines.toml").read_text())


def find(aosp: Path | None, kernel: Path | None, android: str | None, host: str) -> Trees:
    projects: list[Project] = []
    missing: list[str] = []
    needed: list[str] = []
    release = line = nearest = None
    if aosp is not None:
        if not aosp.is_dir():
            raise UsageError(f"{aosp}: no such folder: name the root of an AOSP tree")
        table = releases()
        if android and not android.isdecimal():
            known = ", ".join(table["releases"])
            raise UsageError(f"--android {android}: name a release by its number, as {known}")
        release = _chosen(aosp, android) if android else detect_android(aosp)
        nearest = _nearest(release.name, list(table["releases"]))
        if nearest is None:
            known = ", ".join(table["releases"])
            raise UnsupportedError(
                f"{aosp} is Android {release.name} ({release.why}); there are patches for {known}"
            )
        for name in table["releases"][nearest]:
            description = table["projects"][name]
            if description.get("host", host) != host:
                continue
            folder = aosp / description["path"]
            if folder.exists():
                entry = table["releases"][nearest][name]
                kinds = tuple(Kind(**kind) for kind in entry.get("trees", ()))
                untried = entry.get("untried", False)
                made = Project(name, folder, f"{name}/{nearest}", kinds=kinds, untried=untried)
                projects.append(made)
            else:
                missing.append(description["path"])
                needed += [description["path"]] if description.get("host") == "A" else []
        if not projects and kernel is None:
            raise UsageError(f"{aosp} holds none of {', '.join(missing)}: name the root of a tree")
    if kernel is not None:
        kernel = kernel_root(kernel)
        line = detect_kernel(kernel)
        if version_of(line.name) >= OLDEST_KERNEL:
            top = _git_top(kernel)
            prefix = "" if kernel == top else f"{kernel.relative_to(top)}/"
            projects.append(Project(KERNEL_PROJECT, top, KERNEL_PROJECT, prefix=prefix))
        elif not projects:
            raise UnsupportedError(
                f"{kernel} is Linux {line.name} ({line.why}): {too_old(line.name, host)}"
            )
    other = nearest if release and nearest and nearest != release.name else ""
    return Trees(release, line, tuple(projects), tuple(missing), tuple(needed), aosp, kernel, other)


def _nearest(name: str, known: list[str]) -> str | None:
    """The release whose series a tree gets; None if it is older than all that there is one for."""
    if name in known:
        return name
    newest = max(known, key=int)
    newer = name == NEWER or (name.isdecimal() and int(name) > int(newest))
    return newest if newer else None


def described_in(name: str) -> tuple[Path, Path]:
    """The folder that describes a project's series, and the one that new files are taken from."""
    if name == KERNEL_PROJECT:
        return KERNEL / "series", KERNEL / "src"
    folder = releases()["projects"][name].get("series", f"frameworks/series/{name}")
    return TOP / folder, TOP


def version_of(name: str) -> tuple[int, int]:
    major, minor = name.split(".")
    return int(major), int(minor)


def too_old(name: str, host: str) -> str:
    """What a kernel before the first one of the series can have in its place."""
    if version_of(name) < OLDEST_FOR_PROGRAMS:
        return "the series needs Linux 4.19 or newer, and programs need 4.14: DRWA cannot run there"
    programs = "com.android.tethering" if host == "A" else "system/bpf and system/netd"
    return (
        f"the series needs Linux 4.19 or newer; from 4.14 on the programs of {programs}, built "
        "from source, govern without it: name --aosp alone"
    )


def _git_top(folder: Path) -> Path:
    """The git tree that a kernel is in: vendors' have it in a folder."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def kernel_root(folder: Path) -> Path:
    """Kleaf checkouts keep the kernel itself in common/."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder: name the root of a kernel tree")
    for candidate in folder, folder / "common":
        if not _missing(candidate):
            return candidate
    missing = ", ".join(_missing(folder))
    advice = "; or ".join(_kernel_submodules(folder))
    advice = advice or f"name the folder that has {', '.join(IN_KERNEL)}"
    raise UsageError(f"{folder} holds no kernel source, for it lacks {missing}: {advice}")


def _missing(folder: Path) -> list[str]:
    """What a kernel's source has, and the folder has not."""
    return [name for name in IN_KERNEL if not (folder / name).exists()]


def _kernel_submodules(folder: Path) -> Iterator[str]:
    """How to get at each submodule with a kernel's name that a folder has, or is."""
    top = _git_top(folder)
    repository = Repository(top, top / ".git")
    named = repository.try_git("config", "--null", "--blob=HEAD:.gitmodules", "--list") or b""
    # .gitmodules may also name some that the tree no longer has.
    listing = os.fsdecode(repository.try_git("ls-tree", "-r", "-z", "HEAD") or b"")
    for path in re.findall(rf"(?:^|\0){SUBMODULE} [^\t]*\t([^\0]*)", listing):
        there = top / path
        if not KERNEL_SUBMODULE.search(path) or not there.is_relative_to(folder):
            continue
        if not _missing(there):
            get = ""
        elif (there / ".git").exists():
            continue
        elif b"path\n%b\0" % os.fsencode(path) in named:
            get = f"git -C {top} submodule update --init {path}, then "
        else:
            get = f"git clone its source to {there}, as .gitmodules has no URL, then "
        yield f"{path} is a submodule: {get}name --kernel {there}"


def detect_kernel(folder: Path) -> Choice:
    found = dict(
        re.findall(
            r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)$",
            (folder / "Makefile").read_text(errors="replace"),
            re.MULTILINE,
        )
    )
    if not {"VERSION", "PATCHLEVEL"} <= found.keys():
        raise UsageError(f"{folder}/Makefile has no VERSION and PATCHLEVEL: is it a kernel's?")
    why = f"its Makefile says {'.'.join(found.values())}"
    if branch := _search(folder / "build.config.constants", r"^BRANCH=(\S+)$"):
        why += f", build.config.constants {branch}"
    return Choice(f"{found['VERSION']}.{found['PATCHLEVEL']}", why)


def detect_android(aosp: Path) -> Choice:
    found = _of_build(aosp) or _of_release_configs(aosp) or _of_api(aosp) or _of_module(aosp)
    if found is None:
        raise UsageError(
            f"{aosp} does not tell its Android release: name a tree's root, or, for a part of "
            "a tree, add --android with its number"
        )
    return found


def _chosen(aosp: Path, android: str) -> Choice:
    """The release that --android names, unless the tree says that it is another one."""
    try:
        found = detect_android(aosp)
    except UsageError:
        found = None
    if found and found.name.isdecimal() and found.name != android:
        raise UsageError(f"--android {android}: {aosp} is Android {found.name} ({found.why})")
    return Choice(android, "--android says so")


def _of_level(level: str, where: str) -> Choice:
    names = {known: release for release, known in releases()["api_levels"].items()}
    unknown = NEWER if int(level) > max(names) else "of another API level"
    return Choice(names.get(int(level), unknown), f"{where} says API level {level}")


def _of_build(aosp: Path) -> Choice | None:
    name = "build/make/core/version_defaults.mk"
    level = _search(aosp / name, r"^ *PLATFORM_SDK_VERSION := (\d+)$")
    return _of_level(level, name) if level else None


def _of_release_configs(aosp: Path) -> Choice | None:
    """Later trees of Android 14, and all since; a lunched shell names the one that counts."""
    flag = "RELEASE_PLATFORM_SDK_VERSION"
    folder = aosp / "build/release"
    levels = {}
    for path in folder.glob("build_config/*.scl"):
        levels[path.stem] = _search(path, rf'"{flag}", *"(\d+)"')
    for path in folder.glob(f"flag_values/*/{flag}.textproto"):
        levels[path.parent.name] = _search(path, r'string_value: *"(\d+)"')
    wanted = os.environ.get("TARGET_RELEASE", "")
    known = {level for level in levels.values() if level}
    level = levels.get(wanted) or (known.pop() if len(known) == 1 else None)
    return _of_level(level, "build/release") if level else None


def _of_api(aosp: Path) -> Choice | None:
    name = "frameworks/base/core/java/android/os/Build.java"
    if not (aosp / name).is_file():
        return None
    text = (aosp / name).read_text(errors="replace")
    levels = re.findall(r"public static final int [A-Z_0-9]+ = (\d\d);", text)
    return _of_level(max(levels), name) if levels else None


def _of_module(aosp: Path) -> Choice | None:
    module = aosp / "packages/modules/Connectivity"
    # Since Android 16: year, quarter and API level, by which the module's loader tells releases.
    rc = "bpf/loader/netbpfload.rc"
    if level := _search(module / rc, r"^# 20\d\d [1-4] (\d+) "):
        return _of_level(level, f"packages/modules/Connectivity/{rc}")
    versions = module.glob("staticlibs/netd/aidl_api/netd_aidl_interface/[0-9]*")
    if version := max((int(path.name) for path in versions), default=0):
        unknown = BEFORE if version < min(INETD_VERSIONS) else NEWER
        return Choice(INETD_VERSIONS.get(version, unknown), f"netd's INetd has version {version}")
    # Android 14 QPR2 moved frameworks/libs/net into that project.
    if (module / "common").is_dir():
        return Choice("14", "packages/modules/Connectivity has common, and no staticlibs")
    if (aosp / "frameworks/libs/net").is_dir():
        return Choice(BEFORE, "it has frameworks/libs/net")
    if (module / "service").is_dir() and not (module / "staticlibs").is_dir():
        return Choice(BEFORE, "packages/modules/Connectivity has no staticlibs")
    return None


def _search(path: Path, pattern: str) -> str | None:
    if not path.is_file():
        return None
    found = re.search(pattern, path.read_text(errors="replace"), re.MULTILINE)
    return found[1] if found else None
