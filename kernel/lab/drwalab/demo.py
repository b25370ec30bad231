# SPDX-License-Identifier: GPL-2.0-only
"""`lab demo`: the schemes that matter, side by side on one cellular link."""

from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from drwalab import compare, errors, ltelink, output, pool, report, results, spec, units
from drwalab.spec import RunSpec, SpecError

TITLE = "DRWA for Android: demo"
BASE_RTT = "50ms"
# Base stations buffer seconds of traffic; this is 2.4 s at the generated link's mean rate.
BUFFER = "3MB"

INTRO = (
    "Five ways to receive one download over {link}: stock Linux auto-tuning, Android’s limit for "
    "LTE, Algorithm 1 of the DRWA paper, DRWA as it ships, and a BBR server with a stock receiver. "
    "Each ran in a kernel of its own and in virtual time: the same command gives the same numbers."
)


def specs(trace: Path, duration: str, seed: int, drwa_lambda: str | None) -> list[RunSpec]:
    """The runs of the demo; raises SpecError."""
    link = {
        "trace": trace,
        "base-rtt": BASE_RTT,
        "buffer": BUFFER,
        "duration": duration,
        "seed": seed,
    }
    return [
        spec.parse("stock", link),
        spec.parse("android-lte", link),
        spec.parse("drwa-classic", link),
        spec.parse("drwa", link | {"lambda": drwa_lambda}),
        spec.parse("stock", link | {"cc": "bbr"}),
    ]


def demo(
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Downlink trace in mahimahi's format, instead of the generated link.",
        ),
    ] = None,
    duration: Annotated[str, typer.Option(metavar="TIME", help="Length of each run.")] = "60s",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, another link.")] = 1,
    drwa_lambda: Annotated[
        str | None,
        typer.Option("--lambda", metavar="NUMBER", help="λ of the drwa run. Default: 1.25."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE.html", help="The page; the results go beside it, as .json."),
    ] = Path("out/demo.html"),
) -> None:
    """Compare stock, Android's static limit, DRWA and BBR on a cellular link, as a page.

    Runs stay in the cache; what decides about one of them and is new runs it again.
    """
    with errors.reported():
        report.make_folder(out)
        if trace is None:
            trace = _generated(out.parent, duration, seed)
            link = f"a generated LTE-like link (seed {seed})"
        else:
            link = f"the recorded link {trace.name}"
        runs = pool.run_specs(specs(trace, duration, seed, drwa_lambda), reuse=True)
        output.write_whole(out.with_suffix(".json"), results.dump(runs))
        report.write_html(runs, out, TITLE, INTRO.format(link=link))
    output.print_table(runs)
    (comparison,) = compare.compare(runs)
    typer.echo(f"{compare.verdict(comparison)}\n\nThe page: {out}")


def _generated(folder: Path, duration: str, seed: int) -> Path:
    """The generated link as a trace in this folder, as long as the runs, so that none wraps."""
    try:
        seconds = ceil(units.parse_time_us(duration) / 1e6)
        trace = folder / f"lte-seed{seed}-{seconds}s.down"
        ltelink.write_trace(trace, seed, seconds)
    except ValueError as e:
        raise SpecError(f"--duration: {e}") from e
    return trace
