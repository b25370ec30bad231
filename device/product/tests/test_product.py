# SPDX-License-Identifier: Apache-2.0
"""What the makefiles set, and whether what the other files name is there."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOP = Path(__file__).parents[3]
PRODUCT = TOP / "device/product"
FRAMEWORK = Path("/usr/share/android-framework-res/framework-res.apk")
# Where the manifest puts this repository in an AOSP tree.
CHECKOUT = "vendor/drwa"
MAKES = ("make", "kati")
OPTION = "CONFIG_TCP_DRWA=y"

# Of the functions of the product configuration, the makefiles use this one.
STUBS = """
define inherit-product
$(eval include $(1))
endef
"""
SHOWN = (
    "BOARD_VENDOR_KERNEL_MODULES",
    "BOARD_VENDOR_KERNEL_MODULES_LOAD",
    "DEVICE_PRODUCT_COMPATIBILITY_MATRIX_FILE",
    "KERNEL_CONFIG_OVERRIDE",
    "PRODUCT_MODULE_BUILD_FROM_SOURCE",
    "PRODUCT_PACKAGES",
    "PRODUCT_PACKAGES_DEBUG",
    "PRODUCT_SYSTEM_SERVER_JARS_EXTRA",
    "SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS",
    "TARGET_KERNEL_CONFIG",
)
# Those of them that others add to as well
LISTS = (
    "DEVICE_PRODUCT_COMPATIBILITY_MATRIX_FILE",
    "PRODUCT_PACKAGES",
    "PRODUCT_PACKAGES_DEBUG",
    "PRODUCT_SYSTEM_SERVER_JARS_EXTRA",
    "SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The top of an AOSP tree, with this repository in its place."""
    (tmp_path / CHECKOUT).parent.mkdir()
    (tmp_path / CHECKOUT).symlink_to(TOP)
    return tmp_path


def run(
    tree: Path, tool: str, makefile: str, stubs: str = STUBS
) -> subprocess.CompletedProcess[str]:
    (tree / "test.mk").write_text(f"{stubs}{makefile}\nall: ; @true\n")
    return subprocess.run(
        [tool, "-f", "test.mk"], cwd=tree, capture_output=True, text=True, check=False
    )


def evaluate(tree: Path, tool: str, makefile: str, stubs: str = STUBS) -> dict[str, list[str]]:
    """Returns the words of each variable of SHOWN that is not empty."""
    show = "".join(f"$(info {name} $({name}))\n" for name in SHOWN)
    done = run(tree, tool, f"{makefile}\n{show}", stubs)
    assert done.returncode == 0, done.stderr
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0]: words[1:] for words in lines if words[0] in SHOWN and words[1:]}


def inherit(name: str) -> str:
    return f"$(call inherit-product, {CHECKOUT}/device/product/{name})"


BOARD = f"include {CHECKOUT}/device/product/BoardConfigDrwa.mk"
MODULE_BOARD = f"include {CHECKOUT}/device/product/BoardConfigDrwaModule.mk"
UPLINK_BOARD = f"include {CHECKOUT}/device/product/BoardConfigDrwaUplink.mk"


@pytest.mark.parametrize("tool", MAKES)
def test_product_with_connectivity_from_source(tree: Path, tool: str) -> None:
    assert evaluate(tree, tool, inherit("drwa.mk")) == {
        "PRODUCT_MODULE_BUILD_FROM_SOURCE": ["true"],
        "PRODUCT_PACKAGES_DEBUG": ["drwa_debug.rc"],
    }


@pytest.mark.parametrize("tool", MAKES)
def test_product_with_service(tree: Path, tool: str) -> None:
    assert evaluate(tree, tool, inherit("drwa_service.mk")) == {
        "PRODUCT_PACKAGES": ["DrwaServiceOverlay", "drwa-service"],
        "PRODUCT_PACKAGES_DEBUG": ["drwa_debug.rc"],
        "PRODUCT_SYSTEM_SERVER_JARS_EXTRA": ["system_ext:drwa-service"],
    }


@pytest.mark.parametrize("tool", MAKES)
def test_programs_come_with_the_loader_that_takes_them(tree: Path, tool: str) -> None:
    (rule,) = re.findall(r"wildcard ([^)]+)", (PRODUCT / "drwa_service.mk").read_text())
    series = TOP / "frameworks/series/system_bpf/0001-drwa-bpf/places.toml"
    folder = tomllib.loads(series.read_text())["copy"]["kernel/bpf/android"]
    assert rule == f"system/bpf/{folder}/Android.bp"
    name = re.search(r'name: "(.*\.o)"', (TOP / "kernel/bpf/android/Android.bp").read_text())
    assert name is not None
    (tree / rule).parent.mkdir(parents=True)
    (tree / rule).touch()
    packages = evaluate(tree, tool, inherit("drwa_service.mk"))["PRODUCT_PACKAGES"]
    assert packages == ["DrwaServiceOverlay", "drwa-service", name[1]]


