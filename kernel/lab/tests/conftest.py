# SPDX-License-Identifier: GPL-2.0-only
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drwalab import campaign, cli, guest, kernels, network, pool, spec
from drwalab.kernels import KernelMissing
from drwalab.sources import KERNEL_DIR, read_lines
from drwalab.spec import RunSpec

# Every kernel line; make test runs 6.12, make test-lines the others.
LINES = [
    pytest.param(name, marks=[] if name == "6.12" else [pytest.mark.lines]) for name in read_lines()
]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Ended:
    """What a script in a guest left: its output, and the kernel's log."""

    console: str
    kmsg: str


Lab = Callable[..., Done]
Run = Callable[..., dict[str, Any]]
Script = Callable[..., Ended]

SRC = KERNEL_DIR / "src"


def without_guests(
    monkeypatch: pytest.MonkeyPatch, folder: Path, made: Callable[[RunSpec], dict[str, Any]]
) -> list[RunSpec]:
    """What `lab campaign` runs from now on: results are made up, documents are in the folder."""
    seen: list[RunSpec] = []

    def run_specs(specs: Sequence[RunSpec], **_: object) -> list[dict[str, Any]]:
        seen.extend(specs)
        return [made(one) for one in specs]

    monkeypatch.setattr(pool, "run_specs", run_specs)
    monkeypatch.setattr(pool, "find_kernels", lambda specs: {})
    monkeypatch.setattr(campaign, "RESULTS", folder)
    monkeypatch.delenv("DRWA_TRACES", raising=False)
    return seen


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    """Runs the command line in this process: lab("run --rate 1mbit", "--event", "1s loss=1%")."""

    def call(words: str, *more: str) -> Done:
        monkeypatch.setattr("sys.argv", ["lab", *shlex.split(words), *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, said.out, said.err)

    return call


@pytest.fixture
def no_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the test fail when a guest boots."""

    def boots(*_: object) -> Path:
        pytest.fail("a guest booted")

    monkeypatch.setattr(guest, "run", boots)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunSpec]:
    """What a command asks the pool for, which here answers with nothing."""
    seen: list[RunSpec] = []

    def run_specs(specs: Sequence[RunSpec]) -> list[dict[str, Any]]:
        seen.extend(specs)
        return []

    monkeypatch.setattr(pool, "run_specs", run_specs)
    return seen


def needs_kernels(specs: Sequence[RunSpec]) -> None:
    """Skips the test when a build is missing, with the command that makes it."""
    try:
        pool.find_kernels(specs)
    except KernelMissing as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module")
def run() -> Run:
    """Boots a guest and gives its result: run("stock", rate="1mbit", base_rtt="10ms").

    The same run of another test of the file is not played again, and nothing beside it unless
    asked for: idle=True plays the idle link, too.
    """
    played: dict[tuple[RunSpec, str], dict[str, Any]] = {}

    def boot(scheme: str, idle: bool = False, **options: object) -> dict[str, Any]:
        one = spec.parse(scheme, {key.replace("_", "-"): v for key, v in options.items()})
        # What a test adds to a guest's first commands makes another run of it.
        key = one, network.setup_script(one)
        if idle or key not in played:
            needs_kernels([one])
            played[key] = pool.run_specs([one], beside_idle=idle)[0]
        return played[key]

    return boot


@pytest.fixture(scope="session")
def script() -> Script:
    """Runs a shell script in a guest: script("ip link", "6.12", "debug")."""

    def boot(
        text: str, kernel: str, flavour: str, files: Sequence[Path] = (), parameters: str = ""
    ) -> Ended:
        try:
            build = kernels.find(kernel, flavour)
        except KernelMissing as e:
            pytest.skip(str(e))
        folder = guest.run_script(text, build, kernels.agent(), files, parameters)
        said = [(folder / name).read_text(errors="replace") for name in ("console", "kmsg")]
        shutil.rmtree(folder)
        return Ended(*said)

    return boot
