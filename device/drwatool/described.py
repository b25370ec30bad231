# SPDX-License-Identifier: Apache-2.0
"""A series as this repository describes it, made for the tree in front of it.

Each folder of kernel/series, frameworks/series/PROJECT and netd_patches/series is a patch:
  message      subject, blank line, text
  places.toml  files, new ones, which have the same names here; [copy], new ones and folders of
               them, with their names here and there; needs, without which the patch is left out;
               [headers], which older kernels lack and get; and [[place]], where it changes files
               that are there: see places.py
"""

import os
import re
import tempfile
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drwatool.errors import ConflictError, DrwaError, ElsewhereError
from drwatool.git import Repository
from drwatool.places import (
    Form,
    Place,
    Placed,
    PlaceError,
    Reader,
    put,
    read_places,
    taken,
    wanted,
)

AUTHOR = "DRWA for Android"
EMAIL = "drwa@example.org"
# Fixed, so that the same sources give the same bytes.
DATE = "1352851200 +0000"  # 2012-11-14
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_PARAMETERS": "",  # what `git -c` says, of which an alias runs this
    # Objects stay in the pack that they come in, which is gone soon.
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "fastimport.unpackLimit",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "pack.compression",
    "GIT_CONFIG_VALUE_1": "0",
    # Whose sign-off the patches have
    "GIT_COMMITTER_NAME": AUTHOR,
    "GIT_COMMITTER_EMAIL": EMAIL,
    "TZ": "UTC",
}
FORMAT = [
    *("format-patch", "--signoff", "--zero-commit", "--no-numbered", "--no-signature"),
    *("--no-renames", "--full-index", "--stat=72"),
]


class SeriesError(DrwaError):
    """The description of the series is wrong, or it cannot be written down."""


class RefusedError(ConflictError):
    """Places of a tree that are not where they were looked for."""

    def __init__(self, refusals: list[str]) -> None:
        super().__init__(f"the series has no place: {'; '.join(refusals)}")
        self.refusals = refusals


@dataclass(frozen=True)
class Step:
    """A patch, described."""

    name: str
    message: str
    files: dict[str, Path]  # new ones, and where they are taken from
    needs: tuple[str, ...]
    headers: dict[str, str]
    places: tuple[Place, ...]

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]


@dataclass
class Series:
    """What the series is in one tree."""

    before: dict[str, str | None] = field(default_factory=dict)  # what it looked at
    steps: list[tuple[Step, dict[str, str]]] = field(default_factory=list)  # the files of each
    placed: list[Placed] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_series(series: Path, sources: Path) -> list[Step]:
    """The steps that a folder describes; their new files are taken from below another one."""
    steps = [_read_step(folder, sources) for folder in sorted(series.glob("[0-9]*"))]
    if not steps:
        raise SeriesError(f"{series} describes no patch: check this repository out whole")
    return steps


def _read_step(folder: Path, sources: Path) -> Step:
    if not re.fullmatch(r"\d{4}-[a-z0-9_-]+", folder.name):
        raise SeriesError(f"series/{folder.name}: the name is not NNNN-name")
    try:
        message = (folder / "message").read_text()
        table = tomllib.loads((folder / "places.toml").read_text())
        places = read_places(table)
    except FileNotFoundError as error:
        name = Path(error.filename).name
        raise SeriesError(f"series/{folder.name}: the file '{name}' is missing") from None
    except (KeyError, ValueError) as error:
        raise SeriesError(f"series/{folder.name}/places.toml: {error}") from None
    files = {path: sources / path for path in table.get("files", ())}
    for source, target in table.get("copy", {}).items():
        files |= _copies(sources / source, target)
    needs = tuple(table.get("needs", ()))
    headers = {path: text.removeprefix("\n") for path, text in table.get("headers", {}).items()}
    return Step(folder.name, message, files, needs, headers, places)


def _copies(source: Path, target: str) -> dict[str, Path]:
    """A file, or those of a folder, by their names in the tree."""
    if source.is_file():
        return {target: source}
    found = sorted(path for path in source.rglob("*") if path.is_file())
    if not found:
        raise SeriesError(f"{source} is missing: check this repository out whole")
    return {(Path(target) / path.relative_to(source)).as_posix(): path for path in found}


