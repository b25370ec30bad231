# SPDX-License-Identifier: Apache-2.0
"""Trees end fully patched or untouched: killed, refused or interrupted at every step, disk full."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import small_trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_trees import (
    KERNEL,
    MODULE,
    POLICY,
    SERVICE,
    World,
    copy,
    git,
    write,
)

from drwatool import git as plumbing
from drwatool import series, transaction, trees
from drwatool.errors import ConflictError

template = small_trees.template
world = small_trees.world

# What the tool does to the disk, and the gits that it starts for that.
STEPS = ("os.link", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod")
WRITERS = ("unpack-objects", "read-tree", "checkout-index", "update-ref", "update-index")
ENOSPC = OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def python_as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its buffers and its bytecode, which developers like to turn off."""
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)


def is_step(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        flags = arguments[2]
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
    if event == "subprocess.Popen":
        return any(verb in arguments[1] for verb in WRITERS)
    return event in STEPS


def plan(world: World, which: Callable[..., series.Change]) -> list[series.Change]:
    found = []
    top = world.top / "drwa"
    with (
        tempfile.TemporaryDirectory() as made,
        mock.patch.multiple(
            trees, TOP=top, FRAMEWORKS=top / "frameworks", KERNEL=world.series("kernel")
        ),
    ):
        for name, folder in PROJECTS.items():
            repository = plumbing.open_repository(world.top / folder)
            # Its name in commits, as the tool gives it
            named = name if name == trees.KERNEL_PROJECT else f"{name}/15"
            project = trees.Project(name, repository.folder, named)
            project = series.place_series(project, repository, Path(made) / name, False)
            found.append(which(project, repository))
    return found


def move(world: World, which: Callable[..., series.Change]) -> None:
    transaction.carry_out(plan(world, which), lambda text: None)


PROJECTS = {"packages_modules_Connectivity": MODULE, trees.KERNEL_PROJECT: KERNEL}
NO_SUCH_STEP = 3


def fail_at(
    step: int,
    how: Callable[[], None],
    changes: list[series.Change],
    counts: Callable[[str, tuple[Any, ...]], bool] = is_step,
    for_good: bool = False,
) -> int:
    """Carries the changes out in a child, where `how` happens ahead of the given step.

    With `for_good`, it also happens ahead of every step that follows.

    Returns the child's exit code: NO_SUCH_STEP when it did all there is to do in fewer steps.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if counts(event, arguments):
            count += 1
            if count == step or (for_good and count > step):
                how()

    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.addaudithook(hook)
        transaction.carry_out(changes, lambda text: None)
        status = 0 if count >= step else NO_SUCH_STEP
    finally:
        os._exit(status)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise ENOSPC


def interrupt() -> None:
    raise KeyboardInterrupt


def repair(world: World) -> None:
    with plumbing.locked(world.projects):
        transaction.recover(world.projects)


@pytest.mark.parametrize(
    ("which", "how"),
    [
        (series.plan_apply, kill),
        (series.plan_revert, interrupt),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                (series.plan_apply, refuse),
                (series.plan_apply, interrupt),
                (series.plan_revert, kill),
                (series.plan_revert, refuse),
            )
        ),
    ],
)
def test_every_step(
    world: World, how: Callable[[], None], which: Callable[..., series.Change]
) -> None:
    inverse = series.plan_apply
    if which is series.plan_apply:
        inverse = series.plan_revert
    else:
        move(world, series.plan_apply)
    old = world.snapshot()
    changes = plan(world, which)
    transaction.carry_out(changes, lambda text: None)
    new = world.snapshot()
    back = plan(world, inverse)
    transaction.carry_out(back, lambda text: None)
    assert world.snapshot() == old
    untouched = patched = 0
    for step in range(1, 1000):
        code = fail_at(step, how, changes)
        repair(world)
        found = world.snapshot()
        assert found in (old, new), f"mixed after step {step}"
        if code == NO_SUCH_STEP:
            break
        if found == new:
            patched += 1
            transaction.carry_out(back, lambda text: None)
        else:
            untouched += 1
    # There were steps of both kinds: ahead of the point of no return, and behind it.
    assert untouched > 40
    assert patched > 5


def test_every_step_when_the_way_back_is_refused_too(world: World) -> None:
    old = world.snapshot()
    changes = plan(world, series.plan_apply)
    for step in range(1, 1000):
        code = fail_at(step, refuse, changes, for_good=True)
        repair(world)
        if world.snapshot() != old:
            break
        assert code == 1
    # Past the point of no return, refusals do not make it a failure.
    assert code == 0
    assert step > 40


def half_switched(
    world: World, which: Callable[..., series.Change] = series.plan_apply, commits: int = 3
) -> None:
    """Leaves what a kill leaves after the first project was switched, ahead of the second one."""

    def second_lock(event: str, arguments: tuple[Any, ...]) -> bool:
        return event == "os.link" and str(arguments[1]) == f"{world.top / KERNEL}/.git/index.lock"

    assert fail_at(1, kill, plan(world, which), second_lock) == -signal.SIGKILL
    assert git(world.top / MODULE, "rev-list", "--count", "HEAD") == f"{commits}\n"


@pytest.mark.parametrize("command", ["check", "status", "apply", "revert", "doctor"])
def test_any_command_takes_back_what_a_killed_run_left(world: World, command: str) -> None:
    before = world.snapshot()
    half_switched(world)
    assert world.snapshot() != before
    # The kernel alone is named; the other project belongs to the same run.
    done = world.run(command, "--kernel", str(world.top / KERNEL))
    assert "took back what an interrupted run had begun" in done.out
    if command == "apply":
        assert world.run("revert", "--kernel", str(world.top / KERNEL)).code == 0
    assert world.snapshot() == before


def test_edits_after_a_kill_are_kept(world: World) -> None:
    half_switched(world)
    edited = world.top / MODULE / SERVICE
    write(edited, "mine\n")
    done = world.drwa("status")
    assert done.code == 1
    assert f"{edited} was edited after drwa had been interrupted: move it away" in done.err
    assert edited.read_text() == "mine\n"
    edited.rename(world.top / "mine")
    assert world.drwa("status").code == 0


def between_moves(event: str, arguments: tuple[Any, ...]) -> bool:
    """Ahead of each call that a file moves by, and of what follows the last of a project."""
    if event == "subprocess.Popen":
        return "update-ref" in arguments[1]
    return event in ("os.link", "os.rename", "os.remove")


def edit(path: Path, by_rename: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if by_rename:
        path.with_name("draft").write_text("mine\n")
        path.with_name("draft").rename(path)
    else:
        path.write_text("mine\n")


@pytest.mark.parametrize("by_rename", [False, True])
@pytest.mark.parametrize("which", [series.plan_apply, series.plan_revert])
def test_edits_after_a_kill_at_any_step_are_kept(
    world: World, which: Callable[..., series.Change], by_rename: bool
) -> None:
    if which is series.plan_revert:
        move(world, series.plan_apply)
    changes = plan(world, which)
    old = world.snapshot()
    files = [world.top / MODULE / name for name in (SERVICE, POLICY)]
    contents = [path.read_bytes() if path.exists() else None for path in files]
    for step in range(1, 100):
        code = fail_at(step, kill, changes, between_moves)
        if code == NO_SUCH_STEP:
            break
        for path in files:
            edit(path, by_rename)
        for path in files:
            with contextlib.suppress(ConflictError):
                repair(world)
            assert path.read_text() == "mine\n", step
            path.unlink()
        repair(world)
        if git(world.top / MODULE, "rev-parse", "HEAD").strip() == changes[0].new:
            break
        for path, content in zip(files, contents, strict=True):
            path.unlink(missing_ok=True)
            if content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            elif path.parent.exists():
                os.removedirs(path.parent)
        git(world.top / MODULE, "update-index", "--refresh")
        assert world.snapshot() == old, step
    assert step > 15


def meanwhile(
    world: World, command: str, when: str, then: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Does something else while all is switched, ahead of a git; what the tool says of it."""
    changes = plan(world, series.plan_apply if command == "apply" else series.plan_revert)
    original = plumbing.run

    def run(words: list[str], *arguments: Any) -> bytes:
        if when in words:
            then()
        return original(words, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(plumbing, "run", run)
        with pytest.raises(ConflictError) as error:
            transaction.carry_out(changes, lambda text: None)
    return "\n".join([str(error.value), *error.value.__notes__])


@pytest.mark.parametrize("by_rename", [False, True])
@pytest.mark.parametrize("name", [SERVICE, POLICY])
def test_edits_made_meanwhile_are_kept(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, by_rename: bool
) -> None:
    """After the look at the tree, and after the last one, ahead of the switch."""
    move(world, series.plan_apply)
    path = world.top / MODULE / name
    content = path.read_bytes()
    before = world.snapshot()
    changes = plan(world, series.plan_revert)
    edit(path, by_rename)
    with pytest.raises(ConflictError, match="has uncommitted changes"):
        transaction.carry_out(changes, lambda text: None)
    assert path.read_text() == "mine\n"
    path.write_bytes(content)
    git(world.top / MODULE, "update-index", "--refresh")
    said = meanwhile(world, "revert", "checkout-index", lambda: edit(path, by_rename), monkeypatch)
    assert said == f"{path} was edited meanwhile: commit that or put it away\nnothing was changed"
    assert path.read_text() == "mine\n"
    path.write_bytes(content)
    git(world.top / MODULE, "update-index", "--refresh")
    assert world.snapshot() == before


def test_what_is_staged_meanwhile_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    module = world.top / MODULE
    write(module / "mine.txt", "mine\n")

    def stage() -> None:
        git(module, "add", "mine.txt")

    said = meanwhile(world, "apply", "checkout-index", stage, monkeypatch)
    assert said == f"{module}/.git/index was changed meanwhile: run again\nnothing was changed"
    assert git(module, "status", "--porcelain") == "A  mine.txt\n"


@pytest.mark.parametrize("command", ["check", "status", "apply"])
def test_a_folder_of_the_users_is_not_ours(world: World, command: str) -> None:
    write(world.top / MODULE / ".drwa/notes.txt", "mine\n")
    before = world.snapshot()
    done = world.drwa(command)
    assert (done.code == 0) == (command != "apply")
    assert command != "apply" or f"{world.top / MODULE}/.drwa is in the way: move it" in done.err
    assert world.snapshot() == before


def test_a_copy_of_an_interrupted_tree_is_left_alone(world: World) -> None:
    old = world.snapshot()
    half_switched(world)
    copied = World(world.top.with_name("copied"))
    subprocess.run(["cp", "-a", world.top, copied.top], check=True)
    before = world.snapshot(), copied.snapshot()
    done = copied.drwa("status")
    assert done.code == 1
    words = f"is a copy of a tree in which drwa was interrupted, one of {world.top / MODULE}, "
    assert words in done.err
    assert (world.snapshot(), copied.snapshot()) == before
    assert world.drwa("status").code == 0
    assert world.snapshot() == old


def test_files_written_where_a_killed_revert_removed_some_are_kept(world: World) -> None:
    move(world, series.plan_apply)
    half_switched(world, series.plan_revert, commits=1)
    write(world.top / MODULE / POLICY, "mine\n")
    done = world.drwa("status")
    assert done.code == 1
    assert (world.top / MODULE / POLICY).read_text() == "mine\n"


def test_commits_after_a_kill_are_kept(world: World) -> None:
    half_switched(world)
    module = world.top / MODULE
    git(module, "commit", "--quiet", "--allow-empty", "--message=mine")
    done = world.drwa("status")
    assert done.code == 1
    assert "was moved to another commit after drwa had been interrupted there" in done.err


def test_locks_of_a_killed_git_are_removed(world: World) -> None:
    before = world.snapshot()
    half_switched(world)
    head = git(world.top / MODULE, "rev-parse", "HEAD")
    (world.top / MODULE / ".git/HEAD.lock").touch()
    (world.top / MODULE / ".git/refs/heads/main.lock").write_text(head)
    assert world.drwa("status").code == 0
    assert world.snapshot() == before


def test_locks_of_others_are_respected(world: World) -> None:
    half_switched(world)
    lock = world.top / MODULE / ".git/refs/heads/main.lock"
    lock.write_text("0" * 40)
    done = world.drwa("status")
    assert done.code == 1
    assert "main.lock': File exists" in done.err
    lock.unlink()
    assert world.drwa("status").code == 0


# A git that sends a signal to the program, to itself and to what git started, at the instant that
# its user asks for: ahead of the work of the git of a number, or behind it.
SIGNALLING_GIT = """\
#!/bin/sh
printf . >> "$DRWA_TEST_COUNT"
number=$(wc -c < "$DRWA_TEST_COUNT")
[ "$number $DRWA_TEST_WHEN" != "$DRWA_TEST_AT ahead" ] || kill -s "$DRWA_TEST_SIGNAL" 0
code=0
PATH=${PATH#*:} git "$@" || code=$?
[ "$number $DRWA_TEST_WHEN" != "$DRWA_TEST_AT behind" ] || kill -s "$DRWA_TEST_SIGNAL" 0
exit $code
"""


def apply_and(world: World, name: str, at: int, when: str) -> tuple[int, str, int]:
    """Applies all, with a signal at the git of that number; 0: without.

    Returns the exit code, stderr and how many gits were started.
    """
    folder = world.top / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(SIGNALLING_GIT)
    (folder / "git").chmod(0o755)
    count = folder / "count"
    count.write_text("")
    variables = {"COUNT": str(count), "AT": str(at), "WHEN": when, "SIGNAL": name}
    done = subprocess.run(
        [world.program, "apply", *world.trees],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        env=os.environ
        | {"PATH": f"{folder}:{os.environ['PATH']}"}
        | {f"DRWA_TEST_{key}": value for key, value in variables.items()},
    )
    return done.returncode, done.stderr, len(count.read_text())


@pytest.mark.parametrize("name", ["KILL", "INT", pytest.param("TERM", marks=pytest.mark.long)])
def test_signals_while_git_is_at_work(world: World, name: str) -> None:
    """The program itself and its gits get it, from the first git to the last one."""
    old = world.snapshot()
    code, said, gits = apply_and(world, name, 0, "never")
    assert code == 0, said
    new = world.snapshot()
    world.drwa("revert")
    instants = range(1, gits + 1, gits // 7)
    for at, when in zip(instants, itertools.cycle(["ahead", "behind"]), strict=False):
        code, said, _ = apply_and(world, name, at, when)
        assert "Traceback" not in said
        if name == "KILL":
            assert code == -signal.SIGKILL
        else:
            assert code in (0, 130), (at, when, said)
            assert world.snapshot() == (old if code else new)
            if code:
                assert re.fullmatch(r"drwa: interrupted(\n    \w+ was [\w ]+)?\n", said)
        world.drwa("status")
        found = world.snapshot()
        assert found in (old, new)
        if found == new:
            world.drwa("revert")
            assert world.snapshot() == old


def test_two_at_once(world: World) -> None:
    command = [world.program, "apply", *world.trees]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [(process.communicate()[1], process.returncode) for process in both]
    for said, code in ended:
        assert code == 0 or "another drwa is at work" in said
    assert min(code for _, code in ended) == 0
    assert [p["applied"] for p in world.drwa("status", "--json").report["projects"]] == [
        "fully"
    ] * 3


# What a full disk, a limit and missing permissions leave.

# Root is refused nothing, unless it gives that up.
HUMBLE = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()


def test_limit_on_file_sizes(world: World) -> None:
    before = world.snapshot()
    for size in [0, 1, 64, 512, 1024, 4096, 1 << 16, 1 << 18]:
        done = world.run("apply", *world.trees, prefix=("prlimit", f"--fsize={size}"))
        assert (done.code == 0) == (size == 1 << 18), done.err
        assert "Traceback" not in done.err
        if done.code:
            assert world.snapshot() == before, size


def test_read_only_file(world: World) -> None:
    (world.top / KERNEL / "Makefile").chmod(0o444)
    path = world.top / KERNEL / "net/ipv4/tcp_output.c"
    path.chmod(0o444)
    before = world.snapshot()
    done = world.run("apply", *world.trees, prefix=HUMBLE)
    assert done.code == 1
    assert f"{path} is read-only: chmod u+w" in done.err
    assert world.snapshot() == before


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("net", 0o555),
        ("net", 0),
        ("net/ipv4", 0o555),
        ("net/ipv4", 0),
        (".", 0o555),
        (".git", 0o555),
        (".git/objects", 0o555),
        (".git/refs/heads", 0o555),
    ],
)
def test_closed_folder_in_the_last_project(world: World, name: str, mode: int) -> None:
    before = world.snapshot()
    folder = world.top / KERNEL / name
    folder.chmod(mode)
    try:
        done = world.run("apply", *world.trees, prefix=HUMBLE)
    finally:
        folder.chmod(0o755)
    assert done.code == 1
    assert ": run as the owner of the tree, or change its permissions" in done.err
    assert str(world.top / KERNEL) in done.err
    assert (" nothing was changed\n" in done.err) == (mode != 0)
    assert "Traceback" not in done.err
    assert world.snapshot() == before


def test_permissions_of_files_survive(world: World) -> None:
    path = world.top / KERNEL / "net/ipv4/tcp_output.c"
    path.chmod(0o640)
    before = world.snapshot()
    assert world.drwa("apply").code == 0
    assert path.stat().st_mode & 0o777 == 0o640
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


FULL_DISK = """\
set -eu
mount -t tmpfs -o size=24m tmpfs "$1"
cp -a "$2" "$1/world"
cd "$1/world"
find . -type f -exec md5sum {} + | grep -v "/\\.git/" | sort > "$3/old"
for kib in $4; do
    left=$(($(stat --file-system --format=%a .) * 4))
    head -c $(((left - kib) * 1024)) /dev/zero > ../filling
    code=0
    drwa/device/drwa apply --aosp aosp --kernel linux 2> "$3/err" > "$3/out" || code=$?
    rm ../filling
    find . -type f -exec md5sum {} + | grep -v "/\\.git/" | sort > "$3/new"
    same=mixed
    if cmp -s "$3/old" "$3/new"; then same=untouched; fi
    if [ "$code" = 0 ] && drwa/device/drwa status --aosp aosp --kernel linux > "$3/out"; then
        same=patched
    fi
    dirty=$(for tree in aosp/*/* aosp/*/*/* linux; do
        [ ! -d $tree/.git ] || git -C $tree status --porcelain; done)
    left=$(find . -name "drwa" -path "*/.git/*" -o -name ".drwa" -o -name "*.lock")
    echo "$kib $code $same $dirty$left"
    [ $same = untouched ] || drwa/device/drwa revert --aosp aosp --kernel linux > "$3/out"
done
"""


def test_full_disk(world: World, tmp_path: Path) -> None:
    """On a tmpfs with so many KiB left, whatever is written first finds no room."""
    namespace = [
        "unshare",
        "--mount",
        *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
    ]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs (unshare)")
    for folder in "disk", "said":
        (tmp_path / folder).mkdir()
    sizes = [0, 8, 40, 100, 200, 280, 320, 340, 360, 380, 400, 450, 500, 550, 600, 650, 700, 4096]
    arguments = [str(tmp_path / "disk"), str(world.top), str(tmp_path / "said")]
    done = subprocess.run(
        [*namespace, "sh", "-c", FULL_DISK, "full-disk", *arguments, " ".join(map(str, sizes))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    ends = [line.split() for line in done.stdout.splitlines()]
    assert len(ends) == len(sizes)
    for size, code, *state in ends:
        assert state == ["patched" if code == "0" else "untouched"], (size, done.stdout)
    assert ends[0][1] == "1"
    assert ends[-1][1] == "0"


# Whatever builders do in between.

ACTIONS = ["apply", "revert", "kill", "edit", "commit", "am", "check"]
# Each has a number, of the step that a kill comes ahead of.
Actions = list[tuple[str, int]]


@pytest.mark.parametrize(
    "actions",
    [
        [("apply", 0), ("commit", 0), ("revert", 0), ("kill", 60), ("am", 0), ("apply", 0)],
        [("apply", 0), ("kill", 1), ("revert", 0), ("edit", 0), ("apply", 0)],
    ],
    ids=["commits and patches of others", "edits"],
)
def test_histories(world: World, actions: Actions) -> None:
    play(world, actions)


@pytest.mark.long
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 90)), min_size=3, max_size=8))
def test_random_histories(
    template: Path, tmp_path_factory: pytest.TempPathFactory, actions: Actions
) -> None:
    world = copy(template, tmp_path_factory.mktemp("random") / "world")
    play(world, actions)
    shutil.rmtree(world.top)


