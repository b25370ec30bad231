# SPDX-License-Identifier: Apache-2.0
"""What of a series a project has, and the commits that would add or take back the rest.

Everything is made in a scratch index with scratch objects; the project stays as it is.
"""

import hashlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from drwatool import described, trees
from drwatool.errors import ConflictError, ElsewhereError, UnsupportedError, UsageError
from drwatool.git import SUBMODULE, GitError, Repository, index_locked
from drwatool.places import Reader, code_of, holds
from drwatool.trees import Kind, Project

# Commits of the first parents' chain that are searched; the content is looked at in any case.
DEPTH = 1000
# A partial clone need not have a file beside those that the series touches.
WRITE_TREE = ("write-tree", "--missing-ok")
# Whatever commits the user has it overlook
BLAME = ("blame", "-s", "-l", "--no-abbrev", "--ignore-revs-file=")
# A commit's headers in the words of git mailinfo.
HEADERS = "Author: %an%nEmail: %ae%nDate: %aD%nSubject: %s"
# What git has of a file in Git LFS
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\n"
LFS_ADVICE = "take it out (git lfs untrack), and commit its text (git add --renormalize)"
# Of a diff, what changes without a line
EXTENDED_HEADERS = ("old mode", "new mode", "new file mode", "deleted file mode", "GIT binary")
IN_PROGRESS = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}


class State(StrEnum):
    """How a project has a patch."""

    ABSENT = "not applied"
    PARTIAL = "applied in part"
    APPLIED = "applied"
    MERGED = "applied, merged 3-way"
    EDITED = "applied, and the commit was edited since"
    BY_HAND = "applied by hand, without a commit of its own"


