"""Numbers and columns that only the tables of FLAME show."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mpifed import Array, Result, UserError, load

ROWS = ("fedadmm", "flame-local-centre", "flame-common-start", "pfedme-common-start", "flame", "pfedme", "fedavg")


def late(name: str) -> Callable[[Result], Array]:
    """The column ``name`` one round late: round r has the value of round r − 1, round 0 nan. Source: errata, FLAME."""

    def column(result: Result) -> Array:
        return np.concatenate([[np.nan], np.asarray(result.rounds[name], float)[:-1]])

    return column


def gap(result: Result) -> Array:
    """The advantage of the personal models: f(w) − (1/m) Σ_i f_i(θ_i). Source: flame, sections 5.2.2 and 5.2.6."""
    return np.asarray(result.rounds["objective"] - result.rounds["personal_objective"], float)


def stale(result: Result) -> float:
    """max_r |released_accuracy(r) − accuracy(r − 1)|: the effect of models older than one round."""
    return float(np.nanmax(np.abs(result.rounds["released_accuracy"] - late("accuracy")(result))))


def speedup(result: Result) -> float:
    """Rounds of FedAvg in the same block with the same seed, divided by the rounds of this run.

    A run that hit the round limit counts with the limit; nan if the run of FedAvg is missing.
    Source: flame, Table III, the factors in brackets.
    """
    if result.path is None:
        return float("nan")
    path = Path(result.path)
    others = [
        path.with_name(path.name.replace(f"-{row}-seed-", "-fedavg-seed-"))
        for row in ROWS
        if f"-{row}-seed-" in path.name
    ]
    try:
        return load(others[0]).cr / result.cr if others else float("nan")
    except UserError:
        return float("nan")


MEASURES = {"speedup": speedup, "stale": stale}
COLUMNS = {"late_accuracy": late("accuracy"), "gap": gap}
