# SPDX-License-Identifier: GPL-2.0-only
"""Builds of a kernel in miniature: a Makefile that answers to the same targets as Linux's."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drwalab import kernels, pool, sources, spec
from drwalab.kernels import KernelError, KernelMissing, Recipe
from drwalab.sources import Source, read_lines

MAKEFILE = """\
allnoconfig:
\tsed '/TCP_DRWA/d' $(KCONFIG_ALLCONFIG) > .config
\tcat drwa.config >> .config 2>/dev/null || true
\techo CONFIG_PAHOLE_VERSION=`$(PAHOLE) --version || echo 0` >> .config
\tmkdir -p include/config && echo 6.12.1 > include/config/kernel.release

linux: one.o two.o
\tcat $^ > $@

modules:
\t$(if $(M),cp $(M)/drwa.c $(M)/drwa.ko && cp drwa/src/net/sched/sch_drwa_up.c $(M)/sch_drwa_up.ko)
\t$(if $(M),cp $(M)/drwa.c $(M)/drwa_up_dfc.ko)
\t$(if $(DRWA_KUNIT),cp $(M)/drwa.c $(M)/drwa_up_test.ko)

%.o: %.c
\t@echo "  CC      $@"
\t@! grep -n '#error' $<
\tcp $< $@
"""
PLACES = """\
files = ["drwa.config"]
[[place]]
what = "one"
file = "one.c"
replace = "int one;"
text = "int changed;"
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds a source, and a kernel/ folder beside it, which is returned."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "cache" / "drwa" / "sources" / "6.12"
    write(home / "version", "6.12.1-1\n")
    write(home / "unused", "\n".join(sources.UNUSED))
    write(home / "linux" / "Makefile", MAKEFILE)
    write(home / "linux" / "one.c", "int one;\n")
    write(home / "linux" / "two.c", "int two;\n")
    write(home / "linux" / "net" / "sched" / "Kconfig", "config NET\n\tbool\nconfig NET_SCHED\n")
    kernel = tmp_path / "kernel"
    write(kernel / "lab" / "guest" / "guest.config", "CONFIG_NET=y\nCONFIG_TCP_DRWA=y\n")
    for fragment in ("um", "uplink", "bpf", "nat", "module", "kunit", "lockdep"):
        write(kernel / "lab" / "guest" / f"{fragment}.config", "")
    write(kernel / "lab" / "guest" / "debug.config", "CONFIG_KASAN=y\n")
    write(kernel / "lab" / "guest" / "net" / "sched" / "sch_lab.c", "int lab;\n")
    for folder in kernels.MODULE_SOURCES:
        write(kernel / folder / "drwa.c", "int law;\n")
    for name in kernels.GATE:
        write(kernel / "src" / name, "int gate;\n")
    write(kernel / "series" / "0001-one" / "message", "tcp: one\n")
    write(kernel / "series" / "0001-one" / "places.toml", PLACES)
    write(kernel / "src" / "drwa.config", "CONFIG_TCP_DRWA=y\n")
    monkeypatch.setattr(kernels, "KERNEL_DIR", kernel)
    monkeypatch.setattr(kernels, "GUEST_DIR", kernel / "lab" / "guest")
    return kernel


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def build(flavour: str) -> tuple[str, list[str]]:
    """What the built kernel holds, and the files that were compiled for it."""
    lines: list[str] = []
    kernel = kernels.build("6.12", flavour, lines.append)
    compiled = [line.split()[-1] for line in lines if line.startswith("  ")]
    return kernel.path.read_text(), sorted(compiled)


@pytest.mark.parametrize("name", ["a b", "a:b"])
def test_a_cache_that_make_cannot_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    with pytest.raises(KernelError, match="set XDG_CACHE_HOME to another folder"):
        kernels.build("6.12", "drwa", lambda _: None)


