# SPDX-License-Identifier: GPL-2.0-only
"""Algorithm 1 does what its paper derives and shows, and fails where it is known to fail."""

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import pytest

from conftest import needs_kernels
from drwalab import cases, pool
from drwalab.output import link_label
from drwalab.results import settled

pytestmark = [pytest.mark.guest, pytest.mark.long]

Result = dict[str, Any]


def run_case(name: str) -> list[Result]:
    specs = cases.load()[name].specs
    needs_kernels(specs)
    return pool.run_specs(specs, progress=False)


def by_link(results: list[Result]) -> Iterator[dict[str, Result]]:
    for _, group in groupby(results, link_label):
        yield {result["name"]: result for result in group}


def test_rtt_settles_at_lambda_rtt_min() -> None:
    """Section 5.1: RTT = λ RTTmin within 10 %, at stock's goodput within 1 %."""
    for link in by_link(run_case("paper-law")):
        stock_mbps, _ = settled(link.pop("stock"), 30)
        assert len(link) == 3
        for name, result in link.items():
            goodput_mbps, rtt_ms = settled(result, 30)
            base_ms = result["rtt_ms"]["base"]
            assert rtt_ms == pytest.approx(result["lambda"] * base_ms, rel=0.1), name
            assert goodput_mbps >= 0.99 * stock_mbps, name
            # What the kernel takes for RTTmin must be the path, or the law is off by as much.
            assert result["drwa"]["path_ms"][-1] == pytest.approx(base_ms, rel=0.1), name


def test_small_bdp_trades_delay_for_nothing() -> None:
    """Figure 9: 49 % less RTT than the shipped limit, at 96 % of its goodput or more."""
    results = {result["scheme"]: result for result in run_case("paper-fig9")}
    classic = results.pop("drwa-classic")
    results.pop("drwa")
    shipped = results["paper-hspap"]
    assert classic["rtt_ms"]["mean"] <= 0.51 * shipped["rtt_ms"]["mean"]
    assert classic["goodput_mbps"] >= 0.96 * shipped["goodput_mbps"]
    static = list(results.values())
    assert len(static) == 6
    for smaller, larger in pairwise(static):
        assert larger["rtt_ms"]["mean"] > smaller["rtt_ms"]["mean"]
        assert larger["goodput_mbps"] == pytest.approx(shipped["goodput_mbps"], rel=0.02)


def test_large_bdp_needs_more_than_the_static_limit() -> None:
    """Figure 16: at least 23 % more goodput than the shipped limit."""
    links = list(by_link(run_case("paper-fig16")))
    assert len(links) == 2
    for link in links:
        classic = link.pop("drwa-classic λ=3.00")
        static = next(result for name, result in link.items() if name.startswith("static"))
        assert classic["goodput_mbps"] >= 1.23 * static["goodput_mbps"]


def test_defect_start() -> None:
    """Algorithm 1 clamps slow start; the default law leaves it alone."""
    for link in by_link(run_case("defect-start")):
        stock_ms = link.pop("stock")["objects"]["mean_fct_ms"]
        for name, result in link.items():
            ratio = result["objects"]["mean_fct_ms"] / stock_ms
            if result["scheme"] == "drwa":
                assert ratio <= 1.02, name
            else:
                assert ratio > 1.3, name


def test_defect_handover() -> None:
    """Algorithm 1 starves on a longer path for ever; the default law finds it."""
    results = {result["scheme"]: settled(result, 30) for result in run_case("defect-handover")}
    stock_mbps, _ = results["stock"]
    assert results["drwa-classic"][0] < 0.1 * stock_mbps
    assert results["drwa"][0] > 0.95 * stock_mbps


def test_defect_upload() -> None:
    """Algorithm 1 takes the uplink's queue for its own; the default law does not."""
    results = {result["scheme"]: settled(result, 30) for result in run_case("defect-upload")}
    stock_mbps, _ = results["stock"]
    assert results["drwa-classic"][0] < 0.1 * stock_mbps
    assert results["drwa"][0] > 0.95 * stock_mbps