def place(steps: list[Step], read: Reader, with_tests: bool = False) -> Series:
    """The series for a tree; RefusedError names every place that is not there."""
    series = Series()
    now: dict[str, str | None] = {}
    refusals: list[str] = []
    spoiled: set[str] = set()  # files where a place is missing, so that later ones may be, too

    def look(path: str) -> str | None:
        if path not in now:
            now[path] = series.before[path] = read(path)
        return now[path]

    def there(path: str) -> bool:
        try:
            return look(path) is not None
        except ElsewhereError:
            return True

    for step in steps:
        missing = [path for path in step.needs if not there(path)]
        if missing and not with_tests:
            series.left_out.append(f"{step.name}: the tree has no {', '.join(missing)}")
            continue
        refusals += [f"{step.name}: the tree has no {path}" for path in missing]
        changed: dict[str, str] = {}
        for path, source in step.files.items():
            if there(path):
                refusals.append(f"{step.name}: {path} is there already")
            changed[path] = source.read_text()
        changed |= {path: text for path, text in step.headers.items() if not there(path)}
        for each in step.places:
            if not wanted(each, look):
                continue
            try:
                text, placed = put(each, changed.get(each.file, look(each.file)))
            except ElsewhereError as error:
                if with_tests or not each.optional:
                    raise
                if each.file not in spoiled:
                    series.left_out.append(f"{each}: it is {error.what}")
            except PlaceError as error:
                if each.file in spoiled:
                    continue
                reasons = series.left_out if each.optional and not with_tests else refusals
                reasons.append(str(error))
            else:
                changed[each.file] = text
                series.placed.append(placed)
                continue
            spoiled.add(each.file)
        now |= changed
        series.steps.append((step, changed))
    if refusals:
        raise RefusedError(refusals)
    return series


def without(steps: list[Step], read: Reader) -> tuple[Reader, dict[str, list[str]]]:
    """The tree without what it has of the series, and by the step what of that is a guess: places
    where several forms have one text, of which the first is taken.
    """
    now: dict[str, str | None] = {}
    guesses: dict[str, list[str]] = {}

    def look(path: str) -> str | None:
        try:
            return now[path] if path in now else read(path)
        except ElsewhereError:
            return None  # nothing is put there

    for step in reversed(steps):
        for each in reversed(step.places):
            found = taken(each, look(each.file))
            if found:
                now[each.file] = next(iter(found))
            if len(found) > 1:
                words = " or ".join(f"`{form.what}`" for form in found.values())
                guesses.setdefault(step.name, []).insert(0, f"{each}: it was {words}")
        now |= dict.fromkeys(step.files)
        now |= {path: None for path, text in step.headers.items() if look(path) == text}
    return lambda path: now[path] if path in now else read(path), guesses


def notes_of(series: Series) -> tuple[str, ...]:
    """Where the series went in files that a tree is built of, and what was left out."""
    own = [each for each in series.placed if not each.place.optional and not _of_ours(each.form)]
    return (*map(str, own), *(f"left out: {text}" for text in series.left_out))


def _of_ours(form: Form) -> bool:
    """Whether it goes beside another line of the series."""
    return "drwa" in form.what.lower()


def sources_of(series: Path, sources: Path) -> tuple[Path, ...]:
    """All that a series is made of."""
    steps = read_series(series, sources)
    described = [series / step.name / name for step in steps for name in ("message", "places.toml")]
    return (*described, *(path for step in steps for path in step.files.values()))


def patches(series: Series, prefix: str = "", executable: Collection[str] = ()) -> dict[str, str]:
    """The series as `git format-patch` writes it, by file name; paths begin with the prefix.

    Some vendors' trees have all files executable.
    """
    who = f"{AUTHOR} <{EMAIL}> {DATE}".encode()
    modes = {path: "100755" if path in executable else "100644" for path in _touched(series)}
    before = {path: series.before[path] for path in modes}
    commits: list[tuple[str, Mapping[str, str | None]]] = [("pristine", before)]
    commits += [(step.message, files) for step, files in series.steps]
    stream = [b"feature done\n"]
    for message, files in commits:
        said = f"{message.strip()}\n".encode()
        stream.append(b"commit refs/heads/made\ncommitter %b\ndata %d\n%b" % (who, len(said), said))
        for path, text in files.items():
            if text is not None:
                content = text.encode(errors="surrogateescape")
                stream.append(os.fsencode(f"M {modes[path]} inline {prefix}{path}\n"))
                stream.append(b"data %d\n%b\n" % (len(content), content))
    stream.append(b"done\n")
    with tempfile.TemporaryDirectory(prefix="drwa-") as name:
        folder = Path(name)
        git = Repository(folder, folder / ".git", ENVIRONMENT).git
        git("init", "--quiet", "--template=", "--initial-branch=made")
        # In one go: a git for each patch's files, its commit and its mail takes a while.
        git("fast-import", "--quiet", "--depth=0", text=b"".join(stream))
        written = git(*FORMAT, f"-{len(series.steps)}").decode().splitlines()
        return {
            f"{step.name}.patch": decoded((folder / path).read_bytes())
            for (step, _), path in zip(series.steps, written, strict=True)
        }


def _touched(series: Series) -> set[str]:
    return {path for _, files in series.steps for path in files}


def folder_reader(folder: Path) -> Reader:
    """Reads the files of a source tree."""

    def read(path: str) -> str | None:
        file = folder / path
        return decoded(file.read_bytes()) if file.is_file() else None

    return read


def decoded(text: bytes) -> str:
    """Bytes that are no UTF-8 come through as they are."""
    return text.decode(errors="surrogateescape")
