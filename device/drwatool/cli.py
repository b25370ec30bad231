# SPDX-License-Identifier: Apache-2.0
"""The command line: what to do, on which trees, and how to say what came of it."""

import argparse
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from drwatool import doctor
from drwatool.compile import compile_objects
from drwatool.errors import ConflictError, DrwaError, UsageError, explained
from drwatool.git import Repository, locked, open_repository
from drwatool.series import (
    Change,
    Inspection,
    State,
    content_after,
    files_of,
    inspect,
    place_series,
    plan_apply,
    plan_revert,
    refused,
    uncommitted,
)
from drwatool.transaction import carry_out, recover
from drwatool.trees import (
    HOSTS,
    KERNEL,
    KERNEL_PROJECT,
    OLDEST_KERNEL,
    TOP,
    Project,
    Trees,
    find,
    lines,
    releases,
    too_old,
)
from drwatool.version import this_version

DESCRIPTION = """\
Puts DRWA's patches into an AOSP tree and a kernel tree, and takes them out again: all of them or
none. The trees have to be clean; nothing is ever reset, cleaned or stashed.

  check    says whether the patches would apply, and changes nothing
  apply    adds them, a commit for each
  revert   takes them out: back to the commit before, or with commits if others follow
  status   says what each project has, and what was changed by hand
  doctor   looks for what ends a build, and for what fails silently: modules that are defined twice
           or not at all, prebuilts, a missing option, a flag, an old kernel
  patches  writes the series that apply would add, for git am, to the folder that -o names; the
           hooks are placed in a tree, so that it needs one, as all others do, or --line
"""
EPILOG = """\
exit codes: 0 done, 1 a conflict or a problem, 2 usage, 77 no patches for this
release, or for a kernel before 4.19, 130 interrupted
"""
INTERRUPTED = 130
# Of a line, less the indent
WIDTH = 185
# What else a build needs, by host
PAGES = {"A": TOP / "device/doc/rom-builder.md", "B": TOP / "device/doc/gms-oem.md"}
Opened = list[tuple[Project, Repository]]


class Outlet:
    """A stream whose reader may leave, as `head` does, or whose disk may be full; what follows is
    dropped then.

    An error there would end a run that has trees to finish.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.full = False
        if isinstance(stream, io.TextIOWrapper):
            # Names of files may be anything.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _drop(self, error: OSError) -> None:
        """Lets what the stream still holds, and all that follows, go nowhere."""
        self.full |= not isinstance(error, BrokenPipeError)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


class Report:
    """What a command has to say: lines for people, or one JSON object."""

    def __init__(self, command: str, as_json: bool) -> None:
        self.as_json = as_json
        self.content: dict[str, Any] = {"command": command, "notes": []}

    def say(self, text: str, **content: Any) -> None:
        """A line for people; for JSON the content, or the line as a note if there is none."""
        if not self.as_json:
            print(text, flush=True)
        elif content:
            self.content |= content
        else:
            self.content["notes"].append(text)

    def progress(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"drwa: {text}", file=sys.stderr, flush=True)

    def end(self, code: int, error: str = "") -> int:
        if self.as_json:
            self.content |= {"error": error, "exit": code}
            print(json.dumps(self.content, indent=2))
        elif error:
            print(f"drwa: {_told(error)}", file=sys.stderr)
        sys.stdout.flush()
        if isinstance(sys.stdout, Outlet) and sys.stdout.full:
            what = error if self.as_json and error else "all was done"
            print(f"drwa: {_told(what)}; the report could not be written", file=sys.stderr)
            return code or 1
        return code


def _told(text: str) -> str:
    """For people: each part on lines of its own, none longer than a terminal shows at a glance."""
    parts = [
        textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False)
        for part in text.splitlines()
        if part
    ]
    return "\n".join(parts).replace("\n", "\n    ")


class Parser(argparse.ArgumentParser):
    """One that knows what may have been meant."""

    as_json = False

    def error(self, message: str) -> NoReturn:
        known = [*self._option_string_actions]
        known += [str(choice) for action in self._actions for choice in action.choices or ()]
        unknown = re.search(r"invalid choice: '(.*?)'|unrecognized arguments: (--[\w-]+)", message)
        if unknown:
            given = unknown[1] or unknown[2]
            if near := get_close_matches(given, known, n=2):
                message = f"'{given}' is unknown: did you mean {' or '.join(near)}?"
        if self.as_json:
            print(json.dumps({"error": message, "exit": UsageError.code}, indent=2))
        super().error(_told(message))


class ShowVersion(argparse.Action):
    """Says which version this is, and what it has patches for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        android, kernels = ", ".join(releases()["releases"]), ", ".join(lines())
        oldest = ".".join(map(str, OLDEST_KERNEL))
        print(f"drwa {this_version()}")
        print(f"Android {android}; Linux {oldest} and newer, tested on {kernels}")
        parser.exit()