@dataclass(frozen=True)
class Patch:
    """A patch of the series as this repository has it."""

    path: Path
    name: str  # as in the commit's Drwa-Series line
    id: str
    files: tuple[str, ...]
    origin: tuple[str, str]  # the subject and the author's address

    @property
    def short(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Found:
    """A commit of the project that holds a patch of a series, perhaps of an older one."""

    commit: str
    parents: tuple[str, ...]
    name: str
    shipped_id: str
    merged_id: str


@dataclass
class Inspection:
    """What of a series is there at a commit."""

    head: str
    patches: list[Patch]
    states: dict[str, State]  # by the patch's name
    commits: list[Found]  # newest first, without those that were reverted
    outdated: list[Found]  # of another version of the series
    changed_since: list[str]  # patches whose lines later commits changed
    missing: list[str]  # what HEAD lacks of patches that a commit claims to be
    # Commits that hold more than their patch, and some of that: somebody amended them.
    amended: dict[str, str]
    base: str  # the commit ahead of the series' oldest one, "" without any
    remains: bool  # as in Project

    @property
    def summary(self) -> str:
        present = [state for state in self.states.values() if state is not State.ABSENT]
        if self.outdated:
            return "another version"
        if not present:
            return "partly" if self.remains else "none"
        if State.PARTIAL in present or len(present) < len(self.states):
            return "partly"
        return "fully"


@dataclass
class Change:
    """Commits that are ready but for the project to move to them."""

    project: Project
    repository: Repository
    old: str
    new: str
    pack: bytes  # the objects that the project lacks
    files: list[tuple[str, bool, bool]]  # paths, and whether they were and will be there
    notes: list[str]

    @property
    def empty(self) -> bool:
        return self.old == self.new


def read_patches(project: Project, repository: Repository) -> list[Patch]:
    texts = [path.read_bytes() for path in project.patches]
    ids = _patch_ids(repository, b"".join(texts))
    return [
        Patch(
            path,
            f"{project.series}/{path.stem}",
            patch_id,
            files_of(path),
            _origin(text.decode(errors="surrogateescape")),
        )
        for path, text, (patch_id, _) in zip(project.patches, texts, ids, strict=True)
    ]


def _origin(mail: str) -> tuple[str, str]:
    """The subject and the author's address of a patch."""
    head = re.sub(r"\n[ \t]+", " ", mail.partition("\n\n")[0])
    found = dict(re.findall(r"^(From|Subject): (.*)$", head, re.MULTILINE))
    subject = re.sub(r"^\[PATCH[^\]]*\] ", "", found["Subject"])
    return subject, found["From"].rpartition("<")[2].rstrip(">")


def series_digest(sources: tuple[Path, ...]) -> str:
    """Changes with the places and the code, and not with messages and comments."""
    return _digest(path for path in sources if path.name != "message")


def module_digest() -> str:
    """Changes with the code of drwa.ko, and not with comments."""
    shared = ("classic.h", "compat.h", "core.c", "proc.c", "sysctl.c")
    return _digest(
        (
            *(trees.KERNEL / "module" / name for name in ("Kbuild", "drwa.c")),
            *sorted((trees.KERNEL / "src/include").rglob("tcp_drwa.h")),
            *(trees.KERNEL / "src/net/ipv4" / f"tcp_drwa_{name}" for name in shared),
        )
    )


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        text = path.read_text()
        code = code_of(text) if path.suffix in (".c", ".h", ".java", ".cpp", ".aidl") else text
        digest.update(f"{path.name}\0{code}\0".encode())
    return digest.hexdigest()[:12]


def place_series(project: Project, repository: Repository, into: Path, tests: bool) -> Project:
    """The project with the series for its tree, whose patches are written to a folder.

    Where the tree has the series, it is made for the commit before.
    """
    steps = described.read_series(*project.described)
    base, there = _before(repository, project.prefix, steps[0])

    @cache
    def read(path: str) -> str | None:
        name = f"{project.prefix}{path}"
        blob = repository.try_git("cat-file", "blob", f"{base}:{name}")
        if blob is None:
            return None
        text = described.decoded(blob)
        # A link's blob is the path that it leads to.
        is_line = "\n" not in text
        if is_line and repository.line("ls-tree", base, "--", name).startswith("120000 "):
            what = f"a symbolic link to {text}"
            raise ElsewhereError(
                f"{repository.folder}/{name}", what, "name the tree that has the file"
            )
        if text.startswith(LFS_POINTER):
            raise ElsewhereError(f"{repository.folder}/{name}", "in Git LFS", LFS_ADVICE)
        return text

    if project.name == trees.KERNEL_PROJECT and read("Makefile") is None:
        raise UsageError(f"{repository.folder}: {project.prefix}Makefile is not committed")
    if kind := _kind_of(project, read):
        if kind.refused:
            others = ", ".join(each.name for each in project.kinds if not each.refused)
            raise UnsupportedError(
                f"{project.folder} is Android {kind.name}; there are patches for {others}"
            )
        if kind.series:
            project = replace(project, series=f"{project.name}/{kind.series}")
    notes: tuple[str, ...] = (f"Android {kind.name}",) if kind else ()
    try:
        series, guesses, remains = _place(steps, read, there, tests)
    except described.RefusedError as error:
        return replace(project, refusals=tuple(error.refusals))
    touched = sorted(project.prefix + path for path in series.before)
    listing = repository.line("ls-tree", base, "--", *touched).splitlines()
    executable = {
        line.partition("\t")[2].removeprefix(project.prefix)
        for line in listing
        if line.startswith("100755 ")
    }
    into.mkdir()
    for name, text in described.patches(series, project.prefix, executable).items():
        (into / name).write_bytes(text.encode(errors="surrogateescape"))
    made = tuple(into / f"{step.name}.patch" for step, _ in series.steps)
    notes += described.notes_of(series)
    notes += tuple(f"guessed: {text}" for texts in guesses.values() for text in texts)
    project = replace(project, patches=made, notes=notes, guesses=guesses)
    if base == "HEAD":
        return replace(project, remains=remains)
    return replace(project, base=base, remains=True)


def _place(
    steps: list[described.Step], read: Reader, there: bool, tests: bool
) -> tuple[described.Series, dict[str, list[str]], bool]:
    """The series for a tree, or for what the tree would be without it, what of that is a guess, and
    whether the tree has to be without it; what upstream has of its lines stays, where it can.
    """
    pristine, guesses = described.without(steps, read)
    try:
        if there:
            return described.place(steps, pristine, with_tests=tests), guesses, False
        return described.place(steps, read, with_tests=tests), {}, False
    except described.RefusedError as refused:
        if not there:
            with suppress(described.RefusedError):
                return described.place(steps, pristine, with_tests=tests), guesses, True
        raise refused from None


def _kind_of(project: Project, read: Reader) -> Kind | None:
    """What a tree is, by what it has."""
    return next((kind for kind in project.kinds if not kind.has or holds(kind.has, read)), None)


def _before(repository: Repository, prefix: str, step: described.Step) -> tuple[str, bool]:
    """The commit ahead of the one that brought a patch, and whether it has the patch all the same:
    nothing may be ahead of it. HEAD if HEAD does not have it.
    """
    if step.files:
        # An earlier version of the patch may have had others.
        listing = ["ls-tree", "-z", "--name-only", "HEAD", "--", *(prefix + x for x in step.files)]
        path = os.fsdecode(repository.git(*listing)).partition("\0")[0]
        there = bool(path)
        changed = "--diff-filter=A"
    else:
        path = prefix + step.places[0].file
        line = max(step.places[0].forms[0].text.split("\n"), key=len).strip()
        text = repository.try_git("cat-file", "blob", f"HEAD:{path}") or b""
        there = line in described.decoded(text)
        changed = f"-S{line}"
    if not there:
        return "HEAD", False
    command = ["log", "-1", "-m", "--first-parent", changed, "--format=%P", "--", path]
    parents = repository.line(*command).split()
    return (parents[0], False) if parents else ("HEAD", True)


def files_of(patch: Path) -> tuple[str, ...]:
    """The files that a patch changes."""
    text = described.decoded(patch.read_bytes())
    names = re.findall(r"^(?:---|\+\+\+) [ab]/([^\t\n]+)\t?$", text, re.MULTILINE)
    return tuple(sorted(set(names)))


def _patch_ids(repository: Repository, text: bytes) -> list[tuple[str, str]]:
    """Pairs of patch id and commit."""
    lines = repository.git("patch-id", "--stable", text=text).decode().splitlines()
    return [(line.split()[0], line.split()[1]) for line in lines]


def commit_id(repository: Repository, commit: str) -> str:
    """The patch id of what a commit changed."""
    diff = repository.git("diff-tree", "-p", "--full-index", commit)
    ids = _patch_ids(repository, diff)
    return ids[0][0] if ids else ""


def refuse_unclean(repository: Repository) -> None:
    """ConflictError unless the tracked files are as committed; others may lie about."""
    *marks, lock = repository.paths(*IN_PROGRESS, "index.lock")
    for mark, what in zip(marks, IN_PROGRESS.values(), strict=True):
        if mark.exists():
            raise ConflictError(f"{repository.folder}: {what} is under way: finish or abort it")
    if lock.exists():
        raise index_locked(lock)
    if changed := uncommitted(repository):
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ConflictError(
            f"{repository.folder} has uncommitted changes: {', '.join(changed[:3])}{more}: "
            "commit them or put them away"
        )


def uncommitted(repository: Repository) -> list[str]:
    status = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no"]
    output = os.fsdecode(repository.git(*status, "--ignore-submodules=dirty"))
    return [entry[3:] for entry in output.split("\0") if entry]


def inspect(project: Project, repository: Repository) -> Inspection:
    """What of the series HEAD has, by commit, by patch id, or by content."""
    head = repository.head()
    patches = read_patches(project, repository)
    by_name = {patch.name: patch for patch in patches}
    commits: list[Found] = []
    outdated: list[Found] = []
    states = dict.fromkeys(by_name, State.ABSENT)
    inspection = Inspection(
        head,
        patches,
        states,
        commits,
        outdated,
        changed_since=[],
        missing=[],
        amended={},
        base="",
        remains=project.remains,
    )
    for found in _own_commits(project, repository, patches):
        patch = by_name.get(found.name)
        actual = commit_id(repository, found.commit)
        if patch is not None and actual == patch.id:
            # It claims another one where a rebase gave it other lines around it.
            found = replace(found, shipped_id=actual)
        inspection.base = found.parents[0]
        state = {
            found.shipped_id: State.APPLIED,
            found.merged_id: State.MERGED,
        }.get(actual, State.EDITED)
        known = patch is not None and patch.id == found.shipped_id
        own = ""
        if state is State.EDITED:
            own = _own_lines(repository, found.commit, [patch] if patch else [])
            if own and known and not _own_lines(repository, found.commit, patches):
                continue  # It holds several patches, which are looked for one by one.
        commits.append(found)
        if known:
            states[found.name] = state
        else:
            outdated.append(found)
        if own:
            inspection.amended[found.commit] = own
    if not outdated:
        _look_at_content(inspection, repository)
        _look_for_lines(inspection, repository)
    return inspection


def _own_lines(repository: Repository, commit: str, patches: list[Patch]) -> str:
    """What a commit changes and its patches do not: the first such line, with its file."""
    changes = Counter(_changes(_diff(repository, commit)))
    for patch in patches:
        changes -= Counter(_changes(patch.path.read_bytes()))
    return next((f"{name}: `{line.strip()}`" for name, line in changes), "")


def _changes(diff: bytes) -> Iterator[tuple[str, str]]:
    """The lines that a diff adds and removes, and modes that it changes, with their files."""
    name = ""
    head = False
    for line in described.decoded(diff).split("\n"):
        if line.startswith("diff --git "):
            name, head = line.rpartition(" b/")[2], True
        elif line.startswith("@@ ") and name:
            head = False
        elif line.startswith(EXTENDED_HEADERS if head else ("+", "-")) and name:
            yield name, line


def _look_for_lines(inspection: Inspection, repository: Repository) -> None:
    """Finds the patches that a commit claims to be and HEAD does not have whole."""
    later: Counter[tuple[str, str]] = Counter()
    there: dict[str, frozenset[str]] = {}
    for patch in reversed(inspection.patches):
        added, removed = _lines_of(patch)
        if inspection.states[patch.name] is not State.ABSENT:
            for name, line in added - later:
                if name not in there:
                    there[name] = frozenset(_lines_at(repository, "HEAD", name))
                if line not in there[name]:
                    inspection.states[patch.name] = State.PARTIAL
                    inspection.missing.append(f"{patch.name}: {name} lacks `{line}`")
        later = (later - added) + removed


def _lines_of(patch: Patch) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """The lines that a patch adds and removes, with their files; of a moved one, neither."""
    changed: dict[str, Counter[tuple[str, str]]] = {"+": Counter(), "-": Counter()}
    name = ""
    text = described.decoded(patch.path.read_bytes())
    for line in text[text.find("\ndiff --git ") :].split("\n"):
        if head := re.match(r"(?:\+\+\+ b|--- a)/([^\t]+)\t?$", line):
            name = head[1]
        elif line[:4] in ("--- ", "+++ "):
            continue
        elif line[:1] in changed and re.search(r"\w{3}", line):
            changed[line[0]][name, line[1:].strip()] += 1
    return changed["+"] - changed["-"], changed["-"] - changed["+"]


def _lines_at(repository: Repository, commit: str, name: str) -> list[str]:
    text = repository.try_git("cat-file", "blob", f"{commit}:{name}") or b""
    return [line.strip() for line in described.decoded(text).split("\n")]


def _own_commits(project: Project, repository: Repository, patches: list[Patch]) -> list[Found]:
    """Newest first: commits with our trailer, or with the patch id of one of the patches."""
    recent = repository.git("rev-list", "--first-parent", f"--max-count={DEPTH}", "HEAD")
    files = sorted({name for patch in patches for name in patch.files})
    by_id = {patch.id: patch for patch in patches}
    by_name = {patch.name: patch for patch in patches}
    by_origin = {patch.origin: patch for patch in patches}
    same = {}
    # Without their blobs, as in a partial clone, old commits tell by their headers alone.
    if files and not _is_partial(repository):
        command = ["diff-tree", "--stdin", "-p", "--full-index", "--", *files]
        same = {
            commit: by_id[patch_id]
            for patch_id, commit in _patch_ids(repository, repository.git(*command, text=recent))
            if patch_id in by_id
        }
    log = repository.git(
        "log", "--no-walk=unsorted", "--stdin", "-z", "--format=%H %P%n%ae%n%B", text=recent
    )
    found: list[Found] = []
    reverted: set[str] = set()
    for entry in log.decode(errors="replace").split("\0"):
        if not entry:
            continue
        head, author, message = entry.split("\n", 2)
        commit, *parents = head.split()
        # The first of a short history brings all that was there, whatever its message says.
        if any(map(commit.startswith, reverted)) or not parents:
            continue
        reverted.update(re.findall(r"^Drwa-Revert: (\S+)$", message, re.MULTILINE))
        reverted.update(re.findall(r"This reverts commit ([0-9a-f]{7,64})", message))
        trailer = re.search(r"^Drwa-Series: (\S+)$", message, re.MULTILINE)
        if trailer and trailer[1].startswith(f"{project.name}/"):
            name, shipped = trailer[1], _trailer(message, "Drwa-Patch-Id")
            if not shipped and name in by_name:
                # Somebody who merged it by hand says that this is it.
                shipped = by_name[name].id
        elif patch := same.get(commit) or by_origin.get((message.partition("\n")[0], author)):
            name, shipped = patch.name, patch.id
        else:
            continue
        if name in reverted:
            reverted.remove(name)
        elif name not in {other.name for other in found}:
            merged = _trailer(message, "Drwa-Merged-Id")
            found.append(Found(commit, tuple(parents), name, shipped, merged))
    return found


def _is_partial(repository: Repository) -> bool:
    """Whether blobs may be missing that git would fetch."""
    return repository.try_git("config", "--get-regexp", r"^remote\..*\.promisor$") is not None


def _trailer(message: str, name: str) -> str:
    found = re.search(rf"^{name}: (\S+)$", message, re.MULTILINE)
    return found[1] if found else ""


def _look_at_content(inspection: Inspection, repository: Repository) -> None:
    """Takes the patches back from the last one on, in a scratch index, as far as that goes."""
    commits = {found.name: found.commit for found in inspection.commits}
    files = {name for patch in inspection.patches for name in patch.files}
    with repository.scratch() as scratch:
        _read_files(scratch, inspection.head, files)
        for patch in reversed(inspection.patches):
            known = commits.get(patch.name)
            if known:
                try:
                    _apply(scratch, _diff(scratch, known), "--reverse")
                except GitError:
                    inspection.changed_since.append(patch.name)
            else:
                text = patch.path.read_bytes()
                # No 3-way merge: it would take back what is not there, and call that clean.
                if scratch.try_git("apply", "--cached", "--reverse", "-", text=text) is not None:
                    inspection.states[patch.name] = State.BY_HAND


def _apply(scratch: Repository, text: bytes, *options: str) -> str:
    """Applies to the scratch index; says how, if not as it is. GitError leaves the index alone."""
    command = ["apply", "--cached", *options, "-"]
    try:
        said = scratch.git(*command, "--verbose", text=text).decode(errors="replace")
        return "applied at an offset" if "offset" in said else ""
    except GitError as error:
        before = scratch.line(*WRITE_TREE)
        try:
            scratch.git(*command, "--3way", text=text)
        except GitError:
            scratch.git("read-tree", before)
            raise error from None
        return "merged 3-way"


def _diff(repository: Repository, commit: str) -> bytes:
    return repository.git("diff-tree", "-p", "--binary", "--full-index", commit)


def _read_files(scratch: Repository, commit: str, files: set[str]) -> None:
    """Puts some files of a commit into the scratch index; all would take seconds."""
    entries = scratch.git("ls-tree", "-z", commit, "--", *sorted(files))
    scratch.git("update-index", "-z", "--index-info", text=entries)


def refused(project: Project) -> str:
    """Why a tree cannot take the series."""
    places = "\n".join(project.refusals)
    page = trees.TOP / "device/doc/by-hand.md"
    return f"{project.folder}: the series has no place: {places}\nsee {page}"


def plan_apply(project: Project, repository: Repository) -> Change:
    """The commits that the project lacks; ConflictError says which hunk does not fit."""
    refuse_unclean(repository)
    inspection = inspect(project, repository)
    if inspection.outdated:
        raise ConflictError(
            f"{project.folder} has another version of the series: run `drwa revert` first"
        )
    if project.refusals:
        raise ConflictError(refused(project))
    if inspection.missing:
        raise ConflictError(
            f"{project.folder} has a part of the series: {'; '.join(inspection.missing[:3])}: put "
            "that in by hand, or run `drwa revert` first"
        )
    patches = inspection.patches
    absent = [patch for patch in patches if inspection.states[patch.name] is State.ABSENT]
    notes = []
    if 0 < len(absent) < len(patches):
        notes.append(f"{len(patches) - len(absent)} of {len(patches)} patches are there already")
    with repository.scratch() as scratch:
        scratch.git("read-tree", inspection.head)
        tip = inspection.head
        for patch in absent:
            tip, note = _add(scratch, tip, patch)
            notes += [note] if note else []
        return _change(project, repository, scratch, inspection.head, tip, notes)


def plan_revert(project: Project, repository: Repository) -> Change:
    """Back to the commit before the series, or commits that take it back where others follow, or
    where somebody amended one.
    """
    refuse_unclean(repository)
    inspection = inspect(project, repository)
    tip = inspection.head
    own = {found.commit: found for found in inspection.commits}
    left = dict(own)
    while tip in left and len(own[tip].parents) == 1:
        tip = left.pop(tip).parents[0]
    by_hand = [
        patch
        for patch in reversed(inspection.patches)
        if inspection.states.get(patch.name) is State.BY_HAND
    ]
    with repository.scratch() as scratch:
        if not left and not by_hand and not inspection.amended:
            _refuse_remains(project, scratch, inspection, tip)
            return _change(project, repository, scratch, inspection.head, tip, [])
        tip = inspection.head
        scratch.git("read-tree", tip)
        parts: list[Found | Patch] = [*inspection.commits, *by_hand]
        if by_hand:
            # Some of those may have come ahead of the others.
            parts.sort(key=lambda part: part.name, reverse=True)
        for part in parts:
            if isinstance(part, Found):
                shown = scratch.line("show", "--no-patch", f"--format={HEADERS}", part.commit)
                headers, diff = _headers(shown), _diff(scratch, part.commit)
                if part.commit in inspection.amended:
                    diff = _without_own_lines(project, scratch, inspection, part)
            else:
                _refuse_guessed(project, part)
                _refuse_foreign(repository, scratch, part)
                diff = part.path.read_bytes()
                headers = _mail(scratch, diff)[0]
            tip = _take_back(scratch, tip, part.name, diff, headers)
        _refuse_remains(project, scratch, inspection, tip)
        notes = [
            f"{commit[:12]} was amended with {text}: what is not DRWA's stays"
            for commit, text in inspection.amended.items()
        ]
        if left or by_hand:
            notes.append("other commits follow the series: added commits that take it back")
        return _change(project, repository, scratch, inspection.head, tip, notes)


def _refuse_remains(
    project: Project, scratch: Repository, inspection: Inspection, tip: str
) -> None:
    """ConflictError where lines of the series are left, which other commits brought."""
    base = project.base or inspection.base or ("" if project.remains else tip)
    remaining = []

    @cache
    def lines(commit: str, name: str) -> list[str]:
        return _lines_at(scratch, commit, name) if commit else []

    for name, line in {each for patch in inspection.patches for each in _lines_of(patch)[0]}:
        there, before = lines(tip, name), lines(base, name)
        # Others may have come by chance, but not into a file of the series.
        ours = "drwa" in line.lower() or before == [""]
        if ours and there.count(line) > before.count(line):
            at = f"-L{len(there) - there[::-1].index(line)},+1"
            blamed = scratch.line(*BLAME, at, tip, "--", name).lstrip("^")[:12]
            remaining.append(f"{name}: `{line}`, of commit {blamed}")
    if remaining:
        raise ConflictError(
            f"{project.folder}: lines of the series remain: {'; '.join(sorted(remaining)[:3])}: "
            "revert that first"
        )


def _without_own_lines(
    project: Project, scratch: Repository, inspection: Inspection, found: Found
) -> bytes:
    """The patch that an amended commit holds; ConflictError if it cannot be told from the rest."""
    patch = next((each for each in inspection.patches if each.name == found.name), None)
    if patch is not None and found not in inspection.outdated:
        _refuse_guessed(project, patch)
        text = patch.path.read_bytes()
        before = scratch.line(*WRITE_TREE)
        with suppress(GitError):
            _apply(scratch, text, "--reverse")
            scratch.git("read-tree", before)
            return text
    commit, own = found.commit[:12], inspection.amended[found.commit]
    how = "run the DRWA that applied it, or " if found in inspection.outdated else ""
    raise ConflictError(
        f"{project.folder}: {found.name}: commit {commit} was amended, and may hold lines of "
        f"yours: {own}: {how}part them, git rebase --interactive {commit}~; or take back all of "
        f"it, yours too, git revert {commit}; then run this again"
    )


def _refuse_guessed(project: Project, patch: Patch) -> None:
    """ConflictError where nothing tells what the tree had in place of a patch's lines."""
    if guesses := project.guesses.get(patch.short):
        description = project.described[0] / patch.short / "places.toml"
        raise ConflictError(
            f"{project.folder}: {patch.short} came with all that its history has, so what was "
            f"there before cannot be told: {'; '.join(guesses)}: get older commits (git fetch "
            f"--unshallow), or leave only what your tree had in {description}"
        )


def _refuse_foreign(repository: Repository, scratch: Repository, patch: Patch) -> None:
    """ConflictError where lines of a patch without a commit did not come in one: some were there
    before, and are not ours to take.
    """
    before = scratch.line(*WRITE_TREE)
    scratch.git("apply", "--cached", "--reverse", "-", text=patch.path.read_bytes())
    diff = scratch.line("diff-tree", "-r", "-p", "-U0", before, scratch.line(*WRITE_TREE))
    scratch.git("read-tree", before)
    came: dict[str, str] = {}
    for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        name = part.split("\n", 1)[0].rpartition(" b/")[2]
        for start, count in re.findall(r"^@@ -(\d+)(?:,(\d+))? ", part, re.MULTILINE):
            if count != "0":
                lines = f"-L{start},+{count or 1}"
                said = repository.line(*BLAME, lines, "HEAD", "--", name)
                came |= {line.split()[0]: f"{name}:{start}" for line in said.split("\n")}
    if len(came) > 1:
        where = ", ".join(f"{place} in {commit[:12]}" for commit, place in came.items())
        raise ConflictError(
            f"{repository.folder}: {patch.short} did not come in one commit: {where}: some of that "
            "may not be DRWA's: take it out by hand"
        )


def _change(
    project: Project,
    repository: Repository,
    scratch: Repository,
    old: str,
    new: str,
    notes: list[str],
) -> Change:
    objects = scratch.git("rev-list", "--objects", new, f"^{old}")
    pack = scratch.git("pack-objects", "--stdout", "--quiet", text=objects) if objects else b""
    files = _changed_files(scratch, old, new)
    _refuse_hidden(repository, [name for name, was, _ in files if was])
    return Change(project, repository, old, new, pack, files, notes)


def content_after(change: Change) -> dict[str, bytes]:
    """The files that will be there, with what they will hold."""
    with change.repository.scratch() as scratch:
        if change.pack:
            scratch.git("unpack-objects", "-q", text=change.pack)
        return {
            name: scratch.git("cat-file", "blob", f"{change.new}:{name}")
            for name, _, will in change.files
            if will
        }


def _refuse_hidden(repository: Repository, names: list[str]) -> None:
    """ConflictError for files whose edits git was told to overlook: they would be lost."""
    listing = repository.line("ls-files", "-z", "-v", "--", *names) if names else ""
    for entry in filter(None, listing.split("\0")):
        tag, name = entry.split(" ", 1)
        if tag != "H":
            raise ConflictError(
                f"{repository.folder / name} is marked assume-unchanged or skip-worktree: "
                f"git update-index --no-assume-unchanged --no-skip-worktree {name}"
            )


def _changed_files(scratch: Repository, old: str, new: str) -> list[tuple[str, bool, bool]]:
    """Paths with whether they were and will be there; ConflictError if one cannot be changed."""
    found = []
    cone = _cone(scratch)
    tree_diff = ["diff-tree", "-r", "-z", "--raw", "--no-renames", old, new]
    fields = scratch.line(*tree_diff).split("\0")
    for entry, name in zip(fields[0::2], fields[1::2], strict=False):
        before, after = entry.split()[0].removeprefix(":"), entry.split()[1]
        if SUBMODULE in (before, after):
            raise ConflictError(f"{scratch.folder}: {name} is a submodule")
        was, will = int(before) != 0, int(after) != 0
        path = scratch.folder / name
        if not was:
            _refuse_in_the_way(scratch.folder, name)
        if not _is_there(path) if was else _is_outside(Path(name).parent, cone):
            raise ConflictError(f"{path} is not checked out (a sparse tree?): check it out")
        # Replacing it would not need its own permission; whoever took it away meant something.
        if was and not path.is_symlink() and not os.access(path, os.W_OK):
            raise ConflictError(f"{path} is read-only: chmod u+w, or run as its owner")
        found.append((name, was, will))
    return found


def _refuse_in_the_way(folder: Path, name: str) -> None:
    """ConflictError where something is at a new file's place, or in place of its folders."""
    if _is_there(folder / name):
        raise ConflictError(f"{folder / name} is in the way of the series: move it away")
    for parent in map(folder.joinpath, Path(name).parents):
        # What a link leads to may be outside of the tree.
        if parent != folder and _is_there(parent) and (parent.is_symlink() or parent.is_file()):
            raise ConflictError(f"{parent} is in the way of the series: move it away")


def _cone(scratch: Repository) -> list[Path] | None:
    """The folders that a sparse tree has; None if it is none, or made of patterns."""
    asked = "config", "--type=bool", "core.sparseCheckoutCone"
    listing = scratch.try_git("sparse-checkout", "list")
    if listing is None or scratch.try_git(*asked) != b"true\n":
        return None
    return [Path(line) for line in os.fsdecode(listing).splitlines()]


def _is_outside(folder: Path, cone: list[Path] | None) -> bool:
    """Whether a sparse tree lacks the files of a folder: it has those above its own, too."""
    if cone is None or folder == Path():
        return False
    return not any(folder.is_relative_to(each) or each.is_relative_to(folder) for each in cone)


def _is_there(path: Path) -> bool:
    """os.path.lexists() takes a folder that it may not search for an empty one."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _add(scratch: Repository, parent: str, patch: Patch) -> tuple[str, str]:
    """The commit of one patch on top of another, and what is to be said about it."""
    text = patch.path.read_bytes()
    try:
        how = _apply(scratch, text)
    except GitError as error:
        raise ConflictError(_conflict(scratch, patch, error.said)) from None
    note = f"{patch.short}: the base has moved, {how}" if how else ""
    return _commit(scratch, parent, patch, text), note


def _commit(scratch: Repository, parent: str, patch: Patch, text: bytes) -> str:
    headers, body = _mail(scratch, text)
    trailers = f"Drwa-Series: {patch.name}\nDrwa-Patch-Id: {patch.id}\n"
    tree = scratch.line(*WRITE_TREE)
    merged = _patch_ids(scratch, scratch.git("diff-tree", "-p", "--full-index", parent, tree))
    if merged and merged[0][0] != patch.id:
        trailers += f"Drwa-Merged-Id: {merged[0][0]}\n"
    message = f"{headers['Subject']}\n\n{body.rstrip()}\n{trailers}"
    return _commit_tree(scratch, parent, tree, message, headers)


def _mail(scratch: Repository, text: bytes) -> tuple[dict[str, str], str]:
    """The headers and the text of a patch."""
    with tempfile.TemporaryDirectory(prefix="drwa-") as name:
        message = Path(name) / "message"
        command = ["mailinfo", "--no-scissors", "--encoding=UTF-8", str(message), "/dev/null"]
        information = scratch.git(*command, text=text).decode()
        return _headers(information), message.read_text()


def _headers(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if line)


def _commit_tree(
    scratch: Repository, parent: str, tree: str, message: str, headers: dict[str, str]
) -> str:
    """Commits a tree. The same base and patch give the same commit, whoever runs this and when.

    The commit is no older than its parent: git's walks take that for granted.
    """
    committed = scratch.line("show", "--no-patch", "--format=@%ct +0000", parent)
    variables = {"GIT_AUTHOR_DATE": headers["Date"], "GIT_COMMITTER_DATE": committed}
    for role in "AUTHOR", "COMMITTER":
        variables |= {f"GIT_{role}_NAME": headers["Author"], f"GIT_{role}_EMAIL": headers["Email"]}
    committing = scratch.with_environment(**variables)
    return committing.git("commit-tree", "-p", parent, tree, text=message.encode()).decode().strip()


def _take_back(
    scratch: Repository, parent: str, name: str, diff: bytes, headers: dict[str, str]
) -> str:
    """A commit without what `diff` added; the headers are those of the commit that added it."""
    try:
        # What was amended to nothing has nothing to take back.
        if diff:
            _apply(scratch, diff, "--reverse")
    except GitError as error:
        where = "; ".join(_failed(error.said)) or error.said.splitlines()[0]
        raise ConflictError(
            f"{scratch.folder}: {name} cannot be taken back, later commits changed its lines: "
            f"{where}: revert those first"
        ) from None
    message = f'Revert "{headers["Subject"]}"\n\nDrwa-Revert: {name}\n'
    return _commit_tree(scratch, parent, scratch.line(*WRITE_TREE), message, headers)


def _failed(said: str) -> list[str]:
    """Of what `git apply` says: the places, and the files that are in the way or missing."""
    places = [
        f"{found[1]}:{found[2]}"
        for found in re.finditer(r"^error: patch failed: (.+):(\d+)$", said, re.MULTILINE)
    ]
    others = re.finditer(
        r"^error: (.+): (already exists in index|does not exist in index|does not match index)$",
        said,
        re.MULTILINE,
    )
    return places + [f"{found[1]} {found[2].removesuffix(' in index')}" for found in others]


def _conflict(scratch: Repository, patch: Patch, said: str) -> str:
    """One line: the project, the patch, each file with its first bad hunk, and what to do."""
    text = described.decoded(patch.path.read_bytes())
    places = []
    for place in _failed(said):
        path, _, line = place.rpartition(":")
        hunk = re.search(
            rf"^\+\+\+ b/{re.escape(path)}\t?$.*?^(@@ -{line}(?:,\d+)? [^\n]*)",
            text,
            re.MULTILINE | re.DOTALL,
        )
        places.append(f"{place} (hunk {hunk[1]})" if hunk else place)
    advice = "the patches ahead of it are there: run `drwa revert`, then `drwa apply`"
    if _half_applied(scratch, patch):
        advice = "a part of it is there already: undo what was applied by hand"
    return f"{scratch.folder}: {patch.short} does not apply: {'; '.join(places) or said}: {advice}"


def _half_applied(scratch: Repository, patch: Patch) -> bool:
    text = patch.path.read_bytes()
    check = ["apply", "--cached", "--check", "--reverse"]
    return any(
        scratch.try_git(*check, f"--include={name}", "-", text=text) is not None
        for name in patch.files
        if re.search(rb"^\+\+\+ b/%b\t?$" % re.escape(os.fsencode(name)), text, re.MULTILINE)
    )