@pytest.mark.skipif("AOSP" not in os.environ, reason="AOSP=DIR names no real tree")
@pytest.mark.parametrize("name", ["drwa.mk", "drwa_service.mk", "lineage/product.mk"])
def test_real_product_configuration(tree: Path, name: str) -> None:
    """The functions of a real tree in place of the stub."""
    (tree / "build").mkdir()
    (tree / "build/make").symlink_to(Path(os.environ["AOSP"]).resolve() / "build/make")
    (tree / "product.mk").write_text(f"PRODUCT_PACKAGES := a\n{inherit(name)}\n")
    core = ("common/core.mk", "core/node_fns.mk", "common/json.mk", "core/product.mk")
    makefile = "".join(f"include build/make/{file}\n" for file in core)
    result = "".join(f"{v} := $(PRODUCTS.product.mk.{v})\n" for v in SHOWN)
    stub = evaluate(tree, "make", f"PRODUCT_PACKAGES := a\n{inherit(name)}")
    makefile += f"OUT_DIR := out\n$(call import-products,product.mk)\n{result}"
    assert evaluate(tree, "make", makefile, stubs="") == stub


@pytest.mark.parametrize("tool", MAKES)
@pytest.mark.parametrize("name", ["drwa.mk", "drwa_service.mk", "BoardConfigDrwa.mk"])
def test_what_is_there_before_stays(tree: Path, tool: str, name: str) -> None:
    """Lists grow at their end."""
    board = f"TARGET_KERNEL_CONFIG := gki_defconfig\n{BOARD}\n"
    makefile = board if name == "BoardConfigDrwa.mk" else inherit(name)
    alone = evaluate(tree, tool, makefile)
    before = "".join(f"{each} := its own\n" for each in LISTS)
    assert evaluate(tree, tool, before + makefile) == alone | {
        each: ["its", "own", *alone.get(each, [])] for each in LISTS
    }


@pytest.mark.parametrize("name", ["drwa.mk", "drwa_service.mk"])
def test_nothing_else_is_set(tree: Path, name: str) -> None:
    """No property, no copied file, nothing that could switch DRWA on or outlive an update."""
    names = "$(foreach v,$(.VARIABLES),$(if $(filter file,$(origin $v)),$(info $v)))"
    known = set(run(tree, "make", names).stdout.split())
    found = set(run(tree, "make", f"{inherit(name)}\n{BOARD}\n{names}").stdout.split())
    assert found - known <= set(SHOWN)


@pytest.mark.parametrize("tool", MAKES)
def test_board_that_builds_its_kernel(tree: Path, tool: str) -> None:
    values = evaluate(tree, tool, f"TARGET_KERNEL_CONFIG := gki_defconfig\n{BOARD}")
    assert values == {
        "TARGET_KERNEL_CONFIG": ["gki_defconfig"],
        "KERNEL_CONFIG_OVERRIDE": [OPTION],
        "SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS": [f"{CHECKOUT}/sepolicy/private"],
        "DEVICE_PRODUCT_COMPATIBILITY_MATRIX_FILE": [
            f"{CHECKOUT}/device/product/compatibility_matrix.drwa.xml"
        ],
    }


@pytest.mark.parametrize("tool", MAKES)
@pytest.mark.parametrize("patched", [True, False])
def test_board_whose_kernel_source_is_known(tree: Path, tool: str, patched: bool) -> None:
    header = tree / "kernel/phone/include/linux/tcp_drwa.h"
    header.parent.mkdir(parents=True)
    if patched:
        header.touch()
    source = "TARGET_KERNEL_SOURCE := kernel/phone"
    values = evaluate(tree, tool, f"TARGET_KERNEL_CONFIG := gki_defconfig\n{source}\n{BOARD}")
    assert ("KERNEL_CONFIG_OVERRIDE" in values) == patched
    assert ("DEVICE_PRODUCT_COMPATIBILITY_MATRIX_FILE" in values) == patched


@pytest.mark.parametrize("tool", MAKES)
def test_board_with_a_built_kernel(tree: Path, tool: str) -> None:
    assert evaluate(tree, tool, BOARD) == {
        "SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS": [f"{CHECKOUT}/sepolicy/private"]
    }


