# SPDX-License-Identifier: Apache-2.0
"""Looks for what ends a build, and for what builds and boots and yet leaves DRWA without effect."""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from drwatool import graph
from drwatool.blueprint import Progress, ReaderError, compile_reader
from drwatool.errors import UsageError
from drwatool.git import Repository
from drwatool.graph import PLACE
from drwatool.series import inspect
from drwatool.trees import (
    KERNEL_PROJECT,
    OLDEST_FOR_PROGRAMS,
    OLDEST_KERNEL,
    TOP,
    Project,
    Trees,
    version_of,
)

GOOD = "good"
BAD = "BAD"
UNKNOWN = "unknown"
OPTION = "CONFIG_TCP_DRWA"
# What the form without patches to the kernel needs.
BPF_OPTION = "CONFIG_NET_CLS_BPF"
FRAGMENT = "kernel/configs/drwa.config"
# How deep below device/ and vendor/ products have their makefiles.
MAKEFILES = ["*/*.mk", "*/*/*.mk", "*/*/*/*.mk"]
MODULE = "com.android.tethering"
TOO_OLD = "nothing of DRWA runs there: take Linux 4.14 or newer"
# Has the series that brings netd's programs
LOADER_PROJECT = "system_bpf"
# Of each host: whose programs govern on a kernel without the series
PROGRAMS = {"A": "the module's programs", "B": "netd's programs"}
# Log tags of the loaders: of Android 15 and of 14; of 14, 15 and 16
LOADERS = {"A": "NetBpfLoad NetBpfLoader", "B": "bpfloader LibBpfLoader BpfLoader-rs"}
FROM_SOURCE = "set PRODUCT_MODULE_BUILD_FROM_SOURCE := true, or use --host B"
ADB_TIMEOUT_S = 60
# Asks a phone everything at once, as KEY=VALUE lines; a part that is missing there answers nothing.
QUESTIONS = """\
echo "kernel=$(uname -r)"
service check drwa 2>/dev/null | grep -q ': found$' && echo service=drwa
[ ! -d /sys/module/drwa ] || echo vendor_module=drwa
for knob in /proc/sys/net/ipv4/conf/*/tcp_drwa_lambda; do
    [ -e "$knob" ] || continue
    echo knob=${knob#/proc/sys/net/ipv4/conf/} $(cat "$knob" "${knob%lambda}queue" 2>/dev/null)
done
dumpsys netd 2>/dev/null |
    sed -n -e '/^ *DrwaUplink$/,/^ *$/p' | sed -e 's/^ */uplink=/' -e '/=$/d'
for service in connectivity drwa; do dumpsys $service 2>/dev/null; done |
	grep -E '^ *(Knobs: BPF|No BPF: )|BPF programs cannot be attached' | sed 's/^ */programs=/'
echo "timestamps=$(cat /proc/sys/net/ipv4/tcp_timestamps 2>/dev/null)"
echo "setting=$(settings get global drwa_enabled 2>/dev/null)"
echo "ingress=$(settings get global ingress_rate_limit_bytes_per_second 2>/dev/null)"
echo "flag=$(device_config get tethering drwa 2>/dev/null)"
echo "disabled=$(getprop persist.drwa.disable 2>/dev/null)"
echo "module=$(pm list packages --apex-only 2>/dev/null | grep tethering)"
dumpsys carrier_config 2>/dev/null |
    grep -E '^Phone Id|mNoSimConfig|drwa_(enabled_bool|uplink_target_ms_int)' |
    sed 's/^ */carrier=/'
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    verdict: str
    what: str
    advice: str = ""


def examine(
    trees: Trees,
    opened: Iterable[tuple[Project, Repository]],
    host: str | None,
    adb: str | None,
    progress: Progress,
) -> list[Finding]:
    """Of trees for host A if it is not told, and of a phone for the host that it has."""
    of_phone, host = host, host or "A"
    findings = [_patches(project, repository) for project, repository in opened]
    findings += [
        Finding(
            UNKNOWN,
            f"{path} is not in this tree, so nothing of it is patched",
            "sync it, and run drwa apply again",
        )
        for path in trees.missing
    ]
    vendor_module = None
    if trees.aosp_folder is not None:
        makefiles = _read_makefiles(trees.aosp_folder)
        findings += _product(trees.aosp_folder, makefiles, host)
        if host == "A":
            findings.append(_module(trees.aosp_folder, makefiles))
        vendor_module = _vendor_module(trees.aosp_folder, makefiles)
        if vendor_module:
            findings.append(vendor_module)
        elif any(project.name == KERNEL_PROJECT for project in trees.projects):
            findings += _prebuilt_kernels(makefiles)
        findings += _uplink_module(makefiles)
        if (trees.aosp_folder / PLACE).is_dir():
            findings += _graph(trees, makefiles, progress)
    if vendor_module is None and (trees.kernel_folder or trees.aosp_folder):
        findings.append(_option(trees, host))
    if adb is not None:
        findings += phone(ask_phone(adb), of_phone)
    return findings


def _patches(project: Project, repository: Repository) -> Finding:
    found = inspect(project, repository)
    summary = found.summary
    what = f"{project.folder}: {'; '.join([f'{summary} patched', *found.missing[:3]])}"
    if summary == "fully":
        return Finding(GOOD, what)
    if project.refusals:
        return Finding(BAD, what, f"the series has no place: {'; '.join(project.refusals)}")
    option = "--kernel" if project.name == KERNEL_PROJECT else "--aosp"
    command = "revert, then drwa apply" if summary == "another version" else "apply"
    return Finding(BAD, what, f"drwa {command} {option}")


def _read_makefiles(aosp: Path) -> dict[str, list[str]]:
    """The lines, without comments, of the makefiles of products and boards."""
    found = {}
    for folder in "device", "vendor":
        for path in chain.from_iterable((aosp / folder).glob(pattern) for pattern in MAKEFILES):
            name = str(path.relative_to(aosp))
            if path.is_file() and not name.startswith(f"{PLACE}/"):
                text = path.read_text(errors="replace")
                found[name] = [line.split("#")[0].rstrip() for line in text.splitlines()]
    return found


def _search(makefiles: dict[str, list[str]], pattern: str) -> Iterator[str]:
    """The places, FILE:LINE, where a makefile matches."""
    for name, lines in makefiles.items():
        for number, line in enumerate(lines, start=1):
            if re.search(pattern, line):
                yield f"{name}:{number}"


def _product(aosp: Path, makefiles: dict[str, list[str]], host: str) -> Iterator[Finding]:
    if not (aosp / PLACE / "device/product").is_dir():
        yield Finding(
            BAD,
            f"{PLACE} is not in the tree, so nothing but the patches is built",
            f"add this repository at {PLACE} in a local manifest, or git clone {TOP} there",
        )
    product = f"{PLACE}/device/product/{'drwa' if host == 'A' else 'drwa_service'}.mk"
    board = f"{PLACE}/device/product/BoardConfigDrwa.mk"
    module = f"{PLACE}/device/product/BoardConfigDrwaModule.mk"
    for verb, choice, wanted in (
        ("inherits", (product,), product),
        ("includes", (board, module), f"{board}, or of {module} for drwa.ko"),
    ):
        uses = [
            f"{place} {verb} {makefile}"
            for makefile in choice
            for place in _search(makefiles, rf"\b{re.escape(makefile)}\b")
        ]
        if uses:
            yield Finding(GOOD, ", ".join(uses))
            continue
        yield Finding(
            BAD,
            f"no makefile below device/ or vendor/ {verb} {choice[0]}",
            f"the first lines of {wanted} say where that belongs, see "
            f"{TOP / 'device/product/README.md'}",
        )


def _graph(trees: Trees, makefiles: dict[str, list[str]], progress: Progress) -> Iterator[Finding]:
    """What Soong would say of the tree."""
    assert trees.aosp_folder is not None
    assert trees.android is not None
    progress("compiling blueprint's parser")
    with tempfile.TemporaryDirectory(prefix="drwa-") as name:
        try:
            reader = compile_reader(trees.aosp_folder, Path(name))
            release = trees.nearest or trees.android.name
            result = graph.examine(
                trees.aosp_folder, release, trees.projects, makefiles, reader, progress
            )
        except ReaderError as error:
            yield Finding(UNKNOWN, "the build graph is not checked", str(error))
            return
    for problem in result.problems:
        yield Finding(BAD, problem.what, problem.advice)
    if result.unreadable:
        yield Finding(
            UNKNOWN,
            f"{len(result.unreadable)} Android.bp files could not be read, so that names may be "
            f"defined twice: {result.unreadable[0]}",
            "with the tree's own build/blueprint and prebuilts/go they can",
        )
    elif not result.problems:
        yield Finding(GOOD, f"{result.summary}: each defined once, and all that they name is there")


def _module(aosp: Path, makefiles: dict[str, list[str]]) -> Finding:
    """Whether the tethering module is built from the patched source; what was built tells best."""
    built = sorted(aosp.glob("out/target/product/*/system/apex/*tethering*apex"))
    for path in built:
        if path.name.startswith("com.google."):
            return Finding(
                BAD,
                f"{path.relative_to(aosp)} is Google's prebuilt, not the patched module",
                FROM_SOURCE,
            )
    if built:
        return Finding(GOOD, f"{built[0].relative_to(aosp)} was built from source")
    if from_source := list(_search(makefiles, r"MODULE_BUILD_FROM_SOURCE *[:?]?= *true")):
        return Finding(GOOD, f"{from_source[0]} has modules built from source")
    # The build system takes prebuilts where the product lists Google's modules.
    if google := list(_search(makefiles, r"\bcom\.google\.android\.(go\.)?(conscrypt|tethering)")):
        return Finding(
            BAD,
            f"{google[0]} lists Google's modules, so {MODULE} is not built from source",
            FROM_SOURCE,
        )
    if not (aosp / "packages/modules/Connectivity").is_dir():
        return Finding(
            BAD,
            "packages/modules/Connectivity is not in the tree, so a prebuilt module is used",
            "sync it, or use --host B",
        )
    return Finding(GOOD, f"no product lists Google's modules, so {MODULE} is built from source")


def _vendor_module(aosp: Path, makefiles: dict[str, list[str]]) -> Finding | None:
    """Of a board that ships drwa.ko, whose kernel then needs nothing."""
    for text in chain.from_iterable(makefiles.values()):
        named = re.match(r"\s*DRWA_KERNEL_MODULE\s*:?=\s*([^$\s]+)\s*$", text)
        if named and not (aosp / named[1]).is_file():
            return Finding(
                BAD,
                f"DRWA_KERNEL_MODULE is no file: {named[1]}",
                f"build it, and copy it there: step 3 of {TOP / 'device/doc/gms-oem.md'}",
            )
    for place in _search(makefiles, r"^[^#]*(BoardConfigDrwaModule\.mk|/drwa\.ko\b)"):
        return Finding(GOOD, f"{place} ships drwa.ko, for a kernel without the series")
    return None


def _uplink_module(makefiles: dict[str, list[str]]) -> Iterator[Finding]:
    """Of a board that ships the uplink's qdisc, which a target for uploads needs."""
    for place in _search(makefiles, r"^[^#]*(BoardConfigDrwaUplink\.mk|/sch_drwa_up\.ko\b)"):
        yield Finding(GOOD, f"{place} ships sch_drwa_up.ko, for uplinks")
        return


