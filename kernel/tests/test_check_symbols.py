# SPDX-License-Identifier: GPL-2.0-only
"""kernel/module/check-symbols: which symbols of a module no list of a GKI has."""

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[1] / "module" / "check-symbols"
SOURCE = """\
extern int listed(void), elsewhere(void), unlisted(void), __this_module;
static int own(void) { return unlisted() + __this_module; }
int defined(void) { return listed() + elsewhere() + own(); }
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "drwa.ko"
    command = ["gcc", "-x", "c", "-c", "-o", str(path), "-"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def check(*words: Path | str) -> tuple[int, str, str]:
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_a_module_needs(module: Path) -> None:
    code, out, _ = check(module)
    assert code == 0
    assert {"elsewhere", "listed", "unlisted"} <= set(out.split())
    assert not {"own", "defined", "__this_module"} & set(out.split())


def test_a_gki_exports_what_any_list_has(module: Path, tmp_path: Path) -> None:
    """And only below the list's head; what is behind a # is a remark."""
    one = write(tmp_path / "qcom", "# unlisted\n[abi_symbol_list]\n  listed\n  # unlisted\n")
    two = write(tmp_path / "oplus", "[abi_symbol_list]\n# for a module\n  elsewhere # unlisted\n")
    code, out, _ = check("--json", module, one, two)
    said = json.loads(out)
    assert code == 1
    assert "unlisted" in said["missing"]
    assert not {"listed", "elsewhere"} & set(said["missing"])
    assert {"elsewhere", "unlisted"} <= set(said["lacks"][str(one)])
    assert "listed" not in said["lacks"][str(one)]
    names = "\n".join(said["missing"])
    three = write(tmp_path / "all", f"[abi_symbol_list]\n{names}\n")
    code, out, _ = check(module, one, two, three)
    assert (code, out.splitlines()[-1]) == (0, "in no list: none")


def test_some_lists_have_no_head(module: Path, tmp_path: Path) -> None:
    """But what is below another head is no list of symbols."""
    said = json.loads(
        check("--json", module, write(tmp_path / "x", "listed\n[other]\nunlisted\n"))[1]
    )
    assert "listed" not in said["missing"]
    assert "unlisted" in said["missing"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "[abi_symbol_list]\n  int listed(void);\n",
            "is no symbol list: 'int listed(void);' is no symbol",
        ),
        ("<abi>\n", "is no symbol list: '<abi>' is no symbol"),
        (None, "No such file or directory"),
    ],
)
def test_no_list(module: Path, tmp_path: Path, text: str | None, what: str) -> None:
    path = tmp_path / "list"
    if text is not None:
        path.write_text(text)
    code, out, err = check(module, path)
    assert (code, out) == (2, "")
    assert err.startswith("check-symbols: ")
    assert err.endswith(f"{what}\n")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"text" * 99])
def test_no_module(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "drwa.ko"
    path.write_bytes(data)
    code, out, err = check(path)
    assert (code, out) == (2, "")
    assert err.startswith(f"check-symbols: {path} ")
    assert err.count("\n") == 1


KERNEL = TOOL.parents[1]


def bazel_rules() -> dict[str, dict[str, Any]]:
    """The targets of BUILD.bazel: Starlark is Python here, and each statement a call."""
    return {
        rule["name"]: rule
        for node in ast.parse((KERNEL / "BUILD.bazel").read_text()).body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if (rule := {str(each.arg): ast.literal_eval(each.value) for each in node.value.keywords})
    }


MODULES = {name: rule for name, rule in bazel_rules().items() if "out" in rule}


@pytest.mark.parametrize("name", MODULES)
def test_bazel_has_every_source(name: str) -> None:
    """Kleaf sees what a rule and its dependencies name, and nothing else."""
    rule = MODULES[name]
    headers = [bazel_rules()[dep[1:]] for dep in rule["deps"] if dep.startswith(":")]
    seen = {*rule["srcs"], *(file for each in headers for file in each.get("hdrs", ()))}
    folders = [folder for each in headers for folder in each.get("includes", ())]
    ours = {path.name for path in KERNEL.glob("src/**/*") if "drwa" in path.name}
    (source,) = rule["srcs"]
    waiting, used = [source], set()
    while waiting:
        used.add(including := waiting.pop())
        for include in re.findall(
            r'^#include [<"](.+)[>"]', (KERNEL / including).read_text(), re.MULTILINE
        ):
            beside = os.path.normpath(Path(including).parent / include)
            places = [beside, *(f"{folder}/{include}" for folder in folders)]
            # A kernel's own header, or one of a kernel with the patches
            if Path(include).name not in ours or include == "trace/events/tcp_drwa.h":
                continue
            found = [place for place in places if (KERNEL / place).is_file()]
            assert found, include
            assert found[0] in seen
            waiting += {found[0]} - used
    assert len(used) > 2


def test_bazel_makes_what_kbuild_makes() -> None:
    found = re.search(r"^obj-m := (.*)", (KERNEL / "module/Kbuild").read_text(), re.MULTILINE)
    assert found
    made = {rule["out"].removesuffix(".ko") for rule in MODULES.values()}
    assert made == {name.removesuffix(".o") for name in found[1].split()}


def test_bazel_has_a_target_for_each_set_of_hooks() -> None:
    """android15-6.6 lacks the hook for samples, which a module with DRWA_RTT_HOOK registers at."""
    hooks = {name: set(rule.get("local_defines", ())) for name, rule in MODULES.items()}
    assert hooks["drwa"] == set()
    assert hooks["drwa_hooks"] == {"DRWA_VENDOR_HOOKS", "DRWA_RTT_HOOK", "TCP_DRWA_USEC_TS"}
    assert hooks["drwa_hooks_6_6"] == {"DRWA_VENDOR_HOOKS"}
