# SPDX-License-Identifier: GPL-2.0-only
"""A recorded link from several instants on.

What a minute of a drive has in it is chance: one outage more or less decides a p95. A case that
names "recorded:5" runs over each trace from five instants, apart by a fifth of it, and its targets
take the mean, as they do over seeds. Each window is the whole trace, turned, so that it repeats as
the trace does.
"""

import re
from pathlib import Path

import numpy as np

from drwalab import output, traces

_FROM = re.compile(r"-from-\d+ms(?=\.[a-z]+$)")


def whole(name: str) -> str:
    """The file name of the trace that a window is of."""
    return _FROM.sub("", name)


def of(path: Path, count: int, folder: Path) -> list[Path]:
    """So many windows of a trace, of which the first is the trace; the others go into a folder.

    Fewer where the trace has nothing for so long. Raises traces.TraceError.
    """
    found = [path]
    for number in range(1, count):
        trace = traces.load(path)
        times = trace.times_ms.astype(np.int64)
        # Where something crosses, so that the last line is the period again.
        start = int(times[np.searchsorted(times, number * trace.period_ms // count)])
        turned = np.sort((times - start - 1) % trace.period_ms + 1)
        # Traces of one name may differ.
        place = folder / trace.sha256[:16]
        window = place / f"{path.stem}-from-{start}ms{path.suffix}"
        if not window.exists():
            place.mkdir(parents=True, exist_ok=True)
            output.write_whole(window, "".join(f"{time}\n" for time in turned))
        found.append(window)
    return list(dict.fromkeys(found))
