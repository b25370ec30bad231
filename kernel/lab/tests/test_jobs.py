# SPDX-License-Identifier: GPL-2.0-only
"""Plans: jobs that are addressed by their content, run once each whatever is killed, and joined."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Lab, needs_kernels
from drwalab import cases, guest, jobs, kernels, pool, results, sources, spec
from drwalab.kernels import Kernel
from drwalab.spec import RunSpec, SpecError
from synthetic import run

Booted = list[str]


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Booted]:
    """The commands of the guests that were booted; they end at once, with made-up results."""
    seen: Booted = []

    def kernel(line: str, flavour: str) -> Kernel:
        return Kernel(line, flavour, tmp_path, f"key-{line}-{flavour}", line, "1", [])

    def boot(one: RunSpec, *_: object) -> Path:
        seen.append(one.command())
        folder = tmp_path / "raw"
        folder.mkdir(exist_ok=True)
        return folder

    def read(folder: Path, one: RunSpec, _: Kernel) -> dict[str, Any]:
        result = run(one.name, one.scheme.name, duration_s=10, seed=one.seed)
        result["provenance"]["command"] = one.command()
        return result

    monkeypatch.setattr(kernels, "find", kernel)
    monkeypatch.setattr(kernels, "agent", lambda: tmp_path / "agent-hash" / "agent")
    monkeypatch.setattr(guest, "run", boot)
    monkeypatch.setattr(results, "read", read)
    monkeypatch.setattr(pool, "cache_dir", lambda: tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    yield seen


def small() -> cases.Case:
    """Two schemes over two links: four runs, and two of the idle links."""
    specs = [
        spec.parse(scheme, {"rate": rate, "duration": "1s"})
        for rate in ("1mbit", "2mbit")
        for scheme in ("stock", "drwa")
    ]
    return cases.Case("small", "", None, False, specs, [], {})


def test_commands_are_whole(tmp_path: Path) -> None:
    """Every run of every case comes back from its command alone."""
    for case in cases.load().values():
        for one in case.specs:
            links = [link.trace for link in (one.down, one.up) if link and link.trace]
            folder = links[0].path.parent if links else tmp_path
            again = jobs.from_command(one.command(), folder)
            assert again == one, one.command()
    with pytest.raises(SpecError, match="no command of a run"):
        jobs.from_command("lab case run x", tmp_path)


def test_each_job_runs_once(booted: Booted, tmp_path: Path) -> None:
    assert jobs.make(tmp_path / "plan", [small()]) == 6
    plan = jobs.Plan(tmp_path / "plan")
    assert [jobs.run_job(plan, job) for job in plan.jobs] == [True] * 6
    assert len(booted) == len(set(booted)) == 6
    assert [jobs.run_job(plan, job) for job in plan.jobs] == [False] * 6
    # Another plan of the same runs takes them from the cache, and this one from its own folder.
    jobs.make(tmp_path / "plan", [small()])
    jobs.make(tmp_path / "other", [small()])
    other = jobs.Plan(tmp_path / "other")
    assert jobs.Plan(tmp_path / "plan").missing == []
    assert all(jobs.run_job(other, job) for job in other.jobs)
    assert len(booted) == 6
    for job in plan.jobs:
        assert plan.result(job.id).read_bytes() == other.result(job.id).read_bytes()


@pytest.mark.parametrize("at", ["boot", "read", "keep", "copy"])
def test_killing_loses_nothing(
    at: str, booted: Booted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a worker dies, finished jobs stay, and the one under way is run again."""
    jobs.make(tmp_path / "plan", [small()])
    plan = jobs.Plan(tmp_path / "plan")
    first, second = plan.jobs[:2]
    jobs.run_job(plan, first)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        owner, name = {
            "boot": (guest, "run"),
            "read": (results, "read"),
            "keep": (Path, "replace"),
            "copy": (pool, "keep"),
        }[at]
        dying.setattr(owner, name, die)
        with pytest.raises(KeyboardInterrupt):
            jobs.run_job(plan, second)
    assert [job.id for job in plan.missing] == [job.id for job in plan.jobs[1:]]
    before = plan.result(first.id).stat()
    assert [jobs.run_job(plan, job) for job in plan.jobs] == [False] + [True] * 5
    assert plan.result(first.id).stat().st_ino == before.st_ino
    assert booted.count(first.command) == 1
    # It has to be run again unless only the copy was missing.
    assert booted.count(second.command) == (1 if at == "boot" else 2)


