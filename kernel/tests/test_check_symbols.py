# SPDX-License-Identifier: GPL-2.0-only
"""kernel/module/check-symbols: which symbols of a module no list of a GKI has."""

import ast
import json
import re
import subprocess
from pathlib import Path

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


def test_bazel_has_every_source() -> None:
    """Kleaf sees what a rule names, and nothing else; Starlark is Python here."""
    home = TOOL.parents[1]
    names = {
        node.value
        for node in ast.walk(ast.parse((home / "BUILD.bazel").read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.endswith((".c", ".h"))
    }
    assert all((home / name).is_file() for name in names)
    included = {
        include
        for name in names
        for include in re.findall(
            r'^#include [<"]((?:\w+/)?tcp_drwa\w*\.[ch])[>"]', (home / name).read_text(), re.M
        )
    }
    assert len(included) > 4
    folders = ("", "src/include/", "src/net/ipv4/")
    assert all(any(folder + each in names for folder in folders) for each in included)
