# SPDX-License-Identifier: GPL-2.0-only
"""Named lists of runs: the paper's figures and the known defects (kernel/lab/cases.toml)."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from drwalab import output, spec
from drwalab.results import Result
from drwalab.spec import RunSpec, SpecError

CASES = Path(__file__).resolve().parents[1] / "cases.toml"

# Options that are lists by themselves; any other list is a choice of values.
_LISTS = ("event", "object")


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    settled_s: float | None
    specs: list[RunSpec]


def load(path: Path = CASES) -> dict[str, Case]:
    """All cases by name."""
    table = tomllib.loads(path.read_text())
    return {name: _case(name, entry) for name, entry in table.items()}


def choose(names: list[str]) -> list[Case]:
    """The cases of these names; raises SpecError."""
    known = load()
    for name in names:
        if name not in known:
            raise SpecError(f"case '{name}' is unknown: choose from {', '.join(known)}")
    return [known[name] for name in names]


def record(case: Case, found: Sequence[Result], took_s: float) -> str:
    """A document with the case's table, what it ran on, and how to repeat it."""
    kernels = sorted({(p["kernel_release"], *p["patch_ids"]) for p in map(_provenance, found)})
    lines = [f"{release}, patches {', '.join(i[:12] for i in ids)}" for release, *ids in kernels]
    return (
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
        f"# {case.name}\n{case.about}\n\n"
        f"{output.markdown_table(found, case.settled_s)}\n"
        f"Kernel: {'; '.join(lines)}. Repeat it with `kernel/lab/lab case run {case.name}`; "
        f"this took {took_s:.1f} s.\n"
    )


def _provenance(result: Result) -> Any:
    return result["provenance"]


def _case(name: str, entry: Mapping[str, Any]) -> Case:
    specs = [each for part in entry["parts"] for each in _expand(part)]
    return Case(name, " ".join(entry["about"].split()), entry.get("settled"), specs)


def _expand(part: Mapping[str, Any]) -> Iterator[RunSpec]:
    """A run for each combination of the values given; links vary slowest, λ fastest."""
    values = {
        key: value if isinstance(value, list) and key not in _LISTS else [value]
        for key, value in part.items()
    }
    phone = {key: values.pop(key, [None]) for key in ("scheme", "lambda")}
    for link in product(*values.values()):
        options = dict(zip(values, link, strict=True))
        seen = set()
        for scheme, lambda_ in product(phone["scheme"], phone["lambda"]):
            run = spec.parse(scheme, options | {"lambda": lambda_})
            if run not in seen:
                seen.add(run)
                yield run
