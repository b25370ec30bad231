# SPDX-License-Identifier: GPL-2.0-only
"""`lab campaign`: the runs of every row of the table of targets, and what became of them."""

import json
import re
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from drwalab import (
    cases,
    compare,
    errors,
    kernels,
    output,
    pool,
    quic_targets,
    schemes,
    targets,
    units,
    uplink_targets,
)
from drwalab.cases import Case
from drwalab.kernels import told_patches, told_sources
from drwalab.results import Result, geometric_mean, of_idle
from drwalab.sources import read_lines
from drwalab.spec import DEFAULTS, NO_GRO, RunSpec, SpecError, flavour_of
from drwalab.targets import ELSEWHERE, TARGETS, Group, Missing, Target, player

LAB = Path(__file__).resolve().parents[1]
RESULTS = LAB / "results"
HEADS = ("Row", "Target", "Bound", "Worst", "Where", "Links met", "")
# Other forms of the law, and what they may differ by: of goodput, and of the p95 RTT.
FORMS = ("drwa-tc", "drwa-module", "drwa-hooks")
GOODPUT_WITHIN = 0.01
P95_WITHIN = 0.05
UNKNOWN = "unknown"
AS_ITSELF = "as itself"
IN_THE_MEAN = "in the mean"
# Where a form differs, the law over paths whose RTT differs by so much, too: what is chance there.
OTHER_PATHS = (-0.002, 0.002, 0.004)
# And where that does not tell, both over these: a difference that is chance has no mean.
MEAN_PATHS = (-0.008, -0.006, -0.004, -0.002, 0.002, 0.004, 0.006, 0.008)


def document_path(line: str, form: str = "", name: str = "campaign") -> Path:
    """Where the campaign of a kernel line is recorded, or how another form of the law differs."""
    words = [name, *([form] if form else [])]
    words += [line] if line != DEFAULTS["kernel"] else []
    return RESULTS / f"{'-'.join(words)}.md"


@dataclass(frozen=True)
class Peer:
    """A player whose values stand beside those of the player that the targets are about."""

    name: str
    of: str
    head: str

    def value(self, target: Target, group: Group) -> float | None:
        try:
            return target.measure(group.standing_in(self.of, self.name))
        except Missing:
            return None


@dataclass(frozen=True)
class Table:
    """Targets, and how their document tells of the runs."""

    title: str
    option: str
    targets: Sequence[Target]
    elsewhere: Mapping[str, str]
    player: Callable[[Result], str]
    subject: str
    legend: str
    heads: Sequence[str]
    players: Callable[[Sequence[Group]], list[tuple[str, ...]]]
    peer: Peer | None = None


def _downlink() -> Table:
    return Table(
        title="Campaign",
        option="",
        targets=TARGETS,
        elsewhere=ELSEWHERE,
        player=player,
        subject="the default law (`drwa`), to what the target names; "
        "[targets.py](../drwalab/targets.py)",
        legend="The players of each case over the links that they share with stock: goodput of "
        "stock's, mean and p95 RTT of the idle link's, each the geometric mean over the links, and "
        "the mean time to fetch an object.\n",
        heads=("Player", "Links", "Goodput", "Mean RTT", "p95 RTT", "Fetch, ms"),
        players=_players,
    )


def _programs() -> Table:
    return replace(
        _downlink(),
        title="Programs",
        option=" --programs",
        targets=targets.PROGRAMS,
        elsewhere={},
        subject="the law as programs at the interface (`drwa-tc`), to what the target names; "
        "[targets.py](../drwalab/targets.py)",
    )


def _uplink() -> Table:
    return Table(
        title="Uplink",
        option=" --uplink",
        targets=uplink_targets.TARGETS,
        elsewhere=uplink_targets.ELSEWHERE,
        player=uplink_targets.player,
        subject="the gate (`drwa`), to what the target names; "
        "[uplink_targets.py](../drwalab/uplink_targets.py)",
        legend="The players of each case over each link. `pfifo` is today's phone, `qcut-d` knows "
        "what is in the modem; senders (`bbr`, `vegas`) are those of the phone, over `pfifo`.\n",
        heads=uplink_targets.HEADS,
        players=uplink_targets.players,
    )


