# SPDX-License-Identifier: Apache-2.0
"""What doctor finds in trees that build and boot without DRWA, and on a phone."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_trees
from small_trees import DEVICE, KERNEL, MODULE, World, commit, copy, write

from drwalab import kernels
from drwatool import doctor
from drwatool.graph import put_repository
from drwatool.trees import Project, Trees

template = small_trees.template

PRODUCT = "vendor/drwa/device/product"
PHONE = "aosp/device/maker/phone"


@pytest.fixture(scope="session")
def integrated_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trees with all that DRWA needs, patched and configured."""
    world = copy(template, tmp_path_factory.mktemp("integrated") / "world")
    assert world.drwa("apply").code == 0
    put_repository(world.top / "aosp")
    write(
        world.top / PHONE / "product.mk",
        f"$(call inherit-product, {PRODUCT}/drwa.mk)\n",
    )
    write(world.top / PHONE / "BoardConfig.mk", f"include {PRODUCT}/BoardConfigDrwa.mk\n")
    write(world.top / KERNEL / ".config", "CONFIG_NET=y\nCONFIG_TCP_DRWA=y\n")
    return world.top


@pytest.fixture
def world(integrated_template: Path, tmp_path: Path) -> World:
    return copy(integrated_template, tmp_path / "world")


def bad(world: World, *options: str) -> list[dict[str, Any]]:
    done = world.drwa("doctor", "--json", *options)
    found = [each for each in done.report["findings"] if each["verdict"] == doctor.BAD]
    assert done.code == (1 if found else 0)
    return found


def test_nothing_to_complain_of(world: World) -> None:
    assert bad(world) == []
    said = world.drwa("doctor")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ["good"] * 8


# What leaves DRWA without effect: (how to get there, what doctor says, its advice).


def unpatched(world: World) -> None:
    assert world.drwa("revert").code == 0


def no_repository(world: World) -> None:
    shutil.rmtree(world.top / "aosp/vendor")


def not_inherited(world: World) -> None:
    # A comment is no code.
    write(world.top / PHONE / "product.mk", f"# inherit-product, {PRODUCT}/drwa.mk\n")


def board_forgotten(world: World) -> None:
    write(world.top / PHONE / "BoardConfig.mk", "TARGET_ARCH := arm64\n")


def prebuilt_module(world: World) -> None:
    name = "out/target/product/phone/system/apex/com.google.android.tethering.apex"
    write(world.top / "aosp" / name, "")


def google_modules(world: World) -> None:
    write(world.top / PHONE / "gms.mk", "PRODUCT_PACKAGES += com.google.android.conscrypt\n")


def prebuilt_kernel(world: World) -> None:
    write(world.top / PHONE / "BoardConfig.mk", "TARGET_PREBUILT_KERNEL := Image.gz\n")


def fragment_not_merged(world: World) -> None:
    write(world.top / KERNEL / ".config", "# CONFIG_TCP_DRWA is not set\n")


def inline_kernel_not_merged(world: World) -> None:
    name = "out/target/product/phone/obj/KERNEL_OBJ/.config"
    write(world.top / "aosp" / name, "CONFIG_NET=y\n")


def netd_seen_twice(world: World) -> None:
    place = world.top / "aosp/vendor/drwa/netd_patches"
    (place / ".find-ignore").unlink()
    shutil.copytree(place / "src/server/drwa", world.top / "aosp/system/netd/server/drwa")


def linked_repository(world: World) -> None:
    """Which Soong's finder does not follow."""
    (world.top / "aosp/vendor/drwa").rename(world.top / "checkout")
    (world.top / "aosp/vendor/drwa").symlink_to(world.top / "checkout")


def project_not_synced(world: World) -> None:
    write(world.top / "aosp/build/envsetup.sh", "")


def tool_without_netd(world: World) -> None:
    write(world.top / PHONE / "debug.mk", "PRODUCT_PACKAGES_DEBUG += drwactl\n")