def play(world: World, actions: Actions) -> None:
    """Does each, and looks at the trees."""
    module, kernel = world.top / MODULE, world.top / KERNEL
    edited = False
    for number, (action, step) in enumerate(actions):
        before = world.snapshot()
        if action == "edit":
            write(module / SERVICE, (module / SERVICE).read_text() + f"edit({number});\n")
            edited = True
        elif action == "commit":
            write(kernel / "net/ipv4/tcp.h", f"commit {number}\n")
            git(kernel, "add", "--all")
            git(kernel, "commit", "--quiet", "--message", f"commit {number}")
        elif action == "am":
            if not (kernel / "net/drwa").exists():
                made = world.top / f"patches{number}"
                world.run("patches", "--kernel", str(kernel), "-o", str(made))
                git(kernel, "am", "--quiet", str(made / "kernel/0001-law.patch"))
        elif action == "kill" and not edited:
            fail_at(step, kill, plan(world, series.plan_apply))
            repair(world)
        elif action in ("apply", "revert", "check"):
            done = world.drwa(action)
            assert done.code == (1 if edited else 0), done.err
            if edited or action == "check":
                assert world.snapshot() == before
            else:
                wanted = "fully" if action == "apply" else "none"
                found = world.drwa("status", "--json").report["projects"]
                assert {project["applied"] for project in found} == {wanted}
                assert ("tellDrwa" in (module / SERVICE).read_text()) == (action == "apply")
                assert (kernel / "net/drwa/law.c").exists() == (action == "apply")
        for folder in world.projects:
            assert not (folder / ".drwa").exists()
            assert edited or git(folder, "status", "--porcelain") == ""