def _quic() -> Table:
    return Table(
        title="QUIC-stacks",
        option=" --quic",
        targets=quic_targets.TARGETS,
        elsewhere=quic_targets.ELSEWHERE,
        player=player,
        subject="the law with UDP held to a short queue (`drwa-aqm`), to what the target names; "
        "[quic_targets.py](../drwalab/quic_targets.py)",
        legend="The players of each case over each link. `drwa-tc` is the law without `--aqm`. "
        "Rates are those from the last neighbour's start on, RTTs those of all of the run. The "
        "RTT is that of probes of 84 bytes in the same queue, so it is a call's and a game's, "
        "too. Nothing is dropped of a flow below 250 kb/s, and a link of 0.5 Mb/s has hardly more. "
        "The last two columns say how a stack differs from the lab's own sender in its place: the "
        "rate of the one in that of the other, and the p95 RTT likewise.\n",
        heads=quic_targets.HEADS,
        players=quic_targets.players,
        peer=Peer(
            quic_targets.CODEL, quic_targets.HELD, "CoDel in the base station: there; links met"
        ),
    )


@dataclass(frozen=True)
class Verdict:
    """What became of a target: its value, where that is, and how many links are right.

    The value is that of the worst link, or the geometric mean of all; none without links.
    """

    row: str
    case: str
    what: str
    bound: str
    reach: bool
    together: bool
    met: bool
    worst: float | None
    where: str | None
    links_met: int
    links: int
    values: dict[str, float]
    peers: dict[str, float]
    peers_met: int

    def cells(self, peer: Peer | None = None) -> tuple[str, ...]:
        """Of HEADS, with the peer's value at the worst link, and its count, before the last one."""
        there = output.number(self.peers.get(str(self.where)), 3)
        met = f"; {self.peers_met} of {len(self.peers)}" if self.peers else ""
        theirs = [there + met] if peer else []
        if self.worst is None:
            return (self.row, self.what, self.bound, "–", "no run", "–", *theirs, "not run")
        word = "met" if self.met else "missed"
        return (
            self.row,
            self.what,
            self.bound,
            f"{self.worst:.3f}",
            str(self.where),
            "–" if self.together else f"{self.links_met} of {self.links}",
            *theirs,
            f"{word} (to reach for)" if self.reach else word,
        )

    @property
    def order(self) -> tuple[bool, bool, int]:
        """What is missed comes first, what has only to be reached for after it."""
        return (self.met, self.reach, int(self.row))


def judge(target: Target, groups: Sequence[Group], peer: Peer | None = None) -> Verdict:
    values, peers = {}, {}
    for group in groups:
        try:
            value = target.measure(group)
        except Missing:
            continue
        if value is not None:
            values[group.label] = round(float(value), 4)
            theirs = peer.value(target, group) if peer else None
            if theirs is not None:
                peers[group.label] = round(float(theirs), 4)
    links_met = sum(target.met(value) for value in values.values())
    worst = where = None
    if values and target.together:
        worst, where = geometric_mean(list(values.values())), f"all {len(values)}, geometric mean"
    elif values:
        where = min(values, key=lambda label: target.margin(values[label]))
        worst = values[where]
    return Verdict(
        row=target.row,
        case=target.case,
        what=target.what,
        bound=target.bound,
        reach=target.reach,
        together=target.together,
        met=worst is not None and target.met(worst),
        worst=worst,
        where=where,
        links_met=links_met,
        links=len(values),
        values=values,
        peers=peers,
        peers_met=sum(target.met(value) for value in peers.values()),
    )


@dataclass(frozen=True)
class Row:
    """What a case came to, without the runs' series."""

    case: Case
    verdicts: list[Verdict]
    players: list[tuple[str, ...]]
    runs: list[dict[str, Any]]
    kernels: list[str]


