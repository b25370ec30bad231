# SPDX-License-Identifier: GPL-2.0-only
"""`lab evidence`: the page of all evidence, one table for each question that a reader has."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log10
from pathlib import Path
from typing import Annotated, Any

import typer

from drwalab import cases, compare, errors, evidence, literature, output, report
from drwalab.evidence import (
    BINDINGS,
    CLASSIC,
    COMPANY,
    FETCH,
    GOODPUT,
    NDOWN,
    P95,
    PEERS,
    RRUL,
    SEGMENTS,
    SHARE,
    STOCK,
    SWEEP,
    UPLOAD,
    VIDEO,
    WEB,
    Book,
    Pairs,
    Run,
    Spread,
)
from drwalab.literature import GATE, LAW, MEASURES, Number, Repeated
from drwalab.style import Style

# Of the regressions, the page tells so many.
WORST = 25
RESULTS = cases.LAB / "results"


@dataclass(frozen=True)
class Cell:
    """A number with what stands below it, and the runs that it comes from."""

    text: str
    below: str = ""
    runs: tuple[int, ...] = ()
    mark: str = ""


@dataclass
class Row:
    heads: list[str]
    cells: list[Cell]
    # What the filters go by: who it is about, and over which kind of link.
    player: str = ""
    link: str = ""

    @property
    def subject(self) -> bool:
        return self.player == LAW or self.player.endswith(GATE)


@dataclass
class Table:
    heads: list[str]
    columns: list[tuple[str, str]]
    rows: list[Row] = field(default_factory=list)


@dataclass
class Section:
    title: str
    answer: str
    table: Table
    note: str = ""
    plot: str = ""
    # The same in more detail, folded away.
    more: Table | None = None
    more_title: str = "By kind of link"


class Commands:
    """The commands of all runs that a cell refers to, each once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def of(self, commands: Sequence[str]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._index.setdefault(c, len(self._index)) for c in commands))

    def runs(self, pairs: Pairs) -> tuple[int, ...]:
        return self.of([run.command for pair in pairs for run in pair])

    @property
    def all(self) -> list[str]:
        return list(self._index)


_NAMES = {
    "bbr": "BBR sender",
    "vegas": "Vegas sender",
    "westwood": "Westwood+ sender",
    "reno": "NewReno sender",
    "bic": "BIC sender",
    "htcp": "H-TCP sender",
    "highspeed": "HSTCP sender",
    "codel": "CoDel in the router",
    "fq_codel": "FQ-CoDel in the router",
    "pie": "PIE in the router",
    "uplink pfifo": "today’s pfifo",
    "uplink rmnet": "rmnet_sch",
    "uplink fq_codel": "FQ-CoDel on the qdisc",
    "uplink autorate": "cake-autorate",
    "uplink qcut-b": "QCUT-B",
    "uplink qcut-d": "QCUT-D",
    "uplink drwa": "drwa’s gate",
    "upload vegas": "Vegas as the phone’s sender",
    "upload bbr": "BBR as the phone’s sender",
}


def person(player: str) -> str:
    """A player's name for people; a receiver with Linux's own window goes without saying."""
    receiver, *rest = player.split(", ")
    words = [_NAMES.get(word) or word.replace("shaped", "sender shaped to") for word in rest]
    if receiver != STOCK or not words:
        if receiver == LAW:
            receiver = "drwa (default)"
        receiver = receiver.removesuffix(" λ=1.25").replace("static ", "limit ")
        words.insert(0, receiver)
    return ", ".join(words)


def percent(value: float) -> str:
    return f"{value * 100:.1f} %"


def _spread_cell(spread: Spread | None, runs: tuple[int, ...], times: bool = False) -> Cell:
    if spread is None:
        return Cell("–")
    show = (lambda x: f"{x:.2f}×") if times else percent
    below = ""
    if spread.count > 1 and spread.low != spread.high:
        low, high = (f"{x:.2f}" if times else f"{x * 100:.1f}" for x in (spread.low, spread.high))
        below = f"{low} to {high}"
    return Cell(show(spread.mean), below, runs)


# --- The sections


