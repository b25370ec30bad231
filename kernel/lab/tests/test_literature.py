# SPDX-License-Identifier: GPL-2.0-only
"""What was published, and how measured runs are held against it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from drwalab import cases, literature, spec, uplink
from drwalab.literature import MEASURES, Claim, Figure, Number, Repeated
from synthetic import run

Result = dict[str, Any]


def test_every_claim_names_runs_of_its_case() -> None:
    known = cases.load()
    for name, figure in literature.published().items():
        case = known[name]
        # A run has one label.
        assert len(set(case.specs)) == len(case.specs), name
        players: dict[str, set[str]] = {}
        for one in case.specs:
            players.setdefault(case.labels[one], set()).add(one.name)
        for claim in figure.claims:
            assert claim.player in players[claim.link], f"{name}: {claim.player}"
            of_link = claim.of_link or claim.link
            assert claim.of is None or claim.of in players[of_link], f"{name}: {claim.of}"
            assert not claim.of_link or claim.of, name
            # This project's own beside it.
            assert claim.ours in players[claim.link], f"{name}: {claim.ours}"
            assert claim.measure in MEASURES
            assert (claim.value is None) is not (claim.at_least is claim.at_most is None), name
        assert set(figure.measures) <= MEASURES.keys()
        if figure.source.text.startswith("Guo"):
            # All that may stand before the modem.
            assert {s.uplink.scheme for s in case.specs if s.uplink} == set(uplink.SCHEMES), name
        else:
            assert {s.scheme.name for s in case.specs} >= {"drwa", "drwa-classic"}, name


def test_all_figures_of_the_paper_are_there() -> None:
    numbers = (3, *range(6, 21))
    assert {f"paper-fig{n}" for n in numbers} <= literature.published().keys()
    assert {
        "sweden",
        "port-ride",
        "port-pings",
        "qcut-pages",
        "qcut-acks",
    } <= literature.published().keys()


def steady(**config: Any) -> Result:
    result = run("stock", "stock", duration_s=60)
    result["config"] |= {"rate_bps": 8_000_000, "trace": None, "buffer_bytes": 1_000_000} | config
    return result


def with_rtt(ms: list[float], lost_s: tuple[float, ...] = ()) -> Result:
    result = steady()
    base = result["rtt_ms"]["base"]
    times = [float(n) for n in range(len(ms))]
    result["series"]["rtt"] = {"t_s": times, "ms": [base + x for x in ms], "lost_t_s": [*lost_s]}
    return result


def test_overshoots() -> None:
    """A queue of a second fills twice; a dip that is no more than a tenth of it does not count."""
    result = with_rtt([0, 500, 980, 990, 950, 975, 700, 1000, 800])
    assert literature.overshoots(result) == 2
    # What a lost probe waited is no queue.
    assert literature.overshoots(with_rtt([0, 500, 2000, 700], lost_s=(2.0,))) == 0
    assert literature.overshoots(steady(rate_bps=None)) is None


def test_in_flight_is_the_rate_times_the_longest_rtt() -> None:
    result = with_rtt([0, 450, 100])
    base = result["rtt_ms"]["base"]
    assert MEASURES["in_flight_kb"].of(result) == pytest.approx(base + 450)
    assert MEASURES["in_flight_segments"].of(result) == pytest.approx((base + 450) / 1.5)


def test_pings_at_parts_of_a_download() -> None:
    """At 10 Mb/s, 20 % of 40 MB have come after 6.4 s, and 80 % after 25.6 s."""
    result = steady()
    result["series"]["goodput_mbps"] = [10.0] * 600
    times = np.arange(0, 60, 0.1)
    result["series"]["rtt"] = {
        "t_s": [float(t) for t in times],
        "ms": [100.0 if t < 20 else 150.0 for t in times],
        "lost_t_s": [],
    }
    series = result["series"]
    series["t_s"] = [round(0.1 * n, 1) for n in range(1, 601)]
    assert MEASURES["ping_20"].of(result) == 100
    assert MEASURES["ping_80"].of(result) == 150
    assert MEASURES["ping_growth"].of(result) == 1.5
    assert MEASURES["time_20mb"].of(result) == 16.0
    series["goodput_mbps"] = [1.0] * 600
    assert MEASURES["ping_20"].of(result) is None


def test_unevenness() -> None:
    result = steady()
    result["series"]["goodput_mbps"] = [4.0] * 600
    assert literature.unevenness(result) == 0
    result["series"]["goodput_mbps"] = ([2.0] * 10 + [6.0] * 10) * 30
    assert literature.unevenness(result) == 1.0


@pytest.mark.parametrize(
    ("claim", "low", "high", "within"),
    [
        ({"value": 100}, 85.0, 85.0, False),
        ({"value": 100}, 87.0, 87.0, True),
        ({"value": 100}, 70.0, 87.0, True),
        ({"value": 100}, 115.0, 120.0, False),
        ({"at_least": 1.0}, 0.9, 0.99, False),
        ({"at_least": 1.0}, 0.9, 1.01, True),
        ({"at_least": 1.0, "at_most": 2.0}, 2.1, 2.2, False),
        ({"at_most": 2.0}, 0.1, 0.2, True),
    ],
)
def test_within(claim: dict[str, float], low: float, high: float, within: bool) -> None:
    made = Claim("a link", "stock", "goodput", **claim)  # type: ignore[arg-type]
    assert made.within(low, high, 0.14) is within


@pytest.fixture
def repeated() -> Iterator[Repeated]:
    """A figure of two seeds, with stock at 4 and 5 Mb/s and the law at 2 and 3."""
    figure = replace(
        literature.published()["paper-fig18"],
        claims=(
            Claim("here", "drwa λ=1.25", "goodput", of="stock", value=0.55),
            Claim("here", "stock", "goodput", value=9.0, set=True),
            Claim("there", "stock", "goodput", value=9.0),
        ),
    )
    specs, found = [], []
    for seed, (stock, law) in enumerate(((4.0, 2.0), (5.0, 3.0)), start=1):
        for scheme, goodput in (("stock", stock), ("drwa", law)):
            one = spec.parse(scheme, {"rate": "8mbit", "seed": seed})
            result = run(one.name + (", unpatched" if scheme == "stock" else ""), scheme)
            found.append(result | {"goodput_mbps": goodput})
            specs.append(one)
    case = cases.Case("x", "", None, False, specs, [], dict.fromkeys(specs, "here"))
    yield Repeated(figure, case, found)


def test_judging(repeated: Repeated) -> None:
    assert repeated.number("here", "stock", "goodput") == Number(4.5, 4.0, 5.0)
    ratio, chosen, absent = repeated.judged
    assert ratio.measured == Number(0.55, 0.5, 0.6)
    assert [j.verdict for j in (ratio, chosen, absent)] == ["within", "set, but differs", "not run"]
    record = repeated.record()
    assert record["numbers"]["here"]["drwa λ=1.25"]["goodput"]["mean"] == 2.5
    assert record["claims"][0]["verdict"] == "within"


def test_of_another_link(repeated: Repeated) -> None:
    claim = Claim("elsewhere", "stock", "goodput", of="drwa λ=1.25", of_link="here", value=2.0)
    repeated.runs["elsewhere"] = {"stock": repeated.runs["here"]["stock"]}
    found = repeated.judge(claim)
    assert found.measured == Number(1.8333, 1.6667, 2.0)
    assert found.claim.what == "Goodput of drwa λ=1.25’s (here), stock"


@pytest.mark.parametrize(
    ("player", "ours"),
    [
        ("stock, vegas", "drwa λ=1.25"),
        ("stock, uplink fq_codel", "stock, uplink drwa"),
        ("stock, uplink pfifo, upload vegas", "stock, uplink drwa"),
        ("static paper-lte, uplink qcut-d 10ms", "static paper-lte, uplink drwa"),
    ],
)
def test_who_stands_beside_a_claim(player: str, ours: str) -> None:
    assert Claim("a link", player, "goodput").ours == ours


def test_waits_on_the_way_up() -> None:
    """100 kB are 200 ms at 4 Mb/s; what is left of the way up is the qdisc's."""
    result = steady(uplink_rate_bps=4_000_000, base_rtt_ms=60)
    result["firmware"] = {"mean_bytes": 100_000, "max_bytes": 120_000}
    result["up_ms"] = {"mean": 250.0}
    assert MEASURES["modem_ms"].of(result) == 200
    assert MEASURES["qdisc_ms"].of(result) == 20
    result["up_ms"] = {"mean": 229.0}
    assert MEASURES["qdisc_ms"].of(result) == 0
    result["config"]["uplink_rate_bps"] = None
    assert MEASURES["modem_ms"].of(result) is MEASURES["qdisc_ms"].of(result) is None
    result["objects"]["fct_ms"] = [10.0, 20.0, 90.0]
    assert MEASURES["page"].of(result) == 20


def _whole(figure: Figure) -> list[tuple[str, str]]:
    return [(f"{c.link}: {c.what}", c.published) for c in figure.claims]


@pytest.mark.parametrize("name", literature.published())
def test_the_record_is_of_what_is_published(name: str) -> None:
    """`lab literature --record` was run since published.toml changed; what differs has a reason."""
    record = json.loads(literature.RECORD.read_text())
    if name not in record:
        pytest.skip(f"{name} is not recorded: kernel/lab/lab literature {name} --record")
    figure, claims = literature.published()[name], record[name]["claims"]
    assert [(c["what"], c["published"]) for c in claims] == _whole(figure)
    assert not any(c["verdict"] == "not run" for c in claims)
    if any("differs" in c["verdict"] for c in claims):
        assert figure.why, "it differs from what was published, and does not say why"