def _row(case: Case, found: Sequence[Result], table: Table) -> Row:
    uplinks = [spec.up.trace for spec in case.specs if spec.up and spec.up.trace]
    groups = targets.groups(found, table.player, uplinks)
    kept = ("series", "drwa")
    made = [result["provenance"] for result in found]
    kernels = {told_patches(p["kernel_release"], p["patch_ids"]) for p in made if p["patch_ids"]}
    # Of a form without the series, all of them are without patches.
    kernels = kernels or {p["kernel_release"] for p in made}
    return Row(
        case=case,
        verdicts=[
            judge(target, groups, table.peer)
            for target in table.targets
            if target.case == case.name
        ],
        players=table.players(groups),
        runs=[{k: v for k, v in result.items() if k not in kept} for result in found],
        kernels=sorted(kernels),
    )


@dataclass(frozen=True)
class Difference:
    """A run in numbers of another one: goodput and p95 RTT, each None where there is none."""

    goodput: float | None
    p95: float | None

    def within(self, others: "Sequence[Difference]" = ()) -> bool:
        """Alike, or no further than that from what the others span, and one."""
        pairs = (
            (self.goodput, [each.goodput for each in others], GOODPUT_WITHIN),
            (self.p95, [each.p95 for each in others], P95_WITHIN),
        )
        for ratio, theirs, within in pairs:
            if ratio is None:
                continue
            span = [1.0, *(each for each in theirs if each is not None)]
            if not min(span) - within <= ratio <= max(span) + within:
                return False
        return True


@dataclass(frozen=True)
class Pair:
    """A run of the law and the same one of another form of it.

    If the form is not alike, own is the law over almost the same paths, in numbers of itself. If
    that is not within the bounds, and no cause is known, mean is the geometric mean over these
    paths of the form in numbers of the law.
    """

    case: str
    link: str
    form: Difference
    own: tuple[Difference, ...] = ()
    mean: Difference | None = None

    @property
    def alike(self) -> bool:
        return self.form.within()

    @property
    def as_itself(self) -> bool:
        """Not alike, and no further off than the law is from itself."""
        return not self.alike and self.form.within(self.own)


@dataclass(frozen=True)
class Cause:
    """Why runs of these cases differ, where their link's label matches, and what shows it."""

    cases: Sequence[str]
    link: str
    why: str
    shown: str

    def of(self, pair: Pair) -> bool:
        return pair.case in self.cases and re.search(self.link, pair.link) is not None


def causes(form: str) -> list[Cause]:
    """What deviations.toml knows of a form."""
    known = tomllib.loads((LAB / "deviations.toml").read_text())
    return [Cause(**each) for each in known.get(form, [])]


def cause_of(pair: Pair, known: Sequence[Cause]) -> str:
    """What the numbers themselves say, or the number of the first cause that the pair has."""
    if pair.as_itself:
        return AS_ITSELF
    if pair.mean is not None and pair.mean.within():
        return IN_THE_MEAN
    return next((str(n) for n, cause in enumerate(known, 1) if cause.of(pair)), UNKNOWN)


def _difference(law: Result, other: Result) -> Difference:
    def ratio(of: Callable[[Result], float | None]) -> float | None:
        ours, theirs = of(law), of(other)
        return theirs / ours if ours and theirs is not None else None

    return Difference(
        goodput=ratio(targets.goodput) if law["config"]["flows"] else None,
        p95=ratio(lambda result: result["rtt_ms"]["p95"]),
    )


def _mean(differences: Sequence[Difference]) -> Difference:
    """The geometric mean of each, of those that have it."""
    pairs = ([d.goodput for d in differences], [d.p95 for d in differences])
    goodput, p95 = (geometric_mean([ratio for ratio in ratios if ratio]) for ratios in pairs)
    return Difference(goodput, p95)