@pytest.mark.parametrize(
    ("spoil", "what", "advice"),
    [
        (netd_seen_twice, "module libnetd_drwa is defined twice", ".find-ignore hides a folder"),
        (linked_repository, "names drwa_debug.rc, which no Android.bp", "is vendor/drwa there, no"),
        (
            project_not_synced,
            "libs names services, which no",
            "frameworks/base/services/Android.bp",
        ),
        (project_not_synced, "libs names scapy, which no", "or leave the tests out: touch vendor/"),
        (tool_without_netd, "debug.mk:1: PRODUCT_PACKAGES_DEBUG names drwactl", "netd's patches"),
        (unpatched, "none patched", "drwa apply"),
        (no_repository, "vendor/drwa is not in the tree", "local manifest"),
        (not_inherited, f"inherits {PRODUCT}/drwa.mk", f"first lines of {PRODUCT}/drwa.mk say"),
        (board_forgotten, f"includes {PRODUCT}/BoardConfigDrwa.mk", "Module.mk for drwa.ko say"),
        (prebuilt_module, "is Google's prebuilt", "PRODUCT_MODULE_BUILD_FROM_SOURCE"),
        (google_modules, "gms.mk:1 lists Google's modules", "PRODUCT_MODULE_BUILD_FROM_SOURCE"),
        (prebuilt_kernel, "BoardConfig.mk:1 takes a prebuilt kernel", "patched source"),
        (fragment_not_merged, "lacks CONFIG_TCP_DRWA=y", "kernel/configs/drwa.config"),
        (inline_kernel_not_merged, "KERNEL_OBJ/.config lacks", "kernel/configs/drwa.config"),
    ],
)
def test_silent_failures(
    world: World, spoil: Callable[[World], None], what: str, advice: str
) -> None:
    spoil(world)
    assert any(what in each["what"] and advice in each["advice"] for each in bad(world))


def test_modules_from_source_where_google_has_some(world: World) -> None:
    google_modules(world)
    path = world.top / PHONE / "product.mk"
    write(path, path.read_text() + "PRODUCT_MODULE_BUILD_FROM_SOURCE := true\n")
    assert bad(world) == []


def test_the_seven_modules_end_the_build(world: World) -> None:
    netd_seen_twice(world)
    twice = [each for each in bad(world) if "is defined twice" in each["what"]]
    assert len(twice) == 7
    assert "Android.bp files, " not in world.drwa("doctor").out


def test_no_compiler_is_no_good_word(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = world.top / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(shutil.which("git") or "")
    (tools / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tools))
    netd_seen_twice(world)
    said = world.drwa("doctor").out
    assert "unknown the build graph is not checked\n        there is no Go: apt install go" in said
    assert "Android.bp files, " not in said


def test_files_that_the_parser_cannot_read(world: World) -> None:
    text = 'cc_library { name: "libnetd_drwa", srcs: select(arch(), { default: ["a.c"] }) }'
    write(world.top / "aosp/system/netd/Android.bp", text)
    said = world.drwa("doctor").out
    assert "unknown 1 Android.bp files could not be read" in said
    assert "Android.bp files, " not in said


def test_host_b_needs_no_module(world: World) -> None:
    prebuilt_module(world)
    write(
        world.top / PHONE / "product.mk",
        f"$(call inherit-product, {PRODUCT}/drwa_service.mk)\n",
    )
    assert bad(world, "--host", "B") == []


def test_a_vendor_module_needs_nothing_of_the_kernel(world: World) -> None:
    """Which is a prebuilt then, and not configured for DRWA."""
    fragment_not_merged(world)
    write(
        world.top / PHONE / "BoardConfig.mk",
        "TARGET_PREBUILT_KERNEL := Image.gz\n"
        "DRWA_KERNEL_MODULE := device/phone-kernel/drwa.ko\n"
        f"include {PRODUCT}/BoardConfigDrwaModule.mk\n",
    )
    (found,) = bad(world)
    assert found["what"] == "DRWA_KERNEL_MODULE is no file: device/phone-kernel/drwa.ko"
    write(world.top / "aosp/device/phone-kernel/drwa.ko", "ELF")
    assert bad(world) == []
    said = world.drwa("doctor").out
    assert "BoardConfig.mk:2 ships drwa.ko" in said
    assert f"BoardConfig.mk:3 includes {PRODUCT}/BoardConfigDrwaModule.mk" in said