@pytest.mark.parametrize("tool", MAKES)
@pytest.mark.parametrize("listed", [True, False])
def test_board_with_a_vendor_module(tree: Path, tool: str, listed: bool) -> None:
    """Which loads with the rest: a board without a list loads all."""
    ours = "device/phone-kernel/drwa.ko"
    (tree / ours).parent.mkdir(parents=True)
    (tree / ours).touch()
    board = "BOARD_VENDOR_KERNEL_MODULES := x/wlan.ko x/test.ko\n"
    if listed:
        board += "BOARD_VENDOR_KERNEL_MODULES_LOAD := x/wlan.ko\n"
    board += f"DRWA_KERNEL_MODULE := {ours}\n{MODULE_BOARD}"
    expected = {
        "SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS": [f"{CHECKOUT}/sepolicy/private"],
        "BOARD_VENDOR_KERNEL_MODULES": ["x/wlan.ko", "x/test.ko", ours],
    }
    if listed:
        expected["BOARD_VENDOR_KERNEL_MODULES_LOAD"] = ["x/wlan.ko", ours]
    assert evaluate(tree, tool, board) == expected


@pytest.mark.parametrize("tool", MAKES)
def test_board_without_its_vendor_module(tree: Path, tool: str) -> None:
    done = run(tree, tool, f"DRWA_KERNEL_MODULE := device/none.ko\n{MODULE_BOARD}")
    assert done.returncode != 0
    assert "DRWA_KERNEL_MODULE is no file: 'device/none.ko'" in done.stderr + done.stdout


@pytest.mark.parametrize("tool", MAKES)
@pytest.mark.parametrize("listed", [True, False])
def test_board_with_the_uplinks_module(tree: Path, tool: str, listed: bool) -> None:
    """Beside drwa.ko, as well as alone."""
    names = ("drwa.ko", "sch_drwa_up.ko", "drwa_up_dfc.ko")
    modules = [f"device/phone-kernel/{name}" for name in names]
    (tree / "device/phone-kernel").mkdir(parents=True)
    for module in modules:
        (tree / module).touch()
    board = "BOARD_VENDOR_KERNEL_MODULES_LOAD := x/wlan.ko\n" if listed else ""
    uplink = f"DRWA_UPLINK_MODULE := {modules[1]} {modules[2]}\n{UPLINK_BOARD}\n"
    expected = {"BOARD_VENDOR_KERNEL_MODULES": modules[1:]}
    if listed:
        expected["BOARD_VENDOR_KERNEL_MODULES_LOAD"] = ["x/wlan.ko", *modules[1:]]
    assert evaluate(tree, tool, board + uplink) == expected
    beside = evaluate(
        tree, tool, f"{board}DRWA_KERNEL_MODULE := {modules[0]}\n{MODULE_BOARD}\n{uplink}"
    )
    assert beside["BOARD_VENDOR_KERNEL_MODULES"] == modules
    assert beside.get("BOARD_VENDOR_KERNEL_MODULES_LOAD", []) == (
        ["x/wlan.ko", *modules] if listed else []
    )


@pytest.mark.parametrize("tool", MAKES)
def test_board_without_the_uplinks_module(tree: Path, tool: str) -> None:
    (tree / "some.ko").touch()
    modules = "some.ko device/none.ko"
    done = run(tree, tool, f"DRWA_UPLINK_MODULE := {modules}\n{UPLINK_BOARD}")
    assert done.returncode != 0
    assert "DRWA_UPLINK_MODULE is no file: 'device/none.ko'" in done.stderr + done.stdout


@pytest.mark.parametrize("tool", MAKES)
def test_board_whose_override_is_taken(tree: Path, tool: str) -> None:
    taken = "TARGET_KERNEL_CONFIG := x\nKERNEL_CONFIG_OVERRIDE := CONFIG_Y=y"
    done = run(tree, tool, f"{taken}\n{BOARD}")
    assert done.returncode != 0
    assert "KERNEL_CONFIG_OVERRIDE is taken: CONFIG_Y=y" in done.stderr + done.stdout


@pytest.mark.parametrize("tool", MAKES)
def test_lineage_drop_in(tree: Path, tool: str) -> None:
    """The files that LineageOS reads from vendor/extra do what the lines of README.md do."""
    extra = "".join(
        f"include {CHECKOUT}/device/product/lineage/{name}\n"
        for name in ("product.mk", "BoardConfigExtra.mk")
    )
    assert evaluate(tree, tool, extra) == evaluate(tree, tool, f"{inherit('drwa.mk')}\n{BOARD}")


def test_manifest() -> None:
    manifest = ElementTree.parse(PRODUCT / "lineage/drwa.xml").getroot()
    remotes = {remote.get("name") for remote in manifest.iter("remote")}
    (project,) = manifest.iter("project")
    assert project.get("path") == CHECKOUT
    assert project.get("remote") in remotes
    links = {link.get("dest"): TOP / (link.get("src") or "") for link in project.iter("linkfile")}
    assert set(links) == {"vendor/extra/product.mk", "vendor/extra/BoardConfigExtra.mk"}
    assert all(source.is_file() for source in links.values())


