# SPDX-License-Identifier: GPL-2.0-only
"""Generations of generated links by name; ltelink.py has the model, nrlink.py the constants of NR,
burstlink.py links that serve in bursts or jump.

HSPA+ and EVDO have the means of the paper's links (figures 18 and 19), and LTE's model with the
sigma and time constant of drives recorded on UMTS (TMobile-UMTS-driving) and EVDO
(Verizon-EVDO-driving; Winstein et al., NSDI 2013). The logarithm of the rate in windows of 1 s, and
the gaps between the milliseconds in which something crosses, have

                        standard deviation   correlation after 1, 2, 5 s   gaps: p50, p90, p99
    UMTS, recorded      1.14                 0.88, 0.73, 0.51              6, 16, 41 ms
    HSPA+, generated    0.87                 0.84, 0.70, 0.41              6, 15, 30 ms
    EVDO, recorded      1.14                 0.85, 0.74, 0.53              14, 61, 267 ms
    EVDO, generated     0.85                 0.83, 0.69, 0.40              22, 58, 117 ms

(recorded: windows below a twentieth of the mean count as that; generated: the mean of seeds 1 to 6,
180 s; a faster link has shorter gaps).
"""

from dataclasses import replace

from drwalab.ltelink import LTE, Radio
from drwalab.nrlink import NR

HSPAP = replace(
    LTE,
    name="hspap",
    mean_mbps=4.0,
    min_mbps=0.2,
    max_mbps=14.4,
    slow_sigma=1.1,
    slow_tau_s=8.0,
    fast_sigma=0.3,
    served=0.2,
)

EVDO = replace(
    LTE,
    name="evdo",
    mean_mbps=0.95,
    min_mbps=0.05,
    max_mbps=3.1,
    slow_sigma=1.1,
    slow_tau_s=8.0,
    served=0.06,
)

RADIOS: dict[str, Radio] = {radio.name: radio for radio in (EVDO, HSPAP, LTE, NR)}
