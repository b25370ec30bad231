# SPDX-License-Identifier: GPL-2.0-only
"""Made-up results in the lab's format, from a fluid queue behind a fixed or moving window."""

from random import Random
from typing import Any

from drwalab import ltelink

Result = dict[str, Any]
_LIMITS = "android-13plus"


def run(
    name: str,
    scheme: str,
    *,
    window_kb: float | None = None,
    lam: float | None = None,
    cc: str = "cubic",
    base_ms: float = 50.0,
    duration_s: int = 60,
    seed: int = 1,
    efficiency: float = 1.0,
    **config: Any,
) -> Result:
    """One result; lam moves the window, window_kb fixes it, neither fills a 1500 kB buffer."""
    rng = Random(seed)
    rates = ltelink.rates_mbps(seed, duration_s)
    step = 0.01
    queue = 0.0
    target = 60e3
    smooth = 5.0
    goodput: list[float] = []
    rwnd: list[float] = []
    link: list[float] = []
    probe_t: list[float] = []
    probe_ms: list[float] = []
    bytes_out = capacity = drops = 0.0
    cap = 1500e3
    for i, rate in enumerate(rates):
        out_rate = rate * 1e6 / 8
        rtt_s = base_ms / 1000 + queue / out_rate
        if lam is not None:
            smooth += (rate - smooth) * 0.02
            window = lam * base_ms / 1000 * smooth * 1e6 / 8
        elif window_kb is not None:
            window = window_kb * 1e3
        else:
            target = target * 0.7 if queue >= cap else target + 25e3 * step / max(rtt_s, 0.05) * 10
            window = target
        in_pipe = min(window, out_rate * base_ms / 1000)
        want = max(0.0, window - in_pipe)
        queue += max(-out_rate * step, (want - queue) * min(1.0, step / rtt_s))
        if queue > cap:
            drops += 1
            queue = cap
        sent = out_rate * step * (1.0 if queue > 0 else in_pipe / (out_rate * base_ms / 1000))
        bytes_out += sent * efficiency
        capacity += out_rate * step
        if i % 10 == 0:
            goodput.append(round(sent * efficiency / step * 8e-6 * 0.96, 3))
            rwnd.append(round(window if lam is not None or window_kb else 6.29e6))
            link.append(round(rate, 3))
        if i % 5 == 0:
            probe_t.append(round(i * step, 3))
            probe_ms.append(round(rtt_s * 1e3 + rng.random() * 4, 3))
    ordered = sorted(probe_ms)

    def quantile(q: float) -> float:
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]

    mbps = bytes_out * 8e-6 / duration_s * 0.96
    return {
        "schema": "drwa-lab-run/2",
        "name": name,
        "scheme": scheme,
        "lambda": lam,
        "limits": {"drwa-classic": "stock"}.get(
            scheme, _LIMITS if scheme.startswith("drwa") else None
        ),
        "cc": cc,
        "aqm": None,
        "config": {
            "kernel": "6.12",
            "flavour": "drwa",
            "rate_bps": None,
            "trace": "lte.down",
            "base_rtt_ms": base_ms,
            "buffer_bytes": 1500000,
            "flows": 1,
            "flow_gap_s": 0.0,
            "duration_s": float(duration_s),
            "loss": 0.0,
            "reorder": 0.0,
            "duplicate": 0.0,
            "ack_thin": None,
            "promotion": None,
            "reader": "fast",
            "sockets": "",
            "upload": False,
            "uplink_scheme": None,
            "ipv6": False,
            "events": [],
            "objects": [],
            "arrival": "think",
        }
        | config,
        "goodput_mbps": round(mbps, 3),
        "rtt_ms": {
            "base": base_ms,
            "mean": round(sum(probe_ms) / len(probe_ms), 2),
            "p50": quantile(0.50),
            "p95": quantile(0.95),
            "p99": quantile(0.99),
            "count": len(probe_ms),
            "lost": 0,
            "idle": {"mean": base_ms + 2.0, "p50": base_ms + 2.0, "p95": base_ms + 10.0},
        },
        "flows": [
            {"goodput_mbps": round(mbps, 3), "retransmits": int(drops), "reads": 1, "start_s": 0.0}
        ],
        "jain": None,
        "objects": {
            "count": 0,
            "unfinished": 0,
            "by_size": [],
            "mean_fct_ms": None,
            "p95_fct_ms": None,
            "fct_ms": [],
            "size_bytes": [],
            "start_s": [],
        },
        "segments": None,
        "utilisation": round(bytes_out / capacity, 4),
        "retransmits": int(drops),
        "zero_windows": 0,
        "upload_goodput_mbps": None,
        "uploads": [],
        "firmware": None,
        "neighbours": [],
        "fair_share": None,
        "queue_drops": int(drops),
        "series": {
            "interval_s": 0.1,
            "t_s": [round(0.1 * i, 1) for i in range(len(goodput))],
            "goodput_mbps": goodput,
            "flow_goodput_mbps": [goodput],
            "neighbour_goodput_mbps": [],
            "rwnd_bytes": rwnd,
            "link_mbps": link,
            "rtt": {"t_s": probe_t, "ms": probe_ms},
        },
        "drwa": None,
        "provenance": {
            "kernel_release": "6.12.48-drwa",
            "debian_version": "6.12.48-1~bpo12+1",
            "kernel_key": "0123456789ab",
            "patch_ids": ["a" * 40, "b" * 40],
            "trace_sha256": "c" * 64,
            "stacks": [],
            "seed": seed,
            "lab_version": "1",
            "command": f"lab run --kernel 6.12 --scheme {scheme} --trace out/lte.down "
            f"--base-rtt 50ms --buffer 1500kB --flows 1 --duration {duration_s}s --seed {seed}",
        },
    }


def demo_runs(duration_s: int = 60, seed: int = 1) -> list[Result]:
    """The five runs that the demo makes."""
    common: dict[str, Any] = {"duration_s": duration_s, "seed": seed}
    return [
        run("stock", "stock", **common),
        run("static android-lte", "android-lte", window_kb=524.288, **common),
        run("drwa-classic λ=3.00", "drwa-classic", lam=3.0, efficiency=0.99, **common),
        run("drwa λ=1.50", "drwa", lam=1.5, efficiency=0.98, **common),
        run("stock, bbr", "stock", window_kb=200, cc="bbr", efficiency=0.975, **common),
    ]