def test_a_project_that_is_not_there_is_told(world: World) -> None:
    shutil.rmtree(world.top / "aosp/frameworks/base")
    said = world.drwa("doctor", "--android", "15").out
    assert "frameworks/base is not in this tree, so nothing of it is patched" in said


def test_the_uplinks_module(world: World) -> None:
    assert "sch_drwa_up.ko" not in world.drwa("doctor").out
    write(
        world.top / PHONE / "BoardConfig.mk",
        f"include {PRODUCT}/BoardConfigDrwa.mk\n"
        "DRWA_UPLINK_MODULE := device/phone-kernel/sch_drwa_up.ko\n"
        f"include {PRODUCT}/BoardConfigDrwaUplink.mk\n",
    )
    assert bad(world) == []
    assert "BoardConfig.mk:2 ships sch_drwa_up.ko" in world.drwa("doctor").out


def test_a_prebuilt_kernel_is_no_fault_where_none_is_patched(world: World) -> None:
    path = world.top / PHONE / "BoardConfig.mk"
    write(path, path.read_text() + "TARGET_PREBUILT_KERNEL := Image.gz\n")
    done = world.run("doctor", "--aosp", str(world.top / "aosp"), "--json")
    assert done.code == 0
    assert {each["verdict"] for each in done.report["findings"]} == {doctor.GOOD}


@pytest.mark.parametrize(
    ("host", "loader", "verdict", "what"),
    [
        ("A", False, doctor.GOOD, "the module's programs govern where the kernel lacks"),
        ("B", True, doctor.GOOD, "netd's programs govern where the kernel lacks CONFIG_TCP_DRWA"),
        ("B", False, doctor.UNKNOWN, "no defconfig has CONFIG_TCP_DRWA=y"),
    ],
)
def test_programs_need_no_option_of_the_kernel(
    tmp_path: Path, host: str, loader: bool, verdict: str, what: str
) -> None:
    """The module's, and netd's where the platform's loader is patched."""
    projects = [Project("system_netd", tmp_path, "system_netd/15")]
    projects += [Project("system_bpf", tmp_path, "system_bpf/15")] if loader else []
    trees = Trees(None, None, tuple(projects), (), (), tmp_path, None)
    found = doctor._option(trees, host)
    assert found.verdict == verdict
    assert what in found.what


def test_a_missing_module_is_a_prebuilt_one(world: World) -> None:
    shutil.rmtree(world.top / MODULE)
    found = [each["what"] for each in bad(world)]
    assert found == [
        "packages/modules/Connectivity is not in the tree, so a prebuilt module is used"
    ]


def test_configuration_to_come(world: World) -> None:
    (world.top / KERNEL / ".config").unlink()
    assert "unknown no kernel is configured yet" in world.drwa("doctor").out
    write(world.top / KERNEL / "arch/arm64/configs/phone.config", "CONFIG_TCP_DRWA=y\n")
    commit(world.top / KERNEL, "Configure")
    assert "phone.config has CONFIG_TCP_DRWA=y" in world.drwa("doctor").out


def verdicts(answers: str, host: str = "A") -> list[str]:
    return [found.what for found in doctor.phone(answers, host) if found.verdict == doctor.BAD]


