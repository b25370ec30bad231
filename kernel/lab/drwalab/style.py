# SPDX-License-Identifier: GPL-2.0-only
"""How runs look in every figure: colours, symbols, dashes and axis ticks."""

from collections.abc import Sequence
from dataclasses import dataclass

# Figures name colours by @tokens; the page replaces them by those of the light or dark theme.
# The six series colours stay apart for colour-blind readers, and from the background.
SERIES_LIGHT = ("#20262e", "#d55e00", "#cf6fa9", "#0066b8", "#009e73", "#6a4f00")
SERIES_DARK = ("#e8ebf0", "#f08c3a", "#f2a7d6", "#4aa3f0", "#1fb58a", "#f5e663")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot")


def _theme(series: tuple[str, ...], **rest: str) -> dict[str, str]:
    return {f"@c{i}": c for i, c in enumerate(series)} | {f"@{k}": v for k, v in rest.items()}


THEMES = {
    "light": _theme(
        SERIES_LIGHT,
        page="#ffffff",
        panel="#f5f6f8",
        ink="#20262e",
        soft="#5b6470",
        grid="#e3e6ea",
        area="#e3e8ef",
        mark="#eaf2fb",
        link="#0059a8",
        good="#00704f",
        bad="#b04a00",
    ),
    "dark": _theme(
        SERIES_DARK,
        page="#14181f",
        panel="#1c222b",
        ink="#e8ebf0",
        soft="#a0aab8",
        grid="#2d3540",
        area="#2a323d",
        mark="#1d2c40",
        link="#7ab8f5",
        good="#1fb58a",
        bad="#f08c3a",
    ),
}


@dataclass(frozen=True)
class Style:
    """The look of a run; with six colours and seven symbols, the first 42 runs all differ."""

    index: int

    @property
    def colour(self) -> str:
        return f"@c{self.index % len(SERIES_LIGHT)}"

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.index % len(SYMBOLS)]

    @property
    def size(self) -> float:
        """Symbols that fill less of their square have to be larger to look equal."""
        return {"circle": 9, "square": 8.5, "star": 13}.get(self.symbol, 11)

    @property
    def dash(self) -> str:
        return DASHES[self.index // len(SERIES_LIGHT) % len(DASHES)]


def decade_ticks(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """Round numbers between these two for a logarithmic axis."""
    ticks = [s * 10.0**e for e in range(-4, 10) for s in steps]
    return [t for t in ticks if low <= t <= high]


def goodput_range(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis that holds these; from zero unless they are close together."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    pad = max(0.25 * (high - low), 0.04 * high, 0.01)
    return (round(low - pad, 4) if low > 0.6 * high else 0.0), round(high + pad, 4)