def _as(one: RunSpec, form: str) -> RunSpec:
    """The same run with another form of the law, under the same limits."""
    assert one.scheme.limits is not None
    scheme = schemes.find(form).under(schemes.find(one.scheme.limits))
    return replace(one, scheme=scheme, flavour=scheme.flavour)


def _law(specs: Sequence[RunSpec]) -> list[RunSpec]:
    return [each for each in specs if each.scheme.name == targets.LAW]


def _pairs(
    case: str,
    form: str,
    specs: Sequence[RunSpec],
    found: Sequence[Result],
    builds: pool.Builds,
    known: Sequence[Cause],
) -> list[Pair]:
    def ran(ours: Sequence[RunSpec]) -> list[Result]:
        return pool.run_specs(ours, reuse=True, builds=builds, beside_idle=False)

    others = ran([_as(each, form) for each in specs])
    differences = [_difference(r, other) for r, other in zip(found, others, strict=True)]
    apart = [spec for spec, d in zip(specs, differences, strict=True) if not d.within()]
    own = iter(ran([each for spec in apart for each in _paths(spec, OTHER_PATHS)]))
    pairs = []
    for spec, result, difference in zip(specs, found, differences, strict=True):
        name = "" if targets.player(result) == targets.LAW else f"{targets.player(result)}: "
        same = [] if difference.within() else [next(own) for _ in OTHER_PATHS]
        pair = Pair(
            case=case,
            link=name + compare.link_label(result),
            form=difference,
            own=tuple(_difference(result, each) for each in same),
        )
        if not pair.alike and cause_of(pair, known) == UNKNOWN:
            pair = _over_paths(pair, spec, form, ran)
        pairs.append(pair)
    return pairs


def _paths(one: RunSpec, parts: Sequence[float]) -> list[RunSpec]:
    return [replace(one, base_rtt_us=round(one.base_rtt_us * (1 + part))) for part in parts]


def _over_paths(
    pair: Pair, spec: RunSpec, form: str, ran: Callable[[Sequence[RunSpec]], list[Result]]
) -> Pair:
    paths = [spec, *_paths(spec, MEAN_PATHS)]
    others = ran([_as(each, form) for each in paths])
    mean = _mean([_difference(a, b) for a, b in zip(ran(paths), others, strict=True)])
    return replace(pair, mean=mean)


def _command(line: str, rows: Sequence[str], option: str) -> str:
    of_line = "" if line == DEFAULTS["kernel"] else f" --kernel {line}"
    of_rows = "".join(f" --row {row}" for row in rows)
    return f"kernel/lab/lab campaign{option}{of_line}{of_rows}"