GOOD = """\
kernel=6.12.8-android16
knob=rmnet_data0/tcp_drwa_lambda 125 100
knob=v4-rmnet_data0/tcp_drwa_lambda 125 100
knob=wlan0/tcp_drwa_lambda 0 0
setting=null
flag=null
disabled=
module=package:com.android.tethering
carrier=Phone Id = 0
carrier=drwa_enabled_bool = false
carrier=drwa_enabled_bool = true
carrier=Phone Id = 1
carrier=drwa_enabled_bool = false
carrier=mNoSimConfig :
carrier=drwa_enabled_bool = false
"""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("", "", None),
        ("knob=", "other=", None),
        (GOOD[: GOOD.index("setting")], "kernel=4.9.2-android9\n", "too old for programs"),
        (
            GOOD[: GOOD.index("setting")],
            "kernel=6.6.1\nprograms=No BPF: cannot use /sys/fs/bpf/x: ENOENT\n",
            "are not loaded: cannot use /sys/fs/bpf/x: ENOENT",
        ),
        (
            GOOD[: GOOD.index("setting")],
            "kernel=6.6.1\nprograms=rmnet0 λ=1.25: carrier 1, not written: the BPF programs cannot "
            "be attached\nprograms=Knobs: BPF, /sys/fs/bpf/x\n",
            "are not attached: rmnet0",
        ),
        (
            GOOD[: GOOD.index("setting")],
            "kernel=6.6.1\nprograms=Knobs: BPF, /sys/fs/bpf/x\n",
            None,
        ),
        ("setting=null", "setting=0", "the setting drwa_enabled is 0"),
        ("setting=null", "setting=1", None),
        # Kernel files are not in its way.
        ("flag=null", "ingress=1000000", None),
        ("flag=null", "flag=-1", "the flag tethering/drwa is -1"),
        ("flag=null", "flag=1", None),
        ("disabled=", "disabled=true", "persist.drwa.disable is set"),
        ("disabled=", "disabled=false", None),
        ("com.android", "com.google.android", "the tethering module is Google's"),
        ("= true", "= false", "no SIM's carrier configuration has drwa_enabled_bool = true"),
        ("carrier=drwa_enabled_bool = true\n", "", "no SIM's carrier configuration"),
        ("Phone Id = 1\ncarrier=drwa_enabled_bool = false", "Phone Id = 1", None),
        (
            "= true\ncarrier=Phone Id = 1\n",
            "= false\ncarrier=Phone Id = 1\ncarrier=drwa_enabled_bool = true\n",
            "no SIM's carrier configuration",
        ),
        (
            "true\ncarrier=Phone Id = 1\ncarrier=drwa_enabled_bool = false\n"
            "carrier=mNoSimConfig :\ncarrier=drwa_enabled_bool = false",
            "false\ncarrier=mNoSimConfig :\ncarrier=drwa_enabled_bool = true",
            "no SIM's carrier configuration",
        ),
        (GOOD[GOOD.index("carrier=") :], "", None),
        ("flag=null\n", "flag=-1\r\n", "the flag tethering/drwa is -1"),
        (" 125 100", " 125 0", "rmnet_data0 and v4-rmnet_data0 wait in one queue"),
        (
            "v4-rmnet_data0/tcp_drwa_lambda 125 100",
            "v4-rmnet_data0/tcp_drwa_lambda 125 101",
            "wait",
        ),
        ("v4-rmnet_data0/tcp_drwa_lambda 125 100", "v4-rmnet_data0/tcp_drwa_lambda 0 0", None),
    ],
)
def test_answers_of_a_phone(old: str, new: str, what: str | None) -> None:
    found = verdicts(GOOD.replace(old, new) if old else GOOD)
    assert len(found) == (1 if what else 0)
    assert what is None or what in found[0]


WITHOUT_KNOB = "kernel=6.6.1\n" + GOOD[GOOD.index("setting") :]


def test_programs_in_place_of_the_knob() -> None:
    unknown = next(doctor.phone(WITHOUT_KNOB, "A"))
    assert unknown.verdict == doctor.UNKNOWN
    assert "dumpsys connectivity" in unknown.advice
    attached = "programs=Knobs: BPF, /sys/fs/bpf/x\n" + WITHOUT_KNOB
    assert next(doctor.phone(attached, "A")).verdict == doctor.GOOD
    for limit, found in ("-1", 0), ("125000", 1):
        bad = verdicts(f"ingress={limit}\n{attached}")
        assert len(bad) == found
        assert all("download limit" in what for what in bad)
    # Where the kernel's files govern, nothing of ours has that place.
    assert not verdicts(f"ingress=125000\nprograms=No BPF: the kernel has its own\n{GOOD}")
    netds = "programs=Knobs: BPF, through netd\n" + WITHOUT_KNOB
    (governed, *_) = doctor.phone(netds, "B")
    assert governed.verdict == doctor.GOOD
    assert "netd's programs govern" in governed.what


