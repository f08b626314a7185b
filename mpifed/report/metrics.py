"""The numbers of a run that tables and pictures tell: their names, units and which of two is the better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mpifed.core.errors import printable, unknown
from mpifed.report.tables import escaped
from mpifed.results.columns import COLUMNS
from mpifed.results.result import Result

HEADS = {
    "grad_norm_sq": "‖∇f‖²",
    "objective_gap": "f − f*",
    "rounds": "CR",
    "tct": "TCT",
    "lct": "LCT",
    "snr": "SNR",
    "epsilon": "ε",
    "bytes": "up + down",
    "bytes_up": "up",
    "bytes_down": "down",
    "elapsed_seconds": "time",
    "simulated_seconds": "simulated time",
    "compute_seconds": "computing, slowest rank",
    "comm_seconds": "communication",
    "client_seconds": "computing, all clients",
    "evaluate_seconds": "evaluation",
}
LATEX = {"grad_norm_sq": r"$\|\nabla f\|^2$", "objective_gap": "$f - f^*$", "epsilon": r"$\varepsilon$"}
DERIVED = {"rounds": "1", "tct": "s", "lct": "s", "bytes": "byte"}  # name -> unit
A_ROUND = {
    "inner_steps",
    "asked",
    "dropped",
    "late",
    "compute_seconds",
    "client_seconds",
    "server_seconds",
    "comm_seconds",
    "evaluate_seconds",
}  # columns that tell of a round, not of all so far
HIGHEST = {"accuracy", "accuracy_pooled", "personal_accuracy", "dual_objective"}
NEITHER = {"snr", "epsilon", "lagrangian", "asked", "round"}
USUAL = (
    "objective",
    "objective_gap",
    "grad_norm_sq",
    "rounds",
    "exchanges",
    "bytes_up",
    "tct",
    "lct",
    "snr",
    "accuracy",
    "personal_accuracy",
    "simulated_seconds",
)


def known(results: Iterable[Result]) -> list[str]:
    """Every measure of the results: their columns, and what is worked out of them."""
    columns = (printable(name) for result in results for name in result.rounds if name != "round")
    return list(dict.fromkeys([*DERIVED, *columns]))


def chosen(results: Sequence[Result], names: Sequence[str] | None) -> list[str]:
    """``names`` or, where there are none, those of the usual that a run has. Raises UserError for a name that no run has."""
    there = known(results)
    for name in names or ():
        if name not in there:
            unknown("column", name, there)
    return (
        list(names)
        if names
        else [name for name in USUAL if any(np.isfinite(final(result, name)) for result in results)]
    )


def final(result: Result, name: str) -> float:
    """What a run came to: the last value measured, the sum of a column that tells of rounds; nan where there is none."""
    if name in ("rounds", "tct", "lct"):
        values = np.array([{"rounds": result.cr, "tct": result.tct, "lct": result.lct}[name]])
    elif name == "bytes":
        return final(result, "bytes_up") + final(result, "bytes_down")
    else:
        values = result.rounds.get(name, np.zeros(0))
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan")
    return float(values.sum() if name in A_ROUND else values[-1])


def better(name: str) -> int:
    """1 where the highest value is the best, −1 where the lowest is, 0 where neither can be said."""
    if name in HIGHEST:
        return 1
    return 0 if name in NEITHER or (name not in COLUMNS and name not in DERIVED) else -1


def unit(name: str, results: Iterable[Result] = ()) -> str:
    """The unit of a measure, "1" for a plain number."""
    if name in DERIVED or name in COLUMNS:
        return DERIVED.get(name) or COLUMNS[name].unit
    return printable(next((result.about[name][0] for result in results if name in result.about), "")) or "1"


def scale(unit: str, largest: float) -> tuple[float, str]:
    """What to divide values by, and the unit that they have then: 1000 and kB for bytes up to 999,950."""
    if unit != "byte":
        return 1.0, "" if unit == "1" else unit
    factor, names = 1.0, ["B", "kB", "MB", "GB", "TB", "PB"]
    while largest / factor >= 999.95 and len(names) > 1:
        factor, names = factor * 1000, names[1:]
    return factor, names[0]


def title(name: str, unit: str = "") -> str:
    """Name and unit, as an axis and a column of a table say them."""
    text = HEADS.get(name, name.removesuffix("_seconds").replace("_", " "))
    return f"{text} ({unit})" if unit else text


def latex_title(name: str, unit: str = "") -> str:
    """The same for LaTeX."""
    text = LATEX.get(name) or escaped(title(name))
    return f"{text} ({escaped(unit)})" if unit else text
