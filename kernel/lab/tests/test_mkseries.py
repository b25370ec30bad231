# SPDX-License-Identifier: GPL-2.0-only
import difflib
import importlib.util
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from drwalab.sources import Line

MKSERIES = Path(__file__).resolve().parents[2] / "mkseries"
MAKEFILE = "".join(f"obj-y += {name}.o\n" for name in ("a", "b", "c", "d", "e", "f"))
EDIT = """\
--- a/net/Makefile
+++ b/net/Makefile
@@ -1,6 +1,7 @@
 obj-y += a.o
 obj-y += b.o
 obj-y += c.o
+obj-y += drwa.o
 obj-y += d.o
 obj-y += e.o
 obj-y += f.o
"""


def load() -> ModuleType:
    loader = SourceFileLoader("mkseries", str(MKSERIES))
    spec = importlib.util.spec_from_loader("mkseries", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


mkseries = load()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def line(name: str, source: str = "debian", like: str = "") -> Line:
    return Line(name, source=source, like=like)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    kernel = tmp_path / "kernel"
    write(kernel / "src" / "net" / "drwa.c", "// SPDX-License-Identifier: GPL-2.0-only\nint x;\n")
    first, second = kernel / "series" / "0001-core", kernel / "series" / "0002-hook"
    write(first / "message", "tcp: add the core\n\nIt holds λ.\n")
    write(first / "files", "net/drwa.c\n")
    write(second / "message", "tcp: hook the core\n\nBuild it.\n")
    write(second / "edits.diff", EDIT)
    return kernel


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    write(tmp_path / "pristine" / "net" / "Makefile", MAKEFILE)
    return tmp_path / "pristine"


def test_patches_are_complete(kernel: Path, pristine: Path, tmp_path: Path) -> None:
    patches = mkseries.generate(kernel, line("6.12"), pristine)
    assert list(patches) == ["0001-core.patch", "0002-hook.patch"]
    first = patches["0001-core.patch"]
    assert first.startswith("From " + "0" * 40)
    assert "Subject: [PATCH] tcp: add the core\n" in first
    assert "It holds λ.\n\nSigned-off-by: DRWA for Android <drwa@example.org>\n---\n" in first
    assert " net/drwa.c | 2 ++\n" in first
    tree = tmp_path / "tree"
    write(tree / "net" / "Makefile", MAKEFILE)
    for patch in patches.values():
        subprocess.run(["patch", "-p1", "--quiet"], cwd=tree, input=patch, text=True, check=True)
    assert (tree / "net" / "drwa.c").read_text() == (kernel / "src/net/drwa.c").read_text()
    assert "obj-y += c.o\nobj-y += drwa.o\n" in (tree / "net" / "Makefile").read_text()


def test_same_sources_give_the_same_bytes(
    kernel: Path, pristine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the user's git, clock and language are set to."""
    patches = mkseries.generate(kernel, line("6.12"), pristine)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LANGUAGE", "de")
    assert mkseries.generate(kernel, line("6.12"), pristine) == patches


def test_a_line_can_have_edits_of_its_own(kernel: Path, pristine: Path) -> None:
    own = EDIT.replace("+obj-y += drwa.o", "+obj-y += drwa.o # 6.1")
    write(kernel / "series" / "0002-hook" / "edits-6.1.diff", own)
    hook = "0002-hook.patch"
    assert "# 6.1" in mkseries.generate(kernel, line("6.1"), pristine)[hook]
    assert "# 6.1" not in mkseries.generate(kernel, line("6.12"), pristine)[hook]


def test_edits_move_with_the_line(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "Makefile", "# a comment of this line\n" * 3 + MAKEFILE)
    patch = mkseries.generate(kernel, line("6.12"), pristine)["0002-hook.patch"]
    assert "@@ -4,6 +4,7 @@" in patch


def test_stale_patches_are_told(kernel: Path, pristine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    patches = mkseries.generate(kernel, line("6.12"), pristine)
    assert mkseries.write(folder, patches) == ["0001-core.patch", "0002-hook.patch"]
    assert mkseries.write(folder, patches) == []
    assert mkseries.differences(mkseries.present(folder), patches) == []

    write(kernel / "src" / "net" / "drwa.c", "int y;\n")
    newer = mkseries.generate(kernel, line("6.12"), pristine)
    assert mkseries.differences(mkseries.present(folder), newer) == ["0001-core.patch"]
    write(folder / "0003-left-over.patch", "")
    assert mkseries.write(folder, newer) == ["0001-core.patch", "0003-left-over.patch"]
    assert mkseries.present(folder) == newer


def test_misfit_names_patch_and_line(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "Makefile", "obj-y += other.o\n")
    with pytest.raises(mkseries.SeriesError, match=r"0002-hook/edits\.diff does not fit 6\.1:"):
        mkseries.generate(kernel, line("6.1"), pristine)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("src/net/extra.c", "", "src/net/extra.c is in no patch"),
        ("series/0002-hook/files", "net/none.c", "names net/none.c, which is not in src/"),
        ("series/0002-hook/files", "net/drwa.c", "is in both 0001-core and 0002-hook"),
        ("series/0003-empty/files", "", "series/0003-empty: the file 'message' is missing"),
        ("series/04_odd/message", "x", "series/04_odd: the name is not NNNN-name"),
    ],
)
def test_wrong_description_is_told(
    kernel: Path, pristine: Path, path: str, text: str, message: str
) -> None:
    write(kernel / path, text)
    with pytest.raises(mkseries.SeriesError, match=message):
        mkseries.generate(kernel, line("6.12"), pristine)


def test_new_file_must_be_new(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "drwa.c", "int old;\n")
    with pytest.raises(mkseries.SeriesError, match=r"exists in 6\.12"):
        mkseries.generate(kernel, line("6.12"), pristine)


def test_checkpatch_objections_are_passed_on(tmp_path: Path) -> None:
    write(
        tmp_path / "scripts" / "checkpatch.pl", 'print "WARNING: no\\n"; exit($ARGV[3] =~ /bad/);'
    )
    patches = {"good.patch": "", "bad.patch": ""}
    assert mkseries.checkpatch(tmp_path, patches) == ["bad.patch:\nWARNING: no"]


SOURCE = "".join(f"int function_{n}(void)\n{{\n\treturn {n};\n}}\n\n" for n in range(60))
CHANGES = [("\treturn 3;", "\treturn three();"), ("\treturn 50;", "\tagain();\n\treturn 50;")]


def edit(before: str, after: str) -> str:
    """A diff of net/a.c."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), "a/net/a.c", "b/net/a.c"
    )
    return "".join(lines)


def test_patches_are_made_again_without_their_source(
    kernel: Path, pristine: Path, tmp_path: Path
) -> None:
    """From what they tell of it, where two patches change a file, and where one adds to its end."""
    now = SOURCE
    for number, (old, new) in enumerate(CHANGES, start=3):
        folder = kernel / "series" / f"000{number}-more"
        write(folder / "message", "tcp: more\n\nMore.\n")
        write(folder / "edits.diff", edit(now, now.replace(old, new)))
        now = now.replace(old, new)
    write(kernel / "series" / "0005-end" / "message", "tcp: end\n\nThe end.\n")
    write(kernel / "series" / "0005-end" / "edits.diff", edit(now, now + "int end;\n"))
    write(pristine / "net" / "a.c", SOURCE)
    made = mkseries.generate(kernel, line("6.6", source=""), pristine)
    assert "@@ -250,6 +250,7 @@ int function_49(void)" in made["0004-more.patch"]
    assert not any("\nindex " in patch for patch in made.values())
    mkseries.sparse_tree(list(made.values()), tmp_path / "sparse")
    assert mkseries.generate(kernel, line("6.6", source=""), tmp_path / "sparse") == made
    # What the patches do not tell is not there to be changed.
    write(kernel / "series" / "0005-end" / "edits.diff", edit(SOURCE, SOURCE.replace("20;", "0;")))
    with pytest.raises(mkseries.SeriesError, match=r"0005-end/edits\.diff does not fit 6\.6:"):
        mkseries.generate(kernel, line("6.6", source=""), tmp_path / "sparse")


def test_a_line_takes_the_edits_of_one_like_it(
    kernel: Path, pristine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {"6.6": line("6.6", like="6.1"), "6.1": line("6.1")}
    monkeypatch.setattr(mkseries, "read_all_lines", lambda: lines)
    like = EDIT.replace("+obj-y += drwa.o", "+obj-y += drwa.o # 6.1")
    write(kernel / "series" / "0002-hook" / "edits-6.1.diff", like)
    assert "# 6.1" in mkseries.generate(kernel, lines["6.6"], pristine)["0002-hook.patch"]
    write(kernel / "series" / "0002-hook" / "edits-6.6.diff", EDIT)
    assert "# 6.1" not in mkseries.generate(kernel, lines["6.6"], pristine)["0002-hook.patch"]
