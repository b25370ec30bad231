# SPDX-License-Identifier: GPL-2.0-only
"""`lab plan`, `lab run-one` and `lab merge`: the runs of cases on many machines.

A plan is a folder: jobs.json has the jobs, traces/ the links that they replay, results/ what was
run. A job is one guest. Its id is the hash of all that decides its result, as in the cache, so that
a job of other sources is another job, and a result that is there is never made again.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from drwalab import cases, errors, kernels, literature, output, pool, results, spec
from drwalab.campaign import on_line
from drwalab.report import TEMPLATES
from drwalab.results import Result
from drwalab.spec import DEFAULTS, RunSpec, SpecError

SCHEMA = "drwa-plan/1"
BACKENDS = {"parallel.sh": 0o755, "slurm.sh": 0o755, "kubernetes.yaml": 0o644}


@dataclass(frozen=True)
class Job:
    """One guest: its id, the command that repeats it, and the id of its link's idle run, if any."""

    id: str
    command: str
    idle: str

    def spec(self, traces: Path) -> RunSpec:
        return from_command(self.command, traces)


def from_command(command: str, traces: Path) -> RunSpec:
    """The run of a result's command, with the traces in this folder; raises SpecError."""
    words = shlex.split(command)
    if words[:2] != ["lab", "run"]:
        raise SpecError(f"'{command}' is no command of a run")
    options: dict[str, Any] = {}
    names = [n for n, word in enumerate(words) if word.startswith("--")]
    for at, until in zip(names, [*names[1:], len(words)], strict=True):
        name, values = words[at].removeprefix("--"), words[at + 1 : until]
        value: Any = " ".join(values) if values else True
        if name.endswith("trace"):
            value = traces / value
        if name in cases.LISTS:
            options.setdefault(name, []).append(value)
        else:
            options[name] = value
    return spec.parse(options.pop("scheme"), options)


class Plan:
    """The folder of a plan."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            content = json.loads((folder / "jobs.json").read_text())
        except OSError as e:
            raise SpecError(f"{folder} is no plan: {e.strerror}: run lab plan") from e
        if content.get("schema") != SCHEMA:
            raise SpecError(f"{folder}: not of {SCHEMA}: run lab plan again")
        self.jobs = [Job(**job) for job in content["jobs"]]
        self.cases: dict[str, list[str]] = content["cases"]

    @property
    def traces(self) -> Path:
        return self.folder / "traces"

    def result(self, job_id: str) -> Path:
        return self.folder / "results" / f"{job_id}.json.gz"

    @property
    def missing(self) -> list[Job]:
        return [job for job in self.jobs if not self.result(job.id).exists()]

    def find(self, job_id: str) -> Job:
        for job in self.jobs:
            if job.id == job_id:
                return job
        raise SpecError(f"{self.folder}: has no job '{job_id}'")


def make(folder: Path, chosen: Sequence[cases.Case]) -> int:
    """Write the plan of these cases; returns how many jobs it has. Results that are there stay."""
    runs = [run for case in chosen for run in case.specs]
    builds = pool.find_kernels(runs)
    agent = kernels.agent()

    def address(run: RunSpec) -> str:
        kernel = builds.get((run.kernel, run.flavour)) or kernels.find(run.kernel, run.flavour)
        return pool.kept_path(run, kernel, agent).name.split(".")[0]

    idle = dict(zip(runs, pool.idle_of(runs), strict=True))
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    (folder / "results").mkdir(exist_ok=True)
    jobs: dict[str, Job] = {}
    for run in [*dict.fromkeys(idle.values()), *runs]:
        idle_id = address(idle[run]) if run in idle else ""
        job = Job(address(run), run.command(), idle_id)
        jobs.setdefault(job.id, job)
        for link in (run.down, run.up):
            if link and link.trace:
                _take_trace(link.trace.path, folder / "traces")
    for job in jobs.values():
        if address(job.spec(folder / "traces")) != job.id:
            raise SpecError(f"{job.command}: needs a kernel that its command does not tell")
    content = {
        "schema": SCHEMA,
        "cases": {case.name: [address(run) for run in case.specs] for case in chosen},
        "jobs": [vars(job) for job in jobs.values()],
    }
    output.write_whole(
        folder / "jobs.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    )
    return len(jobs)


def _take_trace(path: Path, into: Path) -> None:
    """Links are told apart by their names, here as in commands."""
    there = into / path.name
    if there.exists() and there.read_bytes() != path.read_bytes():
        raise SpecError(f"{path}: another trace of the plan has this name, too")
    if not there.exists():
        output.write_whole(there, path.read_text())


def write_backends(folder: Path, tasks: int, image: str) -> None:
    """Scripts that hand the jobs of a plan to GNU parallel, Slurm and Kubernetes."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "jobs"),
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    for name, mode in BACKENDS.items():
        text = environment.get_template(f"{name}.j2").render(
            plan=str(folder), tasks=tasks, image=image, repository=str(cases.LAB.parents[1])
        )
        output.write_whole(folder / name, text)
        (folder / name).chmod(mode)


