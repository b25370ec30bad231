# SPDX-License-Identifier: Apache-2.0
"""The whole chain: the story in both hosts, and a judgement and a page that can say no."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import drwasystem
import page
import story
from drwalab import kernels, pool
from drwasystem import Phone
from story import Story

pytestmark = pytest.mark.guest

NUMBERS = {name: number for number, name in enumerate(story.NAMES)}
# Too short for RTT and window to settle
SHORT = {
    "Flag",
    "Flag goes",
    "Modem restarts",
    "VPN, second SIM",
    "netd dies",
    "System server dies",
    "LTE once more",
}


def told_by(phones: Sequence[Phone]) -> dict[str, Story]:
    """What guests of one kernel recorded, by the host."""
    try:
        kernel = kernels.find(story.KERNEL, phones[0].flavour)
    except kernels.KernelMissing as e:
        pytest.skip(str(e))
    jobs = [partial(story.play, phone, kernel, drwasystem.files(phone)) for phone in phones]
    told = pool.run_jobs(jobs, [story.DURATION_S] * len(jobs), progress=False)
    return {phone.host: each for phone, each in zip(phones, told, strict=True)}


@pytest.fixture(scope="module")
def stories() -> dict[str, Story]:
    return told_by([phone for phone in drwasystem.PHONES if not phone.programs])


@pytest.fixture(scope="module")
def programs_stories() -> dict[str, Story]:
    """On a kernel without the series."""
    return told_by([phone for phone in drwasystem.PHONES if phone.programs])


def check_step(told: Story, name: str) -> None:
    judged = told.judged[NUMBERS[name]]
    assert len(judged.checks) >= (10 if name in SHORT else 11)
    assert [check for check in judged.checks if not check.passed] == []


@pytest.mark.parametrize("host", drwasystem.HOSTS)
@pytest.mark.parametrize("name", NUMBERS)
def test_step(stories: dict[str, Story], host: str, name: str) -> None:
    check_step(stories[host], name)


@pytest.mark.parametrize("host", drwasystem.HOSTS)
@pytest.mark.parametrize("name", NUMBERS)
def test_step_with_the_programs(programs_stories: dict[str, Story], host: str, name: str) -> None:
    check_step(programs_stories[host], name)


def test_hosts_agree(stories: dict[str, Story]) -> None:
    check_agreement(stories)


def test_hosts_agree_with_the_programs(programs_stories: dict[str, Story]) -> None:
    check_agreement(programs_stories)


def check_agreement(stories: dict[str, Story]) -> None:
    """Knobs change at the same instants, up to what a look at them takes."""
    a, b = stories["A"].watched, stories["B"].watched
    ifaces = [
        story.LTE,
        story.CLAT,
        story.FORMER_CLAT,
        story.WIFI,
        story.VPN,
        story.SECOND,
    ]
    for name in ifaces + [f"queue:{iface}" for iface in ifaces]:
        assert [value for _, value in a[name]] == [value for _, value in b[name]]
        for (at_a, _), (at_b, _) in zip(a[name][1:], b[name][1:], strict=True):
            assert at_a == pytest.approx(at_b, abs=story.KNOB_MS / 1e3)


def _as_stock(told: Story) -> None:
    """As if the kernel took no notice of λ."""
    told.rtt_ms[:] = told.rtt(0)
    told.window[:] = told.window_kb(0) * 1e3


def _held(times: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    number = NUMBERS["Uplink held"]
    begin_s, end_s = (story.STEPS[number + more].at_s for more in (0, 1))
    return np.asarray((times >= begin_s) & (times < end_s))


def _as_stock_uplink(told: Story) -> None:
    """As if the qdisc let all through."""
    told.rtt_ms[_held(told.probe_s)] = told.rtt(NUMBERS["Upload"])


def _starve_upload(told: Story) -> None:
    """As if the qdisc let next to nothing through, and nothing had waited in it at the end."""
    held = told.upload_s >= story.STEPS[NUMBERS["Uplink held"]].at_s
    told.uploaded[held] = told.uploaded[held][0]


def _change(iface: str, step: str, after_s: float, value: int) -> Callable[[Story], None]:
    """Another change of λ in a step, so long after its beginning, in place of the step's own."""
    begin_s, end_s = (story.STEPS[NUMBERS[step] + more].at_s for more in (0, 1))

    def change(told: Story) -> None:
        others = [each for each in told.watched[iface] if not begin_s <= each[0] < end_s]
        assert others != told.watched[iface]
        told.watched[iface] = sorted([*others, (begin_s + after_s, value)])

    return change


