# SPDX-License-Identifier: Apache-2.0
"""Moves several projects to new commits, all or none, whatever happens on the way.

Everything that needs room is prepared first: the objects, the new files and the new index, beside
the old ones. Then each project is switched with links and renames alone. Every step can be told
from what lies on the disk, so a later run takes back what a killed one began:

    <git dir>/drwa/journal     what the switch is; it is there before the first step
    <git dir>/drwa/index.new   the new index; git's own index.lock is a link to it while we work
    <git dir>/drwa/index.old   a link to the old index
    <git dir>/drwa/reserve     room for the refs that a way back on a full disk has to write
    <git dir>/drwa/done        in the first project only: all are switched, tidy up
    <work tree>/.drwa/new/     the new files, until each is moved to its place
    <work tree>/.drwa/old/     links to the old ones, from the moment before
"""

import errno
import json
import os
import re
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from drwatool.errors import ConflictError, DrwaError, explained
from drwatool.git import GitError, Repository, index_locked, locked, open_repository
from drwatool.series import Change, refuse_unclean

RESERVE_BYTES = 256 * 1024


@dataclass(frozen=True)
class File:
    """A path that changes: whether it was and will be there, and both files' identities."""

    path: str
    was: bool
    will: bool
    stamp: tuple[int, ...]
    before: tuple[int, ...] = ()


@dataclass(frozen=True)
class Journal:
    """What the way back needs to know of one project."""

    folders: list[str]  # of all projects; the first one's tells when all are switched
    old: str
    new: str
    branch: str  # empty when HEAD is detached
    files: list[File]
    made_folders: list[str]

    @staticmethod
    def read(path: Path) -> "Journal":
        content = json.loads(path.read_text())
        files = [File(**entry) for entry in content["files"]]
        files = [
            replace(file, stamp=tuple(file.stamp), before=tuple(file.before)) for file in files
        ]
        return Journal(**{**content, "files": files})


