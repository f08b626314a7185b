"""Recorded runs whose numbers a test chooses, in memory or in a file."""

import numpy as np

from mpifed.core.toml import to_toml
from mpifed.results.columns import COLUMNS, UNKNOWN, Columns
from mpifed.results.netcdf import to_number_array
from mpifed.results.recorder import Recorder
from mpifed.results.result import RunRecord

GRADIENTS = (1.0, 0.1, 0.01)
SECONDS = {"client_seconds": 0.5, "server_seconds": 0.125, "comm_seconds": 0.0625, "evaluate_seconds": 2.0}


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
    """A run of as many rounds as there are objectives; ``columns``: further name -> values; the rest are options.

    Without a path, the result of a finished run is made without a file, which takes a twentieth of the time.
    """
    table = {key: value for key, value in TABLE.items() if key != "dtype"} | {
        "seed": seed,
        "data": {"name": "linreg-noniid", "clients": 4},
        "algorithm": TABLE["algorithm"] | algorithm,
        "stop": {"gradient": 1e-9},
    }
    for key, value in (config or {}).items():
        table[key] = table.get(key, {}) | value if isinstance(value, dict) else value
    k = np.arange(len(objective))
    rows = {
        "objective": objective,
        "grad_norm_sq": [GRADIENTS[i % 3] / 10 ** (i // 3 * 3) for i in range(len(k))],
        "exchanges": k,
        "uploads": 2 * k,
        "downloads": 4 * k,
        "bytes_up": 1000 * k,
        "bytes_down": 3000 * k,
        "compute_seconds": 0.25 * (k > 0),
        "elapsed_seconds": seconds * k,
        **{name: np.full(len(k), value) for name, value in SECONDS.items()},
        **(columns or {}),
    }
    on_ranks = rank_table(np.arange(ranks) / 2, np.arange(ranks)[::-1] / 2, 0.25, 0.125)
    attrs = {"config": to_toml(table), "seed": seed, "ranks": ranks, "mpi_library": "none"}
    if path is None and status != "running":
        return in_memory(attrs | {"clients": 4, "status": status, "stop_reason": "rounds: 2"}, rows, on_ranks)
    rows = [{name: values[i] for name, values in rows.items()} for i in k]
    model = [np.arange(3.0)]
    return written(Recorder(path, attrs, 4), rows, np.array([1, 3]), model, {"ranks": on_ranks}, (status, "rounds: 2"))


def rank_table(compute, wait, evaluate, io):
    """Columns of /ranks, where the first rank has no clients and is the only one that writes."""
    others = len(compute) - 1
    return {
        "clients": [0] + [4] * others,
        "compute_seconds": compute,
        "comm_seconds": [0.5] * len(compute),
        "wait_seconds": wait,
        "evaluate_seconds": [evaluate] * len(compute),
        "io_seconds": [io] + [0.0] * others,
    }


def written(recorder, rows, selected, model, tables, end):
    """What a recorder makes of these rows, and of the tables of a run that is not running any more."""
    with recorder:
        for row in rows:
            recorder.row(row, selected)
        if end[0] == "running":
            recorder.flush()
        else:
            recorder.model(*model)
            for name, values in tables.items():
                recorder.table(name, values)
            recorder.finish(*end)
        return recorder.result()


def in_memory(attrs, rows, ranks):
    """What a recorder would have made of these rows and tables."""
    meanings = {name: COLUMNS.get(name, UNKNOWN) for name in [*COLUMNS, *rows] if name in rows}
    count = len(rows["objective"])
    found = {name: to_number_array(rows[name][:count], meaning.integer) for name, meaning in meanings.items()}
    about = {name: (meaning.unit, meaning.description) for name, meaning in meanings.items()}
    selection = np.array([[-1, -1]] + [[1, 3]] * (count - 1))
    rounds = Columns({"round": np.arange(count)} | found)
    on_ranks = {"rank": np.arange(len(ranks["clients"]))} | ranks
    on_ranks = Columns({name: np.asarray(on_ranks[name]) for name in sorted(on_ranks)})
    record = RunRecord(None, attrs, rounds, on_ranks, Columns(), selection, np.arange(3.0), None)
    record.about = about
    return record


TABLE = {
    "seed": 3,
    "rounds": 100,
    "dtype": "float64",
    "data": {"name": "linreg-noniid", "clients": 8, "partition": {"name": "iid"}},
    "problem": {"name": "least-squares"},
    "algorithm": {"name": "fedgia", "k0": 5},
    "selection": {"name": "uniform", "share": 0.5},
}
CONFIG = to_toml(TABLE) + "\n"


def detailed(
    path=None, ranks=3, rounds=5, config=CONFIG, reason="gradient: 1e-09 <= 1e-07", status="finished", **options
):
    """A recorded run of 8 clients and 6 parameters."""
    recorder = Recorder(path, {"config": config, "seed": 3, "ranks": ranks, "mpi_library": "none"}, 8, **options)
    rows = [
        {
            "objective": 8.0 / 2**k,
            "grad_norm_sq": 10.0**-k,
            "exchanges": 2 * k,
            "uploads": 4 * k,
            "downloads": 8 * k,
            "bytes_up": 192_000 * k,
            "bytes_down": 384_000 * k,
            "compute_seconds": 0.25 if k else 9.0,
            **SECONDS,
            "client_seconds": 1.5,
            "elapsed_seconds": 0.5 * k,
            **({"accuracy": 0.9876} if k == rounds - 1 else {}),
        }
        for k in range(rounds)
    ]
    on_ranks = rank_table(np.arange(ranks) / 7, [12.3456] * ranks, 0.0, 0.0123) | {
        "samples": np.arange(ranks) * 10,
        "mpi_calls": [77] * ranks,
        "mpi_bytes_sent": [2_500_000] * ranks,
        "mpi_bytes_received": [1_000] * ranks,
        "max_rss_bytes": [95_240_000] * ranks,
        "hostname": [f"node{k % 5:04}.cluster.example" for k in range(ranks)],
    }
    clients = {"samples": np.full(8, 9), "times_selected": np.arange(8)}
    model = [np.arange(6.0), np.ones((8, 6))]
    return written(recorder, rows, np.array([1, 6]), model, {"ranks": on_ranks, "clients": clients}, (status, reason))