def forms_document(
    pairs: Sequence[Pair],
    form: str,
    line: str,
    chosen: Sequence[str] = (),
    known: Sequence[Cause] = (),
    kernels: Sequence[str] = (),
) -> str:
    """How many runs of these rows, or of all, are alike, by case, and each one that is not.

    Kernels are those of the law's runs, with their patches.
    """
    heads = (
        "Case",
        "Runs",
        "Alike",
        "As itself",
        "Goodput, geometric mean",
        "p95 RTT, geometric mean",
    )
    cells = []
    for case in dict.fromkeys(pair.case for pair in pairs):
        ours = [pair for pair in pairs if pair.case == case]
        means = [
            geometric_mean([ratio for ratio in ratios if ratio])
            for ratios in ([p.form.goodput for p in ours], [p.form.p95 for p in ours])
        ]
        counts = [len(ours), sum(p.alike for p in ours), sum(p.as_itself for p in ours)]
        cells.append((case, *map(str, counts), *(output.number(mean, 3) for mean in means)))
    of_what = "of the campaign" if not chosen else f"of the campaign's rows {', '.join(chosen)}"
    # What is more than chance comes first.
    rest = sorted((p for p in pairs if not p.alike), key=lambda p: p.as_itself)
    why = [cause_of(pair, known) for pair in rest]
    told: list[str] = []
    if IN_THE_MEAN in why:
        told += [
            f"*{IN_THE_MEAN}*: both are within these bounds in the mean of the run and of "
            f"{len(MEAN_PATHS)} more, over paths whose base RTT differs by up to "
            f"{max(MEAN_PATHS):.1%}. What this one differs by is chance.\n"
        ]
    told += [
        f"{n}. {cause.why} Shown by {cause.shown}\n"
        for n, cause in enumerate(known, 1)
        if str(n) in why
    ]
    return (
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
        f"# {form} beside {targets.LAW}, Linux {line}\n"
        f"{sum(p.alike for p in pairs)} of {len(pairs)} runs {of_what} have the goodput of "
        f"`{targets.LAW}` within {GOODPUT_WITHIN:.0%} and its p95 RTT within {P95_WITHIN:.0%}. "
        f"Numbers are of `{form}`, in those of `{targets.LAW}`.\n\n"
        f"{sum(p.as_itself for p in pairs)} more are no further from it than that beyond what "
        f"`{targets.LAW}` itself has over paths whose base RTT differs by "
        f"{', '.join(f'{part:+.1%}' for part in OTHER_PATHS)}: *as itself*.\n\n"
        f"{_table(heads, cells)}\n"
        "All that are not alike, each with the number of its cause below. "
        f"{why.count(UNKNOWN)} have none that is known.\n\n"
        f"{_table(_REST, [_rest(p, cause) for p, cause in zip(rest, why, strict=True)])}\n"
        f"{''.join(told)}\n"
        f"Kernel: {'; '.join(kernels)}, where `{targets.LAW}` runs."
        f"{told_sources(schemes.find(form).bpf)} "
        f"Repeat it with `{_command(line, chosen, f' --form {form}')}`.\n"
    )


_REST = (
    "Case",
    "Link",
    "Goodput",
    "its own",
    "p95 RTT",
    "its own",
    "Goodput, p95 RTT in the mean",
    "Cause",
)