def recipe(**changes: object) -> Recipe:
    same = Recipe("6.12", "drwa", "6.12.1-1", "gcc 12", "CONFIG_NET=y\n", {"a.c": b"a"}, [], [])
    return dataclasses.replace(same, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"line": "6.1"},
        {"flavour": "base"},
        {"debian_version": "6.12.1-2"},
        {"compiler": "gcc 13"},
        {"config": "CONFIG_NET=n\n"},
        {"files": {"a.c": b"b"}},
        {"files": {"b.c": b"a"}},
        {"lab_patches": [("1.patch", b"x")]},
        {"series": [("1.patch", b"x")]},
        {"extra": [("1.patch", b"x")]},
    ],
)
def test_key_covers_everything(change: dict[str, object]) -> None:
    assert recipe(**change).key != recipe().key
    assert recipe().key == recipe().key


PATCH = """\
From 0123 Mon Sep 17 00:00:00 2001
Subject: [PATCH] tcp: a word

diff --git a/net/a.c b/net/a.c
--- a/net/a.c
+++ b/net/a.c
@@ -1,2 +1,4 @@
 int a;
-int b;
+/* Why it is 2,
+ * and not 3 */
+int b = 2;	// not 1
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("and not 3", "never 4", True),
        ("// not 1", "", True),
        ("+ * and not 3 */\n", "+ */\n", True),
        ("@@ -1,2 +1,4 @@\n int a;", "@@ -9,2 +9,4 @@\n int z;", True),
        ("tcp: a word", "tcp: another", True),
        ("b = 2", "b  =  2", True),
        ("b = 2", "b = 3", False),
        ("-int b;", "-int b, c;", False),
        ("net/a.c", "net/b.c", False),
        # What is a comment in C alone
        ("net/a.c", "net/a.rst", False),
    ],
)
def test_a_patch_is_its_code(old: str, new: str, same: bool) -> None:
    assert old in PATCH
    changed = kernels.patch_id(PATCH.replace(old, new).encode())
    assert (changed == kernels.patch_id(PATCH.encode())) == same


@pytest.mark.parametrize(
    ("file", "more", "same"),
    [
        ("bpf/drwa_aqm.h", "// a word", True),
        ("bpf/drwa_aqm.h", "int a;", False),
        ("bpf/drwa.h", "int a;", False),
        ("bpf/drwa-bpf.c", "int a;", True),
        ("src/net/ipv4/tcp_drwa_core.c", "int a;", False),
    ],
)
def test_programs_are_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, more: str, same: bool
) -> None:
    """And the law's, and none of their loader's."""
    before = kernels.programs_id()
    for folder in ("bpf", "src/net/ipv4", "src/include/linux"):
        shutil.copytree(sources.KERNEL_DIR / folder, tmp_path / folder)
    monkeypatch.setattr("drwalab.kernels.KERNEL_DIR", tmp_path)
    monkeypatch.setattr(kernels, "BPF_DIR", tmp_path / "bpf")
    assert kernels.programs_id() == before
    with (tmp_path / file).open("a") as source:
        source.write(more)
    assert (kernels.programs_id() == before) == same


def test_build_and_find(tree: Path) -> None:
    with pytest.raises(KernelMissing, match=r"lab kernel build --kernel 6\.12 --flavour drwa"):
        kernels.find("6.12", "drwa")
    assert build("drwa") == ("int changed;\nint two;\n", ["one.o", "two.o"])
    found = kernels.find("6.12", "drwa")
    assert (found.release, found.debian_version) == ("6.12.1", "6.12.1-1")
    assert len(found.patch_ids) == 1
    assert build("drwa") == ("int changed;\nint two;\n", [])


def test_make_has_a_job_more_than_there_are_cpus(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    make = kernels._make

    def note(tree: Path, arguments: list[str], recipe: Recipe, log: sources.Log) -> Path:
        asked.append(arguments)
        return make(tree, arguments, recipe, log)

    monkeypatch.setattr(kernels, "_make", note)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5})
    build("base")
    assert asked[-1] == ["-j3", "linux"]


def test_flavours_share_objects_but_not_patches(tree: Path) -> None:
    assert build("drwa")[0] == "int changed;\nint two;\n"
    assert build("base") == ("int one;\nint two;\n", ["one.o"])
    assert kernels.find("6.12", "base").patch_ids == []
    assert kernels.find("6.12", "drwa").path.read_text() == "int changed;\nint two;\n"


def test_changed_series_rebuilds_what_it_touches(tree: Path) -> None:
    build("drwa")
    places = tree / "series" / "0001-one" / "places.toml"
    places.write_text(PLACES.replace("int changed;", "int again;"))
    with pytest.raises(KernelMissing):
        kernels.find("6.12", "drwa")
    assert build("drwa") == ("int again;\nint two;\n", ["one.o"])
    # A new message alone is a new key, and yet nothing to compile.
    write(tree / "series" / "0001-one" / "message", "tcp: won\n")
    assert build("drwa") == ("int again;\nint two;\n", [])


def test_spoilt_tree_is_made_anew(tree: Path, tmp_path: Path) -> None:
    build("drwa")
    spoilt = tmp_path / "cache" / "drwa" / "trees" / "6.12-drwa"
    (spoilt / "one.c").write_text("int spoilt;\n")
    os.utime(spoilt / "one.c", (1, 1))
    places = tree / "series" / "0001-one" / "places.toml"
    places.write_text(PLACES.replace("int changed;", "int again;"))
    assert build("drwa")[0] == "int again;\nint two;\n"


def test_lab_files_reach_the_tree(tree: Path, tmp_path: Path) -> None:
    build("base")
    copied = tmp_path / "cache" / "drwa" / "trees" / "6.12-base" / "net" / "sched" / "sch_lab.c"
    assert copied.read_text() == "int lab;\n"
    write(tree / "lab" / "guest" / "net" / "sched" / "sch_lab.c", "int better;\n")
    build("base")
    assert copied.read_text() == "int better;\n"


def test_lost_option_is_named(tree: Path) -> None:
    """One that the line knows; what the line does not have is no loss."""
    (tree / "lab" / "guest" / "guest.config").write_text("CONFIG_NET=y\nCONFIG_OTHER=y\n")
    source = Source(read_lines()["6.12"], "1", tree)
    write(tree / ".config", "# CONFIG_NET is not set\n")
    write(tree / "net" / "Kconfig", "config NET\n\tbool\n")
    assert kernels.lost_options(kernels.make_recipe(source, "base"), tree) == ["CONFIG_NET=y"]


def test_debug_adds_its_fragment(tree: Path, tmp_path: Path) -> None:
    """It is patched like drwa, and compiled apart from it."""
    assert build("debug") == ("int changed;\nint two;\n", ["one.o", "two.o"])
    config = tmp_path / "cache" / "drwa" / "trees" / "6.12-debug" / ".config"
    assert "CONFIG_KASAN=y" in config.read_text()
    assert build("drwa") == ("int changed;\nint two;\n", ["one.o", "two.o"])


def test_pahole_makes_no_other_kernel(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is in no key."""
    write(tmp_path / "bin" / "pahole", "#!/bin/sh\necho 124\n")
    (tmp_path / "bin" / "pahole").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PAHOLE", "pahole")
    build("base")
    config = tmp_path / "cache" / "drwa" / "trees" / "6.12-base" / ".config"
    assert "CONFIG_PAHOLE_VERSION=0" in config.read_text().splitlines()