def _gains(book: Book, commands: Commands) -> Section:
    columns = [
        ("Goodput", "of stock’s"),
        ("RTT p95", "of the idle link’s"),
        ("RTT mean", "of the idle link’s"),
        ("RTT p95", "of stock’s"),
        ("Web fetch", "time, of stock’s"),
        ("Video segment", "time, of stock’s"),
    ]
    peers = evidence.peers_of(book.of(*PEERS))
    web = evidence.peers_of(book.of(WEB))
    video = evidence.peers_of(book.of(VIDEO))

    def row(heads: list[str], who: str, labels: Sequence[str]) -> Row:
        def pairs(of: dict[str, dict[str, Pairs]]) -> Pairs:
            return [pair for label in labels for pair in of.get(label, {}).get(who, [])]

        own = pairs(peers)
        runs = commands.runs(own)
        made = Row(heads, [], who, labels[0] if len(labels) == 1 else "")
        made.cells = [
            _spread_cell(evidence.ratio_of(own, GOODPUT), runs),
            _spread_cell(evidence.idle_of(own, "p95"), runs, times=True),
            _spread_cell(evidence.idle_of(own, "mean"), runs, times=True),
            _inverse_cell(evidence.ratio_of(own, P95), runs),
        ]
        for other, quantity in ((web, FETCH), (video, SEGMENTS)):
            there = pairs(other)
            spread = evidence.ratio_of(there, quantity)
            made.cells.append(_inverse_cell(spread, commands.runs(there)))
        return made

    everywhere = [
        who for who in _ordered(peers) if all(who in players for players in peers.values())
    ]
    table = Table(["Who"], columns)
    table.rows = [row([person(who)], who, list(peers)) for who in everywhere]
    more = Table(["Link", "Who"], columns)
    for label, players in peers.items():
        more.rows += [row([label, person(who)], who, [label]) for who in _ordered({"": players})]
    return Section(
        "What do I gain?",
        gain_sentence(book),
        table,
        "Each number is the geometric mean over the links, and below it the 95 % confidence "
        "interval over their kinds and seeds. The idle link is the same radio with nothing on "
        "it but probes: no load can be shorter. Web: objects of 8 to 64 kB beside the download; "
        "video: segments of 1 or 2 MB, one each four seconds. Routers with an AQM are not the "
        "phone’s to choose.",
        "frontier",
        more,
    )


def _ordered(peers: dict[str, dict[str, Pairs]]) -> list[str]:
    """All players, the law first."""
    players = dict.fromkeys(who for found in peers.values() for who in found)
    return sorted(players, key=lambda who: who != LAW)


def _ndown(book: Book, commands: Commands) -> Section:
    table = Table(
        ["Link", "Who"],
        [
            ("Foreign responsiveness", "RPM"),
            ("RTT p95", "of the idle link’s"),
            ("Goodput", "of stock’s"),
            ("Jain’s index", ""),
        ],
    )
    said = []
    for label, players in evidence.peers_of(book.of(NDOWN)).items():
        for who in _ordered({"": players}):
            pairs = players[who]
            runs = commands.runs(pairs)
            fair = [run.result["jain"] for run, _ in pairs if run.result["jain"] is not None]
            table.rows.append(
                Row(
                    [label, person(who)],
                    [
                        _rpm_cell(pairs, runs),
                        _spread_cell(evidence.idle_of(pairs, "p95"), runs, times=True),
                        _spread_cell(evidence.ratio_of(pairs, GOODPUT), runs),
                        Cell(f"{sum(fair) / len(fair):.2f}" if fair else "–", "", runs),
                    ],
                    who,
                    label,
                )
            )
        law, stock = (
            Spread.of([run.result["rpm"] for run, _ in players.get(who, []) if run.result["rpm"]])
            for who in (LAW, STOCK)
        )
        if law and stock:
            said.append(f"{stock.mean:.0f} to {law.mean:.0f} round trips a minute on {label}")
    return Section(
        "How responsive with eight downloads?",
        f"From {' and from '.join(said)}." if said else "This was not run.",
        table,
        "Flent’s tcp_ndown with eight streams, one more each second. RPM is the foreign "
        "responsiveness of draft-ietf-ippm-responsiveness: of the probes from four seconds after "
        "the last stream began, the mean without the longest 5 %. The draft’s probes are "
        "handshakes and requests on new connections, here each is one packet. Its other half, "
        "requests on the loaded connections themselves, is not measured: FQ-CoDel, which lets "
        "probes pass, would have less there.",
    )