def test_merge(lab: Lab, booted: Booted, tmp_path: Path) -> None:
    jobs.make(tmp_path / "plan", [small()])
    plan = jobs.Plan(tmp_path / "plan")
    for job in plan.jobs[:-1]:
        jobs.run_job(plan, job)
    done = lab(f"merge {tmp_path}/plan")
    assert done.code == 2
    assert "1 of 6 jobs have no result yet, such as " in done.err
    jobs.run_job(plan, plan.jobs[-1])
    shutil.rmtree(tmp_path / "cache" / "results")
    done = lab(f"merge {tmp_path}/plan --json {tmp_path}/all.json")
    assert done.code == 0, done.err
    merged = json.loads((tmp_path / "all.json").read_text())
    assert [r["provenance"]["command"] for r in merged] == [s.command() for s in small().specs]
    assert all(r["rtt_ms"]["idle"]["p95"] for r in merged)
    # Whoever runs these now finds them in the cache.
    count = len(booted)
    pool.run_specs(small().specs, progress=False, reuse=True)
    assert len(booted) == count


def test_other_sources_are_refused(
    booted: Booted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.make(tmp_path / "plan", [small()])
    plan = jobs.Plan(tmp_path / "plan")
    found = kernels.find("6.12", "drwa")
    monkeypatch.setattr(kernels, "find", lambda *_: replace(found, key="other"))
    with pytest.raises(SpecError, match="planned with another lab, kernel or compiler"):
        jobs.run_job(plan, plan.jobs[0])
    assert not booted


def test_traces_travel_with_the_plan(booted: Booted, tmp_path: Path) -> None:
    link = tmp_path / "a link.down"
    link.write_text("1\n2\n")
    one = spec.parse("stock", {"trace": link, "duration": "1s"})
    case = cases.Case("x", "", None, False, [one], [], {})
    jobs.make(tmp_path / "plan", [case])
    plan = jobs.Plan(tmp_path / "plan")
    link.unlink()
    assert all(jobs.run_job(plan, job) for job in plan.jobs)
    namesake = tmp_path / "b" / "a link.down"
    namesake.parent.mkdir()
    namesake.write_text("1\n3\n")
    another = replace(case, specs=[spec.parse("stock", {"trace": namesake, "duration": "1s"})])
    link.write_text("1\n2\n")
    with pytest.raises(SpecError, match="another trace of the plan has this name"):
        jobs.make(tmp_path / "plan", [case, another])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run-one {0}/none --task 0", "is no plan"),
        ("run-one {0}/plan", "no job: give ids of jobs.json, or --task"),
        ("run-one {0}/plan abc", "has no job 'abc'"),
        ("run-one {0}/plan --task 2 --tasks 2", "--task: 2 is not below 2"),
        ("plan {0}/new nonsense", "case 'nonsense' is unknown"),
    ],
)
def test_wrong_input(lab: Lab, booted: Booted, tmp_path: Path, words: str, message: str) -> None:
    jobs.make(tmp_path / "plan", [small()])
    done = lab(words.format(tmp_path))
    assert (done.code, message in done.err) == (2, True), done.err