ABOUT_KERNEL = re.compile("CONFIG_|the series, which")


@pytest.mark.parametrize(
    ("configuration", "verdict", "what"),
    [
        ("# Linux/arm64 4.14.57 Kernel\nCONFIG_NET_CLS_BPF=y\n", "good", "module's programs"),
        ("# Linux/arm64 4.9.7 Kernel\nCONFIG_NET_CLS_BPF=y\n", "BAD", "too old for programs"),
        ("# Linux/arm64 4.14.7 Kernel\n", "BAD", "lacks CONFIG_NET_CLS_BPF=y"),
        ("# Linux/arm64 6.1.57 Kernel\n", "BAD", "neither CONFIG_TCP_DRWA=y nor"),
        ("CONFIG_TCP_DRWA=y\n", "good", "has CONFIG_TCP_DRWA=y"),
    ],
    ids=["programs", "old", "no programs", "neither", "series"],
)
def test_no_kernel_tree(world: World, configuration: str, verdict: str, what: str) -> None:
    """Host A needs no series for the kernel: its module has programs."""
    name = "out/target/product/phone/obj/KERNEL_OBJ/.config"
    write(world.top / "aosp" / name, configuration)
    done = world.run("doctor", "--aosp", str(world.top / "aosp"), "--json")
    (found,) = (each for each in done.report["findings"] if ABOUT_KERNEL.search(each["what"]))
    assert found["verdict"] == verdict
    assert what in found["what"]
    assert "--kernel" not in found["advice"] or "6.1" in configuration


SERIES_NEEDS = "the series needs Linux 4.19 or newer"


