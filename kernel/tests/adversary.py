# SPDX-License-Identifier: GPL-2.0-only
"""Searches for peers whose lies make honest connections of the same queue slower."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import Annotated

import hypothesis
import numpy as np
import typer
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import builds
import model
from model import Flow, Forgery, Link

RESULT = builds.TESTS / "results" / "adversary.md"

# Fetch time and goodput over those beside the same bytes that lie to nobody here
FETCH_MOST = 1.25
GOODPUT_LEAST = 0.9

END_S = 20.0
# When honest connections begin, at different places of DRAIN's period, and the pace of the liars
# beside each: bursts that beat with an RTT do something to it, whatever they say. What a story
# does to few is chance for the most part: one that looks harmful is asked again with many.
FETCHES = tuple((6 + 0.17 * i, 0.9 + 0.05 * (i % 5)) for i in range(36))
BULKS = tuple((0.17 * i, 0.9 + 0.05 * (i % 5)) for i in range(24))
FEW = 9
LIARS = 3


@dataclass(frozen=True)
class Lie:
    """A connection whose sender makes up its timestamps, or many one after another."""

    start_ms: int
    every_ms: int
    packets: int
    rtt_us: int
    queue_us: int
    # It claims its queue in so many words, and then no queue in one; 0: always
    claims: int
    # After so many words a new connection takes its place; 0: never
    life: int

    def words(self, flow: int, pace: float) -> Iterator[Forgery]:
        at_s = self.start_ms / 1e3
        for number in itertools.count():
            if at_s >= END_S:
                return
            bare = self.claims and number % (self.claims + 1) == 0
            queue_us = 0 if bare else self.queue_us
            yield Forgery(
                at_s=at_s,
                flow=flow,
                packets=self.packets,
                rtt_us=min(self.rtt_us + queue_us, 60_000_000),
                owd_us=12_345 + queue_us,
                reset=bool(self.life) and number % self.life == 0,
            )
            at_s += pace * self.every_ms / 1e3


@dataclass(frozen=True)
class Story:
    """A link of mbps and base_ms, an honest bulk download beside a fetch or not, and liars."""

    mbps: int
    base_ms: int
    beside: bool
    lies: tuple[Lie, ...]

    def words(self, first: int, pace: float) -> list[Forgery]:
        said = [word for i, lie in enumerate(self.lies) for word in lie.words(first + i, pace)]
        return sorted(said, key=lambda word: word.at_s)

    @property
    def floods(self) -> bool:
        """Whether liars would send more than half of what the link carries: a rival, lie or not."""
        bits_per_ms = sum(lie.packets * 1500 * 8 / lie.every_ms for lie in self.lies)
        return bits_per_ms > self.mbps * 1e3 / 2


def _microseconds(most: int) -> st.SearchStrategy[int]:
    """Any magnitude is as likely as another."""
    return st.integers(0, most.bit_length() - 1).flatmap(
        lambda bits: st.integers(1 << bits, min(most, (2 << bits) - 1))
    )


WORDS = st.builds(
    Lie,
    start_ms=st.integers(0, 12_000),
    every_ms=st.integers(10, 1500),
    packets=st.integers(0, 20),
    rtt_us=_microseconds(60_000_000),
    queue_us=st.just(0) | _microseconds(2_000_000),
    claims=st.integers(0, 200),
    life=st.just(0) | st.integers(1, 100),
)
STORIES = st.builds(
    lambda link, beside, lies: Story(link[0], link[1], beside, tuple(lies)),
    st.sampled_from([(10, 50), (5, 100), (30, 60)]),
    st.booleans(),
    st.lists(WORDS, min_size=1, max_size=LIARS),
).filter(lambda story: not story.floods)


# What the same bytes over the same link may be
LIES = Flow(0, forged=True)
SAID_ELSEWHERE = Flow(0, forged=True, queue=1)
FOLLOW_NO_LAW = Flow(0, forged=True, queue=1, counted=0)


def _run(story: Story, honest: list[Flow], liar: Flow, pace: float, warm_s: float) -> model.Outcome:
    liar = replace(liar, base_rtt_s=story.base_ms / 1e3)
    return model.run(
        Link(story.mbps),
        [*honest, *[liar] * len(story.lies)],
        END_S,
        warm_s,
        forgeries=story.words(len(honest), pace),
    )


def fetch_harm(story: Story, size_bytes: int, step: int = 1) -> float:
    """Times of new fetches, over the longer ones beside the same bytes that lie to nobody here."""

    def mean_s(liar: Flow) -> float:
        base_s = story.base_ms / 1e3
        bulk = [Flow(base_s)] if story.beside else []
        times = []
        for start_s, pace in FETCHES[::step]:
            fetch = Flow(base_s, start_s=start_s, size_bytes=size_bytes)
            took = float(_run(story, [fetch, *bulk], liar, pace, 0).fetch_s[0])
            times.append(END_S - start_s if np.isnan(took) else took)
        return float(np.mean(times))

    return mean_s(LIES) / max(mean_s(SAID_ELSEWHERE), mean_s(FOLLOW_NO_LAW))


def bulk_harm(story: Story, step: int = 1) -> float:
    """The lesser goodput beside the same bytes that lie to nobody here, over that beside lies."""

    def mean_mbps(liar: Flow) -> float:
        base_s = story.base_ms / 1e3
        runs = [
            _run(story, [Flow(base_s, start_s=start_s)], liar, pace, 5)
            for start_s, pace in BULKS[::step]
        ]
        return float(np.mean([run.goodput_mbps[0] for run in runs]))

    return min(mean_mbps(SAID_ELSEWHERE), mean_mbps(FOLLOW_NO_LAW)) / max(mean_mbps(LIES), 1e-6)


@dataclass(frozen=True)
class Harm:
    """A kind of harm, from every step-th beginning, and the most of it that is allowed."""

    name: str
    measure: Callable[[Story, int], float]
    most: float

    def of(self, story: Story) -> float:
        harm = self.measure(story, FEW)
        return harm if harm <= self.most else self.measure(story, 1)


def _fetch_500_kb(story: Story, step: int) -> float:
    return fetch_harm(story, 500_000, step)


def _fetch_2_mb(story: Story, step: int) -> float:
    return fetch_harm(story, 2_000_000, step)


HARMS = (
    Harm("fetch of 500 kB", _fetch_500_kb, FETCH_MOST),
    Harm("fetch of 2 MB", _fetch_2_mb, FETCH_MOST),
    Harm("bulk", bulk_harm, 1 / GOODPUT_LEAST),
)


@dataclass
class Search:
    """What a search has seen: how many stories, and the most harmful one."""

    stories: int = 0
    worst: float = 0.0
    story: Story | None = None
    # The smallest story beyond the bound
    found: Story | None = None
    harm: float = field(default=0.0, repr=False)


def search(harm: Harm, runs: int, seed: int, shrink: bool = True) -> Search:
    """Makes this many stories, more like those that do harm, and shrinks one beyond the bound."""
    phases = [Phase.generate, Phase.target, *([Phase.shrink] if shrink else [])]
    result = Search()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=runs,
        deadline=None,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(STORIES)
    def hurts(story: Story) -> None:
        measured = harm.of(story)
        result.stories += 1
        if measured > result.worst:
            result.worst, result.story = measured, story
        hypothesis.target(measured)
        if measured > harm.most:
            # The smallest one is tried last.
            result.found, result.harm = story, measured
            raise AssertionError

    with contextlib.suppress(AssertionError):
        hurts()
    return result


def report(results: dict[str, Search], runs: int, seed: int) -> str:
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# adversary",
        "What liars in a modelled queue can do to honest connections, as found by",
        "[adversary.py](../adversary.py); harm is relative to the same bytes, that lie to",
        "another queue or follow no law, whichever does more.",
        "",
        "| harm | stories | worst | bound |",
        "| --- | --: | --: | --: |",
        *[
            f"| {harm.name} | {results[harm.name].stories:,} | {results[harm.name].worst:.3f} × "
            f"| {harm.most:.2f} × |"
            for harm in HARMS
        ],
        "",
        "The most harmful stories:",
        "",
        *[f"- {name}: `{result.story}`" for name, result in results.items()],
        "",
        f"tcp_drwa_core.c: {builds.law_digest()}. "
        f"Repeat it with `kernel/tests/adversary --runs {runs} --seed {seed} --record`.",
        "",
    ]
    return "\n".join(lines)


# One search's share: a search learns what harms, and many of them begin elsewhere.
CHUNK = 200


def main(
    runs: Annotated[int, typer.Option(min=1, help="Stories for each kind of harm.")] = 1000,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    seed: Annotated[int, typer.Option(min=1, help="First random seed.")] = 1,
    record: Annotated[
        bool, typer.Option("--record", help="Write results/adversary.md if nothing is found.")
    ] = False,
) -> None:
    """Search for liars who make honest connections slower than the law promises."""
    model.library()
    shares = [
        (harm, min(CHUNK, runs - start), seed + i)
        for harm in HARMS
        for i, start in enumerate(range(0, runs, CHUNK))
    ]
    results = {harm.name: Search() for harm in HARMS}
    findings = 0
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
    )
    with bar, ProcessPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=runs * len(HARMS))
        waiting = {pool.submit(search, *share): share for share in shares}
        for done in as_completed(waiting):
            (harm, share, used), result = waiting[done], done.result()
            total = results[harm.name]
            total.stories += result.stories
            if result.worst > total.worst:
                total.worst, total.story = result.worst, result.story
            if result.found:
                findings += 1
                bar.console.print(
                    f"{harm.name}, seed {used}: {result.harm:.2f} x by {result.found}",
                    soft_wrap=True,
                )
            bar.advance(task, share)
    for name, total in results.items():
        print(f"{name}: {total.stories:,} stories, worst {total.worst:.3f} x by {total.story}")
    if findings:
        raise SystemExit(f"findings: {findings}; nothing is recorded")
    if record:
        RESULT.write_text(report(results, runs, seed))


if __name__ == "__main__":
    typer.run(main)