def _prebuilt_kernels(makefiles: dict[str, list[str]]) -> Iterator[Finding]:
    prebuilt = (
        r"^\s*(TARGET_PREBUILT_KERNEL|TARGET_FORCE_PREBUILT_KERNEL|LOCAL_KERNEL)\s*[:?]?=\s*\S"
    )
    for place in _search(makefiles, prebuilt):
        yield Finding(
            BAD,
            f"{place} takes a prebuilt kernel",
            "build it from the patched source (TARGET_KERNEL_SOURCE), or make the prebuilt from it",
        )


def _option(trees: Trees, host: str) -> Finding:
    """Whether the kernel's configuration has what DRWA needs: what was configured, or what will be.

    Both hosts have programs for kernels without the series: the module's, and netd's.
    """
    configured: list[Path] = []
    sources: list[Path] = []
    if trees.kernel_folder is not None:
        configured += [trees.kernel_folder / ".config", *trees.kernel_folder.glob("out/.config")]
        sources += sorted(trees.kernel_folder.glob("arch/*/configs/**/*"))
    if trees.aosp_folder is not None:
        configured += trees.aosp_folder.glob("out/target/product/*/obj/KERNEL_OBJ/.config")
    configured = [path for path in configured if path.is_file()]
    newest = max(configured, key=lambda path: path.stat().st_mtime, default=None)
    text = newest.read_text(errors="replace") if newest else ""
    setting = re.compile(rf"^{OPTION}=y$", re.MULTILINE)
    if setting.search(text):
        return Finding(GOOD, f"{newest} has {OPTION}=y")
    version = _version(trees, text)
    if version and version < OLDEST_KERNEL:
        return _without_series(version, newest, text, sources, host)
    if trees.kernel_folder is None and _has_programs(trees, host):
        return _programs(newest, text, host)
    if newest:
        return Finding(BAD, f"{newest} lacks {OPTION}=y: the fragment is not merged", _merge())
    if path := _first_with(setting, sources):
        return Finding(GOOD, f"{path} has {OPTION}=y")
    return Finding(
        UNKNOWN, f"no kernel is configured yet, and no defconfig has {OPTION}=y", _merge()
    )