def test_paths_exist() -> None:
    """Every file of ours that a file here names by its path in an AOSP tree."""
    files = [*PRODUCT.rglob("*.mk"), *PRODUCT.glob("*.xml"), PRODUCT / "README.md"]
    named = {
        path for file in files for path in re.findall(rf"{CHECKOUT}/([\w./-]*\w)", file.read_text())
    }
    assert len(named) >= 6
    assert [path for path in sorted(named) if not (TOP / path).exists()] == []


def build_overlay(name: str, out: Path) -> Path:
    folder = PRODUCT / "overlay" / name
    compiled, apk = out / f"{name}.zip", out / f"{name}.apk"
    subprocess.run(["aapt2", "compile", "--dir", folder / "res", "-o", compiled], check=True)
    manifest = folder / "AndroidManifest.xml"
    subprocess.run(
        ["aapt2", "link", "-I", FRAMEWORK, "--manifest", manifest, "-o", apk, compiled], check=True
    )
    return apk


def dump(what: str, apk: Path, *options: str) -> str:
    command = ["aapt2", "dump", what, *options, str(apk)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def targets(apk: Path) -> list[str]:
    """The package that a static overlay is for."""
    manifest = dump("xmltree", apk, "--file", "AndroidManifest.xml")
    assert "isStatic(0x0101055a)=true" in manifest
    return re.findall(r'targetPackage\(\w+\)="(.*?)"', manifest)


def test_service_overlay(tmp_path: Path) -> None:
    apk = build_overlay("service", tmp_path)
    assert targets(apk) == ["android"]
    (name,) = re.findall(r"resource \w+ (\w+/\w+)", dump("resources", apk))
    assert name == "array/config_deviceSpecificSystemServices"
    assert f" {name}\n" in dump("resources", FRAMEWORK)
    (service,) = re.findall(r'\["(.*)"\]', dump("resources", apk))
    source = TOP / "frameworks/service/src" / f"{service.replace('.', '/')}.java"
    assert "extends SystemService" in source.read_text()


def test_carrier_config_overlay(tmp_path: Path) -> None:
    apk = build_overlay("carrier_config", tmp_path)
    assert targets(apk) == ["com.android.carrierconfig"]
    config = dump("xmltree", apk, "--file", "res/xml/vendor.xml")
    (key,) = re.findall(r'A: name="(.*?)"', config)
    reader = TOP / "frameworks/drwa/src/com/android/server/connectivity/DrwaCarrierConfig.java"
    assert f'KEY_ENABLED = "{key}"' in reader.read_text()
    assert "A: value=true" in config


def test_init_script_names_the_tracepoint() -> None:
    """init ignores what it cannot parse, and a file that is not there."""
    lines = (PRODUCT / "drwa_debug.rc").read_text().splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    header = (TOP / "kernel/src/include/trace/events/tcp_drwa.h").read_text()
    system = re.search(r"#define TRACE_SYSTEM (\w+)", header)
    event = re.search(r"TRACE_EVENT\((\w+),", header)
    assert system and event
    path = f"/sys/kernel/tracing/events/{system[1]}/{event[1]}/enable"
    assert lines == ["on late-init", f"    chmod 0666 {path}"]


def test_compatibility_matrix() -> None:
    matrix = ElementTree.parse(PRODUCT / "compatibility_matrix.drwa.xml").getroot()
    assert (matrix.tag, matrix.get("type")) == ("compatibility-matrix", "framework")
    # Without a level of its own, so that VINTF takes it for the device's.
    assert matrix.get("level") is None
    required = set()
    for kernel in matrix:
        (config,) = kernel
        key, value = config
        assert (kernel.tag, config.tag, key.tag, value.tag) == ("kernel", "config", "key", "value")
        assert value.get("type") == "tristate"
        assert f"{key.text}={value.text}" == OPTION
        assert (kernel.get("level") or "").isdecimal()
        required.add(".".join((kernel.get("version") or "").split(".")[:2]))
    # Of Android 13 to 16; a later Android's have no entry in VINTF yet that this could be added to.
    assert required == {"5.10", "5.15", "6.1", "6.6", "6.12"}


def test_kernel_fragment() -> None:
    configs = TOP / "kernel/configs"
    (option,) = (
        line
        for line in (configs / "drwa.config").read_text().splitlines()
        if not line.startswith("#")
    )
    assert option == OPTION
    # Of Starlark, this much is Python.
    (rule,) = ast.parse((configs / "BUILD.bazel").read_text()).body
    assert isinstance(rule, ast.Expr) and isinstance(rule.value, ast.Call)
    arguments = {each.arg: ast.literal_eval(each.value) for each in rule.value.keywords}
    # Kleaf's convention for names of fragments.
    assert arguments["name"] == "drwa_defconfig"
    assert all((configs / source).is_file() for source in arguments["srcs"])
