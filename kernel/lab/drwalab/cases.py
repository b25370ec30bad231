# SPDX-License-Identifier: GPL-2.0-only
"""Named lists of runs: known defects and targets (cases.toml), and figures (literature.toml)."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import typer

from drwalab import burstlink, ltelink, output, schemes, spec, units, windows
from drwalab import traces as link_traces
from drwalab.kernels import told_patches, told_sources
from drwalab.ltelink import Radio
from drwalab.radios import RADIOS
from drwalab.results import Result
from drwalab.sources import cache_dir
from drwalab.spec import RunSpec, SpecError
from drwalab.uplink import GATE

TRACES_OPTION = typer.Option(
    "--traces",
    metavar="FOLDER",
    envvar="DRWA_TRACES",
    help="Folder of recorded links, *.down and *.up in mahimahi's format, for cases that want "
    "them.",
)

LAB = Path(__file__).resolve().parents[1]
CASES = tuple(LAB / f"{name}.toml" for name in ("cases", "literature", "evidence"))

# Generated links, by what stands before the colon and the seed.
_GENERATED = {"generated": RADIOS["lte"]} | {f"generated-{k}": v for k, v in RADIOS.items()}

# Options that are traces, and how recorded ones of them end.
_TRACES = {"trace": ".down", "uplink-trace": ".up"}

# Options that are lists by themselves; any other list is a choice of values.
LISTS = ("event", "object", "neighbour")


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    settled_s: float | None
    # Whether its links are to be taken together.
    means: bool
    specs: list[RunSpec]
    # What of the case cannot run here, and why.
    skipped: list[str]
    # What their parts call the links, where they do.
    labels: dict[RunSpec, str]


def load(recorded: Path | None = None) -> dict[str, Case]:
    """All cases by name, with the recorded traces of a folder; raises SpecError."""
    return {name: _case(name, entry, recorded) for name, entry in _table().items()}


def choose(names: Sequence[str], recorded: Path | None = None) -> list[Case]:
    """The cases of these names; raises SpecError."""
    known = _table()
    for name in names:
        if name not in known:
            raise SpecError(f"case '{name}' is unknown: {units.instead_of(name, known)}")
    return [_case(name, known[name], recorded) for name in names]


def _table() -> dict[str, Any]:
    return {k: v for path in CASES for k, v in tomllib.loads(path.read_text()).items()}


def made_of(found: Iterable[Result]) -> str:
    """Kernels, patches, BPF programs and gate of these runs, in sentences that name them."""
    found = list(found)
    kernels = sorted({(p["kernel_release"], *p["patch_ids"]) for p in map(_provenance, found)})
    lines = [
        told_patches(release, ids) if ids else f"{release}, no patches" for release, *ids in kernels
    ]
    return f"Kernel: {'; '.join(lines)}.{used(found)}"


def used(found: Sequence[Result]) -> str:
    """The programs and the gate of these runs, as told_sources() has them."""
    return told_sources(
        any(schemes.find(result["scheme"]).bpf for result in found),
        any(result["config"]["uplink_scheme"] == GATE for result in found),
    )


def record(case: Case, found: Sequence[Result], took_s: float) -> str:
    """A document with the case's table, what it ran on, and how to repeat it."""
    return (
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
        f"# {case.name}\n{case.about}\n\n"
        f"{output.means_markdown(found) if case.means else ''}"
        f"{output.markdown_table(found, case.settled_s)}\n"
        f"{made_of(found)} "
        f"Repeat it with `kernel/lab/lab case run {case.name}`; "
        f"this took {took_s:.1f} s.\n"
    )


def _provenance(result: Result) -> Any:
    return result["provenance"]


def _case(name: str, entry: Mapping[str, Any], recorded: Path | None) -> Case:
    skipped: list[str] = []
    specs: list[RunSpec] = []
    labels: dict[RunSpec, str] = {}
    for part in entry["parts"]:
        label, before = part.pop("label", None), len(specs)
        values = {key: _choices(key, value) for key, value in part.items()}
        for key, suffix in _TRACES.items():
            if key in values:
                values[key] = _traces(values, key, suffix, recorded, skipped)
        specs += _expand(values)
        if label:
            labels |= dict.fromkeys(specs[before:], label)
    about = " ".join(entry["about"].split())
    return Case(
        name,
        about,
        entry.get("settled"),
        bool(entry.get("means")),
        specs,
        list(dict.fromkeys(skipped)),
        labels,
    )


def _choices(key: str, value: Any) -> list[Any]:
    """The values that an option is given in turn."""
    if key in LISTS:
        return value if any(isinstance(one, list) for one in value) else [value]
    return value if isinstance(value, list) else [value]


def _traces(
    values: Mapping[str, list[Any]],
    key: str,
    suffix: str,
    recorded: Path | None,
    skipped: list[str],
) -> list[Path]:
    """Files for "recorded", all links of this way in the folder of traces, and generated ones.

    "recorded-5g" are those of them that are named so, "recorded-below:RATE" those whose mean is no
    more; "recorded:5", each from five instants on.
    """
    found: list[Path] = []
    for name in values[key]:
        kind, _, which = name.partition(":")
        if radio := _GENERATED.get(kind):
            found += [_generated(radio, int(which), duration) for duration in values["duration"]]
            continue
        if burstlink.is_link(kind):
            found += [_bursty(name, duration) for duration in values["duration"]]
            continue
        pattern = f"*5g*{suffix}" if kind == "recorded-5g" else f"*{suffix}"
        paths = sorted(recorded.glob(pattern)) if recorded else []
        if kind == "recorded-below":
            most_bps = units.parse_rate_bps(which)
            paths = [path for path in paths if link_traces.load(path).mean_bps <= most_bps]
            pattern += f" of up to {which}"
        if not paths:
            place = f"{recorded} has no {pattern}" if recorded else "no folder of traces is given"
            skipped.append(f"recorded links: {place} (--traces or DRWA_TRACES)")
        folder = cache_dir() / "traces"
        count = int(which or 1) if kind == "recorded" else 1
        found += [each for path in paths for each in windows.of(path, count, folder)]
    return found


def _seconds(duration: str) -> int:
    return units.parse_time_us(duration) // 1_000_000


def _generated(radio: Radio, seed: int, duration: str) -> Path:
    """The generated link, as long as the run."""
    seconds = _seconds(duration)
    name = f"{radio.name}-seed{seed}-{seconds}s"
    return _kept(name, lambda: ltelink.opportunities(seed, seconds, radio))


def _bursty(word: str, duration: str) -> Path:
    """A link of burstlink.py, as long as the run; raises SpecError."""
    seconds = _seconds(duration)
    name = f"{word.replace(':', '-').replace('/', '-')}-{seconds}s"
    try:
        return _kept(name, lambda: burstlink.opportunities(word, seconds))
    except burstlink.LinkError as e:
        raise SpecError(f"trace {e}") from e


def _kept(name: str, make: Callable[[], list[int]]) -> Path:
    path = cache_dir() / "traces" / f"{name}.down"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        output.write_whole(path, "".join(f"{t}\n" for t in make()))
    return path


def _expand(values: dict[str, list[Any]]) -> Iterator[RunSpec]:
    """A run for each combination of the values given; links vary slowest, λ fastest."""
    phone = {key: values.pop(key, [None]) for key in ("scheme", "lambda")}
    for link in product(*values.values()):
        options = dict(zip(values, link, strict=True))
        seen = set()
        for scheme, lambda_ in product(phone["scheme"], phone["lambda"]):
            run = spec.parse(scheme, options | {"lambda": lambda_})
            if run not in seen:
                seen.add(run)
                yield run
