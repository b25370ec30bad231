# SPDX-License-Identifier: GPL-2.0-only
import importlib.util
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from drwatool.errors import ConflictError

MKSERIES = Path(__file__).resolve().parents[2] / "mkseries"
MAKEFILE = "".join(f"obj-y += {name}.o\n" for name in ("a", "b", "c", "d", "e", "f"))
PLACES = """\
[[place]]
what = "what is built"
file = "net/Makefile"
after = "obj-y += c.o"
text = "obj-y += drwa.o"
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


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    kernel = tmp_path / "kernel"
    write(kernel / "src" / "net" / "drwa.c", "// SPDX-License-Identifier: GPL-2.0-only\nint x;\n")
    first, second = kernel / "series" / "0001-core", kernel / "series" / "0002-hook"
    write(first / "message", "tcp: add the core\n\nIt holds λ.\n")
    write(first / "places.toml", 'files = ["net/drwa.c"]\n')
    write(second / "message", "tcp: hook the core\n\nBuild it.\n")
    write(second / "places.toml", PLACES)
    return kernel


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    write(tmp_path / "pristine" / "net" / "Makefile", MAKEFILE)
    return tmp_path / "pristine"


def test_patches_are_complete(kernel: Path, pristine: Path, tmp_path: Path) -> None:
    patches = mkseries.generate(kernel, pristine)
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
    patches = mkseries.generate(kernel, pristine)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LANGUAGE", "de")
    assert mkseries.generate(kernel, pristine) == patches


def test_places_move_with_the_source(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "Makefile", "# a comment of this line\n" * 3 + MAKEFILE)
    patch = mkseries.generate(kernel, pristine)["0002-hook.patch"]
    assert "@@ -4,6 +4,7 @@" in patch


def test_stale_patches_are_told(kernel: Path, pristine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    patches = mkseries.generate(kernel, pristine)
    assert mkseries.write(folder, patches) == ["0001-core.patch", "0002-hook.patch"]
    assert mkseries.write(folder, patches) == []
    assert mkseries.differences(mkseries.present(folder), patches) == []

    write(kernel / "src" / "net" / "drwa.c", "int y;\n")
    newer = mkseries.generate(kernel, pristine)
    assert mkseries.differences(mkseries.present(folder), newer) == ["0001-core.patch"]
    write(folder / "0003-left-over.patch", "")
    assert mkseries.write(folder, newer) == ["0001-core.patch", "0003-left-over.patch"]
    assert mkseries.present(folder) == newer


def test_misfit_names_the_place(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "Makefile", "obj-y += other.o\n")
    looked = r"net/Makefile: what is built: not found: after `obj-y \+= c\.o`"
    with pytest.raises(ConflictError, match=looked):
        mkseries.generate(kernel, pristine)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("src/net/extra.c", "", "src/net/extra.c is in no patch"),
        (
            "series/0002-hook/places.toml",
            'files = ["net/none.c"]',
            "names net/none.c, which is not in",
        ),
        (
            "series/0002-hook/places.toml",
            'files = ["net/drwa.c"]',
            "is in both 0001-core and 0002-",
        ),
        ("series/0003-empty/places.toml", "", "series/0003-empty: the file 'message' is missing"),
        ("series/0002-hook/places.toml", "[[place]]", "0002-hook/places.toml: 'file'"),
        ("series/0002-hook/places.toml", "files = [", "0002-hook/places.toml: Invalid value"),
        ("series/04_odd/message", "x", "series/04_odd: the name is not NNNN-name"),
    ],
)
def test_wrong_description_is_told(kernel: Path, path: str, text: str, message: str) -> None:
    write(kernel / path, text)
    with pytest.raises(mkseries.SeriesError, match=message):
        mkseries.check_files(
            kernel / "src", mkseries.read_series(kernel / "series", kernel / "src")
        )


def test_new_file_must_be_new(kernel: Path, pristine: Path) -> None:
    write(pristine / "net" / "drwa.c", "int old;\n")
    with pytest.raises(ConflictError, match=r"0001-core: net/drwa\.c is there already"):
        mkseries.generate(kernel, pristine)


def test_checkpatch_objections_are_passed_on(tmp_path: Path) -> None:
    write(
        tmp_path / "scripts" / "checkpatch.pl", 'print "WARNING: no\\n"; exit($ARGV[3] =~ /bad/);'
    )
    patches = {"good.patch": "", "bad.patch": ""}
    assert mkseries.checkpatch(tmp_path, patches) == ["bad.patch:\nWARNING: no"]


def test_the_repository_keeps_one_series() -> None:
    """Patches are made for each tree: a second copy of them would be above that."""
    top = MKSERIES.parents[1]
    listed = ["git", "ls-files", "-z", "--", "*.patch"]
    names = subprocess.run(listed, cwd=top, capture_output=True, text=True, check=True).stdout
    lines = {name: (top / name).read_text().count("\n") for name in names.split("\0") if name}
    assert any(name.startswith("kernel/patches/") for name in lines)
    assert any(name.startswith("kernel/module/ack/") for name in lines)
    assert sum(lines.values()) <= 9000
