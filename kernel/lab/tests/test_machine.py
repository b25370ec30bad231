# SPDX-License-Identifier: GPL-2.0-only
"""What makes the run of an emulated machine a failure; make test-arch runs them."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from conftest import Lab
from drwalab import kernels, machine
from drwalab.guest import GuestError

HEAD = "machine: Linux 6.12 on 2 CPUs, 2.5 s after its start\nTAP version 13\n1..2\nok 1 knob\n"
END = "machine: ./series.sh ended with 0\nmachine: all is done\nreboot: Restarting system\n"
RULE = "[   60.1] " + "=" * 66 + "\n"


def race(functions: str) -> str:
    return f"{RULE}[   60.1] BUG: KCSAN: data-race in {functions}\n[   60.1] write to 0x1\n{RULE}"


@pytest.mark.parametrize(
    "said",
    [
        "ok 2 storm\n",
        "ok 2 storm # XFAIL slow machine: goodput, kb/s, 1, at least 2 expected\n",
        "not ok 2 kernel_log # BUG: KCSAN: data-race in tick_sched / tick_nohz\n",
        race("tick_sched_do_timer / tick_nohz_stop_idle") + "ok 2 storm\n",
    ],
)
def test_good_console(said: str) -> None:
    machine.judge("6.12 smp", HEAD + said + END, "")


def test_a_plan_of_kunit_is_not_the_selftests() -> None:
    """A kernel that has KUnit, switched off, says `1..1` all the same."""
    disabled = "KTAP version 1\n1..1\nkunit: disabled\n"
    machine.judge("6.12 kcsan", disabled + HEAD + "ok 2 storm\n" + END, "")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("not ok 2 storm # nothing governed\n" + END, r"(?s)selftest failed.*not ok 2 storm"),
        ("WARNING: suspicious RCU usage\nok 2 storm\n" + END, "kernel complains"),
        (race("drwa_round / drwa_start") + "ok 2 storm\n" + END, r"(?s)complains.*drwa_round"),
        ("ok 2 storm\n", "did not run to its end"),
        # The second selftest never came to its plan, or to its end.
        ("ok 2 storm\nTAP version 13\n" + END, "did not run to its end"),
        ("ok 2 storm\nTAP version 13\n1..1\n" + END, "did not run to its end"),
        (END, "did not run to its end"),
    ],
)
def test_bad_console(said: str, message: str) -> None:
    with pytest.raises(GuestError, match=message):
        machine.judge("6.12 smp", HEAD + said, "")


def test_unknown_machine(lab: Lab) -> None:
    done = lab("machine riscv")
    message = (
        "lab: unknown machine 'riscv': choose from smp, kcsan, arm64, arm64-module, debian, cost\n"
    )
    assert (done.code, done.err) == (2, message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("NONE", "NONE is no file"),
        ("NONE debian", "--image: not with the names of machines"),
        ("NONE --architecture riscv", "--architecture: 'riscv' is neither amd64 nor arm64"),
        ("NONE --test module", "--test: 'module' is neither series nor bpf"),
    ],
)
def test_an_image_that_cannot_run(lab: Lab, words: str, message: str) -> None:
    done = lab(f"machine --image {words}")
    assert done.code != 0
    assert done.err == f"lab: {message}\n"


@pytest.mark.parametrize("test", ["series", "bpf"])
def test_an_image_runs_the_test_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str
) -> None:
    ran: list[tuple[str, tuple[str, ...]]] = []

    def run_kernel(title: str, each: machine.Machine, *_: object) -> str:
        ran.append((title, each.tests))
        return HEAD

    monkeypatch.setattr(kernels, "need_of_machines", lambda _: None)
    monkeypatch.setattr(machine, "_run_kernel", run_kernel)
    (tmp_path / "Image").touch()
    progress = kernels.Progress(Console(), Console().status(""))
    assert machine.run_image(tmp_path / "Image", "arm64", test, 5, progress) == HEAD
    assert ran == [("Image", (test,))]


@pytest.mark.parametrize("name", sorted(set(machine.MACHINES) & set(kernels.FLAVOURS)))
def test_a_kernel_has_what_its_machine_tests(name: str) -> None:
    """A selftest that lacks it would be skipped."""
    needs = {"bpf": {"bpf", "jit"}, "module": {"module"}, "uplink": {"module"}}
    for test in machine.MACHINES[name].tests:
        assert needs.get(test, set()) <= set(kernels.FLAVOURS[name].configs)
        assert kernels.FLAVOURS[name].patched or test != "series"


@pytest.mark.parametrize("name", ["smp", "kcsan", "arm64"])
def test_the_programs_storm_runs_where_two_cpus_are_watched(name: str) -> None:
    assert "bpf" in machine.MACHINES[name].tests


@pytest.mark.parametrize(("test", "named"), [("bpf", True), ("series", False)])
def test_an_image_names_the_programs_that_ran(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, test: str, named: bool
) -> None:
    """As lab documents looks for them."""
    monkeypatch.setattr(machine, "run_image", lambda *_: HEAD)
    said = lab(f"machine --image bzImage --test {test}").out
    assert (f"programs {kernels.programs_id()}\n" in said) == named


def test_what_is_told_of_an_image() -> None:
    """What its tests said, and nothing of its kernel's log."""
    said = HEAD + "# without: 9000 kb/s\n[  1.0] e1000 ok\nok 2 storm\n" + END
    report = machine._report(said).splitlines()
    assert report[0].startswith("machine: Linux")
    assert {"# without: 9000 kb/s", "ok 2 storm"} <= set(report)
    assert not any("e1000" in line for line in report)


@pytest.mark.parametrize("missing", ["qemu-system-x86_64", "sparse"])
def test_a_program_that_is_not_there_is_told_before_anything_is_compiled(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def make(*_: object) -> None:
        raise AssertionError("it compiles")

    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/{name}")
    monkeypatch.setattr(kernels, "_prepare_tree", make)
    monkeypatch.setattr(kernels, "_find", lambda recipe: None)
    done = lab("cost")
    assert done.code == 2
    assert f"{missing} is not installed: make test-arch installs it" in done.err


@pytest.mark.parametrize(("breakpoints", "boots"), [(0, 1), (1, 2), (9, machine.BOOTS)])
def test_the_emulators_own_mistake_is_none_of_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breakpoints: int, boots: int
) -> None:
    (tmp_path / "root.cpio.gz").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "_root", lambda *_: tmp_path)
    monkeypatch.setattr(machine, "_tests", lambda *to: to[-1].mkdir())
    monkeypatch.setattr(machine, "_packed", lambda _: b"")
    console = Console(stderr=True)
    booted = 0

    def boot(_machine: object, _kernel: object, _cpu: int, folder: Path, _log: object) -> None:
        nonlocal booted
        booted += 1
        oops = "[  296.0] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n[  296.0] Call Trace:\n"
        (folder / "console").write_text(
            HEAD + (oops if booted <= breakpoints else "ok 2 storm\n" + END)
        )

    monkeypatch.setattr(machine, "_boot", boot)
    with nullcontext() if breakpoints < machine.BOOTS else pytest.raises(GuestError):
        kernel, progress = tmp_path / "vmlinuz", kernels.Progress(console, console.status(""))
        machine._run_kernel("6.12 debian", machine.MACHINES["debian"], kernel, "", 1, progress)
    assert booted == boots