def run_job(plan: Plan, job: Job) -> bool:
    """Runs a job, unless its result is there; returns whether it ran.

    Raises SpecError where the sources here are not those of the plan.
    """
    into = plan.result(job.id)
    if into.exists():
        return False
    run = job.spec(plan.traces)
    kernel, agent = kernels.find(run.kernel, run.flavour), kernels.agent()
    kept = pool.kept_path(run, kernel, agent)
    if kept.name != into.name:
        raise SpecError(
            f"job {job.id}: was planned with another lab, kernel or compiler: "
            "check out the plan's commit, or plan again"
        )
    if kept.exists():
        found = pool.read_kept(kept)
    else:
        (found,) = pool.run_jobs(
            [lambda cancel, reached: pool.run_guest(run, kernel, agent, cancel, reached)],
            [run.duration_us / 1e6],
            progress=False,
        )
        pool.keep(kept, found)
    pool.keep(into, found)
    return True


def merge_results(plan: Plan) -> dict[str, list[Result]]:
    """The results of each case as `lab case run` has them; raises SpecError if one is missing."""
    if missing := plan.missing:
        raise SpecError(
            f"{len(missing)} of {len(plan.jobs)} jobs have no result yet, such as {missing[0].id}"
        )
    by_id = {job.id: job for job in plan.jobs}
    merged: dict[str, list[Result]] = {}
    for case, ids in plan.cases.items():
        merged[case] = []
        for job_id in ids:
            result = pool.read_kept(plan.result(job_id))
            results.add_idle(result, pool.read_kept(plan.result(by_id[job_id].idle)))
            merged[case].append(result)
    return merged


def plan_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The plan to write.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE]...", help="See `lab case list`. Default: papers' figures."),
    ] = None,
    traces: Annotated[Path | None, cases.TRACES_OPTION] = None,
    tasks: Annotated[
        int, typer.Option(min=1, help="Parts of a Slurm array or a Kubernetes job.")
    ] = 100,
    image: Annotated[
        str,
        typer.Option(help="Container image for Kubernetes, with the repository and its kernels."),
    ] = "drwa-lab:latest",
) -> None:
    """Write the jobs of cases, and scripts that run them on many machines."""
    with errors.reported():
        chosen = cases.choose(names or list(literature.published()), traces)
        count = make(folder, [on_line(case, DEFAULTS["kernel"]) for case in chosen])
        write_backends(folder.absolute(), min(tasks, count), image)
    print(f"{count} jobs: {folder}/jobs.json, {', '.join(BACKENDS)}")


def run_one_command(
    folder: Annotated[Path, typer.Argument(metavar="PLAN", help="What lab plan wrote.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="[JOB]...", help="Their ids.")] = None,
    task: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Every job of this part instead.")
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, metavar="N", help="Into how many parts.")] = 1,
    list_: Annotated[
        bool, typer.Option("--list", help="Print the ids of the jobs without a result instead.")
    ] = False,
) -> None:
    """Run jobs of a plan, one after another; those whose results are there are done."""
    with errors.reported():
        plan = Plan(folder)
        if list_:
            print("\n".join(job.id for job in plan.missing))
            return
        chosen = [plan.find(job_id) for job_id in ids or []]
        if task is not None:
            if task >= tasks:
                raise SpecError(f"--task: {task} is not below {tasks}")
            chosen += plan.jobs[task::tasks]
        if not chosen:
            raise SpecError("no job: give ids of jobs.json, or --task")
        for job in chosen:
            word = "done" if run_job(plan, job) else "was there"
            print(f"{job.id}  {word}", flush=True)


def merge_command(
    folder: Annotated[Path, typer.Argument(metavar="PLAN", help="What lab plan wrote.")],
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all results as one JSON list."),
    ] = None,
) -> None:
    """Join the results of a plan, and put them into this machine's cache.

    `lab literature`, `lab evidence` and `lab campaign` then find them there.
    """
    with errors.reported():
        plan = Plan(folder)
        merged = merge_results(plan)
        if json_file and (problem := output.check_writable(json_file)):
            raise SpecError(f"--json: {problem}")
        for job in plan.jobs:
            kept = kept_here(job.id)
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(plan.result(job.id), kept.with_suffix(".new"))
                kept.with_suffix(".new").replace(kept)
    everything = [result for found in merged.values() for result in found]
    if json_file:
        output.write_whole(json_file, json.dumps(everything, ensure_ascii=False) + "\n")
    for name, found in merged.items():
        print(f"{name}: {len(found)} runs")
    print(f"{len(plan.jobs)} jobs are in the cache", file=sys.stderr)


def kept_here(job_id: str) -> Path:
    """Where the cache of this machine has a job's result."""
    return pool.results_dir() / f"{job_id}.json.gz"