def test_parts_of_an_array_are_all_jobs(lab: Lab, booted: Booted, tmp_path: Path) -> None:
    jobs.make(tmp_path / "plan", [small()])
    for task in range(4):
        done = lab(f"run-one {tmp_path}/plan --task {task} --tasks 4")
        assert (done.code, "was there" in done.out) == (0, False)
    assert len(booted) == len(set(booted)) == 6
    assert lab(f"run-one {tmp_path}/plan --list").out.split() == []


def test_scripts(booted: Booted, tmp_path: Path) -> None:
    jobs.make(tmp_path / "plan", [small()])
    jobs.write_backends(tmp_path / "plan", 3, "lab:1")
    for name in ("parallel.sh", "slurm.sh"):
        path = tmp_path / "plan" / name
        assert os.access(path, os.X_OK)
        subprocess.run(["shellcheck", path], check=True)
    assert "#SBATCH --array=0-2\n" in (tmp_path / "plan" / "slurm.sh").read_text()
    manifest = (tmp_path / "plan" / "kubernetes.yaml").read_text()
    assert "completions: 3\n" in manifest and "image: lab:1\n" in manifest


@pytest.mark.guest
def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    """With real guests: SIGKILL in the middle of a job, and the same command again."""
    runs = [spec.parse("drwa", {"rate": "1mbit", "duration": f"{n}s"}) for n in (1, 20)]
    needs_kernels(runs)
    case = cases.Case("x", "", None, False, runs, [], {})
    jobs.make(tmp_path / "plan", [case])
    plan = jobs.Plan(tmp_path / "plan")
    # Not from this machine's cache.
    short, long = (job for job in plan.jobs if job.idle)
    for job in (short, long):
        jobs.kept_here(job.id).unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "drwalab",
        "run-one",
        str(tmp_path / "plan"),
        short.id,
        long.id,
    ]
    worker = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(cases.LAB)},
        start_new_session=True,
    )
    assert worker.stdout
    assert worker.stdout.readline() == f"{short.id}  done\n"
    before = plan.result(short.id).read_bytes()
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    assert not plan.result(long.id).exists()
    assert not jobs.run_job(plan, short)
    assert plan.result(short.id).read_bytes() == before
    assert jobs.run_job(plan, long)


@pytest.mark.guest
def test_two_hosts(tmp_path: Path) -> None:
    """A host with another cache, home, locale, time zone and name gives the same bytes."""
    runs = [
        spec.parse(scheme, {"rate": "4mbit", "duration": "3s", "object": ["20kB"]})
        for scheme in ("stock", "drwa")
    ]
    needs_kernels(runs)
    jobs.make(tmp_path / "here", [cases.Case("x", "", None, False, runs, [], {})])
    here = jobs.Plan(tmp_path / "here")
    for job in here.jobs:
        jobs.kept_here(job.id).unlink(missing_ok=True)
        jobs.run_job(here, job)
    there = tmp_path / "there"
    shutil.copytree(tmp_path / "here", there / "plan")
    shutil.rmtree(there / "plan" / "results")
    (there / "plan" / "results").mkdir()
    cache = there / "cache" / "drwa"
    cache.mkdir(parents=True)
    for name in ("kernels", "sources"):
        (cache / name).symlink_to(sources.cache_dir() / name)
    other = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(cases.LAB),
        "XDG_CACHE_HOME": str(there / "cache"),
        "HOME": str(there),
        "LC_ALL": "C",
        "TZ": "Pacific/Auckland",
    }
    command = [sys.executable, "-m", "drwalab", "run-one", "plan", *(j.id for j in here.jobs)]
    if os.geteuid() == 0:
        command = ["unshare", "--uts", "sh", "-c", 'hostname other && exec "$@"', "sh", *command]
    done = subprocess.run(command, cwd=there, env=other, text=True, capture_output=True)
    assert done.stdout == "".join(f"{job.id}  done\n" for job in here.jobs), done.stderr
    for job in here.jobs:
        again = there / "plan" / "results" / here.result(job.id).name
        assert again.read_bytes() == here.result(job.id).read_bytes()