def parser() -> Parser:
    made = Parser(
        prog="drwa",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "command", choices=["check", "apply", "revert", "status", "doctor", "patches"]
    )
    made.add_argument(
        "--version", action=ShowVersion, nargs=0, help="say which one this is, and for what"
    )
    made.add_argument("--aosp", type=Path, metavar="DIR", help="root of an AOSP tree")
    made.add_argument("--kernel", type=Path, metavar="DIR", help="root of a kernel tree")
    made.add_argument("-o", "--output", type=Path, metavar="DIR", help="patches: where to")
    made.add_argument(
        "--line",
        metavar="L",
        help="patches: in place of a tree, Debian's source of a kernel line that is tested here, "
        "fetched if need be",
    )
    made.add_argument(
        "--project",
        action="append",
        metavar="NAME",
        help="patches: of this project alone, e.g. packages_modules_Connectivity; repeatable",
    )
    made.add_argument("--android", metavar="N", help="the Android release, if DIR does not tell it")
    made.add_argument(
        "--host",
        choices=HOSTS,
        help="what sets the knob: A, ConnectivityService, built from source (default for trees); "
        "B, a system service, where the tethering module comes signed from outside; a phone "
        "tells which it has",
    )
    made.add_argument(
        "--with-tests",
        action="store_true",
        help="refuse a tree where tests or documentation have no place, in place of leaving "
        "them out; --compile takes KUnit's suites, too",
    )
    made.add_argument(
        "--compile",
        action="store_true",
        help="check, apply: compile the kernel's objects that change, before anything else",
    )
    made.add_argument("--dry-run", action="store_true", help="say what would be done, and do not")
    made.add_argument("--json", action="store_true", help="say it as one JSON object")
    made.add_argument(
        "--adb",
        nargs="?",
        const="adb",
        metavar="PROGRAM",
        help="doctor: look at a connected phone too, through this program (default: adb)",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    for name in "stdout", "stderr":
        if (stream := getattr(sys, name)) is not None:
            setattr(sys, name, Outlet(stream))
    made = parser()
    made.as_json = "--json" in (sys.argv if arguments is None else arguments)
    options = made.parse_args(arguments)
    if options.line and (options.command != "patches" or options.aosp or options.kernel):
        made.error("--line is for patches, in place of a tree")
    without_tree = options.line or (options.command == "doctor" and options.adb)
    if not (options.aosp or options.kernel or without_tree):
        made.error(_without_tree(options))
    if (options.output is None) != (options.command != "patches"):
        made.error("patches needs -o DIR, and nothing else takes it")
    if options.project and options.command != "patches":
        made.error("--project is for patches")
    if options.adb and options.command != "doctor":
        made.error("--adb is for doctor")
    if options.compile and not (options.kernel and options.command in ("check", "apply")):
        made.error("--compile is for check and apply with --kernel")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup has told it to ignore one.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    report = Report(options.command, options.json)
    try:
        return report.end(_run(options, report))
    except (DrwaError, OSError, KeyboardInterrupt) as error:
        return report.end(*_failure(error))


def _without_tree(options: argparse.Namespace) -> str:
    """What to do where no tree is named."""
    said = "say which tree: --aosp DIR, --kernel DIR, or both"
    if options.command != "patches":
        return said
    said += "; for a kernel that is tested here, --line L will do"
    table = releases()
    if options.android in table["releases"]:
        known = [table["projects"][name] for name in table["releases"][options.android]]
        host = options.host or "A"
        paths = ", ".join(each["path"] for each in known if each.get("host", host) == host)
        said += (
            f". The patches for Android {options.android} have lines of AOSP's, so it takes git "
            f"trees of that release at DIR/PATH, all or some: PATH is one of {paths}"
        )
    return said


def _failure(error: DrwaError | OSError | KeyboardInterrupt) -> tuple[int, str]:
    """The exit code, and what went wrong and what came of it."""
    if isinstance(error, DrwaError):
        code, what = error.code, str(error)
    elif isinstance(error, OSError):
        code, what = DrwaError.code, explained(error)
    else:
        code, what = INTERRUPTED, "interrupted"
    return code, "\n".join([what, *getattr(error, "__notes__", [])])


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(options: argparse.Namespace, report: Report) -> int:
    if options.line:
        return _write_line(options.line, options.output, report)
    aosp, kernel = (path and path.resolve() for path in (options.aosp, options.kernel))
    host = options.host or "A"
    trees = find(aosp, kernel, options.android, host)
    _say_choice(trees, host, report)
    if kernel is None and options.command in ("revert", "status"):
        report.say("kernel: none is named; if yours is patched, add --kernel DIR")
    if options.project:
        trees = _only(trees, options.project)
    if trees.needed and options.command in ("check", "apply"):
        raise UsageError(
            f"{', '.join(trees.needed)} is not in {aosp}, and is what host {host} is made "
            "of: sync it, or use --host B"
        )
    with (
        locked([project.folder for project in trees.projects]),
        tempfile.TemporaryDirectory(prefix="drwa-") as name,
    ):
        for text in recover([project.folder for project in trees.projects]):
            report.say(text)
        opened = [(project, open_repository(project.folder)) for project in trees.projects]
        opened = [(_settle(trees, *each, Path(name), options, report), each[1]) for each in opened]
        if options.command in ("check", "apply", "patches"):
            opened = [each for each in opened if not _left_out(each[0], report)]
        if options.command == "status":
            return _status(opened, report)
        if options.command == "patches":
            return _write_patches(opened, options.output, report)
        if options.command == "doctor":
            settled = replace(trees, projects=tuple(project for project, _ in opened))
            return _doctor(settled, opened, options, report)
        plan = plan_revert if options.command == "revert" else plan_apply
        changes = _plan(opened, plan, report)
        if options.compile:
            _compile(changes, trees, report, options.with_tests)
        dry = options.dry_run or options.command == "check"
        if not dry:
            carry_out(changes, report.progress)
        _say_changes(changes, options.command, dry, report, PAGES[host])
    return 0


def _only(trees: Trees, names: list[str]) -> Trees:
    """The trees with some of their projects."""
    there = {project.name: project for project in trees.projects}
    for name in names:
        if name not in there:
            raise UsageError(f"--project {name}: there are {', '.join(there)}")
    return replace(trees, projects=tuple(there[name] for name in dict.fromkeys(names)))


def _say_choice(trees: Trees, host: str, report: Report) -> None:
    for what, choice in ("Android", trees.android), ("kernel", trees.kernel):
        if choice is not None:
            report.say(f"{what} {choice.name}: {choice.why}", **{what.lower(): asdict(choice)})
    if trees.android and trees.nearest:
        report.say(
            f"Android {trees.android.name}: nobody has tried the series there; that of "
            f"{trees.nearest} is the nearest, and goes in if all its places are there"
        )
    if trees.kernel and all(project.name != KERNEL_PROJECT for project in trees.projects):
        version = trees.kernel.name
        report.say(f"kernel {version}: left out: {too_old(version, host)}")
    report.content["missing"] = list(trees.missing)
    for path in trees.missing:
        if path not in trees.needed:
            report.say(f"{path}: not in this tree, left out")


def _settle(
    trees: Trees,
    project: Project,
    repository: Repository,
    folder: Path,
    options: argparse.Namespace,
    report: Report,
) -> Project:
    """The project with the series for its tree."""
    report.progress(f"{project.folder}: placing the series")
    settled = place_series(project, repository, folder / project.name, options.with_tests)
    if project.name != KERNEL_PROJECT or trees.kernel is None:
        return settled
    version = trees.kernel.name
    content = asdict(trees.kernel) | {"notes": settled.notes, "refusals": settled.refusals}
    if version in lines():
        return report.content.update(kernel=content) or settled
    tested = ", ".join(lines())
    report.say(
        f"kernel {version}: the series is tested on {tested}; build yours and run the selftest",
        kernel=content,
    )
    return settled


def _left_out(project: Project, report: Report) -> bool:
    """Whether nobody has tried the project's series on such a tree, and it has no place there."""
    if not project.untried or not project.refusals:
        return False
    report.say(f"{project.folder}: left out: no place for {'; '.join(project.refusals)}")
    return True


def _plan(
    opened: Opened, plan: Callable[[Project, Repository], Change], report: Report
) -> list[Change]:
    """The changes of all projects; says every conflict before it gives up."""
    changes, conflicts = [], []
    for project, repository in opened:
        report.progress(f"{project.folder}: checking")
        try:
            changes.append(plan(project, repository))
        except ConflictError as error:
            conflicts.append(str(error))
    report.content["conflicts"] = conflicts
    if conflicts:
        if not report.as_json:
            for text in conflicts:
                print(f"drwa: {_told(text)}", file=sys.stderr)
        raise ConflictError(
            f"nothing was changed: problems in {len(conflicts)} of {len(opened)} projects"
        )
    return changes


def _compile(changes: list[Change], trees: Trees, report: Report, tests: bool) -> None:
    """Compiles what the kernel's series would change."""
    for change in changes:
        if change.project.name != KERNEL_PROJECT or trees.kernel_folder is None:
            continue
        if change.empty:
            report.say(f"{trees.kernel_folder}: nothing to compile", compiled="")
            continue
        files = {
            name.removeprefix(change.project.prefix): text
            for name, text in content_after(change).items()
        }
        said = compile_objects(trees.kernel_folder, files, report.progress, tests)
        report.say(f"{trees.kernel_folder}: {said}", compiled=said)


def _say_changes(
    changes: list[Change], command: str, dry: bool, report: Report, page: Path
) -> None:
    report.content["projects"] = [
        {
            "name": change.project.name,
            "folder": str(change.project.folder),
            "series": change.project.series,
            "patches": len(change.project.patches),
            "old": change.old,
            # A dry run's commits are gone again, but the same ones will be made.
            "new": change.new,
            "notes": [*change.notes, *_placed(change, command)],
        }
        for change in changes
    ]
    if report.as_json:
        return
    verb = {"revert": "taken out"}.get(command, "applied")
    for change in changes:
        text = f"{_count(len(change.project.patches))} {'can be ' if dry else ''}{verb}"
        if change.empty:
            text = "nothing to take out" if command == "revert" else "all patches are there already"
        print(f"{change.project.folder}: {text}")
        for note in (*change.notes, *_placed(change, command)):
            print(f"    {note}")
    if command == "apply" and not dry and not all(change.empty for change in changes):
        print(f"next: what else a build needs, see {page}, then drwa doctor")


def _placed(change: Change, command: str) -> tuple[str, ...]:
    """Where the series went, if it did."""
    return () if change.empty or command == "revert" else change.project.notes


def _count(patches: int) -> str:
    return "1 patch" if patches == 1 else f"{patches} patches"


def _write_patches(opened: Opened, folder: Path, report: Report) -> int:
    written = []
    if without := [refused(project) for project, _ in opened if project.refusals]:
        raise ConflictError("\n".join(without))
    for project, _ in opened:
        _refuse_full(folder / project.name)
    for project, _ in opened:
        target = folder / project.name
        target.mkdir(parents=True, exist_ok=True)
        for path in project.patches:
            shutil.copyfile(path, target / path.name)
            written.append(str(target / path.name))
        report.say(f"{target}: {_count(len(project.patches))}", written=written)
        if not report.as_json:
            for note in project.notes:
                print(f"    {note}")
    return 0


def _refuse_full(target: Path) -> None:
    if there := sorted(target.glob("*.patch")):
        raise UsageError(f"{there[0]} is there: name an empty folder")


def _write_line(line: str, folder: Path, report: Report) -> int:
    """The patches that the lab builds a kernel line with, as kernel/mkseries makes them."""
    if line not in lines():
        raise UsageError(f"--line {line}: there are {', '.join(lines())}")
    sys.path.append(str(KERNEL / "lab"))
    # The lab's own, of the standard library alone; it imports this tool's.
    from drwalab.series import generate
    from drwalab.sources import SourceError, get_source, read_lines

    try:
        source = get_source(read_lines()[line], report.progress)
    except SourceError as error:
        raise UsageError(f"{error}: name a tree with --kernel") from None
    target = folder / KERNEL_PROJECT
    _refuse_full(target)
    target.mkdir(parents=True, exist_ok=True)
    made = generate(KERNEL, source.path)
    for name, text in made.items():
        (target / name).write_bytes(text.encode(errors="surrogateescape"))
    of = f"{source.line.source} {source.version}"
    written = [str(target / name) for name in made]
    report.say(f"{target}: {_count(len(made))}, for {of}", written=written)
    return 0


def _status(opened: Opened, report: Report) -> int:
    projects = []
    inspections = []
    for project, repository in opened:
        report.progress(f"{project.folder}: looking")
        found = inspect(project, repository)
        inspections.append(found)
        files = {name for patch in project.patches for name in files_of(patch)}
        touched = sorted(files & set(uncommitted(repository)))
        projects.append(
            {
                "name": project.name,
                "folder": str(project.folder),
                "series": project.series,
                "applied": found.summary,
                "patches": {name: state.value for name, state in found.states.items()},
                "changed_since": found.changed_since,
                "missing": found.missing,
                "uncommitted": touched,
            }
        )
        if not report.as_json:
            _print_status(project, found, touched)
    report.content["projects"] = projects
    summaries = {found.summary for found in inspections}
    return 0 if summaries in ({"fully"}, {"none"}) else 1


def _print_status(project: Project, found: Inspection, touched: list[str]) -> None:
    print(f"{project.folder}: {found.summary} applied")
    # What is as it should be needs no line.
    unusual = {State.ABSENT} if found.summary == "none" else {State.APPLIED}
    for name, state in found.states.items():
        if state not in unusual:
            print(f"    {name}: {state}")
    for text in found.missing:
        print(f"    {text}")
    for name in found.changed_since:
        print(f"    {name}: later commits changed its lines")
    for other in found.outdated:
        print(f"    {other.name}: another version, commit {other.commit[:12]}")
    for path in touched:
        print(f"    {path}: changed by hand, not committed")


def _doctor(trees: Trees, opened: Opened, options: argparse.Namespace, report: Report) -> int:
    findings = doctor.examine(trees, opened, options.host, options.adb, report.progress)
    report.content["findings"] = [asdict(finding) for finding in findings]
    if not report.as_json:
        for finding in findings:
            print(f"{finding.verdict:7} {finding.what}")
            if finding.advice:
                print(f"        {finding.advice}")
    return 1 if any(finding.verdict == doctor.BAD for finding in findings) else 0
