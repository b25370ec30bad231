# SPDX-License-Identifier: Apache-2.0
"""Finds the Android.bp files that Soong would find, and reads them with blueprint's own parser.

The parser is Go. bpjson/main.go is compiled with it, best with the tree's own: files may be newer
than any other parser.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drwatool.errors import DrwaError

# Of Soong's ui/build/finder.go: neither a folder that holds one of these is looked at, …
PRUNE_FILES = frozenset({".find-ignore", ".out-dir"})
# … nor these folders, nor links to folders.
EXCLUDED_FOLDERS = frozenset({".git", ".repo"})
FILE = "Android.bp"
PROGRAM = Path(__file__).resolve().parents[1] / "bpjson/main.go"
PARSER = "github.com/google/blueprint/parser"
# Where a tree, and where Debian's golang-github-google-blueprint-dev keeps the parser.
OWN_PARSER = "build/blueprint/parser"
DEBIANS_PARSER = Path("/usr/share/gocode/src") / PARSER
OWN_GO = "prebuilts/go/linux-x86/bin/go"
TO_INSTALL = "apt install golang-go golang-github-google-blueprint-dev, or elsewhere Go alone"
# Variables that say something about their own file, and nothing about those below (context.go).
NOT_INHERITED = ("build", "optional_subdirs", "subdirs")

Value = Any  # str, bool, int, None, a list, a dict with properties, or Branches
Progress = Callable[[str], None]


class ReaderError(DrwaError):
    """There is no parser to be had."""


class EvaluationError(DrwaError):
    """An expression that blueprint would refuse."""


@dataclass(frozen=True)
class Branches:
    """The values of a select(), or a sum with one: which of them counts depends on the product."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Module:
    """A module as an Android.bp file has it."""

    kind: str
    file: str  # relative to the tree
    line: int
    properties: dict[str, Value]

    @property
    def name(self) -> str:
        return str(self.properties.get("name", ""))

    @property
    def package(self) -> str:
        return folder_of(self.file)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read, and may define or name anything."""

    file: str
    why: str  # with the place
    refused: bool  # by the parser; else what it says could not be evaluated here


@dataclass
class Found:
    """What the files of a tree say."""

    modules: list[Module] = field(default_factory=list)
    files: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)


@dataclass(frozen=True)
class Reader:
    """The compiled program, and whether its parser is the tree's own."""

    program: Path
    own: bool