class Switch:
    """The switch of one project; its state is on the disk."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.state = repository.git_dir / "drwa"
        self.work = repository.folder / ".drwa"

    @cached_property
    def index(self) -> Path:
        return self.repository.paths("index")[0]

    @property
    def lock(self) -> Path:
        return self.index.with_name("index.lock")

    @property
    def begun(self) -> bool:
        return self.state.exists()

    def journal(self) -> Journal | None:
        with suppress(FileNotFoundError):
            return Journal.read(self.state / "journal")
        return None

    def prepare(self, change: Change, folders: list[str]) -> None:
        git = self.repository.git
        before = {
            name: self._stamp(self.repository.folder / name) for name, was, _ in change.files if was
        }
        # It was clean when the change was planned, which may be minutes ago.
        refuse_unclean(self.repository)
        if os.path.lexists(self.work):
            raise ConflictError(f"{self.work} is in the way: move it away")
        self.state.mkdir()
        (self.work / "old").mkdir(parents=True)
        (self.state / "reserve").write_bytes(b"\0" * RESERVE_BYTES)
        if change.pack:
            git("unpack-objects", "-q", text=change.pack)
        os.link(self.index, self.state / "index.old")
        shutil.copyfile(self.state / "index.old", self.state / "index.new")
        scratch = self.repository.with_environment(GIT_INDEX_FILE=str(self.state / "index.new"))
        # Without a look at the files: they follow.
        scratch.git("read-tree", "-i", "-m", change.old, change.new)
        self._stage(scratch, [name for name, _, will in change.files if will])
        journal = Journal(
            folders,
            change.old,
            change.new,
            (self.repository.try_git("symbolic-ref", "--quiet", "HEAD") or b"").decode().strip(),
            [
                File(
                    name,
                    was,
                    will,
                    self._stamp(self.work / "new" / name) if will else (),
                    before.get(name, ()),
                )
                for name, was, will in change.files
            ],
            self._folders_to_make([name for name, was, _ in change.files if not was]),
        )
        draft = self.state / "journal.part"
        draft.write_text(json.dumps(asdict(journal)))
        draft.rename(self.state / "journal")

    def _stage(self, scratch: Repository, names: list[str]) -> None:
        """Checks files out to .drwa/new/, with the permissions of the files that they replace."""
        listing = os.fsencode("".join(f"{name}\0" for name in names))
        prefix = f"--prefix={self.work.name}/new/"
        scratch.git("checkout-index", "-z", "--stdin", prefix, text=listing)
        for name in names:
            new, old = self.work / "new" / name, self.repository.folder / name
            if old.is_file() and not old.is_symlink() and not new.is_symlink():
                mode = stat.S_IMODE(old.stat().st_mode)
                if mode & 0o100 == new.stat().st_mode & 0o100:
                    new.chmod(mode)

    def _folders_to_make(self, names: list[str]) -> list[str]:
        found = set()
        for name in names:
            for parent in list(Path(name).parents)[:-1]:
                if not (self.repository.folder / parent).exists():
                    found.add(str(parent))
        return sorted(found)

    def forward(self) -> None:
        journal = self.journal()
        assert journal is not None
        self._lock()
        self._refuse_other_index()
        for folder in journal.made_folders:
            (self.repository.folder / folder).mkdir()
        for file in journal.files:
            target, new, old = self._places(file)
            if file.was:
                old.parent.mkdir(parents=True, exist_ok=True)
            if not file.will:
                target.rename(old)
                self._refuse_other(file)
                self._remove_empty_parents(target)
                continue
            # Links fail where something is; a rename would write over it.
            if file.was:
                os.link(target, old, follow_symlinks=False)
                self._refuse_other(file)
                new.replace(target)
            else:
                os.link(new, target, follow_symlinks=False)
                new.unlink()
        self._move_head(journal.old, journal.new)
        self.lock.rename(self.index)

    def _refuse_other(self, file: File) -> None:
        """The file that goes may be another one than that which was looked at."""
        target, _, old = self._places(file)
        if self._stamp(old) != file.before:
            raise ConflictError(f"{target} was edited meanwhile: commit that or put it away")

    def _refuse_other_index(self) -> None:
        """Once locked, it stays as it is; another one is that which the way back leads to."""
        if not self.index.samefile(self.state / "index.old"):
            os.link(self.index, self.state / "index.now")
            (self.state / "index.now").replace(self.state / "index.old")
            raise ConflictError(f"{self.index} was changed meanwhile: run again")

    def back(self, journal: Journal) -> None:
        """Undoes what forward() did, wherever it stopped, and back() too."""
        (self.state / "reserve").unlink(missing_ok=True)
        branch = self.repository.try_git("symbolic-ref", "--quiet", "HEAD") or b""
        head = self.repository.head()
        if head not in (journal.old, journal.new) or branch.decode().strip() != journal.branch:
            raise ConflictError(
                f"{self.repository.folder} was moved to another commit after drwa had been "
                f"interrupted there: if it is as you want it, remove {self.state} and {self.work}"
            )
        same_index = self.index.samefile(self.state / "index.old")
        ours = self._lock_is_ours()
        if not ours and self.lock.exists():
            if head == journal.old and same_index and not any(map(self._moved, journal.files)):
                return
            raise index_locked(self.lock)
        for file in journal.files:
            self._refuse_edited(file)
        for file in reversed(journal.files):
            self._put_back(file)
        for folder in reversed(journal.made_folders):
            with suppress(OSError):
                (self.repository.folder / folder).rmdir()
        if head == journal.new:
            self._move_head(journal.new, journal.old)
        if ours:
            self.lock.unlink()
        elif not same_index:
            os.link(self.state / "index.old", self.lock)
            self.lock.rename(self.index)

    def _moved(self, file: File) -> bool:
        _, new, old = self._places(file)
        return os.path.lexists(old) or (file.will and not os.path.lexists(new))

    def _put_back(self, file: File) -> None:
        target, new, old = self._places(file)
        if not file.was:
            if not os.path.lexists(new):
                target.unlink(missing_ok=True)
            elif os.path.lexists(target) and os.path.samestat(target.lstat(), new.lstat()):
                target.unlink()
        elif os.path.lexists(old):
            if not file.will:
                target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(target) and os.path.samestat(target.lstat(), old.lstat()):
                # A rename between two links of one file does nothing.
                old.unlink()
            else:
                old.replace(target)

    def _refuse_edited(self, file: File) -> None:
        """What we put or removed may have been written between the interruption and now."""
        target, new, old = self._places(file)
        if not os.path.lexists(target) or (file.was and not os.path.lexists(old)):
            return
        if file.was:
            kept = os.path.samestat(target.lstat(), old.lstat())
        else:
            kept = os.path.lexists(new) and not os.path.samestat(target.lstat(), new.lstat())
        if kept or (file.will and self._stamp(target) == file.stamp):
            return
        raise ConflictError(
            f"{target} was edited after drwa had been interrupted: move it away, run again"
        )

    def tidy(self) -> None:
        """The end of either way. Without the journal, what is left is only there to be removed."""
        (self.state / "journal").unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)
        # It tells that the other one is ours.
        if not os.path.lexists(self.work):
            shutil.rmtree(self.state, ignore_errors=True)
        # Kernel and AOSP scripts use plumbing that takes an unrefreshed index for a dirty tree.
        self.repository.try_git("update-index", "-q", "--refresh")

    def _places(self, file: File) -> tuple[Path, Path, Path]:
        names = self.work / "new" / file.path, self.work / "old" / file.path
        return self.repository.folder / file.path, *names

    def _remove_empty_parents(self, path: Path) -> None:
        for parent in path.parents:
            if parent == self.repository.folder:
                return
            try:
                parent.rmdir()
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return

    @staticmethod
    def _stamp(path: Path) -> tuple[int, ...]:
        found = path.lstat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _lock(self) -> None:
        try:
            os.link(self.state / "index.new", self.lock)
        except FileExistsError:
            raise index_locked(self.lock) from None

    def _lock_is_ours(self) -> bool:
        with suppress(FileNotFoundError):
            return self.lock.samefile(self.state / "index.new") or self.lock.samefile(
                self.state / "index.old"
            )
        return False

    def _move_head(self, old: str, new: str) -> None:
        command = ["update-ref", "-m", f"drwa: from {old[:12]} to {new[:12]}", "HEAD", new, old]
        for _ in range(3):
            try:
                self.repository.git(*command)
                return
            except GitError as error:
                found = re.search(r"Unable to create '(.+\.lock)': File exists", str(error))
                if not found or not self._left_behind(Path(found[1]), old, new):
                    raise
        raise ConflictError(f"{self.repository.folder}: git cannot lock HEAD")

    @staticmethod
    def _left_behind(lock: Path, *values: str) -> bool:
        """Removes the lock of an update-ref that was killed with us; git has waited for it already.

        It holds one of our commits, or nothing.
        """
        with suppress(FileNotFoundError):
            if lock.read_text().strip() not in ("", *values):
                return False
            lock.unlink()
        return True


def recover(folders: Sequence[Path]) -> list[str]:
    """Finishes or takes back what a killed run left in these projects, and in those with them.

    The caller holds the projects' locks. Returns what was done, in words.
    """
    said = []
    for folder in folders:
        if (folder / ".git").exists():
            switch = Switch(open_repository(folder))
            if switch.begun:
                said.append(_recover_from(switch, folders))
    return said


def _recover_from(switch: Switch, held: Sequence[Path]) -> str:
    journal = switch.journal()
    here = switch.repository.folder
    if journal is None:
        switch.tidy()
        return f"{here}: removed what an interrupted run had prepared"
    folders = [Path(folder) for folder in journal.folders]
    for folder in folders:
        if not folder.is_dir():
            raise ConflictError(
                f"drwa was interrupted in {here} and in {folder}, which is gone: "
                "put it back and run again"
            )
    if not any(folder.samefile(here) for folder in folders):
        raise ConflictError(
            f"{here} is a copy of a tree in which drwa was interrupted, one of "
            f"{', '.join(journal.folders)}: run drwa there, then copy again"
        )
    with locked([folder for folder in folders if folder not in held]):
        switches = [Switch(open_repository(folder)) for folder in folders]
        if (switches[0].state / "done").exists():
            _tidy_all(switches)
            return f"{here}: finished what an interrupted run had begun"
        _all_back(switches)
        return f"{here}: took back what an interrupted run had begun"


def _tidy_all(switches: list[Switch]) -> None:
    """The first one goes last: it tells whether all are switched."""
    with _undisturbed():
        for switch in reversed(switches):
            if switch.begun:
                switch.tidy()


def _all_back(switches: list[Switch]) -> None:
    with _undisturbed():
        for switch in switches:
            journal = switch.journal()
            if journal is not None:
                switch.back(journal)
    _tidy_all(switches)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leaves Ctrl-C and its like without effect: the way back is short."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def carry_out(changes: list[Change], progress: Callable[[str], None]) -> None:
    """Moves every project to its new commit. When this raises, its notes say what came of it."""
    changes = [change for change in changes if not change.empty]
    if not changes:
        return
    folders = [str(change.repository.folder) for change in changes]
    switches: list[Switch] = []
    try:
        for change in changes:
            progress(f"{change.repository.folder}: preparing")
            switches.append(Switch(change.repository))
            switches[-1].prepare(change, folders)
        for switch in switches:
            progress(f"{switch.repository.folder}: switching")
            switch.forward()
        (switches[0].state / "done").touch()
    except BaseException as error:
        try:
            if switches and (switches[0].state / "done").exists():
                _tidy_all(switches)
                error.add_note("all was done already")
            else:
                _all_back(switches)
                error.add_note("nothing was changed")
        except (OSError, DrwaError) as second:
            why = explained(second) if isinstance(second, OSError) else second
            error.add_note(f"the way back is not complete: {why}")
            error.add_note("run drwa again, it continues there")
        raise
    # What cannot be removed now is removed by the next run.
    with suppress(OSError):
        _tidy_all(switches)
