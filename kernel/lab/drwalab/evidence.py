# SPDX-License-Identifier: GPL-2.0-only
"""What `lab evidence` runs, and what it comes to: peers, gains, costs, and the papers' figures.

Runs of the same case whose links have one label are seeds of one another: what is said of them is
the geometric mean, with its confidence interval of 95 % (Student's t on the logarithms).
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from drwalab import cases, compare, literature, output, pool, targets
from drwalab.campaign import on_line
from drwalab.cases import Case
from drwalab.kernels import KernelMissing
from drwalab.literature import GATE, LAW, Repeated, player
from drwalab.results import Result, of_idle
from drwalab.spec import DEFAULTS, RunSpec

STOCK = "stock"
LIMITS = f"static {targets.LIMITS}"
CLASSIC = "drwa-classic λ=3.00"

PEERS = ("e-links", "e-nr")
WEB, VIDEO, COMPANY, SWEEP, BINDINGS = "e-web", "e-video", "e-company", "e-lambda", "e-bindings"
NDOWN, RRUL = "e-ndown", "e-rrul"
EVIDENCE = (*PEERS, WEB, VIDEO, COMPANY, SWEEP, BINDINGS, NDOWN, RRUL)
# What may cost: a start, a longer path, an upload, steps of the rate, links without bufferbloat.
COSTS = (
    "defect-start",
    "defect-handover",
    "defect-upload",
    "b05-rate-steps",
    "b06-upload",
    "b14-wifi",
    "b22-step-down",
)
# What loses more of stock's than this is a regression.
REGRESSION = 0.98

# The draft's moving average, in intervals of a second, and its trimmed mean, in percent.
SETTLED_S = 4
TRIMMED = 95

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond them, the normal one.
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


def full_costs() -> tuple[str, ...]:
    """Those, and every case that `lab campaign` judges."""
    return tuple(dict.fromkeys((*COSTS, *(t.case for t in targets.TARGETS))))


@dataclass(frozen=True)
class Spread:
    """A geometric mean of ratios and its 95 % confidence interval; of one, that alone."""

    mean: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(ratios: Sequence[float]) -> "Spread | None":
        logs = [log(ratio) for ratio in ratios if ratio > 0]
        if not logs:
            return None
        mean, n = float(np.mean(logs)), len(logs)
        half = 0.0
        if n > 1:
            t = T95[n - 2] if n - 2 < len(T95) else 1.96
            half = t * float(np.std(logs, ddof=1)) / sqrt(n)
        return Spread(exp(mean), exp(mean - half), exp(mean + half), n)


# --- Runs


@dataclass(frozen=True)
class Run:
    """A run without its series: what the page needs of it."""

    case: str
    label: str
    link: str
    key: str
    player: str
    result: Result

    @property
    def command(self) -> str:
        return str(self.result["provenance"]["command"])


def runs_of(case: Case, found: Sequence[Result]) -> list[Run]:
    """The runs of a case; link says which ones share a link, seed by seed."""
    made = []
    for spec, result in zip(case.specs, found, strict=True):
        slim = {k: v for k, v in result.items() if k not in ("series", "drwa")}
        slim["rpm"] = rpm(result)
        slim["objects"] = {k: v for k, v in result["objects"].items() if not k.endswith("_ms")} | {
            k: result["objects"][k] for k in ("mean_fct_ms", "p95_fct_ms")
        }
        key = json.dumps([result["config"].get(k) for k in compare.LINK_KEYS] + [spec.seed])
        made.append(
            Run(
                case.name,
                case.labels.get(spec) or output.link_label(result),
                compare.link_label(result),
                key,
                player(result),
                slim,
            )
        )
    return made


@dataclass
class Book:
    """All that was run, and what could not be."""

    runs: list[Run] = field(default_factory=list)
    figures: list[Repeated] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def of(self, *names: str) -> list[Run]:
        return [run for run in self.runs if run.case in names]


def by_link(runs: Iterable[Run]) -> dict[str, dict[str, Run]]:
    """Runs over the same link with the same seed, by player."""
    found: dict[str, dict[str, Run]] = {}
    for run in runs:
        found.setdefault(f"{run.case} {run.key}", {}).setdefault(run.player, run)
    return found


# --- Quantities, each with what is better; a ratio of a time is turned over, so that more is better


@dataclass(frozen=True)
class Quantity:
    title: str
    of: Callable[[Result], float | None]
    time: bool = False

    def ratio(self, run: Run, to: Run) -> float | None:
        """A run's part of another one's, speed for times; none where one of them has none."""
        own, other = self.of(run.result), self.of(to.result)
        if not own or not other:
            return None
        return other / own if self.time else own / other


def _goodput(result: Result) -> float | None:
    return float(result["goodput_mbps"]) if result["config"]["flows"] else None


GOODPUT = Quantity("goodput", _goodput)
FETCH = Quantity("speed of fetches", lambda r: r["objects"]["mean_fct_ms"], time=True)
SEGMENTS = Quantity(
    "speed of a video’s segments",
    lambda r: r["segments"]["mean_fct_ms"] if r["segments"] else None,
    time=True,
)
UPLOAD = Quantity("goodput of the upload", lambda r: r["upload_goodput_mbps"])
SHARE = Quantity("share beside traffic that nothing governs", lambda r: r["fair_share"])
P95 = Quantity("p95 RTT", lambda r: r["rtt_ms"]["p95"], time=True)
WORTH = (GOODPUT, FETCH, SEGMENTS, UPLOAD, SHARE)


def baseline(players: dict[str, Run]) -> Run | None:
    """Stock under the law's own limits, where that was run."""
    return players.get(LIMITS) or players.get(STOCK)


