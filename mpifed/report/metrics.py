"""The numbers of a run that tables and pictures show: recorded columns, and what follows from them."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import printable, unknown
from mpifed.core.roles import TEST, TRAINING, Role
from mpifed.core.typing import Array
from mpifed.report.tables import escaped
from mpifed.results.columns import COLUMNS, Column, lower, role_in
from mpifed.results.result import Result

DERIVED: dict[str, Column] = {
    "rounds": lower("Communication rounds.", symbol="CR"),
    "tct": Column("s", "Total computation time: the last elapsed_seconds.", better=-1, symbol="TCT"),
    "lct": Column("s", "Local computation time: mean compute_seconds of a round.", better=-1, symbol="LCT"),
    "error": lower(
        "Objective minus the least objective found on the same data, for the same seeds in every row.",
        symbol="f − least f found",
        latex=r"$f - \min f$",
    ),
    "bytes": Column("byte", "Bytes between server and clients, up and down.", better=-1, symbol="up + down"),
}
USUAL: tuple[str, ...] = ("objective", "objective_gap", "grad_norm_sq", "rounds", "exchanges", "bytes_up", "tct", "lct")
USUAL += ("snr", "accuracy", "personal_accuracy", "simulated_seconds")
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
# columns of a round whose sum over rounds says nothing, and what is said of all rounds instead
AGES: dict[str, Callable[[Array], Any]] = {"staleness": np.mean, "staleness_max": np.max}


def column(name: str) -> Column:
    """What a metric is; one that an algorithm reports of its own has neither a symbol nor a better value."""
    return COLUMNS.get(name) or DERIVED.get(name) or Column("1", "")


def available(results: Iterable[Result]) -> list[str]:
    """Every metric of the results: what is derived, and their columns."""
    columns = (printable(name) for result in results for name in result.rounds if name != "round")
    return list(dict.fromkeys([*DERIVED, *columns]))


def requested(results: Sequence[Result], names: Sequence[str] | None) -> list[str]:
    """``names`` or, without any, the usual metrics that a run has. UserError for a name that no run has."""
    if not names:
        return [name for name in USUAL if any(np.isfinite(final(result, name)) for result in results)]
    there = available(results)
    for name in names:
        if name not in there:
            unknown("column", name, there)
    return list(names)


def final(result: Result, name: str) -> float:
    """A metric at the end of a run: the last finite value, or the sum of what is recorded per round; nan if none.

    Of AGES it is the mean or the largest. The error of a single run is its gap to a known optimum; see
    ``curves.errors`` for runs side by side.
    """
    if name == "error":
        return final(result, "objective_gap")
    if name == "bytes":
        return final(result, "bytes_up") + final(result, "bytes_down")
    if name in DERIVED:
        return float(getattr(result, {"rounds": "cr"}.get(name, name)))
    values = finite(result.rounds.get(name))
    if name in AGES:
        return float(AGES[name](values[1:])) if len(values) > 1 else math.nan  # nothing arrives in round 0
    return float(values.sum()) if len(values) and column(name).span == "round" else last(values)


def finite(values: Array | None) -> Array:
    """The finite numbers of a column, in their order: rounds that were not evaluated have NaN."""
    return np.zeros(0) if values is None else values[np.isfinite(values)]


def last(values: Array | None) -> float:
    """The last finite value; nan if there is none."""
    values = finite(values)
    return float(values[-1]) if len(values) else math.nan


def unit(name: str, results: Iterable[Result] = ()) -> str:
    """The unit of a metric, "1" for a plain number; of a column of an algorithm's own, as one of ``results`` says."""
    if name in COLUMNS or name in DERIVED:
        return column(name).unit
    return printable(next((result.about[name][0] for result in results if name in result.about), "")) or "1"


def scale(unit: str, largest: float) -> tuple[float, str]:
    """A divisor for values up to ``largest``, and the unit that they then have: 1000 and kB for bytes up to 999,950."""
    if unit != "byte":
        return 1.0, "" if unit == "1" else unit
    power = 0
    while largest / 1000.0**power >= 999.95 and power < len(BYTES) - 1:
        power += 1
    return 1000.0**power, BYTES[power]


def title(name: str, unit: str = "", results: Iterable[Result] = ()) -> str:
    text = column(name).symbol or name.removesuffix("_seconds").replace("_", " ")
    text = of_training(name, results) + text
    return f"{text} ({unit})" if unit else text


def latex_title(name: str, unit: str = "", results: Iterable[Result] = ()) -> str:
    text = column(name).latex or escaped(title(name))
    text = of_training(name, results) + text
    return f"{text} ({escaped(unit)})" if unit else text


def of_training(name: str, results: Iterable[Result]) -> str:
    """What stands before the name of a column that is over training samples in some results; else nothing."""
    return before(role.name for role in roles(name, results))


def before(roles: Iterable[str]) -> str:
    """What stands before the name of a number over samples of these roles."""
    there = set(roles)
    found = [role for role in (TEST, TRAINING) if role in there]
    return f"{' or '.join(found)} " if TRAINING in found else ""


def roles(name: str, results: Iterable[Result]) -> list[Role]:
    """The samples that a column is over, in each of the results that say so."""
    found = [role_in(result.attrs, name) for result in results]
    return [role for role in found if role is not None]