def test_a_module_comes_with_its_kernel(tree: Path) -> None:
    """And is another one when its source is."""
    kernel = kernels.build("6.12", "module", lambda _: None)
    assert kernel.path.with_name("drwa.ko").read_text() == "int law;\n"
    write(tree / "module" / "drwa.c", "int other;\n")
    kernel = kernels.build("6.12", "module", lambda _: None)
    assert kernel.path.with_name("drwa.ko").read_text() == "int other;\n"
    assert kernel.path.with_name("sch_drwa_up.ko").read_text() == "int gate;\n"


def test_a_module_needs_what_loads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = spec.parse("drwa-module", {"rate": "1mbit", "base-rtt": "10ms"})
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(KernelMissing, match="run kernel/lab/packages kmod"):
        pool.find_kernels([run])


def test_option_that_a_line_lacks_is_no_loss(tree: Path) -> None:
    (tree / "lab" / "guest" / "um.config").write_text("CONFIG_DEBUG_ATOMIC_SLEEP=y\n")
    write(tree / ".config", "")
    write(tree / "lib" / "Kconfig.debug", "config DEBUG_ATOMIC_SLEEP\n\tbool\n")
    lost = {
        line: kernels.lost_options(
            kernels.make_recipe(Source(read_lines()[line], "1", tree), "base"), tree
        )
        for line in ("6.12", "6.1")
    }
    assert lost == {"6.12": ["CONFIG_DEBUG_ATOMIC_SLEEP=y"], "6.1": []}