def _rest(pair: Pair, cause: str) -> tuple[str, ...]:
    def span(values: Sequence[float | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{min(known):.3f} to {max(known):.3f}" if known else "–"

    mean = pair.mean
    return (
        pair.case,
        pair.link,
        output.number(pair.form.goodput, 3),
        span([each.goodput for each in pair.own]),
        output.number(pair.form.p95, 3),
        span([each.p95 for each in pair.own]),
        f"{output.number(mean.goodput, 3)}, {output.number(mean.p95, 3)}" if mean else "–",
        cause,
    )


def _players(groups: Sequence[Group]) -> list[tuple[str, ...]]:
    """Each player over the links that it shares with stock: geometric means of the ratios."""
    names = dict.fromkeys(name for group in groups for name in group.players)
    rows: list[tuple[str, ...]] = []
    for name in names:
        shared = [g for g in groups if g.has(name) and g.has(targets.STOCK)]
        goodput, mean, p95, completion = [], [], [], []
        for g in shared:
            if g.config["flows"] and g.mean(targets.STOCK, targets.goodput):
                goodput.append(
                    g.mean(name, targets.goodput) / g.mean(targets.STOCK, targets.goodput)
                )
            if all(of_idle(r, "p95") for r in g.runs(name)):
                mean.append(g.mean(name, lambda r: of_idle(r, "mean") or 0.0))
                p95.append(g.mean(name, lambda r: of_idle(r, "p95") or 0.0))
            if g.config["objects"] and all(r["objects"]["count"] for r in g.runs(name)):
                completion.append(g.mean(name, lambda r: float(r["objects"]["mean_fct_ms"])))
        rows.append(
            (
                name,
                str(len(shared)),
                output.number(geometric_mean(goodput), 3),
                output.number(geometric_mean(mean), 2),
                output.number(geometric_mean(p95), 2),
                output.number(float(np.mean(completion)) if completion else None, 0),
            )
        )
    return rows


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def document(
    rows: Sequence[Row], line: str, took_s: float, table: Table, chosen: Sequence[str] = ()
) -> str:
    """The verdicts, then each case's players side by side."""
    verdicts = [v for row in rows for v in row.verdicts]
    cells = [v.cells(table.peer) for v in sorted(verdicts, key=lambda v: v.order)]
    theirs = [table.peer.head] if table.peer else []
    heads = [*HEADS[:-1], *theirs, HEADS[-1]]
    cells += [
        (row, text, "", "–", "–", "–", *("–" for _ in theirs), "tested there")
        for row, text in table.elsewhere.items()
    ]
    required = [v for v in verdicts if not v.reach]
    met = sum(v.met for v in required)
    parts = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
        f"# {table.title}\n"
        f"{met} of {len(required)} targets are met; those missed come first. A target holds on "
        "every link that it concerns, and the table has the worst one, or it is about the "
        f"geometric mean of all. Ratios are of {table.subject} has the formulae.\n\n"
        f"{_table(heads, cells)}\n"
        f"{table.legend}"
    ]
    for row in rows:
        players = _table(table.heads, row.players)
        parts.append(f"## {row.case.name}\n{row.case.about}\n\n{players}")
        parts += [f"Not run: {reason}.\n" for reason in row.case.skipped]
    kernels = sorted({kernel for row in rows for kernel in row.kernels})
    played = [run for row in rows for run in row.runs]
    made = [run["provenance"] for run in played]
    patched = any(each["patch_ids"] for each in made)
    stacks = ", ".join(sorted({stack for each in made for stack in each["stacks"]}))
    parts.append(
        f"Kernel: {'; '.join(kernels)}; "
        f"{'without the patches where the law does not run' if patched else 'no patches'}."
        f"{cases.used(played)} {f'Stacks: {stacks}. ' if stacks else ''}"
        f"Repeat it with `{_command(line, chosen, table.option)}`; {len(played)} runs, this time "
        f"in {took_s / 60:.0f} min.\n"
    )
    return "\n".join(parts)


def on_line(case: Case, line: str) -> Case:
    """The case on this kernel line.

    What the law has no part in runs on the kernel without it, which does the same (test_off.py),
    so that those results outlive a change of the law.
    """

    def on(one: RunSpec) -> RunSpec:
        gated = one.uplink is not None and one.uplink.scheme == targets.LAW
        nat = one.client is not None and one.client.nat
        flavour = flavour_of(one.scheme, patched=gated, nat=nat)
        return replace(one, kernel=line, flavour=flavour)

    specs = [on(one) for one in case.specs if one.gro_us is None or line not in NO_GRO]
    skipped = list(case.skipped)
    if len(specs) < len(case.specs):
        skipped.append(f"GRO: the lab's links have none in {line}")
    labels = {on(one): label for one, label in case.labels.items()}
    return replace(case, specs=specs, skipped=skipped, labels=labels)


def _choose(rows: Sequence[str], line: str, recorded: Path | None, table: Table) -> list[Case]:
    if line not in (known := read_lines()):
        raise SpecError(f"--kernel: '{line}' is unknown: {units.instead_of(line, known)}")
    names = {t.row: t.case for t in table.targets}
    for row in rows:
        if row in table.elsewhere:
            raise SpecError(f"--row: {row} is {table.elsewhere[row]}")
        if row not in names:
            raise SpecError(f"--row: '{row}' is unknown: {units.instead_of(row, names)}")
    # A case may have several rows.
    chosen = list(dict.fromkeys(name for row, name in names.items() if not rows or row in rows))
    return [on_line(case, line) for case in cases.choose(chosen, recorded)]


def campaign(
    row: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER", help="A row of the table of targets alone. Repeat for more."
        ),
    ] = None,
    programs: Annotated[
        bool, typer.Option("--programs", help="The table of the programs at the interface instead.")
    ] = False,
    uplink: Annotated[
        bool, typer.Option("--uplink", help="The table of the uplink's gate instead.")
    ] = False,
    quic: Annotated[
        bool,
        typer.Option("--quic", help="The table of UDP that is held to a short queue instead."),
    ] = False,
    kernel: Annotated[
        str, typer.Option(metavar="LINE", help="Kernel line: 6.12, 6.1, 5.10 or 7.3.")
    ] = DEFAULTS["kernel"],
    form: Annotated[
        str,
        typer.Option(
            metavar="SCHEME",
            help="Judge nothing: run the law, and the same in this form, drwa-tc, "
            "drwa-module or drwa-hooks, and tell where they differ.",
        ),
    ] = "",
    traces: Annotated[Path | None, cases.TRACES_OPTION] = None,
    json_file: Annotated[
        Path,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Verdicts and numbers of each run, or how each differs, as JSON.",
        ),
    ] = Path("out/campaign.json"),
    document_file: Annotated[
        Path | None,
        typer.Option(
            "--document",
            metavar="FILE",
            help="The same as a document. Default, unless --row is given: "
            "kernel/lab/results/campaign.md, with --form campaign-SCHEME.md, with --programs "
            "programs.md, with --uplink uplink.md, with --quic quic-stacks.md, each with the "
            "line at the end, if it is another one than 6.12.",
        ),
    ] = None,
) -> None:
    """Run the cases of all targets and judge them; runs that were made before are reused."""
    start = time.monotonic()
    done: list[Row] = []
    pairs: list[Pair] = []
    with errors.reported():
        options = ((programs, _programs), (uplink, _uplink), (quic, _quic))
        others = [of() for given, of in options if given]
        table, *more = others or [_downlink()]
        if more:
            raise SpecError(f"{more[0].option.strip()}: not with{table.option}")
        chosen = _choose(row or [], kernel, traces, table)
        if form and form not in FORMS:
            raise SpecError(f"--form: '{form}' is no form of the law: choose {', '.join(FORMS)}")
        if form and others:
            raise SpecError(f"--form: not with{table.option}")
        if document_file is None and not row:
            document_file = document_path(kernel, form, name=table.title.lower())
        json_file.parent.mkdir(parents=True, exist_ok=True)
        for path in (json_file, document_file):
            if path and (problem := output.check_writable(path)):
                raise SpecError(problem)
        # The same ones to the end, whatever becomes of the patches meanwhile.
        specs = [each for case in chosen for each in case.specs]
        if form:
            specs = _law(specs)
            specs += [_as(each, form) for each in specs]
            if schemes.find(form).bpf:
                # Now, and not after half an hour of runs, if there is no compiler
                kernels.bpf()
        builds = pool.find_kernels(specs)
        known = causes(form)
        for case in chosen:
            for reason in case.skipped:
                print(f"{case.name}: not run: {reason}", file=sys.stderr)
            mine = _law(case.specs) if form else case.specs
            if not mine:
                # What the law does not govern, no form of it can equal.
                continue
            print(f"{case.name}: {len(mine)} runs", file=sys.stderr, flush=True)
            found = pool.run_specs(mine, reuse=True, builds=builds, beside_idle=not form)
            if form:
                new = _pairs(case.name, form, mine, found, builds, known)
                pairs += new
                for pair in new:
                    if not pair.alike:
                        print("  ".join(_rest(pair, cause_of(pair, known))), flush=True)
            else:
                done.append(_row(case, found, table))
                for verdict in done[-1].verdicts:
                    print("  ".join(verdict.cells(table.peer)), flush=True)
    content: list[dict[str, Any]] = [
        {"case": r.case.name, "verdicts": [asdict(v) for v in r.verdicts], "runs": r.runs}
        for r in done
    ]
    content += [asdict(pair) for pair in pairs]
    output.write_whole(json_file, json.dumps(content, ensure_ascii=False) + "\n")
    if document_file:
        text = (
            forms_document(
                pairs,
                form,
                kernel,
                row or [],
                known,
                [told_patches(k.release, k.patch_ids) for k in builds.values() if k.patch_ids],
            )
            if form
            else document(done, kernel, time.monotonic() - start, table, row or [])
        )
        output.write_whole(document_file, text)
        print(f"\nThe document: {document_file}")