@pytest.mark.parametrize(
    ("version", "configuration", "options", "verdict", "what", "advice"),
    [
        ("4.14", "CONFIG_NET_CLS_BPF=y\n", (), "good", "programs: Linux 4.14 needs no patch", ""),
        (
            "4.18",
            "CONFIG_NET=y\n",
            (),
            "BAD",
            "lacks CONFIG_NET_CLS_BPF=y, which the module's programs need",
            "set CONFIG_NET_CLS_BPF=y in its configuration: Linux 4.18 cannot have CONFIG_TCP_DRWA",
        ),
        (
            "4.14",
            "",
            (),
            "unknown",
            "no defconfig has CONFIG_NET_CLS_BPF=y, which the module's programs",
            "set CONFIG_NET_CLS_BPF=y",
        ),
        (
            "4.14",
            "CONFIG_NET_CLS_BPF=y\n",
            ("--host", "B"),
            "good",
            "for netd's programs: Linux 4.14 needs no patch",
            "",
        ),
        (
            "4.9",
            "CONFIG_NET_CLS_BPF=y\n",
            (),
            "BAD",
            "Linux 4.9 is too old for programs, which need 4.14, and for the series, which",
            "nothing of DRWA runs there: take Linux 4.14 or newer",
        ),
        ("4.19", "CONFIG_NET_CLS_BPF=y\n", (), "BAD", "lacks CONFIG_TCP_DRWA=y", "drwa.config"),
    ],
    ids=["programs", "no option", "not configured", "host B", "neither", "series"],
)
def test_a_kernel_tree_before_the_series(
    world: World,
    version: str,
    configuration: str,
    options: tuple[str, ...],
    verdict: str,
    what: str,
    advice: str,
) -> None:
    """Programs alone from 4.14 on, the series from 4.19 on; neither asks for what cannot be."""
    kernel = world.top / KERNEL
    major, minor = version.split(".")
    write(kernel / "Makefile", f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 3\n")
    commit(kernel, version)
    (kernel / ".config").unlink()
    if configuration:
        write(kernel / ".config", configuration)
    done = world.drwa("doctor", "--json", *options)
    (found,) = (each for each in done.report["findings"] if ABOUT_KERNEL.search(each["what"]))
    assert found["verdict"] == verdict
    assert what in found["what"]
    assert advice in found["advice"]


def test_a_defconfig_for_the_programs(world: World) -> None:
    kernel = world.top / KERNEL
    write(kernel / "Makefile", "VERSION = 4\nPATCHLEVEL = 14\nSUBLEVEL = 3\n")
    write(kernel / "arch/arm64/configs/phone_defconfig", "CONFIG_NET_CLS_BPF=y\n")
    (kernel / ".config").unlink()
    assert "phone_defconfig has CONFIG_NET_CLS_BPF=y, for the module" in world.drwa("doctor").out


@pytest.mark.parametrize(
    ("version", "host", "words"),
    [
        ("4.14", "A", "from 4.14 on the programs of com.android.tethering, built from source, go"),
        ("4.14", "B", "from 4.14 on the programs of system/bpf and system/netd, built from sou"),
        ("4.9", "A", "and programs need 4.14: DRWA cannot run there"),
    ],
)
def test_such_a_kernel_alone(world: World, version: str, host: str, words: str) -> None:
    major, minor = version.split(".")
    kernel = world.top / KERNEL
    write(kernel / "Makefile", f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 3\n")
    done = world.run("doctor", "--kernel", str(kernel), "--host", host)
    assert done.code == 77
    assert SERIES_NEEDS in done.err
    assert words in done.err


@pytest.mark.parametrize(
    ("kernel", "host", "what", "advice"),
    [
        ("4.9.2", "A", "too old for programs", "nothing of DRWA runs there"),
        ("4.9.2", "B", "too old for programs", "nothing of DRWA runs there"),
        ("4.14.2", "B", "has no tcp_drwa_lambda", "For netd's programs instead, see adb shell du"),
        ("5.10.2", "B", "has no tcp_drwa_lambda", "it is not the patched one"),
    ],
)
def test_a_phone_before_the_series(kernel: str, host: str, what: str, advice: str) -> None:
    found = next(doctor.phone(f"kernel={kernel}\n", host))
    assert found.verdict == doctor.BAD
    assert what in found.what
    assert advice in found.advice


def test_no_kernel_at_all(world: World) -> None:
    done = world.run("doctor", "--aosp", str(world.top / "aosp"), "--json")
    assert any("if it is 4.14 or newer" in each["what"] for each in done.report["findings"])


def test_googles_module_is_no_matter_for_host_b() -> None:
    assert verdicts(GOOD.replace("com.android", "com.google.android"), "B") == []


def test_a_phone_tells_which_host_it_has() -> None:
    """Where nobody names one: a phone with the service needs no module of ours."""
    google = GOOD.replace("com.android", "com.google.android")
    assert [found.verdict for found in doctor.phone(google, None)] == [doctor.GOOD, doctor.BAD]
    service = "service=drwa\n" + google
    assert [found.verdict for found in doctor.phone(service, None)] == [doctor.GOOD]
    netds = "service=drwa\nprograms=Knobs: BPF, through netd\n" + WITHOUT_KNOB
    assert "netd's programs govern" in next(doctor.phone(netds, None)).what
    # A host that is named is believed.
    assert [found.verdict for found in doctor.phone(service, "A")] == [doctor.GOOD, doctor.BAD]


@pytest.mark.parametrize("there", [True, False])
def test_the_service_is_asked_for(world: World, tmp_path: Path, there: bool) -> None:
    said = f"Service $2: {'found' if there else 'not found'}"
    write(tmp_path / "service", f'#!/bin/sh\n[ "$1 $2" = "check drwa" ] && echo "{said}"\n')
    write(tmp_path / "pm", "#!/bin/sh\necho package:com.google.android.tethering\n")
    write(tmp_path / "adb", f'#!/bin/sh\nPATH={tmp_path}:$PATH\nexec sh -c "$2"\n')
    for name in "adb", "pm", "service":
        (tmp_path / name).chmod(0o755)
    done = world.run("doctor", "--adb", str(tmp_path / "adb"), "--json")
    googles = [each for each in done.report["findings"] if "is Google's" in each["what"]]
    assert bool(googles) != there


def test_where_it_is_on_is_told() -> None:
    assert "has the knob; on: rmnet_data0 125" in next(doctor.phone(GOOD, "A")).what
    loaded = next(doctor.phone("vendor_module=drwa\n" + GOOD, "B")).what
    assert "has the knob from drwa.ko; on: rmnet_data0 125" in loaded


def test_no_phone(world: World) -> None:
    missing = world.run("doctor", "--adb", str(world.top / "no-adb"))
    assert missing.code == 2
    assert "no-adb is missing: install adb, or name it with --adb PROGRAM" in missing.err
    silent = world.run("doctor", "--adb", "false")
    assert silent.code == 2
    assert "false: no answer: connect one phone and allow debugging" in silent.err


# As CarrierConfigLoader prints it: by slot, the defaults first, and what wins last.
CARRIER_CONFIG = """\
CarrierConfigLoader: com.android.phone.CarrierConfigLoader@eeebaef
Phone Id = 0
    Default Values from CarrierConfigManager :
            drwa_enabled_bool = false
            drwa_lambda_int = 125

    mConfigFromDefaultApp :
            drwa_enabled_bool = true

    mConfigFromCarrierApp : null
"""


@pytest.mark.parametrize(("value", "code"), [("true", 0), ("false", 1)])
def test_carrier_configuration_as_a_phone_prints_it(
    world: World, tmp_path: Path, value: str, code: int
) -> None:
    dump = CARRIER_CONFIG.replace("= true", f"= {value}")
    write(tmp_path / "dumpsys", f"#!/bin/sh\n[ $1 = carrier_config ] && cat <<'E'\n{dump}E\n")
    write(tmp_path / "adb", f'#!/bin/sh\nPATH={tmp_path}:$PATH\nexec sh -c "$2"\n')
    for name in "dumpsys", "adb":
        (tmp_path / name).chmod(0o755)
    done = world.run("doctor", "--adb", str(tmp_path / "adb"), "--json")
    # This machine has no knob.
    bad = [each["what"] for each in done.report["findings"]][1:]
    assert len(bad) == code
    assert all("drwa_enabled_bool" in what for what in bad)


def test_a_phone_tells_queues() -> None:
    found = list(doctor.phone(GOOD, "A"))
    assert len(found) == 1
    on = "; on: rmnet_data0 125 in queue 100, v4-rmnet_data0 125 in queue 100"
    assert found[0].what.endswith(on)


NETD_UPLINK = """\
uplink=DrwaUplink
uplink=setTarget: 1 done, 0 refused
uplink=Interfaces whose uplinks are held to a target, and what their qdiscs tell:
uplink=rmnet_data0 uplink=20ms root=drwa_up 6d00: below=fq_codel
uplink=rate=5.00Mb/s window=30000B inFlight=20000B
uplink=Interfaces whose uplinks were to be held, and why they are not:
"""
UPLINK = "carrier=drwa_uplink_target_ms_int = "


@pytest.mark.parametrize(
    ("wanted", "netd", "verdict", "what"),
    [
        ("", "", None, ""),
        ("", NETD_UPLINK, None, ""),
        ("0", "", None, ""),
        ("20", NETD_UPLINK, doctor.GOOD, "held to 20 ms; held: rmnet_data0 20 ms"),
        ("20", "uplink=DrwaUplink\n", doctor.GOOD, "; held: none now"),
        ("20", "", doctor.BAD, "and netd does not know how"),
        (
            "20",
            "uplink=DrwaUplink\nuplink=This kernel has no drwa_up.\n",
            doctor.BAD,
            "and the kernel has no drwa_up: sch_drwa_up.ko is not loaded",
        ),
        (
            "20",
            NETD_UPLINK + "uplink=rmnet1: The root of rmnet1 is rmnet_sch 8001:, which ...\n",
            doctor.BAD,
            "and netd could not: rmnet1: The root of rmnet1 is rmnet_sch 8001:",
        ),
    ],
)
def test_a_phones_uplink(wanted: str, netd: str, verdict: str | None, what: str) -> None:
    slot = "carrier=Phone Id = 0\n"
    assert slot in GOOD
    answers = GOOD.replace(slot, slot + (f"{UPLINK}{wanted}\n" if wanted else "")) + netd
    found = [each for each in doctor.phone(answers, "A") if "uplink" in each.what]
    assert [each.verdict for each in found] == ([verdict] if verdict else [])
    assert all(what in each.what for each in found)


def test_a_phone_without_timestamps() -> None:
    assert verdicts(GOOD + "timestamps=1\n") == []
    assert verdicts(GOOD + "timestamps=0\n") != []
    (found,) = (
        each for each in doctor.phone(GOOD + "timestamps=0\n", "A") if each.verdict == "BAD"
    )
    assert "tcp_timestamps is 0" in found.what


def test_a_carriers_odd_target_is_told() -> None:
    answers = GOOD.replace("carrier=Phone Id = 0\n", f"carrier=Phone Id = 0\n{UPLINK}20ms\n")
    found = [each for each in doctor.phone(answers, "A") if each.verdict == doctor.BAD]
    assert ["is no number: 20ms" in each.what for each in found] == [True]


def test_an_uplink_needs_no_lambda() -> None:
    off = GOOD.replace("= true", f"= false\n{UPLINK}5")
    assert verdicts(off + NETD_UPLINK) == []


def test_a_phone_with_an_older_series() -> None:
    found = list(doctor.phone(GOOD.replace(" 100\n", "\n").replace(" 0 0\n", " 0\n"), "A"))
    assert [each.verdict for each in found] == [doctor.GOOD, doctor.UNKNOWN]
    assert found[0].what.endswith("; on: rmnet_data0 125, v4-rmnet_data0 125")
    assert "no tcp_drwa_queue" in found[1].what


# In place of adb: runs the script that it is given in a guest, on a real kernel.
IN_GUEST = """\
#!{python}
import sys
sys.path.insert(0, "{lab}")
from drwalab import guest, kernels
knob = "/proc/sys/net/ipv4/conf/phone/tcp_drwa_lambda"
script = "ip link add phone type veth peer name other; "
script += f"[ ! -e {{knob}} ] || echo 150 > {{knob}}; " + sys.argv[2]
folder = guest.run_script(script, kernels.find("6.12", "{flavour}"), kernels.agent())
print((folder / "console").read_text())
"""


@pytest.mark.guest
@pytest.mark.parametrize("flavour", ["drwa", "base"])
def test_a_real_kernel(world: World, tmp_path: Path, flavour: str) -> None:
    try:
        kernels.find("6.12", flavour)
    except kernels.KernelMissing as error:
        pytest.skip(str(error))
    adb = tmp_path / "adb"
    lab = DEVICE.parent / "kernel/lab"
    adb.write_text(IN_GUEST.format(python=sys.executable, lab=lab, flavour=flavour))
    adb.chmod(0o755)
    done = world.run("doctor", "--adb", str(adb), "--json")
    # Without that, the guest did not answer in time, and the report says so.
    assert "findings" in done.report, done.report
    what = done.report["findings"][0]["what"]
    if flavour == "drwa":
        assert (done.code, what.split("; ")[1]) == (0, "on: phone 150")
    else:
        # The module may govern by programs, of which the kernel alone does not tell.
        assert done.report["findings"][0]["verdict"] == doctor.UNKNOWN
        assert "has no tcp_drwa_lambda, and the policy" in what