def _uploads(book: Book, commands: Commands) -> Section:
    table = Table(
        ["Receiver", "Before the modem"],
        [
            ("Downloads", "of stock’s with pfifo"),
            ("Uploads", "of stock’s with pfifo"),
            ("RTT p95", "of the idle link’s"),
            ("RTT mean", "of the idle link’s"),
        ],
    )
    found: dict[str, Pairs] = {}
    for players in evidence.by_link(book.of(RRUL)).values():
        for who, run in players.items():
            if base := players.get(f"{STOCK}, uplink pfifo"):
                found.setdefault(who, []).append((run, base))
    answer, alone = "This was not run.", ""
    for who, pairs in found.items():
        runs = commands.runs(pairs)
        down, up = (evidence.ratio_of(pairs, quantity) for quantity in (GOODPUT, UPLOAD))
        idle = evidence.idle_of(pairs, "p95")
        receiver, _, uplink = who.partition(", ")
        table.rows.append(
            Row(
                [person(receiver), person(f"{STOCK}, {uplink}")],
                [
                    _spread_cell(down, runs),
                    _spread_cell(up, runs),
                    _spread_cell(idle, runs, times=True),
                    _spread_cell(evidence.idle_of(pairs, "mean"), runs, times=True),
                ],
                who,
                "LTE",
            )
        )
        if who == f"{LAW}, {GATE}" and down and up and idle:
            answer = (
                f"With four downloads and four uploads, DRWA and the uplink’s qdisc keep "
                f"{percent(down.mean)} of the downloads and {percent(up.mean)} of the uploads, "
                f"at {idle.mean:.1f} times the idle link’s p95 RTT."
            )
        if who == f"{STOCK}, {GATE}" and up:
            alone = f" The qdisc without DRWA keeps {percent(up.mean)} of the uploads."
    return Section(
        "And uploads?",
        answer + alone,
        table,
        "Flent’s rrul_be, without its marks of classes, on LTE with 5 Mb/s up and a modem that "
        "queues 600 kB. The qdisc is drwa_up. QCUT’s page loads are among the papers.",
    )


def _rpm_cell(pairs: Pairs, runs: tuple[int, ...]) -> Cell:
    spread = Spread.of([value for run, _ in pairs if (value := run.result["rpm"])])
    if spread is None:
        return Cell("–")
    below = f"{spread.low:.0f} to {spread.high:.0f}" if spread.count > 1 else ""
    return Cell(f"{spread.mean:.0f}", below, runs)


def _inverse_cell(spread: Spread | None, runs: tuple[int, ...]) -> Cell:
    """Of speeds, the times."""
    if spread is None:
        return Cell("–")
    turned = Spread(1 / spread.mean, 1 / spread.high, 1 / spread.low, spread.count)
    return _spread_cell(turned, runs)


def plain_sentence(book: Book) -> str:
    """The gain for who never heard of goodput."""
    pairs = evidence.law_pairs(book)
    goodput, p95 = evidence.ratio_of(pairs, GOODPUT), evidence.ratio_of(pairs, P95)
    if goodput is None or p95 is None:
        return "No link was run."
    return (
        f"A ping beside a download takes {percent(1 / p95.mean)} of the time that it takes on a "
        f"stock phone, and the download keeps {percent(goodput.mean)} of its speed."
    )


def gain_sentence(book: Book) -> str:
    pairs = evidence.law_pairs(book)
    goodput, p95 = evidence.ratio_of(pairs, GOODPUT), evidence.ratio_of(pairs, P95)
    idle = evidence.idle_of(pairs, "p95")
    if goodput is None or p95 is None or idle is None:
        return "No link was run."
    return (
        f"On {len(pairs)} links, DRWA keeps {percent(goodput.mean)} of stock’s goodput "
        f"at {percent(1 / p95.mean)} of its p95 RTT, which is {idle.mean:.1f} times that of the "
        "idle link."
    )


def _costs(book: Book, commands: Commands) -> Section:
    table = Table(
        ["Situation", "What"],
        [("Mean", "of stock’s"), ("Worst", "of stock’s"), ("Links", ""), ("Worst link", "")],
    )
    by_case: dict[str, list[evidence.Loss]] = {}
    losses = evidence.losses(book.runs)
    for loss in losses:
        by_case.setdefault(loss.law.case, []).append(loss)
    known = cases.load()
    rows: list[tuple[float, Row]] = []
    for case, of_case in by_case.items():
        for quantity in evidence.WORTH:
            found = [x for x in of_case if x.quantity == quantity.title]
            if not found:
                continue
            worst = found[0]
            runs = commands.of([r.command for x in found for r in (x.law, x.base)])
            spread = Spread.of([x.ratio for x in found])
            assert spread is not None
            mark = "bad" if worst.ratio < evidence.REGRESSION else ""
            cells = [
                Cell(percent(spread.mean), "", runs),
                Cell(percent(worst.ratio), "", _pair(worst, commands), mark),
                Cell(str(len(found))),
                Cell(worst.law.link, mark="words"),
            ]
            rows.append((worst.ratio, Row([_short(known[case].about), quantity.title], cells)))
    rows.sort(key=lambda pair: pair[0])
    table.rows = [row for worst, row in rows if worst < evidence.REGRESSION]
    more = Table(table.heads, table.columns)
    more.rows = [row for worst, row in rows if worst >= evidence.REGRESSION]
    lost = [loss for loss in losses if loss.ratio < evidence.REGRESSION]
    return Section(
        "What can it cost?",
        f"In {len(lost)} of {len(losses)} comparisons, DRWA, or its qdisc for uploads, "
        f"has less than {evidence.REGRESSION * 100:.0f} % of what stock has"
        + (f"; the worst is {percent(lost[0].ratio)} of the {lost[0].quantity}." if lost else "."),
        table,
        "Of times, the speed: more is better in every row. Stock is that under DRWA’s own "
        "buffer limits, where it was run; of the qdisc, the same phone with pfifo.",
        "",
        more,
        f"Where it costs nothing: {len(more.rows)} more situations",
    )