@dataclass(frozen=True)
class Loss:
    """What the law has of the baseline's on one link."""

    quantity: str
    ratio: float
    law: Run
    base: Run


def _rivals(players: dict[str, Run]) -> Iterator[tuple[Run, Run]]:
    """The law's run and the baseline's; the gate's, and what the same phone has without it."""
    if LAW in players and (base := baseline(players)):
        yield players[LAW], base
    for who, run in players.items():
        if who.endswith(GATE) and (base := players.get(who.replace(GATE, "uplink pfifo"))):
            yield run, base


def losses(runs: Sequence[Run]) -> list[Loss]:
    """All quantities on all links, the worst first; of runs that two cases share, one."""
    found: dict[tuple[str, str], Loss] = {}
    for players in by_link(runs).values():
        for law, base in _rivals(players):
            for quantity in WORTH:
                if (ratio := quantity.ratio(law, base)) is not None:
                    found.setdefault(
                        (quantity.title, law.command), Loss(quantity.title, ratio, law, base)
                    )
    return sorted(found.values(), key=lambda loss: loss.ratio)


# --- What to run, and the running


def _without_kernel(case: Case) -> tuple[Case, list[str]]:
    """The case without runs whose kernel is not built, and what to do about it."""
    missing: dict[tuple[str, str], str] = {}
    for spec in case.specs:
        key = (spec.kernel, spec.flavour)
        if key in missing:
            continue
        try:
            pool.find_kernels([spec])
        except KernelMissing as e:
            # The page cannot be without these.
            if spec.flavour in ("base", "drwa"):
                raise
            missing[key] = str(e)
    specs = [s for s in case.specs if (s.kernel, s.flavour) not in missing]
    return replace(case, specs=specs), [f"{case.name}: {why}" for why in missing.values()]


def _cost(spec: RunSpec) -> float:
    """About how long a run takes, in any unit: time goes into packets, and some into seconds."""
    link = spec.down
    mbps = (link.trace.mean_bps if link.trace else link.rate_bps or 0) / 1e6
    return spec.duration_us / 1e6 * (0.5 + min(mbps, 1000) / 10)


def collect(chosen: Sequence[Case], say: Callable[[str], None]) -> Book:
    """Runs the cases, or takes what was run before; tells how far it is."""
    book = Book()
    ready = []
    for case in chosen:
        with_kernel, why = _without_kernel(case)
        ready.append(with_kernel)
        book.skipped += why + [f"{case.name}: {reason}" for reason in case.skipped]
    specs = [spec for case in ready for spec in case.specs]
    builds = pool.find_kernels(specs)
    # What was run before takes no time.
    new = pool.fresh(specs, builds)
    total = left_cost = sum(map(_cost, new))
    done = 0
    start = time.monotonic()
    for number, case in enumerate(ready, start=1):
        took = time.monotonic() - start
        left = ""
        if left_cost < total and took > 20:
            left = f", about {took / (total - left_cost) * left_cost / 60:.0f} min left"
        say(f"{case.name} ({number} of {len(ready)} cases, {done} of {len(specs)} runs done{left})")
        found = pool.run_specs(case.specs, reuse=True, builds=builds)
        if case.name in literature.published():
            figure = literature.published()[case.name]
            book.figures.append(Repeated(figure, case, found))
        book.runs += runs_of(case, found)
        # Some runs are of several cases.
        new = new - set(case.specs)
        left_cost = sum(map(_cost, new))
        done += len(case.specs)
    return book