def find(tree: Path, names: Iterable[str], say: Callable[[int], None]) -> dict[str, list[str]]:
    """The files of these names that Soong's finder finds, relative to the tree.

    Tells the number of folders again and again.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for number, (folder, folders, files) in enumerate(os.walk(tree), start=1):
        say(number)
        present = set(files)
        if present & PRUNE_FILES:
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - EXCLUDED_FOLDERS)
        for name in found.keys() & present:
            found[name].append(str((Path(folder) / name).relative_to(tree)))
    return found


def compile_reader(tree: Path, folder: Path) -> Reader:
    """Compiles the program into a folder, with what the tree or else the machine has."""
    parsers = [path for path in (tree / OWN_PARSER, DEBIANS_PARSER) if path.is_dir()]
    compilers = [str(tree / OWN_GO)] if (tree / OWN_GO).is_file() else []
    compilers += filter(None, [shutil.which("go")])
    said = "there is no Go" if parsers else "there is no parser of blueprint's"
    for parser in parsers:
        for compiler in compilers:
            program = folder / "bpjson"
            said = _compile(compiler, parser, folder / "src", program)
            if not said:
                return Reader(program, parser != DEBIANS_PARSER)
    raise ReaderError(f"{said}: {TO_INSTALL}")


def _compile(compiler: str, parser: Path, sources: Path, program: Path) -> str:
    """What the compiler had to complain of."""
    shutil.rmtree(sources, ignore_errors=True)
    (sources / PARSER).mkdir(parents=True)
    for path in parser.glob("*.go"):
        if not path.name.endswith("_test.go"):
            shutil.copy(path, sources / PARSER)
    (sources / "bpjson").mkdir()
    shutil.copy(PROGRAM, sources / "bpjson")
    # No module and no network: GOPATH is the folder with the two packages.
    settings = {
        "GO111MODULE": "off",
        "GOPATH": str(sources.parent),
        "GOFLAGS": "",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    settings |= {} if "HOME" in os.environ else {"GOCACHE": str(sources.parent / "cache")}
    try:
        done = subprocess.run(
            # The folder is another one each time, and is in no object: the next ones are cached.
            [compiler, "build", "-trimpath", "-o", str(program), "bpjson"],
            cwd=sources.parent,
            env={k: v for k, v in os.environ.items() if k != "GOROOT"} | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"{compiler}: {error.strerror}"
    if done.returncode == 0:
        return ""
    return f"{compiler}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"


def read(
    reader: Reader,
    tree: Path,
    files: Sequence[str],
    whole: Callable[[str], bool],
    properties: Sequence[str],
) -> Found:
    """The modules of these files and of those that their `build` names.

    They have all of their properties where `whole` says so of the file, and else these.
    """
    found = Found()
    if not files:
        return found
    scopes: dict[str, dict[str, Value]] = {}
    # A folder's variables hold in those below it, so that the shortest come first.
    pending = sorted(files, key=lambda name: (name.count("/"), name))
    extra: dict[str, dict[str, Value]] = {}
    while pending:
        more: dict[str, dict[str, Value]] = {}
        marked = [f"*{file}" if whole(file) else file for file in pending]
        for entry in _entries(reader, tree, marked, properties):
            file = entry["file"]
            found.files += 1
            if "error" in entry:
                found.unreadable.append(Unreadable(file, entry["error"], refused=True))
                continue
            scope = dict(extra[file]) if file in extra else _inherited(scopes, file)
            try:
                found.modules += _evaluate(file, entry["definitions"] or [], scope)
            except EvaluationError as error:
                found.unreadable.append(Unreadable(file, str(error), refused=False))
            names = list(strings(scope.pop("build", None)))
            if file not in extra:
                scopes[folder_of(file)] = scope
            for name in names:
                more[f"{folder_of(file)}/{name}".lstrip("/")] = scope
        pending, extra = list(more), more
    return found


def _entries(
    reader: Reader, tree: Path, files: Sequence[str], properties: Sequence[str]
) -> Iterator[dict[str, Any]]:
    done = subprocess.run(
        [reader.program, *properties],
        cwd=tree,
        input="\0".join(files).encode(errors="surrogateescape"),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ReaderError(f"blueprint's parser failed: {done.stderr.decode().strip()[-200:]}")
    return map(json.loads, done.stdout.splitlines())


def _inherited(scopes: dict[str, dict[str, Value]], file: str) -> dict[str, Value]:
    folder = folder_of(file)
    while folder:
        folder = folder_of(folder)
        if folder in scopes:
            scope = scopes[folder]
            return {name: scope[name] for name in scope if name not in NOT_INHERITED}
    return {}


def _evaluate(
    file: str, definitions: list[dict[str, Any]], scope: dict[str, Value]
) -> Iterator[Module]:
    for definition in definitions:
        line = definition["line"]
        try:
            if name := definition.get("assigned"):
                value = _value(definition.get("value"), scope)
                before = scope.get(name) if definition["operator"] == "+=" else None
                scope[name] = value if before is None else _sum(before, value)
                continue
            pairs = definition.get("properties") or []
            properties = {name: _value(value, scope) for name, value in pairs}
        except EvaluationError as error:
            raise EvaluationError(f"{file}:{line}: {error}") from None
        yield Module(definition["module"], file, line, properties)


def _value(raw: Value, scope: dict[str, Value]) -> Value:
    if isinstance(raw, list):
        return [_value(each, scope) for each in raw]
    if not isinstance(raw, dict):
        return raw
    ((kind, content),) = raw.items()
    match kind:
        case "map":
            return {name: _value(value, scope) for name, value in content}
        case "variable" if content in scope:
            return scope[content]
        case "variable":
            raise EvaluationError(f"there is no variable {content}")
        case "sum":
            return _sum(*(_value(each, scope) for each in content))
        case "select":
            return Branches(tuple(_value(each, scope) for each in content))
    raise EvaluationError(f"no expression that is known here: {content}")


def _sum(left: Value, right: Value) -> Value:
    if isinstance(left, Branches) or isinstance(right, Branches):
        return Branches((left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        both = left.keys() & right.keys()
        return left | right | {name: _sum(left[name], right[name]) for name in both}
    if type(left) is not type(right) or not isinstance(left, str | int | list):
        raise EvaluationError(f"{left!r} + {right!r}")
    return left + right


def folder_of(path: str) -> str:
    """The folder of a file or folder; that of the tree itself is empty."""
    return path.rpartition("/")[0]


def strings(value: Value) -> Iterator[str]:
    """All the strings of a value, whichever branches count."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, Branches):
        for each in value.values:
            yield from strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