def _pair(loss: evidence.Loss, commands: Commands) -> tuple[int, ...]:
    return commands.of([loss.law.command, loss.base.command])


def _short(about: str) -> str:
    """The first sentence."""
    return about.split(". ")[0].rstrip(".")


def _sweep(book: Book, commands: Commands) -> Section:
    table = Table(
        ["Link", "λ"],
        [
            ("Goodput", "of stock’s"),
            ("RTT p95", "of the idle link’s"),
            ("RTT mean", "of the idle link’s"),
        ],
    )
    best = []
    for label, players in evidence.peers_of(book.of(SWEEP)).items():
        for who, pairs in players.items():
            if not who.startswith("drwa "):
                continue
            runs = commands.runs(pairs)
            goodput = evidence.ratio_of(pairs, GOODPUT)
            if who == LAW and goodput:
                best.append(f"{percent(goodput.mean)} on {label}")
            table.rows.append(
                Row(
                    [label, who.removeprefix("drwa λ=")],
                    [
                        _spread_cell(goodput, runs),
                        _spread_cell(evidence.idle_of(pairs, "p95"), runs, times=True),
                        _spread_cell(evidence.idle_of(pairs, "mean"), runs, times=True),
                    ],
                    who,
                    label,
                )
            )
    return Section(
        "Which λ?",
        "A larger λ buys goodput with delay; the default, 1.25, keeps of stock’s goodput "
        f"{' and '.join(best)}."
        if best
        else "λ was not swept.",
        table,
        "The line in the figure above is this sweep.",
    )


_BINDINGS = {
    LAW: ("the kernel’s series", "a kernel that you build"),
    "drwa-tc λ=1.25": ("BPF programs", "Linux 4.14 or later with BPF at tc, and root"),
    "drwa-module λ=1.25": ("a module at tracepoints", "a kernel whose modules you may load"),
}


def _bindings(book: Book, commands: Commands) -> Section:
    table = Table(
        ["Binding", "Needs"],
        [
            ("Goodput", "of the series’"),
            ("Goodput, least", "of the series’"),
            ("RTT p95", "of the series’"),
            ("RTT p95, most", "of the series’"),
            ("Links", ""),
        ],
    )
    found: dict[str, list[tuple[Run, Run]]] = {}
    for players in evidence.by_link(book.of(BINDINGS)).values():
        for who in _BINDINGS:
            if who in players and LAW in players:
                found.setdefault(who, []).append((players[who], players[LAW]))
    for who, pairs in found.items():
        name, needs = _BINDINGS[who]
        runs = commands.runs(pairs)
        table.rows.append(
            Row(
                [name, needs],
                [
                    _spread_cell(evidence.ratio_of(pairs, GOODPUT), runs),
                    _extreme_cell(pairs, GOODPUT, commands),
                    _inverse_cell(evidence.ratio_of(pairs, P95), runs),
                    _extreme_cell(pairs, P95, commands),
                    Cell(str(len(pairs))),
                ],
                who,
            )
        )
    missing = [name for who, (name, _) in _BINDINGS.items() if who not in found]
    answer = "The same law in each; take what your kernel allows."
    if missing:
        answer += f" Not run here: {', '.join(missing)}."
    return Section("Which binding?", answer, table)


def _extreme_cell(pairs: Pairs, quantity: evidence.Quantity, commands: Commands) -> Cell:
    """The least of what is better, and the most of a time."""
    worst = min(pairs, key=lambda pair: quantity.ratio(*pair) or 1.0)
    ratio = quantity.ratio(*worst) or 1.0
    return Cell(percent(1 / ratio if quantity.time else ratio), "", commands.runs([worst]))


