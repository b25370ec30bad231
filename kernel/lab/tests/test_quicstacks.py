# SPDX-License-Identifier: GPL-2.0-only
"""Real QUIC stacks as neighbours: their commands, and downloads over them in a guest."""

import shlex
import shutil
from typing import Any

import pytest

from conftest import Run, Script
from drwalab import network, quicstacks, spec
from drwalab.quicstacks import LOADS, StackError

ALONE: dict[str, Any] = {"rate": "10mbit", "base_rtt": "50ms", "flows": 0, "duration": "20s"}


def parsed(**options: Any) -> spec.RunSpec:
    return spec.parse("stock", {"rate": "10mbit", "flows": "0", "duration": "20s"} | options)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("ipv6", [False, True])
def test_server_and_client_agree(kind: str, ipv6: bool) -> None:
    """On address, port, and the pipe that the agent reads."""
    run = parsed(neighbour=["cubic", kind], ipv6=ipv6)
    (name, client), *others = network.client_scripts(run).items()
    setup = network.setup_script(run)
    address = "fd00:1::1" if ipv6 else "10.0.1.1"
    assert not others
    assert name == "neighbour-1.sh"
    for text in (setup, client):
        assert f"{address} {quicstacks.PORT + 1} " in text
    assert "mkfifo /run/neighbour-1\n" in setup
    if "gtlsclient" in client:
        folder = client.split("--download=")[1].split()[0]
        asked = client.split(f":{quicstacks.PORT + 1}/")[1].split()[0].rstrip(";")
        assert f"ln -s /run/neighbour-1 {folder}/{asked}\n" in setup
        assert (f"https://[{address}]" in client) == ipv6
    else:
        assert " /run/neighbour-1 " in client
    assert "neighbour program - 0 20000000\n" in network.agent_spec(run)


def test_a_stack_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how it gets there."""
    quicstacks.version.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda _, path: None)
    with pytest.raises(StackError, match="kernel/lab/packages ngtcp2-server ngtcp2-client"):
        quicstacks.versions(["quic", "ngtcp2-bbr"])
    assert quicstacks.versions(["quic", "cubic"]) == []
    quicstacks.version.cache_clear()


def test_an_ordinary_user_has_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose PATH has no sbin, where Debian's server is."""
    quicstacks.version.cache_clear()
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    assert quicstacks.versions(["ngtcp2", "aioquic"])[1].startswith("ngtcp2 0.")
    quicstacks.version.cache_clear()


def test_results_depend_on_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    before = quicstacks.key_words(["aioquic"])
    monkeypatch.setattr(quicstacks, "version", lambda _: "0")
    assert quicstacks.key_words(["aioquic"]) != before
    assert quicstacks.key_words(["quic"]) == []


@pytest.mark.guest
@pytest.mark.parametrize("kind", ["ngtcp2", "ngtcp2-bbr", "aioquic"])
def test_a_download_fills_the_link(run: Run, kind: str) -> None:
    """Payload is counted, not packets: a part of the link is headers."""
    result = run("stock", **ALONE, neighbour=[kind], ipv6=kind == "ngtcp2")
    (neighbour,) = result["neighbours"]
    assert 8.5 < neighbour["goodput_mbps"] < 9.6
    assert result["utilisation"] > 0.95
    assert result["provenance"]["stacks"][0].startswith(LOADS[kind].stack)


@pytest.mark.guest
def test_a_player_takes_its_segments(run: Run) -> None:
    """2 MB every 4 s, and nothing before it is asked for."""
    result = run("stock", **ALONE, neighbour=["aioquic-video:2s/12s"])
    (neighbour,) = result["neighbours"]
    assert neighbour["goodput_mbps"] == pytest.approx(4, rel=0.02)
    (rates,) = result["series"]["neighbour_goodput_mbps"]
    assert sum(rates[:20]) == sum(rates[145:]) == 0


@pytest.mark.guest
def test_objects_come_on_new_connections(run: Run) -> None:
    """Each has a start of its own, so they leave a part of the link."""
    result = run("stock", **ALONE, neighbour=["ngtcp2-objects"])
    (neighbour,) = result["neighbours"]
    assert 5 < neighbour["goodput_mbps"] < 8


POLLS = """
import select, time
epoll, before = select.epoll(), time.monotonic_ns()
for _ in range(100):
    epoll.poll(0)
print("passed", time.monotonic_ns() - before)
"""


@pytest.mark.guest
def test_time_passes_for_a_program_that_polls(script: Script) -> None:
    """Without that, ngtcp2's programs may poll for ever; all others see it stand still."""
    polls = f"python3 -c {shlex.quote(POLLS)}"
    said = script(
        f"{quicstacks.BUILD_POLL}\n{polls}\n{quicstacks.WITH_POLL} {polls}", "6.12", "base"
    )
    alone, helped = (int(line.split()[1]) for line in said.console.splitlines() if "passed" in line)
    assert alone == 0
    assert helped >= 100_000
