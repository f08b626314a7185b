"""Recorded runs whose numbers a test chooses, in memory or in a file."""

from __future__ import annotations

import numpy as np

from mpifed.core.toml import to_toml
from mpifed.results.recorder import Recorder

GRADIENTS = (1.0, 0.1, 0.01)
REASON = "gradient: 1e-09 <= 1e-07"


def recorded(
    path=None,
    seed=0,
    objective=(8.0, 4.0, 2.0),
    status="finished",
    ranks=1,
    seconds=1.0,
    columns=None,
    config=None,
    **algorithm,
):
    """A run of as many rounds as there are objectives; ``columns``: further name -> values; the rest are options."""
    table = {
        "seed": seed,
        "rounds": 100,
        "data": {"name": "linreg-noniid", "clients": 4},
        "problem": {"name": "least-squares"},
        "algorithm": {"name": "fedgia", "k0": 5} | algorithm,
        "selection": {"name": "uniform", "share": 0.5},
        "stop": {"gradient": 1e-9},
    }
    for key, value in (config or {}).items():
        table[key] = table.get(key, {}) | value if isinstance(value, dict) else value
    recorder = Recorder(path, {"config": to_toml(table), "seed": seed, "ranks": ranks, "mpi_library": "none"}, 4)
    with recorder:
        for k, value in enumerate(objective):
            row = {
                "objective": value,
                "grad_norm_sq": GRADIENTS[k % 3] / 10 ** (k // 3 * 3),
                "exchanges": k,
                "uploads": 2 * k,
                "downloads": 4 * k,
                "bytes_up": 1000 * k,
                "bytes_down": 3000 * k,
                "compute_seconds": 0.25 * bool(k),
                "client_seconds": 0.5,
                "server_seconds": 0.125,
                "comm_seconds": 0.0625,
                "evaluate_seconds": 2.0,
                "elapsed_seconds": seconds * k,
            }
            recorder.row(row | {name: values[k] for name, values in (columns or {}).items()}, np.array([1, 3]))
        if status == "running":
            recorder.flush()
            return recorder.result()
        recorder.model(np.arange(3.0))
        recorder.ranks(
            {
                "clients": [0] + [4] * (ranks - 1),
                "compute_seconds": np.arange(ranks) / 2,
                "comm_seconds": [0.5] * ranks,
                "wait_seconds": np.arange(ranks)[::-1] / 2,
                "evaluate_seconds": [0.25] * ranks,
                "io_seconds": [0.125] + [0.0] * (ranks - 1),
            }
        )
        recorder.finish(status, "rounds: 2")
        return recorder.result()


CONFIG = """
seed = 3
rounds = 100
dtype = "float64"

[data]
name = "linreg-noniid"
clients = 8

[data.partition]
name = "iid"

[problem]
name = "least-squares"

[algorithm]
name = "fedgia"
k0 = 5

[selection]
name = "uniform"
share = 0.5
"""


def detailed(
    path=None, ranks=3, rounds=5, config=CONFIG, reason="gradient: 1e-09 <= 1e-07", status="finished", **options
):
    """A recorded run of 8 clients and 6 parameters."""
    recorder = Recorder(path, {"config": config, "seed": 3, "ranks": ranks, "mpi_library": "none"}, 8, **options)
    with recorder:
        for k in range(rounds):
            values = {
                "objective": 8.0 / 2**k,
                "grad_norm_sq": 10.0**-k,
                "exchanges": 2 * k,
                "uploads": 4 * k,
                "downloads": 8 * k,
                "bytes_up": 192_000 * k,
                "bytes_down": 384_000 * k,
                "compute_seconds": 0.25 if k else 9.0,
                "client_seconds": 1.5,
                "server_seconds": 0.125,
                "comm_seconds": 0.0625,
                "evaluate_seconds": 2.0,
                "elapsed_seconds": 0.5 * k,
            }
            recorder.row(values | ({"accuracy": 0.9876} if k == rounds - 1 else {}), np.array([1, 6]))
        if status != "running":
            recorder.model(np.arange(6.0), np.ones((8, 6)))
            recorder.ranks(
                {
                    "clients": [0] + [4] * (ranks - 1),
                    "samples": np.arange(ranks) * 10,
                    "compute_seconds": np.arange(ranks) / 7,
                    "comm_seconds": [0.5] * ranks,
                    "wait_seconds": [12.3456] * ranks,
                    "evaluate_seconds": [0.0] * ranks,
                    "io_seconds": [0.0123] + [0.0] * (ranks - 1),
                    "mpi_calls": [77] * ranks,
                    "mpi_bytes_sent": [2_500_000] * ranks,
                    "mpi_bytes_received": [1_000] * ranks,
                    "max_rss_bytes": [95_240_000] * ranks,
                    "hostname": [f"node{k % 5:04}.cluster.example" for k in range(ranks)],
                }
            )
            recorder.clients({"samples": np.full(8, 9), "times_selected": np.arange(8)})
            recorder.finish(status, reason)
            return recorder.result()
        recorder.flush()
        return recorder.result()