_BESIDE = {
    "cubic": "a stock phone’s download (CUBIC)",
    "bbr": "the same from a BBR sender",
    "quic": "the same over QUIC",
}


def _company(book: Book, commands: Commands) -> Section:
    table = Table(["Beside", "Who"], [("Share", "of a fair one"), ("Worst", "of a fair one")])
    found: dict[tuple[str, str], list[Run]] = {}
    for run in book.of(COMPANY):
        kind = str(run.result["neighbours"][0]["kind"])
        found.setdefault((kind, run.player), []).append(run)
    law: dict[str, list[float]] = {}
    for (kind, who), runs in found.items():
        shares = [value for run in runs if (value := SHARE.of(run.result)) is not None]
        ids = commands.of([run.command for run in runs])
        if who == LAW:
            law[kind.upper()] = shares
        table.rows.append(
            Row(
                [_BESIDE[kind], person(who)],
                [
                    Cell(percent(sum(shares) / len(shares)), "", ids),
                    Cell(percent(min(shares)), "", ids, "bad" if min(shares) < 0.5 else ""),
                ],
                who,
                "LTE",
            )
        )
    answer = (
        "Of a fair share beside a stock phone’s traffic in the same queue, which nothing governs, "
        "DRWA keeps at worst "
        + ", ".join(f"{percent(min(shares))} beside {kind}" for kind, shares in law.items())
        + "."
        if law
        else "This was not run."
    )
    return Section(
        "And beside others?",
        answer,
        table,
        "One queue for both is the hard case: a base station has one for each phone and shares the "
        "cell’s capacity among them, whatever they hold. It is so for several applications of one "
        "phone, and for phones behind one router. A share is that of 25 s beside the other’s.",
    )


def _regressions(book: Book, commands: Commands) -> Section:
    lost = [x for x in evidence.losses(book.runs) if x.ratio < evidence.REGRESSION]
    table = Table(["What", "Link"], [("Law’s", "of stock’s"), ("Case", "")])
    for loss in lost[:WORST]:
        table.rows.append(
            Row(
                [
                    loss.quantity
                    if loss.law.player == LAW
                    else f"{loss.quantity}, {person(loss.law.player)}",
                    loss.law.link,
                ],
                [
                    Cell(percent(loss.ratio), "", _pair(loss, commands), "bad"),
                    Cell(loss.law.case, mark="words"),
                ],
                "",
                loss.law.label,
            )
        )
    shown = f", of which here are the {WORST} worst" if len(lost) > WORST else ""
    return Section(
        "The worst regressions",
        f"{len(lost)} on all links that were run{shown}."
        if lost
        else f"None below {evidence.REGRESSION * 100:.0f} % on any link that was run.",
        table,
        "DRWA against stock under the same buffer limits, else plain stock; the qdisc "
        "against pfifo.",
    )


# --- The papers


@dataclass
class PaperFigure:
    name: str
    heading: str
    repeated: Repeated
    claims: Table
    table: Table
    within: int
    differ: int
    not_run: int

    @property
    def verdict(self) -> str:
        words = [
            f"{self.within} of {self.within + self.differ} published values within their spread"
        ]
        if self.not_run:
            words.append(f"{self.not_run} not run")
        return ", ".join(words)


def _paper(repeated: Repeated, commands: Commands) -> PaperFigure:
    figure = repeated.figure
    gated = any(GATE in claim.ours for claim in figure.claims)
    claims = Table(
        ["Link", "What"],
        [
            ("Published", ""),
            ("Measured", ""),
            ("The qdisc" if gated else "DRWA", "there"),
            ("", ""),
        ],
    )
    marks = {"within": "good", "differs": "bad", "set, but differs": "bad"}
    judged = repeated.judged
    for j in judged:
        runs = [
            r["provenance"]["command"]
            for link, who in (
                (j.claim.link, j.claim.player),
                (j.claim.of_link or j.claim.link, j.claim.of),
            )
            for r in repeated.runs.get(link, {}).get(who or "", [])
        ]
        below = ""
        if j.measured and j.measured.low != j.measured.high:
            below = f"{j.claim.show(j.measured.low)} to {j.claim.show(j.measured.high)}"
        claims.rows.append(
            Row(
                [j.claim.link, _claim_name(j.claim)],
                [
                    Cell(j.claim.published),
                    Cell(
                        j.claim.show(j.measured.mean if j.measured else None),
                        below,
                        commands.of(runs),
                    ),
                    _law_cell(repeated, j.claim, commands),
                    Cell(j.verdict, "", (), marks.get(j.verdict, "")),
                ],
                "",
                j.claim.link,
            )
        )
    table = Table(["Link", "Who"], [(MEASURES[m].title, MEASURES[m].unit) for m in figure.measures])
    for link, players in repeated.runs.items():
        for who, results in players.items():
            runs_ids = commands.of([r["provenance"]["command"] for r in results])
            cells = [_number_cell(repeated, link, who, m, runs_ids) for m in figure.measures]
            table.rows.append(Row([link, person(who)], cells, who, link))
    real = [j for j in judged if not j.claim.set and j.within is not None]
    return PaperFigure(
        repeated.case.name,
        f"{figure.figure}: {figure.title}",
        repeated,
        claims,
        table,
        within=sum(bool(j.within) for j in real),
        differ=sum(not j.within for j in real),
        not_run=sum(j.within is None for j in judged),
    )


