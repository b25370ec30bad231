# SPDX-License-Identifier: GPL-2.0-only
"""`lab documents`: numbers in documents, which come from committed results.

A claim is a text with its numbers, made from the files in kernel/lab/results. Its document has to
have that text; where the numbers differ, it is stale.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Annotated, Any

import typer

from drwalab import campaign, cases, kernels, output, series, sources

TOP = cases.LAB.parents[1]
RESULTS = cases.LAB / "results"
# What the law does in user space, in models and under fuzzers
TESTS_RESULTS = sources.KERNEL_DIR / "tests" / "results"
LAWS = {
    "tcp_drwa_core.c": sources.KERNEL_DIR / "src" / "net" / "ipv4" / "tcp_drwa_core.c",
    "drwa_up_core.c": sources.KERNEL_DIR / "src" / "net" / "sched" / "drwa_up_core.c",
}

_NUMBER = r"\d(?:[\d.,]*\d)?"
_RANGE = rf"{_NUMBER}(?: to {_NUMBER})?"
# Whether a result is of today's patches
_ANSWER = r"\*\*(?:yes|no|not named)\*\*"
_VARIES = re.compile(rf"{_ANSWER}|{_RANGE}")


@dataclass(frozen=True)
class Claim:
    """A text that a document has to have; the path is from the top.

    The first characters of it are as they are whatever the numbers say.
    """

    document: str
    text: str
    fixed: int = 0

    @property
    def pattern(self) -> re.Pattern[str]:
        """The text with any numbers; a number may be a range, and any space a line's end."""
        pattern, end = re.escape(self.text[: self.fixed]), self.fixed
        for match in _VARIES.finditer(self.text, self.fixed):
            pattern += re.escape(self.text[end : match.start()])
            pattern += _ANSWER if match[0].startswith("*") else _RANGE
            end = match.end()
        pattern += re.escape(self.text[end:])
        return re.compile(pattern.replace(r"\ ", r"\s+"))

    def found(self) -> str | None:
        """What the document says instead, or the same."""
        match = self.pattern.search((TOP / self.document).read_text())
        return match[0] if match else None

    @property
    def holds(self) -> bool:
        found = self.found()
        return found is not None and " ".join(found.split()) == self.text

    def write(self) -> None:
        """Put the numbers into the document, on one line where they were on several."""
        path = TOP / self.document
        new = self.text.replace("\\", r"\\")
        output.write_whole(path, self.pattern.sub(new, path.read_text(), count=1))


@cache
def table(name: str, number: int = 0) -> list[dict[str, str]]:
    """The rows of a table in results/NAME.md; of heads that come twice, the second has a 2."""
    tables: list[list[list[str]]] = [[]]
    for line in (RESULTS / f"{name}.md").read_text().splitlines():
        if line.startswith("|"):
            tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif tables[-1]:
            tables.append([])
    heads, _, *rows = [found for found in tables if found][number]
    heads = [h if h not in heads[:n] else f"{h} 2" for n, h in enumerate(heads)]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def cell(name: str, head: str, **where: str) -> float:
    """A number of the only row for which this holds."""
    rows = [r for r in table(name) if all(r[key].startswith(v) for key, v in where.items())]
    if len(rows) != 1:
        raise LookupError(f"results/{name}.md has {len(rows)} rows of {where}")
    return float(rows[0][head])


