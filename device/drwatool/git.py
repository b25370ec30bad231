# SPDX-License-Identifier: Apache-2.0
"""Runs git's plumbing in a project, away from the project's own index and objects if asked to."""

import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from drwatool.errors import ConflictError, DrwaError, UsageError, advised

# A git that is slow for that long is named on stderr.
PROGRESS_S = 5
LOCK_WAIT_S = 2
# The mode of a tree's entry
SUBMODULE = "160000"
# Neither hooks nor helpers of the user's may see or change what happens; messages are parsed.
OPTIONS = [
    "--no-optional-locks",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "apply.whitespace=nowarn"),
    *("-c", "apply.ignoreWhitespace=no"),
    *("-c", "core.quotePath=false"),
    *("-c", "advice.mergeConflict=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "i18n.commitEncoding=UTF-8"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "diff.orderFile=/dev/null"),
]


class GitError(DrwaError):
    """git failed; `said` is all that it had to say."""

    def __init__(self, said: str, where: str) -> None:
        super().__init__(f"{where}: {advised(said)}")
        self.said = said


@dataclass(frozen=True)
class Repository:
    """The work tree of one project."""

    folder: Path
    git_dir: Path
    environment: dict[str, str] = field(default_factory=dict)

    def git(self, *arguments: str, text: bytes = b"") -> bytes:
        return run(["git", *OPTIONS, *arguments], self.folder, self.environment, text)

    def line(self, *arguments: str) -> str:
        return os.fsdecode(self.git(*arguments)).strip()

    def try_git(self, *arguments: str, text: bytes = b"") -> bytes | None:
        try:
            return self.git(*arguments, text=text)
        except GitError:
            return None

    def paths(self, *names: str) -> list[Path]:
        """Where git keeps files of its own, e.g. "index"; worktrees share some of them."""
        asked = [word for name in names for word in ("--git-path", name)]
        return [self.folder / line for line in self.line("rev-parse", *asked).split("\n")]

    def head(self) -> str:
        return self.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def with_environment(self, **variables: str) -> "Repository":
        return Repository(self.folder, self.git_dir, self.environment | variables)

    @contextmanager
    def scratch(self) -> Iterator["Repository"]:
        """The same project with an index and new objects that go away again."""
        with tempfile.TemporaryDirectory(prefix="drwa-") as name:
            folder = Path(name)
            (folder / "objects").mkdir()
            # Quoted, as a colon would part it.
            objects = re.sub(r'(["\\])', r"\\\1", str(*self.paths("objects")))
            yield self.with_environment(
                GIT_INDEX_FILE=str(folder / "index"),
                GIT_OBJECT_DIRECTORY=str(folder / "objects"),
                GIT_ALTERNATE_OBJECT_DIRECTORIES=f'"{objects}"',
            )


def open_repository(folder: Path) -> Repository:
    """The project whose work tree is `folder`; UsageError says why there is none."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder: put it back")
    found = Repository(folder, folder)
    try:
        said = found.line("rev-parse", "--show-toplevel", "--absolute-git-dir")
        top, git_dir = map(Path, said.split("\n"))
    except GitError as error:
        if "dubious ownership" in str(error):
            raise UsageError(
                f"{folder} belongs to another user: run as that user, or "
                f"`git config --global --add safe.directory {folder}`"
            ) from None
        if "must be run in a work tree" in str(error):
            raise UsageError(f"{folder} has no work tree: clone it, or name the clone") from None
        if os.path.lexists(folder / ".git"):
            raise UsageError(
                f"{folder}/.git is damaged, or not yours to read: "
                f"`git -C {folder} status` says more"
            ) from None
        raise UsageError(f"{folder} is no git tree: get it with `repo sync` or git clone") from None
    if top.resolve() != folder.resolve():
        raise UsageError(f"{folder} is a part of the git tree {top}: a project's root is needed")
    if Repository(folder, git_dir).try_git("rev-parse", "--verify", "HEAD^{commit}") is None:
        raise UsageError(f"{folder} has no commit: check out a branch first")
    return Repository(folder, git_dir)


def index_locked(lock: Path) -> ConflictError:
    return ConflictError(
        f"{lock} exists: another git is at work there; if it is not, remove the file"
    )


# The locks of this process. Its children hold them too: after a kill -9 a git may still be running.
_locks: list[int] = []


def inherited() -> dict[str, str]:
    """The environment without what leads git elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }


def run(command: list[str], folder: Path, environment: dict[str, str], text: bytes) -> bytes:
    """The output of a git command; GitError when it fails, with what it complained of."""
    verb = command[1 + len(OPTIONS)]
    started = time.monotonic()
    with ExitStack() as stack:
        given: IO[bytes] | int = subprocess.DEVNULL
        if text:
            # No pipe: Python 3.11 forgets what is left to be sent when communicate() times out.
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(text)
            given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=inherited() | environment | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=_locks,
            )
        except FileNotFoundError:
            raise UsageError("git is missing: install it") from None
        stack.enter_context(process)
        while True:
            try:
                output, complaints = process.communicate(timeout=PROGRESS_S)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - started
                print(f"drwa: {folder}: git {verb}, {seconds:.0f} s", file=sys.stderr)
    if process.returncode:
        said = complaints.decode(errors="replace").strip()
        raise GitError(said or f"ended with {process.returncode}", f"{folder}: git {verb}")
    # What `git apply --verbose` says of offsets goes to stderr.
    return output + complaints if "--verbose" in command else output


@contextmanager
def locked(folders: Sequence[Path]) -> Iterator[None]:
    """Holds off other runs of this program in these folders; a killed one's locks are gone."""
    with ExitStack() as stack:
        for folder in sorted(set(folders)):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            _locks.append(descriptor)
            stack.callback(os.close, descriptor)
            stack.callback(_locks.remove, descriptor)
            deadline = time.monotonic() + LOCK_WAIT_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ConflictError(
                            f"another drwa is at work in {folder}: wait for its end"
                        ) from None
                    time.sleep(0.05)
        yield