def _law_cell(repeated: Repeated, claim: literature.Claim, commands: Commands) -> Cell:
    """What the default law has of it on that link, or the gate."""
    runs = repeated.runs.get(claim.link, {}).get(claim.ours, [])
    measured = repeated.judge(replace(claim, player=claim.ours)).measured
    ids = commands.of([r["provenance"]["command"] for r in runs])
    return Cell(claim.show(measured.mean if measured else None), "", ids if measured else ())


def _claim_name(claim: literature.Claim) -> str:
    title = MEASURES[claim.measure].title
    of = f", of that of {person(claim.of)}" if claim.of else ""
    of += f" ({claim.of_link})" if claim.of_link else ""
    return f"{title}, {person(claim.player)}{of}"


def _number_cell(
    repeated: Repeated, link: str, who: str, measure: str, runs: tuple[int, ...]
) -> Cell:
    number = repeated.number(link, who, measure)
    if number is None:
        return Cell("–")
    decimals = MEASURES[measure].decimals
    published = [
        c.published
        for c in repeated.figure.claims
        if (c.link, c.player, c.measure, c.of) == (link, who, measure, None)
    ]
    below = f"published {published[0]}" if published else ""
    return Cell(_shown(number, decimals), below, runs)


def _shown(number: Number, decimals: int) -> str:
    return f"{number.mean:.{decimals}f}"


# --- Figures


def _frontier(book: Book) -> dict[str, Any]:
    """Goodput of stock's against the p95 RTT over the idle link's, per player; λ as a line."""
    data: list[dict[str, Any]] = []
    peers = evidence.peers_of(book.of(*PEERS))
    sweep = evidence.peers_of(book.of(SWEEP))
    players = list(dict.fromkeys(who for found in peers.values() for who in found))
    delays: list[float] = []
    for number, who in enumerate(players):
        style = Style(number)
        x, y, text = [], [], []
        for label, found in peers.items():
            pairs = found.get(who, [])
            goodput, p95 = evidence.ratio_of(pairs, GOODPUT), evidence.idle_of(pairs, "p95")
            if goodput and p95:
                x.append(round(p95.mean, 3))
                y.append(round(goodput.mean * 100, 2))
                text.append(label)
        delays += x
        data.append(
            {
                "x": x,
                "y": y,
                "text": text,
                "name": person(who),
                "meta": who,
                "mode": "markers",
                "marker": {
                    "symbol": style.symbol,
                    "size": style.size + (4 if who == LAW else 0),
                    "color": style.colour,
                    "line": {"color": "@page", "width": 1},
                },
                "hovertemplate": "%{text}: %{y:.1f} % at %{x:.2f}×",
            }
        )
    for label, found in sweep.items():
        points = []
        for who, pairs in found.items():
            goodput, p95 = evidence.ratio_of(pairs, GOODPUT), evidence.idle_of(pairs, "p95")
            if who.startswith("drwa ") and goodput and p95:
                points.append((p95.mean, goodput.mean * 100, who.removeprefix("drwa ")))
        if points:
            data.append(
                {
                    "x": [round(p[0], 3) for p in points],
                    "y": [round(p[1], 2) for p in points],
                    "text": [f"{label}, {p[2]}" for p in points],
                    "name": f"λ swept, {label}",
                    "meta": LAW,
                    "mode": "lines+markers",
                    "line": {"color": "@soft", "width": 1, "dash": "dot"},
                    "marker": {"size": 4, "color": "@soft"},
                    "hovertemplate": "%{text}: %{y:.1f} % at %{x:.2f}×",
                }
            )
            delays += [p[0] for p in points]
    low, high = min(delays, default=1.0) / 1.1, max(delays, default=10.0) * 1.1
    ticks = [t for t in (1, 1.5, 2, 3, 5, 10, 20, 50, 100) if low <= t <= high]
    return {
        "data": data,
        "layout": {
            "height": 520,
            "showlegend": True,
            "legend": {"orientation": "h", "y": -0.2, "font": {"size": 12}},
            "hovermode": "closest",
            "xaxis": {
                "type": "log",
                "range": [round(log10(high), 3), round(log10(low), 3)],
                "tickvals": ticks,
                "ticktext": [f"{t:g}×" for t in ticks],
                "title": {"text": "p95 RTT of the idle link’s (further right is better)"},
            },
            "yaxis": {"title": {"text": "goodput of stock’s, %"}},
        },
    }


