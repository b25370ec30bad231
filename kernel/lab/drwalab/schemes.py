# SPDX-License-Identifier: GPL-2.0-only
"""What a scheme means on the phone: its TCP buffer limits, and whether DRWA governs the window."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from drwalab import units

Limits = tuple[int, int, int]

STOCK_RMEM: Limits = (4096, 131072, 16 << 20)
# The least minimum that the kernel takes; some that Android shipped are 2 to 4 bytes below it.
STATIC_MIN = 4096
STATIC_MAX = 64 << 20
DEFAULT_LAMBDA_HUNDREDTHS = {
    "drwa": 125,
    "drwa-tc": 125,
    "drwa-aqm": 125,
    "drwa-module": 125,
    "drwa-hooks": 125,
    "drwa-classic": 300,
}
# The law meets the limits of the phones that it is for; Algorithm 1 is reproduced under those that
# leave a flow's start to it.
DEFAULT_LIMITS = {
    "drwa": "android-13plus",
    "drwa-tc": "android-13plus",
    "drwa-aqm": "android-13plus",
    "drwa-module": "android-13plus",
    "drwa-hooks": "android-13plus",
    "drwa-classic": "stock",
}


@dataclass(frozen=True)
class Scheme:
    """A receiver: limits are minimum, default and maximum in bytes; no wmem keeps the kernel's.

    Where DRWA governs, limits names the scheme whose they are.
    """

    name: str
    label: str
    rmem: Limits
    wmem: Limits | None = None
    default_lambda: int | None = None
    limits: str | None = None

    @property
    def uses_drwa(self) -> bool:
        return self.default_lambda is not None

    @property
    def default_limits(self) -> bool:
        return self.limits == DEFAULT_LIMITS.get(self.name)

    def under(self, other: "Scheme") -> "Scheme":
        """This one under the buffer limits of another, which has no DRWA."""
        return replace(self, rmem=other.rmem, wmem=other.wmem, limits=other.name)

    @property
    def idle(self) -> bool:
        """The link with nothing on it but probes."""
        return self.name == "idle"

    @property
    def bpf(self) -> bool:
        """The law as BPF programs at the phone's interfaces, on a kernel without the series."""
        return self.name in ("drwa-tc", "drwa-aqm")

    @property
    def aqm(self) -> bool:
        """These, and UDP held to a short queue by drops."""
        return self.name == "drwa-aqm"

    @property
    def module(self) -> bool:
        """The law as a module, on a kernel without the series: at tracepoints, or at hooks."""
        return self.name in ("drwa-module", "drwa-hooks")

    @property
    def flavour(self) -> str:
        """The kernel that it needs."""
        if self.bpf:
            return "bpf"
        return {"drwa-module": "module", "drwa-hooks": "vendor"}.get(self.name, "drwa")

    @property
    def classic(self) -> bool:
        return self.name == "drwa-classic"


@cache
def _named() -> dict[str, Scheme]:
    path = Path(__file__).resolve().parents[1] / "schemes.toml"
    schemes = {
        "stock": Scheme("stock", "stock", STOCK_RMEM),
        "idle": Scheme("idle", "idle link", STOCK_RMEM),
    }
    for name, entry in tomllib.loads(path.read_text()).items():
        wmem = tuple(entry["wmem"]) if "wmem" in entry else None
        least, default, most = entry["rmem"]
        rmem = (max(STATIC_MIN, least), default, most)
        schemes[name] = Scheme(name, f"static {name}", rmem, wmem)
    for name, default_lambda in DEFAULT_LAMBDA_HUNDREDTHS.items():
        plain = Scheme(name, name, STOCK_RMEM, None, default_lambda)
        schemes[name] = plain.under(schemes[DEFAULT_LIMITS[name]])
    return schemes


def names() -> list[str]:
    """Every name that find() takes, with static:BYTES standing for any limit."""
    return [*_named(), "static:BYTES"]


def find(text: str) -> Scheme:
    """The scheme of this name; raises ValueError."""
    scheme = _named().get(text)
    if scheme is not None:
        return scheme
    if not text.startswith("static:"):
        raise ValueError(f"'{text}' is unknown: {units.instead_of(text, names())}")
    limit = units.parse_bytes(text.removeprefix("static:"))
    if not STATIC_MIN <= limit <= STATIC_MAX:
        raise ValueError(f"'{text}' is out of {STATIC_MIN} to {STATIC_MAX} bytes")
    rmem = (STATIC_MIN, min(87380, limit), limit)
    return Scheme(f"static:{limit}", f"static {limit}", rmem)