def _has_programs(trees: Trees, host: str) -> bool:
    """Whether what is patched brings programs: the module always, the platform by its loader."""
    return host == "A" or any(project.name == LOADER_PROJECT for project in trees.projects)


def _version(trees: Trees, configuration: str) -> tuple[int, int] | None:
    """The kernel's, by its tree or by what it is configured with."""
    if trees.kernel is not None:
        return version_of(trees.kernel.name)
    found = re.search(r"^# Linux/\S+ (\d+)\.(\d+)", configuration, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def _first_with(setting: re.Pattern[str], sources: Iterable[Path]) -> Path | None:
    """The configuration to come that has a setting."""
    files = (path for path in sources if path.is_file())
    return next((path for path in files if setting.search(path.read_text(errors="replace"))), None)


def _without_series(
    version: tuple[int, int], newest: Path | None, text: str, sources: Iterable[Path], host: str
) -> Finding:
    """Whether a kernel that is too old for the series takes programs."""
    kernel = "Linux {}.{}".format(*version)
    if version < OLDEST_FOR_PROGRAMS:
        what = f"{kernel} is too old for programs, which need 4.14, and for the series, which needs"
        return Finding(BAD, f"{what} 4.19", TOO_OLD)
    setting = re.compile(rf"^{BPF_OPTION}=y$", re.MULTILINE)
    there = newest if setting.search(text) else None if newest else _first_with(setting, sources)
    if there:
        return Finding(
            GOOD, f"{there} has {BPF_OPTION}=y, for {PROGRAMS[host]}: {kernel} needs no patch"
        )
    advice = f"set {BPF_OPTION}=y in its configuration: {kernel} cannot have {OPTION}"
    what = f"which {PROGRAMS[host]} need"
    if newest:
        return Finding(BAD, f"{newest} lacks {BPF_OPTION}=y, {what}", advice)
    where = f"no kernel is configured yet, and no defconfig has {BPF_OPTION}=y"
    return Finding(UNKNOWN, f"{where}, {what}", advice)


def _programs(path: Path | None, text: str, host: str) -> Finding:
    """Whether a kernel that need not be patched takes the host's programs."""
    if path is None:
        since = ".".join(map(str, OLDEST_FOR_PROGRAMS))
        return Finding(
            GOOD,
            f"{PROGRAMS[host]} govern where the kernel lacks {OPTION}=y, if it is {since} or newer",
        )
    if f"\n{BPF_OPTION}=y\n" not in f"\n{text}":
        return Finding(
            BAD,
            f"{path} has neither {OPTION}=y nor {BPF_OPTION}=y",
            f"set {BPF_OPTION}=y, or apply the kernel's series with --kernel, and {_merge()}",
        )
    return Finding(GOOD, f"{path} has {BPF_OPTION}=y, for {PROGRAMS[host]}")


def _merge() -> str:
    return f"merge {FRAGMENT}: TARGET_KERNEL_CONFIG, merge_config.sh, or a Kleaf defconfig fragment"


def ask_phone(adb: str) -> str:
    """What the phone answers, or raises UsageError when there is no talking to it."""
    try:
        done = subprocess.run(
            [adb, "shell", QUESTIONS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ADB_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError(f"{adb} is missing: install adb, or name it with --adb PROGRAM") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"the phone does not answer within {ADB_TIMEOUT_S} s") from None
    if "kernel=" not in done.stdout:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no answer"]
        raise UsageError(f"{adb}: {said[-1]}: connect one phone and allow debugging")
    return done.stdout


def phone(answers: str, host: str | None) -> Iterator[Finding]:
    """What follows from the answers to QUESTIONS, of the phone's own host if none is named."""
    found: dict[str, list[str]] = {}
    for line in answers.splitlines():
        key, _, value = line.partition("=")
        if value:
            found.setdefault(key, []).append(value)
    host = host or ("B" if "service" in found else "A")
    kernel = found.get("kernel", ["?"])[0]
    programs = found.get("programs", [])
    if knobs := found.get("knob"):
        words = [knob.replace("/tcp_drwa_lambda", "").split() for knob in knobs]
        on = [_describe(*each) for each in words if each[1] != "0"]
        source = " from drwa.ko" if "vendor_module" in found else ""
        yield Finding(
            GOOD, f"phone: kernel {kernel} has the knob{source}; on: {', '.join(on) or 'nowhere'}"
        )
        if any(len(each) < 3 for each in words):
            yield Finding(
                UNKNOWN,
                f"phone: kernel {kernel} has no tcp_drwa_queue: an older series of patches, with "
                "which each interface has a queue of its own",
            )
        yield from _parted(words)
    else:
        yield _phone_without_knob(kernel, programs, host)
    if host == "A" and any("com.google." in module for module in found.get("module", [])):
        yield Finding(
            BAD,
            "phone: the tethering module is Google's, not the patched one",
            "build it from source, or use --host B",
        )
    if found.get("timestamps", ["1"])[0] == "0":
        yield Finding(
            BAD,
            "phone: tcp_timestamps is 0, so that a queue is told from a long path by its RTT alone",
            "find what sets it, and have it leave net.ipv4.tcp_timestamps at 1",
        )
    if found.get("setting", ["null"])[0] == "0":
        yield Finding(
            BAD,
            "phone: the setting drwa_enabled is 0, which switches DRWA off",
            "adb shell settings delete global drwa_enabled",
        )
    if programs and not knobs and found.get("ingress", ["null"])[0] not in ("null", "-1"):
        yield Finding(
            BAD,
            "phone: the developers' download limit is set, which has the programs' place",
            "adb shell settings put global ingress_rate_limit_bytes_per_second -1",
        )
    if found.get("flag", ["null"])[0] == "-1":
        yield Finding(
            BAD,
            "phone: the flag tethering/drwa is -1, which switches DRWA off",
            "adb shell device_config delete tethering drwa",
        )
    if found.get("disabled", [""])[0] in ("1", "true", "y", "yes", "on"):
        yield Finding(
            BAD,
            "phone: the property persist.drwa.disable is set, which switches DRWA off",
            "adb shell setprop persist.drwa.disable false, then reboot",
        )
    carrier = found.get("carrier", [])
    enabled = _carriers(carrier, "drwa_enabled_bool")
    targets_ms = set(_carriers(carrier, "drwa_uplink_target_ms_int").values())
    odd = sorted(target for target in targets_ms if not re.fullmatch(r"\d*", target))
    if odd:
        yield Finding(
            BAD,
            f"phone: a carrier's drwa_uplink_target_ms_int is no number: {', '.join(odd)}",
            "see frameworks/carrier/README.md",
        )
    wanted = sorted(targets_ms - {"", "0", *odd}, key=int)
    if wanted:
        yield _phone_uplink(" and ".join(wanted), found.get("uplink", []))
    elif enabled and "true" not in enabled.values():
        yield Finding(
            BAD,
            "phone: no SIM's carrier configuration has drwa_enabled_bool = true",
            "see frameworks/carrier/README.md",
        )


def _phone_without_knob(kernel: str, said: Sequence[str], host: str) -> Finding:
    """Programs govern then; the policy says what became of them."""
    without = f"phone: kernel {kernel} has no tcp_drwa_lambda"
    found = re.match(r"(\d+)\.(\d+)", kernel)
    version = (int(found[1]), int(found[2])) if found else OLDEST_KERNEL
    if version < OLDEST_FOR_PROGRAMS:
        return Finding(BAD, f"{without}, and is too old for programs", TOO_OLD)
    programs = PROGRAMS[host]
    dump = f"adb shell dumpsys {'connectivity' if host == 'A' else 'drwa'}"
    for line in said:
        if line.startswith("No BPF: "):
            return Finding(
                BAD,
                f"{without}, and {programs} are not loaded: {line[8:]}",
                f"adb logcat -d -s {LOADERS[host]}, after a reboot; the kernel needs "
                f"{BPF_OPTION}=y",
            )
        if "cannot be attached" in line:
            return Finding(
                BAD,
                f"{without}, and {programs} are not attached: {line}",
                f"the recent writes of {dump} have the reason",
            )
    if said:
        return Finding(GOOD, f"{without}; {programs} govern")
    if host == "B":
        return Finding(
            BAD,
            without,
            f"it is not the patched one, lacks {OPTION}=y, or has no drwa.ko: flash boot and "
            f"modules, see above. For {programs} instead, see {dump}",
        )
    return Finding(
        UNKNOWN,
        f"{without}, and the policy does not say whether {programs} govern",
        f"see whether {dump} has a part of DRWA's: if not, the module is not the patched one",
    )


def _phone_uplink(wanted: str, dump: list[str]) -> Finding:
    """What netd says of uplinks, where a SIM's carrier wants them held."""
    what = f"phone: a carrier wants its uplink held to {wanted} ms"
    if not dump:
        return Finding(
            BAD,
            f"{what}, and netd does not know how",
            "it lacks the series of system/netd: drwa apply --aosp, and build",
        )
    if any("This kernel has no drwa_up" in line for line in dump):
        return Finding(
            BAD,
            f"{what}, and the kernel has no drwa_up: sch_drwa_up.ko is not loaded",
            "ship it by BoardConfigDrwaUplink.mk, and have it loaded at boot",
        )
    refused = [line for line in dump if re.match(r"(?!setTarget:)\S+: ", line)]
    if refused:
        return Finding(
            BAD,
            f"{what}, and netd could not: {refused[0]}",
            "a root qdisc of the vendor's stays: have its daemon leave the interface alone, or "
            "live without",
        )
    held = re.findall(r"^(\S+) uplink=(\d+)ms", "\n".join(dump), re.MULTILINE)
    now = ", ".join(f"{name} {target} ms" for name, target in held) or "none now"
    return Finding(GOOD, f"{what}; held: {now}")


def _describe(interface: str, value: str, queue: str = "0") -> str:
    return f"{interface} {value}" + (f" in queue {queue}" if queue != "0" else "")


def _parted(knobs: list[list[str]]) -> Iterator[Finding]:
    """Interfaces of 464xlat that are on and do not share the queue of the one below."""
    queues = {name: rest[0] for name, value, *rest in knobs if value != "0" and rest}
    for stacked, queue in queues.items():
        below = stacked.removeprefix("v4-")
        if below != stacked and below in queues and (queue == "0" or queue != queues[below]):
            yield Finding(
                BAD,
                f"phone: {below} and {stacked} wait in one queue, and the kernel is not told",
                "the policy is older than the kernel's series: drwa revert, then drwa apply "
                "--aosp, and build; or a shell has set λ alone",
            )


def _carriers(dump: list[str], name: str) -> dict[str, str]:
    """A key by SIM slot, "" where it is missing: of its layers, the last one wins."""
    values: dict[str, str] = {}
    slot = None
    for line in dump:
        key, _, value = (part.strip() for part in line.partition("="))
        if key == "Phone Id":
            slot = value
            values[slot] = ""
        elif key.startswith("mNoSimConfig"):
            slot = None
        elif slot is not None and key == name:
            values[slot] = value
    return values
