"""The metrics of a run that tables and pictures show: recorded columns, and numbers derived from them."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import escape_unprintable, raise_unknown
from mpifed.core.roles import TEST, TRAINING, Role
from mpifed.core.typing import Array
from mpifed.report.tables import escape_latex
from mpifed.results.columns import COLUMNS, ColumnInfo, lower_is_better, sample_role
from mpifed.results.result import RunRecord

DERIVED: dict[str, ColumnInfo] = {
    "rounds": lower_is_better("Communication rounds.", symbol="CR"),
    "tct": ColumnInfo("s", "Total computation time: the last elapsed_seconds.", better=-1, symbol="TCT"),
    "lct": ColumnInfo("s", "Local computation time: mean compute_seconds of a round.", better=-1, symbol="LCT"),
    "error": lower_is_better(
        "Objective minus the least objective found on the same data, for the same seeds in every row.",
        symbol="f − least f found",
        latex=r"$f - \min f$",
    ),
    "bytes": ColumnInfo("byte", "Bytes between server and clients, up and down.", better=-1, symbol="up + down"),
}
USUAL: tuple[str, ...] = ("objective", "objective_gap", "grad_norm_sq", "rounds", "exchanges", "bytes_up", "tct", "lct")
USUAL += ("snr", "accuracy", "personal_accuracy", "simulated_seconds")
# columns of a round whose sum over rounds means nothing -> how to combine rounds instead
AGES: dict[str, Callable[[Array], Any]] = {"staleness": np.mean, "staleness_max": np.max}


def metric_info(name: str) -> ColumnInfo:
    """Return the description of a metric; one that only an algorithm reports has no symbol and no better value."""
    return COLUMNS.get(name) or DERIVED.get(name) or ColumnInfo("1", "")


def available_metrics(results: Iterable[RunRecord]) -> list[str]:
    """Return all metrics of the results: derived ones, and their columns."""
    columns = (escape_unprintable(name) for result in results for name in result.rounds if name != "round")
    return list(dict.fromkeys([*DERIVED, *columns]))


def select_metrics(results: Sequence[RunRecord], names: Sequence[str] | None) -> list[str]:
    """Return ``names`` or, without any, the usual metrics that a run has. UserError for a name that no run has."""
    if not names:
        return [name for name in USUAL if any(np.isfinite(final_metric(result, name)) for result in results)]
    metrics = available_metrics(results)
    for name in names:
        if name not in metrics:
            raise_unknown("column", name, metrics)
    return list(names)


def final_metric(result: RunRecord, name: str) -> float:
    """Return a metric at the end of a run: the last finite value, or the sum of amounts per round; nan if none.

    For AGES it is the mean or the largest. The error of a single run is its gap to a known optimum.
    """
    if name == "error":
        return final_metric(result, "objective_gap")
    if name == "bytes":
        return final_metric(result, "bytes_up") + final_metric(result, "bytes_down")
    if name in DERIVED:
        return float(getattr(result, {"rounds": "cr"}.get(name, name)))
    values = finite_values(result.rounds.get(name))
    if name in AGES:
        return float(AGES[name](values[1:])) if len(values) > 1 else math.nan  # nothing arrives in round 0
    return float(values.sum()) if len(values) and metric_info(name).span == "round" else last_finite(values)


def finite_values(values: Array | None) -> Array:
    """Return the finite numbers of a column, in their order: rounds that were not evaluated have NaN."""
    return np.zeros(0) if values is None else values[np.isfinite(values)]


def last_finite(values: Array | None) -> float:
    """Return the last finite value; nan if there is none."""
    values = finite_values(values)
    return float(values[-1]) if len(values) else math.nan


def metric_unit(name: str, results: Iterable[RunRecord] = ()) -> str:
    """Return the unit of a metric, "1" for a plain number; of a column that an algorithm adds, from ``results``."""
    if name in COLUMNS or name in DERIVED:
        return metric_info(name).unit
    return escape_unprintable(next((result.about[name][0] for result in results if name in result.about), "")) or "1"


def metric_title(name: str, unit: str = "", results: Iterable[RunRecord] = ()) -> str:
    text = metric_info(name).symbol or name.removesuffix("_seconds").replace("_", " ")
    return training_title_prefix(name, results) + (f"{text} ({unit})" if unit else text)


def latex_title(name: str, unit: str = "", results: Iterable[RunRecord] = ()) -> str:
    text = metric_info(name).latex or escape_latex(metric_title(name))
    return training_title_prefix(name, results) + (f"{text} ({escape_latex(unit)})" if unit else text)


def training_title_prefix(name: str, results: Iterable[RunRecord]) -> str:
    """Return the samples before the name of a column, if some results evaluate it on training samples; else nothing."""
    return samples_prefix(role.name for role in sample_roles(name, results))


def samples_prefix(roles: Iterable[str]) -> str:
    """Return the samples before the name of a number, if training samples are among these roles; else nothing."""
    names = set(roles)
    words = [role for role in (TEST, TRAINING) if role in names]
    return f"{' or '.join(words)} " if TRAINING in words else ""


def sample_roles(name: str, results: Iterable[RunRecord]) -> list[Role]:
    """Return the samples of a column in each of the results that have some."""
    samples = [sample_role(result.attrs, name) for result in results]
    return [role for role in samples if role is not None]