def _delay_gain(book: Book) -> dict[str, Any] | None:
    """Figure 17: gain over the static limit against the base RTT, published and measured."""
    found = next((f for f in book.figures if f.case.name == "paper-fig17"), None)
    if found is None:
        return None
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    published = {claim.link.rpartition(", ")[0] for claim in found.figure.claims}
    for link, players in found.runs.items():
        carrier, _, delay = link.rpartition(", ")
        if carrier not in published:
            continue
        static = next(iter(players.values()))[0]
        for who in (CLASSIC, LAW):
            if who in players and static["goodput_mbps"]:
                gain = players[who][0]["goodput_mbps"] / static["goodput_mbps"] - 1
                point = (float(delay.split()[0]), round(gain * 100, 1))
                curves.setdefault((carrier, who), []).append(point)
    for claim in found.figure.claims:
        if claim.value is not None:
            carrier, _, delay = claim.link.rpartition(", ")
            point = (float(delay.split()[0]), round((claim.value - 1) * 100, 1))
            curves.setdefault((carrier, "published"), []).append(point)
    carriers = list(dict.fromkeys(carrier for carrier, _ in curves))
    looks = {"published": ("markers", "solid"), CLASSIC: ("lines", "solid"), LAW: ("lines", "dot")}
    data = []
    for (carrier, who), points in curves.items():
        style = Style(carriers.index(carrier))
        mode, dash = looks[who]
        data.append(
            {
                "x": [p[0] for p in points],
                "y": [p[1] for p in points],
                "name": f"{carrier}, {'published' if who == 'published' else person(who)}",
                "meta": who,
                "mode": mode,
                "line": {"color": style.colour, "dash": dash, "width": 2},
                "marker": {"color": style.colour, "symbol": style.symbol, "size": 10},
                "hovertemplate": "%{x} ms: %{y:+.0f} %",
            }
        )
    return {
        "data": data,
        "layout": {
            "height": 460,
            "showlegend": True,
            "legend": {"orientation": "h", "y": -0.2, "font": {"size": 12}},
            "xaxis": {"title": {"text": "propagation delay, ms"}},
            "yaxis": {"title": {"text": "gain over the static limit, %"}},
        },
    }


def _ride(book: Book) -> dict[str, Any] | None:
    """Figure 12: RTT over the ride."""
    found = next((f for f in book.figures if f.case.name == "paper-fig12"), None)
    if found is None:
        return None
    data = []
    (players,) = found.runs.values()
    for number, (who, (result,)) in enumerate(players.items()):
        rtt = result["series"]["rtt"]
        style = Style(number)
        data.append(
            {
                "x": [round(t, 1) for t in rtt["t_s"][::8]],
                "y": [round(ms) for ms in rtt["ms"][::8]],
                "name": person(who),
                "meta": who,
                "mode": "lines",
                "line": {"color": style.colour, "dash": style.dash, "width": 2},
                "hovertemplate": "%{y} ms",
            }
        )
    return {
        "data": data,
        "layout": {
            "height": 420,
            "showlegend": True,
            "legend": {"orientation": "h", "y": -0.25, "font": {"size": 12}},
            "hovermode": "x unified",
            "xaxis": {"title": {"text": "time, s"}},
            "yaxis": {"type": "log", "title": {"text": "RTT, ms"}},
        },
    }


# --- The page