def _add(name: str, at_s: float, value: int) -> Callable[[Story], None]:
    def change(told: Story) -> None:
        told.watched[name] = sorted([*told.watched[name], (at_s, value)])

    return change


def _says(step: str, old: str, new: str, who: str = "policy") -> Callable[[Story], None]:
    """Who says it is a member of Judged: policy, netd, or filters for tc."""

    def change(told: Story) -> None:
        judged = told.judged[NUMBERS[step]]
        said = getattr(judged, who)
        assert old in said
        setattr(judged, who, said.replace(old, new))

    return change


_netd_says = partial(_says, who="netd")
_tc_says = partial(_says, who="filters")


# What is changed in the recording, and the steps whose judgement has to notice
CHANGES: dict[str, tuple[Callable[[Story], None], set[str]]] = {
    "λ without effect": (
        _as_stock,
        {"Carrier identified", "Back to LTE", "Carrier changes λ", "Switched on", "Modem is back"},
    ),
    "λ late": (_change(story.LTE, "Carrier identified", 0.5, 150), {"Carrier identified"}),
    "λ in other units": (
        _change(story.LTE, "Carrier identified", 0.02, 15),
        {"Carrier identified", "Wi-Fi"},
    ),
    "a setting that is heard late": (
        _change(story.LTE, "Switched off", 0.5, 0),
        {"Switched off"},
    ),
    "a flag that is not heard": (_change(story.CLAT, "Flag", 0.02, 300), {"Flag"}),
    "λ late after the modem's restart": (
        _change(story.LTE, "Modem is back", 0.5, 300),
        {"Modem is back"},
    ),
    "a renamed interface that stays on": (
        _add(story.FORMER_CLAT, 130.0, 300),
        {"Modem is back"},
    ),
    "no word of the static limit": (
        _says("Carrier changes λ", "static receive maximum", "limit"),
        {"Carrier changes λ"},
    ),
    "λ on Wi-Fi": (_add(story.WIFI, 40.0, 150), {"Wi-Fi", "LTE goes"}),
    "no λ on the stacked interface": (
        lambda told: told.watched.update({story.CLAT: told.watched[story.WIFI]}),
        {"Carrier identified", "Wi-Fi", "Back to LTE", "Carrier changes λ"},
    ),
    "no reset when LTE goes": (_change(story.LTE, "LTE goes", 1.0, 0), {"LTE goes"}),
    "an interface that stays on": (_add(story.LTE, story.DURATION_S - 1.0, 150), {"Airplane mode"}),
    "a queue of its own for the stacked interface": (
        _change(f"queue:{story.CLAT}", "Back to LTE", 0.02, 0),
        {"Back to LTE", "Carrier changes λ"},
    ),
    "a queue that comes after λ": (
        _change(f"queue:{story.LTE}", "Carrier identified", 0.5, 100),
        {"Carrier identified"},
    ),
    "a queue that is left behind": (
        _add(f"queue:{story.LTE}", story.DURATION_S - 1.0, 103),
        {"Airplane mode"},
    ),
    "the queue of the former network": (
        _change(f"queue:{story.LTE}", "Back to LTE", 0.02, 100),
        {"Back to LTE"},
    ),
    "two SIMs in one queue": (
        _change(f"queue:{story.SECOND}", "VPN, second SIM", 0.02, 102),
        {"VPN, second SIM"},
    ),
    "no word of who shares a queue": (
        _says("Carrier identified", ", shared with", ""),
        {"Carrier identified"},
    ),
    "a queue that netd does not tell": (
        _netd_says("Back to LTE", "queue=102", "queue=0"),
        {"Back to LTE"},
    ),
    "a long queue in the kernel's histogram": (
        _netd_says("Back to LTE", "delay: p50<", "delay: p50<1000"),
        {"Back to LTE"},
    ),
    "rounds on Wi-Fi": (_add(f"rounds:{story.WIFI}", 50.0, 10**6), {"LTE goes"}),
    "a write on Wi-Fi": (_says("SIM swap", "- rmnet0 λ", "- wlan0 λ"), {"SIM swap"}),
    "an error of netd's": (_says("Back to LTE", "errors: 0", "errors: 1"), {"Back to LTE"}),
    "an uplink that is held without effect": (_as_stock_uplink, {"Uplink held"}),
    "an upload that is starved": (_starve_upload, {"Uplink held"}),
    "an uplink that netd does not hold": (
        _netd_says("Uplink held", "uplink=20ms", "uplink=0ms"),
        {"Uplink held"},
    ),
    "an uplink that is held already": (
        _netd_says("Upload", "DrwaUplink", "DrwaUplink\n    rmnet0 uplink=20ms root=drwa_up 6d00:"),
        {"Upload"},
    ),
    "an uplink that stays held": (
        _netd_says(
            "Airplane mode", "DrwaUplink", "DrwaUplink\n    rmnet0 uplink=20ms root=drwa_up 6d00:"
        ),
        {"Airplane mode"},
    ),
    "no word of the uplink": (_says("Uplink held", "uplink held to 20 ms", ""), {"Uplink held"}),
    "a network that stays": (
        _says("Airplane mode", "Events without", f"{story.LTE} off: carrier 1\nEvents without"),
        {"Airplane mode"},
    ),
}


