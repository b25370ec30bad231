# SPDX-License-Identifier: GPL-2.0-only
"""Constants of a generated NR-like downlink; ltelink.py has the model and the meaning of each.

mean_mbps, max_mbps  300 and 1000: a mid-band carrier of 100 MHz, as a phone has it among others.
min_mbps             10: what the LTE anchor or the cell's edge leaves.
slow_sigma           1.1, and slow_tau_s 2: drives of Raca et al. (MMSys 2020) and of Narayanan
                     et al. (Lumos5G, IMC 2020). The logarithm of the rate in windows of 1 s has

                                      standard deviation   correlation after 1, 2, 5 s
                         Raca         1.17                 0.57, 0.24, -0.04
                         Narayanan    0.88                 0.54, 0.35, 0.10
                         generated    0.89                 0.64, 0.34, 0.05

                     (recorded: of the windows above 0.5 Mb/s, with outages as 0.5 Mb/s in the
                     correlation; generated: the mean of seeds 1 to 6, 180 s).
fast_sigma           0.13: 100 MHz have five times as many independent fades as LTE's 20 MHz, whose
                     mean varies by 1/sqrt(5) of LTE's 0.3.
served               0.64: slots last 0.5 ms (30 kHz), and a trace counts in ms; a phone that is
                     served in 0.4 of the slots, as in LTE, is so in 1 - 0.6 * 0.6 of the ms.
"""

from drwalab.ltelink import Radio

NR = Radio(
    name="nr",
    mean_mbps=300.0,
    min_mbps=10.0,
    max_mbps=1000.0,
    slow_sigma=1.1,
    slow_tau_s=2.0,
    fast_sigma=0.13,
    fast_tau_s=0.1,
    served=0.64,
)