@cache
def _json(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def figure(case: str, link: str, player: str, measure: str) -> float:
    """A mean of results/literature.json."""
    return float(_json("literature")[case]["numbers"][link][player][measure]["mean"])


def span(values: list[float], decimals: int = 0) -> str:
    """One number, or the least and the largest where they are not the same."""
    low, high = (f"{f(values):.{decimals}f}" for f in (min, max))
    return low if low == high else f"{low} to {high}"


# --- The claims


def _carrier() -> Iterator[tuple[str, int]]:
    """The table of λ for carriers: two links that vary, and a steady one."""
    rows = table("lambda")
    schemes = list(dict.fromkeys(row["Scheme"] for row in rows))
    for scheme in [*schemes[1:], schemes[0]]:
        own = [row for row in rows if row["Scheme"] == scheme]
        stock = {
            row["Link"]: float(row["Goodput Mb/s"]) for row in rows if row["Scheme"] == "stock"
        }
        cells = []
        for part in (
            [r for r in own if ".down" in r["Link"]],
            [r for r in own if "Mb/s" in r["Link"]],
        ):
            shares = [float(r["Goodput Mb/s"]) / stock[r["Link"]] * 100 for r in part]
            cells.append(f"{span(shares, 0 if scheme == 'stock' else 1)} %")
            cells += [span([float(r[f"RTT {key} ms"]) for r in part]) for key in ("mean", "p95")]
        name = scheme.removeprefix("drwa λ=")
        head = {"stock": "off (stock)", "1.25": "**1.25**"}.get(name, name)
        yield f"| {head} | {' | '.join(cells)} |", len(f"| {head} |")
    yield from _steps_of_lambda()
    yield from _radios()


def _steps_of_lambda() -> Iterator[tuple[str, int]]:
    """What a larger λ gains and costs on the links that vary: points of goodput, and p95 RTT."""
    rows = [row for row in table("lambda") if ".down" in row["Link"]]

    def all_of(scheme: str, head: str) -> list[float]:
        return [float(row[head]) for row in rows if row["Scheme"] == scheme]

    def step(low: str, high: str) -> tuple[str, list[float]]:
        parts = [all_of(scheme, "Goodput Mb/s") for scheme in ("stock", low, high)]
        gain = [100 * (b - a) / stock for stock, a, b in zip(*parts, strict=True)]
        delays = [all_of(scheme, "RTT p95 ms") for scheme in (low, high)]
        return span(gain), [b / a for a, b in zip(*delays, strict=True)]

    first, second = step("drwa λ=1.00", "drwa λ=1.25"), step("drwa λ=1.25", "drwa λ=1.50")
    start = "from λ = 1.00 to 1.25 gains about "
    yield (
        f"{start}{first[0]} points of goodput for {span([100 * d - 100 for d in first[1]])} % more",
        len(start),
    )
    start = "λ = 1.50 gains "
    end = "times the p95 RTT of 1.25"
    yield f"{start}{second[0]} points more, for {span(second[1], 1)} {end}", len(start)


# Names of results/lambda-radios.md's links, by what they are of
THIRD, FIFTH = re.compile("UMTS|EVDO|evdo|hspap"), re.compile("5g|nr-")


def _radios() -> Iterator[tuple[str, int]]:
    """What another λ than the default has of that one's delay and goodput, by radio."""

    def of_default(radio: re.Pattern[str], scheme: str, head: str) -> str:
        rows = [row for row in table("lambda-radios") if radio.search(row["Link"])]
        there, default = (
            [float(row[head]) for row in rows if row["Scheme"] == each]
            for each in (scheme, "drwa λ=1.25")
        )
        return f"{span([100 * a / b for a, b in zip(there, default, strict=True)])} %"

    start = "On 3G, 1.00 has "
    low = of_default(THIRD, "drwa λ=1.00", "RTT p95 ms")
    yield f"{start}{low} of the p95 RTT of 1.25.", len(start)
    start = "On 5G, 1.50 has "
    goodput, high = (of_default(FIFTH, "drwa λ=1.50", h) for h in ("Goodput Mb/s", "RTT p95 ms"))
    yield f"{start}{goodput} of the goodput of 1.25 at {high} of its p95 RTT", len(start)


def _kernel() -> Iterator[tuple[str, int]]:
    here = "AT&T HSPA+"
    static, law = (
        figure("paper-fig9", here, who, "rtt_mean")
        for who in ("static paper-hspap", "drwa-classic λ=3.00")
    )
    goodput = figure("paper-fig9", here, "drwa-classic λ=3.00", "goodput")
    cut = (1 - law / static) * 100
    yield f"{static:.0f} to {law:.0f} ms (−{cut:.0f} %) at the same {goodput:.2f} Mb/s", 0
    gains = []
    for link, limit in (("HSPA+", "paper-hspap"), ("LTE", "paper-lte")):
        names = (f"static {limit}", "drwa-classic λ=3.00")
        far = f"{link}, Raleigh to Seoul"
        before, after = (figure("paper-fig16", far, who, "goodput") for who in names)
        unit = " Mb/s" if link == "HSPA+" else ""
        gains.append(f"{before:.2f} to {after:.2f}{unit} (+{(after / before - 1) * 100:.0f} %)")
    yield " and ".join(gains), 0
    fetch = [
        cell("defect-start", "FCT mean ms", Link="20 Mb/s", Scheme=scheme)
        for scheme in ("stock", "drwa-classic λ=3.00", "drwa-classic λ=1.50", "drwa λ=1.50")
    ]
    stock, three, half, own = (f"{ms:.0f}" for ms in fetch)
    yield f"stock {stock} ms, Algorithm 1 {three} (λ 3) and {half} (λ 1.5), `drwa` {own}", 0
    lines = ("campaign", "campaign-6.1")
    yield f"{_met(lines[0])} targets are met on 6.12, {_met(lines[1])} on 6.1", 0
    yield from _shortfalls(*lines)
    for case in ("defect-handover", "defect-upload"):
        stock, classic, own = (
            f"{cell(case, 'from 30 s Mb/s', Scheme=scheme):.2f}"
            for scheme in ("stock", "drwa-classic", "drwa λ")
        )
        head = {"defect-handover": "ten seconds later", "defect-upload": "(`defect-upload`)"}[case]
        start = f"{head} | stock "
        yield f"{start}{stock} Mb/s, Algorithm 1 {classic}, `drwa` {own}", len(start)


def shortfalls(*names: str) -> dict[tuple[str, str], list[str]]:
    """The targets that are missed in a campaign, with their bound and the worst of each."""
    lines = [{(row["Row"], row["Target"]): row for row in table(name)} for name in names]
    found = {}
    for target in dict.fromkeys(target for line in lines for target in line):
        rows = [line.get(target) for line in lines]
        known = [row for row in rows if row]
        if any(row[""] == "missed" for row in known):
            found[target] = [known[0]["Bound"], *map(_worst, rows)]
    return found


def _worst(row: Mapping[str, str] | None) -> str:
    if not row:
        return "not recorded"
    return row["Worst"] + ("" if row[""] == "missed" else ", met")


def _met(name: str) -> str:
    found = re.search(r"(\d+ of \d+) targets are met", (RESULTS / f"{name}.md").read_text())
    assert found
    return found[1]


def _shortfalls(*names: str) -> Iterator[tuple[str, int]]:
    """The rows of a table of them."""
    for target, (bound, *worst) in shortfalls(*names).items():
        head = f"| {' | '.join((*target, bound))} |"
        yield f"{head} {' | '.join(worst)} |", len(head)


def _front() -> Iterator[tuple[str, int]]:
    """Two links that vary, with and without DRWA."""
    told = _lte_like()
    most = {key: told[key].split()[-1] for key in ("p95", "p95 of stock")}
    yield (
        f"took up to {most['p95']} ms with DRWA and up to {most['p95 of stock']} ms without. The "
        f"download kept {told['goodput']} % of its goodput",
        0,
    )
    # The demo's link
    goodput = [
        cell("lambda", "Goodput Mb/s", Link="lte-seed1", Scheme=who)
        for who in ("drwa λ=1.25", "stock")
    ]
    yield f"expect about {goodput[0] / goodput[1] * 100:.0f} % of stock's goodput", 0


def _lte_like() -> dict[str, str]:
    rows = [row for row in table("lambda") if ".down" in row["Link"]]
    law, stock = (
        [row for row in rows if row["Scheme"] == scheme] for scheme in ("drwa λ=1.25", "stock")
    )
    head = "Goodput Mb/s"
    shares = [float(a[head]) / float(b[head]) * 100 for a, b in zip(law, stock, strict=True)]
    return {
        "p95": span([float(row["RTT p95 ms"]) for row in law]),
        "p95 of stock": span([float(row["RTT p95 ms"]) for row in stock]),
        "goodput": span(shares, 1),
    }


def of_today(name: str) -> str | None:
    """Whether a recorded result names today's patches, or None where these cannot be made.

    Patches with nothing but tests do not count. It may name the BPF programs and the uplink's gate,
    too, or these alone, and a model has none of them.
    """
    text = (RESULTS / name).read_text()
    recorded = re.findall(r"patches ((?:[0-9a-f]{12}(?:, )?)+)", text)
    programs = set(re.findall(r"programs ([0-9a-f]{12})\b", text))
    gates = set(re.findall(r"[Gg]ate ([0-9a-f]{12})\b", text))
    if programs - {kernels.programs_id()} or gates - {kernels.gate_id()}:
        return "**no**"
    if not recorded:
        of_none = programs or gates or re.search(r"a model,\s+not\s+the\s+kernel", text)
        return "**yes**" if of_none else "**not named**"
    version = re.search(r"Kernel: (\d+\.\d+)", text)
    assert version
    source = sources.find_source(kernels.get_line(version[1]))
    if source is None:
        return None
    today = {
        kernels.patch_id(data)[:12]
        for patch, data in series.make_series(sources.KERNEL_DIR, source)
        if not re.search("kunit|selftest", patch)
    }
    return "**yes**" if all(today <= set(ids.split(", ")) for ids in recorded) else "**no**"


def of_todays_law(name: str) -> str | None:
    """Whether a record of kernel/tests names today's law, as builds.py there does, or patches."""
    text = (TESTS_RESULTS / name).read_text()
    recorded = re.findall(r"(\w+\.c)(?:: | \| )sha256 ([0-9a-f]{12})\b", text)
    if not recorded:
        return of_today(str(TESTS_RESULTS / name))
    today = all(
        law in LAWS and _digest_of(series.code_of(LAWS[law].read_text())) == digest
        for law, digest in recorded
    )
    return "**yes**" if today else "**no**"


def _digest_of(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def _oem() -> Iterator[tuple[str, int]]:
    for name, rows in (("campaign-drwa-tc", True), ("campaign-drwa-module", False)):
        link = f"[{_alike(name)}](../../kernel/lab/results/{name}.md)"
        yield f"{link}, {_rows(name)}" if rows else link, 0


def _module() -> Iterator[tuple[str, int]]:
    for name, start in (
        ("campaign-drwa-module", "at tracepoints on 6.12: "),
        ("campaign-drwa-module-6.1", "with an earlier algorithm, it is "),
    ):
        yield f"{start}{_alike(name)}", len(start)


def _bpf() -> Iterator[tuple[str, int]]:
    name = "campaign-drwa-tc"
    yield f"{_rows(name).capitalize()} are [recorded](../lab/results/{name}.md)", 0
    (traces,) = (row for row in table(name) if row["Case"] == "b01-traces")
    apart = table(name, 1)
    causes = [row["Cause"] for row in apart]
    unknown = [float(row["p95 RTT"]) for row in apart if row["Cause"] == "unknown"]
    yield (
        f"{traces['Goodput, geometric mean']} of the series' goodput at "
        f"{traces['p95 RTT, geometric mean']} of its p95 RTT",
        0,
    )
    yield (
        f"{_alike(name)} runs are within 1 % and 5 %, {causes.count('as itself')} more within the "
        f"series' own spread, and {causes.count('in the mean')} in the mean; {len(unknown)} have "
        f"no cause that is known, at {span(unknown, 2)} of the series' p95 RTT",
        0,
    )
    yield f"Of all, {_no_worse(name)}", 0
    yield f"On [6.1](../lab/results/{name}-6.1.md) {_no_worse(f'{name}-6.1')}", 0


def _no_worse(name: str) -> str:
    worse = [row for row in table(name, 1) if not _is_better(row)]
    chance = sum(row["Cause"] in ("as itself", "in the mean") for row in worse)
    runs = sum(int(row["Runs"]) for row in table(name))
    return (
        f"{runs - len(worse)} are alike or better, and {chance} more by the series' own spread or "
        f"in the mean: {(runs - len(worse) + chance) / runs:.0%}"
    )


def _is_better(row: dict[str, str]) -> bool:
    """Than the series, in one of both, and alike in the other; a fetch has no goodput."""
    goodput = row["Goodput"]
    no_less = goodput == "–" or float(goodput) >= 1 - campaign.GOODPUT_WITHIN
    return no_less and float(row["p95 RTT"]) <= 1 + campaign.P95_WITHIN


def _lab() -> Iterator[tuple[str, int]]:
    took = re.search(r"this took ([\d.]+) s", (RESULTS / "bench-speed.md").read_text())
    assert took
    start = "minute of a 10 Mb/s download takes about "
    yield f"{start}{ceil(float(took[1]))} s on one CPU", len(start)


def outdated() -> dict[str, str]:
    """The recorded files that are not of today's patches or law, and the answer of each."""
    answers = {path.name: of_today(path.name) for path in sorted(RESULTS.iterdir())}
    for path in sorted(TESTS_RESULTS.iterdir()):
        answers[f"kernel/tests/results/{path.name}"] = of_todays_law(path.name)
    return {name: answer for name, answer in answers.items() if answer not in (None, "**yes**")}


def _results() -> Iterator[tuple[str, int]]:
    """The index of results: what it says of each file, and whether that is of today's patches."""
    told, found = _lte_like(), _json("evidence")
    law, published = found["law"], found["published"]
    cost = table("cost")
    received = "received segment with its share of ACKs"
    values = {
        "lambda.md": f"p95 RTT {told['p95']} ms, stock {told['p95 of stock']} ms; goodput "
        f"{told['goodput']} % of stock",
        "evidence.json": f"{law['links']} links: {law['goodput_of_stock']['mean'] * 100:.1f} % of "
        f"stock's goodput at {100 / law['p95_speed_of_stock']['mean']:.1f} % of its p95 RTT, "
        f"{law['p95_of_idle']['mean']:.1f} times the idle link's",
        "campaign.md": f"{_met('campaign')} targets are met on Linux 6.12",
        "literature.json": f"{published['within']} of {published['of']} published values are "
        "within their spread",
        "campaign-drwa-tc.md": f"{_alike('campaign-drwa-tc')} runs have the same goodput within "
        "1 % and p95 RTT within 5 %",
        "campaign-drwa-module.md": f"{_alike('campaign-drwa-module')} runs, by the same measure",
        "cost.md": f"{cost[0][received]} instructions for a received segment; {cost[1]['more']} "
        f"with the patches, {cost[3]['more']} with the BPF programs "
        f"({cost[3]['more 2']} for a sent one)",
        "uplink.md": f"{_met('uplink')} targets are met",
    }
    for name, value in values.items():
        start = f"[{name}](../results/{name}) |"
        answer = of_today(name)
        text = f"| {value} | {start}"
        yield (f"{text} {answer} |" if answer else text), 0
    yield f"the kernel patches: {_rows('campaign-drwa-tc')} of the campaign", 0
    for path in sorted(RESULTS.iterdir()):
        if path.name not in values and (answer := of_today(path.name)):
            start = f"| [{path.name}](../results/{path.name}) | {answer} |"
            yield start, len(start) - len(f"{answer} |")


def _alike(name: str) -> str:
    found = re.search(r"(\d+ of \d+) runs", (RESULTS / f"{name}.md").read_text())
    assert found
    return found[1]


def _rows(name: str) -> str:
    """Of the campaign, those that a form's record has."""
    found = re.search(r"campaign's rows ([\d, ]+) have", (RESULTS / f"{name}.md").read_text())
    if not found:
        return "all rows"
    rows = [int(row) for row in found[1].split(", ")]
    whole = rows == list(range(rows[0], rows[-1] + 1))
    return f"rows {rows[0]} to {rows[-1]}" if whole else f"rows {found[1]}"


def _uplink() -> Iterator[tuple[str, int]]:
    words = []
    for who in ("pfifo", "qcut-d", "drwa"):
        times = [
            figure("qcut-pages", link, f"stock, uplink {who}", "page")
            / figure("qcut-pages", f"{link}, no upload", "stock, uplink pfifo", "page")
            for link in ("strong signal", "weak signal")
        ]
        words.append(" and ".join(f"{time:.2f}" for time in times))
    yield f"{_met('uplink')} targets are met", 0
    yield from _shortfalls("uplink")
    told = {
        age: [
            row
            for row in table("late-news")
            if row["News are late, ms"] == age and "UMTS" not in row["Uplink"]
        ]
        for age in ("50", "150")
    }
    part, beyond = list(told["50"][0])[3:]
    yield (
        f"has {span([float(row[part]) for row in told['50']], 3)} of QCUT-D's upload within 20 ms "
        f"of its p95 RTT, and is {span([float(row[beyond]) for row in told['50']], 0)} ms beyond "
        f"at 0.95 of it; at 150 ms it is "
        f"{span([float(row[beyond]) for row in told['150']], 0)} ms beyond",
        4,
    )
    yield from _uploads_over_quic()
    for scheme, start in (("stock", "have "), ("drwa", "with the law below, ")):
        parts = [
            each["of_baseline"] * 100
            for each in _json("evidence")["regressions"]
            if (each["case"], each["what"]) == ("e-rrul", "goodput of the upload")
            and f"--scheme {scheme} " in each["command"]
        ]
        yield f"{start}{span(parts, 1)} % of what they have with pfifo", len(start)
    yield (
        f"takes {words[0]} times as long as alone on today's phone, {words[1]} times with QCUT-D, "
        f"{words[2]} times with the gate",
        0,
    )


def _uploads_over_quic() -> Iterator[tuple[str, int]]:
    """What of pfifo's upload over QUIC is left where it waits in the kernel, of uplinks told."""
    uploads: dict[str, list[str]] = {}
    link = ""
    for row in table("uplink", 7):
        link = row["Link"] or link
        if row["Player"] in ("pfifo", "qcut-d", "drwa"):
            uploads.setdefault(link, []).append(row["Upload, Mb/s"])
    heads = {
        "generated LTE, seed 1": "uplink lte-seed1",
        "generated LTE, seed 2": "uplink lte-seed2",
        "Verizon's LTE": "uplink Verizon-LTE",
    }
    for head, uplink in heads.items():
        (found,) = (u for at, u in uploads.items() if uplink in at and "over QUIC" in at)
        yield f"| {head} | {' | '.join(found)} |", len(f"| {head} |")
    pfifo, bound, _ = next(iter(uploads.values()))
    yield f"it has {bound} of {pfifo} on the first of these", 0


DOCUMENTS: dict[str, Callable[[], Iterator[tuple[str, int]]]] = {
    "README.md": _front,
    "device/doc/gms-oem.md": _oem,
    "frameworks/carrier/README.md": _carrier,
    "kernel/README.md": _kernel,
    "kernel/bpf/design.md": _bpf,
    "kernel/lab/README.md": _lab,
    "kernel/lab/doc/results.md": _results,
    "kernel/module/README.md": _module,
    "kernel/uplink.md": _uplink,
}


def claims() -> list[Claim]:
    """All of them; raises LookupError where a result that one needs is not there."""
    return [Claim(name, *claim) for name, made in DOCUMENTS.items() for claim in made()]


def documents(
    write: Annotated[bool, typer.Option("--write", help="Write the numbers into them.")] = False,
) -> None:
    """Compare the numbers in documents with the recorded results that they come from.

    Ends with 1 if a number differs, or if a result is not of today's patches or law.
    """
    stale = [claim for claim in claims() if not claim.holds]
    for claim in stale:
        found = claim.found()
        print(f"{claim.document}: results say:    {claim.text}", file=sys.stderr)
        print(f"{claim.document}: it says instead: {found or 'nothing like it'}", file=sys.stderr)
        if write and found:
            claim.write()
            print(f"{claim.document}: written", file=sys.stderr)
    if stale and not (write and all(claim.holds for claim in stale)):
        raise typer.Exit(1)
    print(f"{len(claims())} texts with numbers are as the results have them")
    if old := outdated():
        for name, answer in old.items():
            what = "law" if "/" in name else "patches"
            print(f"{name}: of today's {what}: {answer.strip('*')}", file=sys.stderr)
        print(f"{len(old)} results are to be recorded again", file=sys.stderr)
        raise typer.Exit(1)