def _as_other_clients(told: Story) -> None:
    """As if the programs saw the phone's own connections alone."""
    number = NUMBERS["Hotspot"]
    begin_s, end_s = (story.STEPS[number + more].at_s for more in (0, 1))
    told.rtt_ms[(told.probe_s >= begin_s) & (told.probe_s < end_s)] = told.rtt(0)


# The same of the programs
PROGRAMS_CHANGES: dict[str, tuple[Callable[[Story], None], set[str]]] = {
    "a program at one hook alone": (
        _tc_says("Back to LTE", "rmnet0 egress filter", "rmnet0 egress none"),
        {"Back to LTE"},
    ),
    "a program that stays": (
        lambda told: setattr(
            told.judged[NUMBERS["netd dies"]],
            "filters",
            told.judged[NUMBERS["LTE again"]].filters,
        ),
        {"netd dies"},
    ),
    "an entry that stays": (_add("map:entries", 160.0, 1), {"System server dies"}),
    "clients that are not governed": (_as_other_clients, {"Hotspot"}),
    "no count of what began before": (
        _netd_says("Carrier identified", " unknown=", " known="),
        {"Carrier identified"},
    ),
}


@pytest.mark.parametrize("change", PROGRAMS_CHANGES)
def test_judgement_notices_of_the_programs(programs_stories: dict[str, Story], change: str) -> None:
    check_noticed(programs_stories["B"], *PROGRAMS_CHANGES[change])


@pytest.mark.parametrize("change", CHANGES)
def test_judgement_notices(stories: dict[str, Story], change: str) -> None:
    check_noticed(stories["A"], *CHANGES[change])


def check_noticed(recorded: Story, alter: Callable[[Story], None], noticing: set[str]) -> None:
    told = copy.deepcopy(recorded)
    alter(told)
    told.judge()
    failed = {judged.step.name for judged in told.judged if not judged.passed}
    assert noticing <= failed
    assert not told.passed


def test_page(stories: dict[str, Story], tmp_path: Path) -> None:
    told = stories["A"].as_dict()
    assert json.loads(json.dumps(told)) == json.loads(json.dumps(told, allow_nan=False))
    path = tmp_path / "e2e.html"
    page.write_html([told], path, {"Kernel": "a kernel"})
    text = path.read_text()
    assert "Every step came out as it has to" in text
    for step in story.STEPS:
        assert step.name in text
        assert step.mark in text
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text.split("<script")[0])
    told["steps"][2]["passed"] = False
    page.write_html([told], path, {"Kernel": "a kernel"})
    assert "Failed: A: Wi-Fi." in path.read_text()