def verdict(book: Book, found: dict[str, Any]) -> list[str]:
    """All of it in a few sentences."""
    published = found["published"]
    said = [plain_sentence(book), gain_sentence(book)]
    lost = [loss for loss in evidence.losses(book.runs) if loss.ratio < evidence.REGRESSION]
    gated = [loss for loss in lost if loss.law.player.endswith(GATE)]
    for who, worst in (
        ("DRWA", [loss for loss in lost if loss not in gated]),
        ("The uplink’s qdisc, which is off by default,", gated),
    ):
        if worst:
            said.append(
                f"{who} loses most {place(worst[0].law)}: {percent(worst[0].ratio)} of stock’s "
                f"{worst[0].quantity}."
            )
    said.append(
        f"Of the papers’ values that the links were not chosen for, {published['within']} of "
        f"{published['of']} came out within their spread; each figure says why the others did not."
    )
    return said


def place(run: Run) -> str:
    """A run's link and load in a few words."""
    config = run.result["config"]
    words = f"on {run.label}"
    kinds = [str(each["kind"]) for each in run.result["neighbours"]]
    if kinds:
        words += f" beside {' and '.join(k.upper() for k in kinds)} that nothing governs"
    if config["upload"] and run.player.endswith(GATE):
        receiver = person(run.player.removesuffix(f", {GATE}"))
        words += f", beside downloads under {receiver}" if config["flows"] else ""
    elif config["upload"]:
        words += ", beside an upload of its own"
    if config["events"]:
        events = config["events"]
        many = len(events) > compare.MAX_EVENTS_TOLD
        words += f", with {f'{len(events)} changes' if many else ' and '.join(events)}"
    return words


def write(book: Book, found: dict[str, Any], path: Path, full: bool) -> None:
    """Write the page; the same runs give the same bytes."""
    commands = Commands()
    sections = [
        _gains(book, commands),
        _costs(book, commands),
        _sweep(book, commands),
        _bindings(book, commands),
        _company(book, commands),
        _ndown(book, commands),
        _uploads(book, commands),
        _regressions(book, commands),
    ]
    papers = [_paper(repeated, commands) for repeated in book.figures]
    plots = {"frontier": _frontier(book)}
    for name, figure in (("paper-fig17", _delay_gain(book)), ("paper-fig12", _ride(book))):
        if figure:
            plots[name] = figure
    tables = [t for s in sections for t in (s.table, s.more) if t]
    tables += [t for p in papers for t in (p.claims, p.table)]
    rows = [row for table in tables for row in table.rows]
    kernels = sorted({str(r.result["provenance"]["kernel_key"]) for r in book.runs})
    releases = sorted({str(r.result["provenance"]["kernel_release"]) for r in book.runs})
    report.render(
        path,
        report.TEMPLATES / "evidence.html.j2",
        title="DRWA: the evidence",
        verdict=verdict(book, found),
        sections=sections,
        papers=papers,
        plots=plots,
        players=[(who, person(who)) for who in _players(rows)],
        links=list(
            dict.fromkeys(
                row.link
                for s in sections
                for row in (*s.table.rows, *(s.more.rows if s.more else ()))
                if row.link
            )
        ),
        skipped=book.skipped,
        runs=found["runs"],
        full=full,
        kernels=kernels,
        releases=releases,
        sources=list(
            {p.repeated.figure.source.text: p.repeated.figure.source for p in papers}.values()
        ),
        commands_json=report.script_json(commands.all),
        figures_json=report.script_json(plots),
    )


def _players(rows: Sequence[Row]) -> list[str]:
    """Those that the filter offers: who is in more than a table's corner."""
    counts: dict[str, int] = {}
    for row in rows:
        if row.player:
            counts[row.player] = counts.get(row.player, 0) + 1
    return [who for who, count in counts.items() if count >= 3 and who != STOCK]


def evidence_command(
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Every case of `lab campaign`, too: hours. It goes on where it was stopped.",
        ),
    ] = False,
    traces: Annotated[Path | None, cases.TRACES_OPTION] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="The page; its numbers go beside it, as .json.",
        ),
    ] = Path("out/report.html"),
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Write kernel/lab/results/evidence.json and literature.json, too."
        ),
    ] = False,
) -> None:
    """Write the page of all evidence: gains, costs, λ, bindings, and papers' figures repeated.

    Runs that were made before are reused, so that it goes on where it was stopped.
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with errors.reported():
        report.make_folder(out)
        book = evidence.collect(evidence.plan(full, traces), say)
        found = evidence.numbers(book)
        write(book, found, out, full)
        text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        output.write_whole(out.with_suffix(".json"), text)
        if record:
            output.write_whole(RESULTS / "evidence.json", text)
            literature.write_record(
                literature.RECORD, {f.case.name: f.record() for f in book.figures}
            )
    for reason in book.skipped:
        say(f"not run: {reason}")
    typer.echo("\n".join([*verdict(book, found), "", f"The page: {out}"]))
