# SPDX-License-Identifier: GPL-2.0-only
"""What each mechanism of a law is for: its model's campaign and its tests without it."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import builds
import constants
import designs
import up_ablation
import up_campaign
from builds import Edits
from constants import Cells

TESTED = (
    "test_model.py",
    "test_recovery.py",
    "test_core.py",
    "test_adversary.py::test_short_connections_are_no_rival",
    "test_adversary.py::test_who_stays_in_start_keeps_no_silence_from_others",
)
# What these need beside the law; each edit has a copy of it.
COPIED = ("tests", "src", "lab/drwalab", "lab/pyproject.toml", "../device/drwatool")

# Old text that is there once, and what stays without the mechanism
MECHANISMS: dict[str, Edits] = {
    "dev": (
        (
            "	return d->rate + drwa_times_lambda(d, d->dev);\n",
            "	return d->rate;\n",
        ),
    ),
    "silence in the window": (("max(r->target_us, READ_ONCE(l->silence_us))", "r->target_us"),),
    "silence in DRAIN": (
        (
            "max(d->path_us, READ_ONCE(l->silence_us))",
            "max(d->path_us, 0 * READ_ONCE(l->silence_us))",
        ),
    ),
    "no change beyond two rates": (("d->dev = min(d->dev, 2 * rate);", ";"),),
    "silences not while others come": (
        (
            "r->alone && d->phase == DRWA_HOLD",
            "d->phase == DRWA_HOLD",
        ),
    ),
    "but shorter ones do": (("(known || change < 0)", "known"),),
    "the first silence counts whole": (
        ("(silence_us ? change >> DRWA_MEAN_SHIFT : change)", "(change >> DRWA_MEAN_SHIFT)"),
    ),
    "START leaves silences to those in HOLD": (
        ("d->phase == DRWA_START && !learned)", "d->phase == DRWA_START && (learned || 1))"),
    ),
    "START's queue is beyond a silence": (
        ("silence_us = max(r->silent_us, READ_ONCE(l->silence_us));", "silence_us = 0;"),
    ),
    "no longer silence than that of DRX": (
        (
            "min_t(u32, READ_ONCE(l->longest_us), DRWA_SILENCE_MAX_US)",
            "READ_ONCE(l->longest_us)",
        ),
    ),
    "rounds that wait for a burst": (
        (
            "	return d->phase == DRWA_START ||\n",
            "	return true || d->phase == DRWA_START ||\n",
        ),
    ),
    "START's rounds wait for none": (
        ("	return d->phase == DRWA_START ||\n	       (s32)", "	return (s32)"),
    ),
    "rounds with a pause say nothing": (
        (" && !look_paused(r, max(d->rtt_us, last_rtt_us));", ";"),
    ),
    "the added segment": (("drwa_bytes(rate, us) + r->mss,", "drwa_bytes(rate, us),"),),
    "the least target of all": (
        ("	if (others_us < target_us &&", "	if (0 && others_us < target_us &&"),
    ),
    "others' target is 8 ms at least": (
        ("max_t(u32, others_us, 2 * DRWA_QUEUE_MIN_US)", "others_us"),
    ),
    "joint DRAIN": (
        (
            "	if (r->now_us - READ_ONCE(l->drain_us) <= r->elapsed_us)\n		return true;\n",
            "",
        ),
    ),
    "deeper DRAIN for a shorter path": (
        (
            "		d->base_us = d->drain_owd_us;\n		return;\n",
            "		d->base_us = d->drain_owd_us;\n		d->rounds++;\n		return;\n",
        ),
    ),
    "deeper DRAIN for a rival": (
        (
            "left_us > DRWA_QUEUE_MIN_US && others &&",
            "0 && left_us > DRWA_QUEUE_MIN_US && others &&",
        ),
    ),
    "rounds after DRAIN": (
        (
            "	d->rounds = DRWA_DRAIN_ROUNDS;\n	d->base_seen_us",
            "	d->rounds = 0;\n	d->base_seen_us",
        ),
    ),
    "a lost rate brings DRAIN": ((" || d->rate + d->dev < d->good / 2;", ";"),),
    "a path that became longer within DRAIN": (
        ("bool longer = left_us > (s32)jitter_us &&", "bool longer = jitter_us && 0 &&"),
    ),
    "not where a silence explains it": (
        ("DRWA_QUEUE_MIN_US + READ_ONCE(l->silence_us);", "DRWA_QUEUE_MIN_US;"),
    ),
    "not where a count is late": (("jitter_us && !READ_ONCE(l->late);", "jitter_us;"),),
    "not within its second round": (("(longer && d->rounds == 2 * DRWA_DRAIN_ROUNDS)", "longer"),),
    "others' bytes bring DRAIN": (
        ("READ_ONCE(l->others) > DRWA_RIVAL_PART || d->rate", "d->rate"),
    ),
    "but not within dev": (("d->rate + d->dev < d->good / 2", "d->rate < d->good / 2"),),
    "the queue's growth makes a round full": (
        (
            "r->used ||\n		  (r->alone && d->path_us + r->q_us > last_rtt_us + "
            "quarter(r->elapsed_us))",
            "r->used",
        ),
    ),
    "and a pause's growth does not": (
        (
            "d->path_us + r->q_us > last_rtt_us + quarter",
            "d->rtt_us > last_rtt_us + quarter",
        ),
    ),
    "a pause is no path": (("d->phase == DRWA_START || path_us < d->path_us", "true"),),
    "a late START has the least window": (("if (r->bytes / 2 > d->wnd) {", "if (0) {"),),
    "seven eighths make a longer path": (("(s32)(q_us - q_us / 8)", "(s32)(0 * q_us)"),),
    "rivals": (("	WRITE_ONCE(l->others, part);", "	WRITE_ONCE(l->others, 0 * part);"),),
    "a rival's end by the count": (
        ("	if (READ_ONCE(l->others) > DRWA_NOBODY_PART)\n", "	if (d->rival)\n"),
    ),
    "counts that are too old": (
        ("bool late = elapsed_us / 2 > max(", "bool late = 0 && elapsed_us / 2 > max("),
    ),
    "a rival outlives a pause": (
        ("		part = min_t(int, part, READ_ONCE(l->others) / 2);", "		part = 0;"),
    ),
    "unless it was gone": (
        (
            "		part = min_t(int, part, READ_ONCE(l->others) / 2);",
            "		part = READ_ONCE(l->others) / 2;",
        ),
    ),
    "who paused is alone": (
        (
            "	r->alone = READ_ONCE(l->others) <= DRWA_NOBODY_PART || READ_ONCE(l->late);",
            "	r->alone = READ_ONCE(l->others) <= DRWA_NOBODY_PART;",
        ),
    ),
    "no clock, no rounds with pauses": (
        ("	if (READ_ONCE(l->longest_us) <=", "	if (1 || READ_ONCE(l->longest_us) <="),
    ),
    "but two are a longer path": (
        ("	if (quarter(r->elapsed_us) <= last_rtt_us) {", "	if (0 && last_rtt_us) {"),
    ),
    "a queue's growth is no pause": (
        (
            "READ_ONCE(l->longest_us) <= max(d->path_us, DRWA_SILENCE_MAX_US) ||",
            "READ_ONCE(l->longest_us) < DRWA_SILENCE_MAX_US ||",
        ),
    ),
    "mistrust": (("	if (d->clock && (q > ", "	if (0 && (q > "),),
    "the RTT for a clock": (
        (
            "	if (!d->clock)\n		owd_us = rtt_us;\n",
            "	if (!d->clock)\n		owd_us = 0;\n",
        ),
    ),
    "without a clock no window beside an upload": (
        ("	if (READ_ONCE(l->upload)) {", "	if (0) {"),
    ),
    "hidden bits": (("DRWA_DRAIN && delay_halved(", "DRWA_DRAIN && 0 && delay_halved("),),
    "all hidden bits at once": (
        (
            "min(d->hidden + fls(part | 1) - 1, DRWA_HIDDEN_MAX)",
            "min(d->hidden + (part > 1), DRWA_HIDDEN_MAX)",
        ),
    ),
    "a trial only with no queue": (
        ("	return r->q_us <= 2 * DRWA_QUEUE_MIN_US && r->elapsed", "	return r->elapsed"),
    ),
    "no trial in START behind others": (
        ("d->phase == DRWA_START && link_fresh(", "0 && link_fresh("),
    ),
    "flights of two RTTs": ((" && r->elapsed_us <= 2 * d->rtt_us &&\n", " &&\n"),),
    "a trial only of half the window": (
        ("flight <= d->wnd / 2 + r->mss && d->hidden", "flight <= 2 * d->wnd && d->hidden"),
    ),
    "the same flights before a trial": ((" || flight - before + near > 2 * near)\n", ")\n"),),
    "a segment more or less is the same": (
        ("near = max(quarter(before), r->mss);", "near = quarter(before);"),
    ),
    "so many of them": (("DRWA_WATCH_ROUNDS	8", "DRWA_WATCH_ROUNDS	4"),),
    "a trial shows by a quarter": (
        ("r->rate <= d->good + quarter(d->good)", "r->rate <= d->good"),
    ),
    "in two rounds": (("DRWA_TRIAL_ROUNDS	3", "DRWA_TRIAL_ROUNDS	2"),),
    "more than twice of a flight ends a trial": (("flight > 2 * (before + near) ||\n", "0 ||\n"),),
    "the window stays in a trial": (
        (
            "	} else if (!delay_tries(d)) {\n		d->wnd = max",
            "	} else {\n		d->wnd = max",
        ),
        ("if (!delay_tries(d) && (r->full || wnd > d->wnd))", "if (r->full || wnd > d->wnd)"),
    ),
    "bits go 16 paths apart": (
        (
            "max(DRWA_SECOND_SHIFT, fls(d->path_us) + DRWA_DRAIN_SHIFT);\n	u32",
            "DRWA_SECOND_SHIFT;\n	u32",
        ),
    ),
    "good is the last full round's after a trial": (
        ("	d->good = d->phase == DRWA_HOLD ? d->rate : 0;\n", ""),
    ),
    "START takes bits back": (
        (
            ">> often && d->phase != DRWA_HOLD && d->hidden",
            ">> often && d->phase == DRWA_DRAIN && d->hidden",
        ),
    ),
    "DRAIN takes bits back": (
        (
            ">> often && d->phase != DRWA_HOLD && d->hidden",
            ">> often && d->phase == DRWA_START && d->hidden",
        ),
    ),
    "START's end at the target": (
        ("max_t(u32, r->target_us, DRWA_QUEUE_MIN_US)", "DRWA_QUEUE_MIN_US"),
    ),
    "START's end at 4 ms at least": (
        ("max_t(u32, r->target_us, DRWA_QUEUE_MIN_US)", "r->target_us"),
    ),
    "DRAIN leaves few segments alone": (
        ("	else if (bdp >> DRWA_DRAIN_SHIFT >= r->mss)\n", "	else\n"),
    ),
    "no verdict while old offers come": (
        (
            " &&\n	    (u64)r->bytes * d->rtt_us <= (u64)(d->wnd + 2 * r->mss) * r->elapsed_us)",
            ")",
        ),
    ),
}


@dataclass(frozen=True)
class Law:
    """What is looked at, and where: its mechanisms and its campaign."""

    record: str
    source: Path
    mechanisms: Mapping[str, Edits]
    row: Callable[[Edits], Cells]
    campaign: list[str]
    tested: tuple[str, ...] = ()
    # What a cell changes by when nothing of it does: an edit, in place of a limit alone
    chance: Edits = ()
    option: str = ""
    # What an edit does to the law, and the heading of the first column
    about: str = "The law without each of its mechanisms, over the model's campaign"
    edit: str = "without"

    @property
    def result(self) -> Path:
        return builds.TESTS / "results" / f"{self.record}.md"


DOWNLINK = Law("ablation", builds.CORE, MECHANISMS, constants.row, constants.what_is_run(), TESTED)
GATE = Law(
    "ablation-up",
    builds.UP_CORE,
    up_ablation.MECHANISMS,
    up_campaign.row,
    up_campaign.WHAT_IS_RUN,
    chance=up_ablation.CHANCE,
    option="--gate ",
)
OTHERS = Law(
    "designs",
    builds.CORE,
    designs.DESIGNS,
    designs.row,
    designs.WHAT_IS_RUN,
    option="--designs ",
    about="Other designs of the law that were tried for what it misses",
    edit="design",
)


def failing(law: Law, edits: Edits) -> int:
    """How many of the law's tests in user space fail; of the gate's, mutation tests tell."""
    if not law.tested:
        return 0
    with tempfile.TemporaryDirectory() as name:
        kernel = Path(name) / "kernel"
        for part in COPIED:
            source, copy = builds.KERNEL / part, kernel / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        edited = kernel / law.source.relative_to(builds.KERNEL)
        edited.write_text(builds.edited(law.source, edits))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                f"--config-file={kernel / 'lab/pyproject.toml'}",
                *(kernel / "tests" / each for each in law.tested),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    told = re.findall(r"^(?:(\d+) failed, )?\d+ passed", done.stdout, re.MULTILINE)
    # 0 and 1: all tests ran
    if done.returncode > 1 or len(told) != 1:
        raise RuntimeError(done.stdout + done.stderr)
    return int(told[0] or 0)


def is_flat(cells: Cells, present: Cells, chance: Cells) -> bool:
    return all(
        constants.is_flat({name: cells[name]}, {name: present[name]})
        or abs(cells[name] - present[name]) <= abs(chance[name] - present[name])
        for name in present
    )


def report(
    law: Law, rows: Mapping[str, tuple[Cells, int]], present: tuple[Cells, int], chance: Cells
) -> str:
    names = present[0]

    def line(title: str, cells: Cells, failed: int, flat: str = "") -> str:
        tests = f" {failed} |" if law.tested else ""
        return f"| {title} | {constants.shown(cells)} |{tests} {flat} |"

    tests = f", and how many tests\nfail ({', '.join(law.tested)})" if law.tested else ""
    heads = [*names, *(["tests"] if law.tested else [])]
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        f"# {law.record}",
        f"{law.about}{tests}:",
        *law.campaign,
        "",
        f"| {law.edit} | {' | '.join(heads)} | |",
        f"| --- |{' --: |' * len(heads)} --- |",
        line("as it is", names, present[1]),
    ]
    if law.chance:
        lines.append(line("as it is, by chance", chance, present[1]))
    for mechanism, (cells, failed) in rows.items():
        flat = is_flat(cells, names, chance) and failed <= present[1]
        lines.append(line(mechanism, cells, failed, "flat" if flat else ""))
    repeat = f"Repeat it with `kernel/tests/ablation {law.option}--record`."
    lines += ["", f"{law.source.name}: {builds.law_digest(law.source)}. {repeat}", ""]
    return "\n".join(lines)


def main(
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(help="A mechanism; all of them if none is named.")
    ] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Of the uplink's law.")] = False,
    others: Annotated[
        bool, typer.Option("--designs", help="Other designs, for targets that are missed.")
    ] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Write results/ablation.md, ablation-up.md or designs.md."),
    ] = False,
) -> None:
    """Run the model's campaign, and the tests, without each mechanism of the law."""
    if record and only:
        raise typer.BadParameter("a record has all mechanisms")
    if gate and others:
        raise typer.BadParameter("--gate and --designs are of different laws")
    law = GATE if gate else OTHERS if others else DOWNLINK
    variants: dict[str, Edits] = {"": ()}
    variants |= {name: law.mechanisms[name] for name in only or law.mechanisms}
    bar = Progress(BarColumn(), TextColumn("{task.completed} of {task.total}"), TimeElapsedColumn())
    with bar, ProcessPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=2 * len(variants) + bool(law.chance))
        cells = {name: pool.submit(law.row, edits) for name, edits in variants.items()}
        chance = pool.submit(law.row, law.chance) if law.chance else cells[""]
        failed = {name: pool.submit(failing, law, edits) for name, edits in variants.items()}
        waiting: set[Future[Cells] | Future[int]] = {*cells.values(), chance, *failed.values()}
        for _ in as_completed(waiting):
            bar.advance(task)
    rows = {name: (cells[name].result(), failed[name].result()) for name in variants}
    present = rows.pop("")
    table = report(law, rows, present, chance.result())
    print(table)
    if record:
        law.result.write_text(table)


if __name__ == "__main__":
    typer.run(main)