def test_a_line_can_have_its_own_form_of_a_lab_patch(tree: Path) -> None:
    patches = tree / "lab" / "guest" / "patches"
    write(patches / "0001-a.patch", "a")
    write(patches / "0002-b.patch", "b")
    write(patches / "6.1" / "0002-b.patch", "b of 6.1")
    found = {
        line: kernels.make_recipe(Source(read_lines()[line], "1", tree), "base").lab_patches
        for line in ("6.12", "6.1")
    }
    assert found["6.12"] == [("0001-a.patch", b"a"), ("0002-b.patch", b"b")]
    assert found["6.1"] == [("0001-a.patch", b"a"), ("0002-b.patch", b"b of 6.1")]


def test_series_without_its_option_fails(tree: Path) -> None:
    write(tree / "src" / "drwa.config", "# none\n")
    with pytest.raises(KernelError, match="lost CONFIG_TCP_DRWA=y"):
        build("drwa")


def test_failed_build_shows_why(tree: Path) -> None:
    places = tree / "series" / "0001-one" / "places.toml"
    places.write_text(PLACES.replace("int changed;", "#error no"))
    with pytest.raises(KernelError, match=r"(?s)make linux failed.*6.12-drwa.log.*#error no"):
        build("drwa")
    places.write_text(PLACES)
    assert build("drwa")[0] == "int changed;\nint two;\n"


def test_place_that_is_not_there_is_named(tree: Path) -> None:
    places = tree / "series" / "0001-one" / "places.toml"
    places.write_text(PLACES.replace("int one;", "int three;"))
    with pytest.raises(
        KernelError, match=r"6\.12: .* one\.c: one: not found: replace `int three;`"
    ):
        build("drwa")


def test_empty_series_is_told(tree: Path) -> None:
    shutil.rmtree(tree / "series")
    with pytest.raises(KernelError, match="series describes no patch"):
        build("drwa")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "5.4"], "lab: unknown kernel '5.4': choose from 6.12, 6.1, 5.10, 7.3\n"),
        (
            ["--flavour", "x"],
            "lab: unknown flavour 'x': choose from "
            "base, drwa, bpf, module, vendor, debug, module-debug, smp, kcsan, cost, "
            "arm64, arm64-module\n",
        ),
    ],
)
def test_wrong_input_ends_with_one_line(tree: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(kernels.kernel_app, ["build", *arguments])
    assert (result.exit_code, result.output) == (2, message)


def test_agent_is_compiled_once(tree: Path) -> None:
    write(tree / "lab" / "guest" / "agent.c", '#include "agent.h"\nint main(void){return N;}\n')
    write(tree / "lab" / "guest" / "agent.h", "#define N 7\n")
    first = kernels.agent()
    assert os.waitstatus_to_exitcode(os.system(str(first))) == 7
    assert kernels.agent() == first
    write(tree / "lab" / "guest" / "agent.h", "#define N 8\n")
    assert kernels.agent() != first
    write(tree / "lab" / "guest" / "agent.c", "int main(void) { return }\n")
    with pytest.raises(KernelError, match="agent does not compile"):
        kernels.agent()