def plan(full: bool, traces: Path | None) -> list[Case]:
    """The cases of the quick or the full campaign."""
    names = dict.fromkeys((*EVIDENCE, *(full_costs() if full else COSTS)))
    names |= dict.fromkeys(literature.published())
    return [on_line(case, DEFAULTS["kernel"]) for case in cases.choose(list(names), traces)]


# --- What it comes to


def numbers(book: Book) -> dict[str, Any]:
    """What the page says, for documents and machines."""
    all_losses = losses(book.runs)
    claims = [j for figure in book.figures for j in figure.judged if not j.claim.set]
    run = [j for j in claims if j.within is not None]
    law = law_pairs(book)
    results = [r.result for r in book.runs]
    return {
        "schema": "drwa-evidence/1",
        "made_of": cases.made_of(chain(results, *(f.results() for f in book.figures))),
        "runs": len({r.command for r in book.runs}),
        "law": {
            "links": len(law),
            "goodput_of_stock": _ratio(law, GOODPUT),
            "p95_speed_of_stock": _ratio(law, P95),
            "p95_of_idle": _of_idle(law, "p95"),
        },
        "peers": {
            label: {
                who: {
                    "goodput_of_stock": _ratio(found, GOODPUT),
                    "p95_of_idle": _of_idle(found, "p95"),
                    "mean_of_idle": _of_idle(found, "mean"),
                }
                for who, found in peers.items()
            }
            for label, peers in peers_of(book.of(*PEERS)).items()
        },
        "published": {"within": sum(bool(j.within) for j in run), "of": len(run)},
        "regressions": [
            {
                "what": loss.quantity,
                "of_baseline": round(loss.ratio, 4),
                "case": loss.law.case,
                "link": loss.law.link,
                "command": loss.law.command,
            }
            for loss in all_losses
            if loss.ratio < REGRESSION
        ],
        "skipped": book.skipped,
    }


Pairs = list[tuple[Run, Run]]


def peers_of(runs: Sequence[Run]) -> dict[str, dict[str, Pairs]]:
    """By kind of link and player: each run, and stock's over the same link."""
    found: dict[str, dict[str, Pairs]] = {}
    for players in by_link(runs).values():
        stock = players.get(STOCK)
        for who, run in players.items():
            if stock is not None:
                found.setdefault(run.label, {}).setdefault(who, []).append((run, stock))
    return found


def law_pairs(book: Book) -> Pairs:
    """The law's and stock's runs on all links of the first question."""
    peers = peers_of(book.of(*PEERS))
    return [pair for players in peers.values() for pair in players.get(LAW, [])]


def _ratio(pairs: Pairs, quantity: Quantity) -> dict[str, Any] | None:
    spread = ratio_of(pairs, quantity)
    return None if spread is None else {k: round(v, 4) for k, v in asdict(spread).items()}


def _of_idle(pairs: Pairs, key: str) -> dict[str, Any] | None:
    spread = idle_of(pairs, key)
    return None if spread is None else {k: round(v, 4) for k, v in asdict(spread).items()}


def ratio_of(pairs: Pairs, quantity: Quantity) -> Spread | None:
    """Of stock's, over all seeds."""
    return Spread.of([x for run, stock in pairs if (x := quantity.ratio(run, stock)) is not None])


def rpm(result: Result) -> float | None:
    """Foreign responsiveness, in round trips a minute (draft-ietf-ippm-responsiveness).

    Of the probes from four seconds after the last download began, by the mean of all but the
    longest 5 %, as the draft takes its own. Its foreign probes are the handshakes and a request of
    a new connection, ours is one packet each way. What it asks of connections that carry the load
    is not measured, so a router that orders by flow looks better than it would there.
    """
    start_s = max((flow["start_s"] for flow in result["flows"]), default=0.0) + SETTLED_S
    rtt = result["series"]["rtt"]
    taken = np.array(rtt["ms"])[np.array(rtt["t_s"]) >= start_s]
    if not len(taken):
        return None
    return float(60e3 / taken[taken <= np.percentile(taken, TRIMMED)].mean())


def idle_of(pairs: Pairs, key: str) -> Spread | None:
    """p95 or mean RTT in those of the idle link."""
    return Spread.of([x for run, _ in pairs if (x := of_idle(run.result, key)) is not None])
