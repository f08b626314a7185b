"""Evaluate a measure such as ``rounds at accuracy >= 0.9`` on a result; benchmarks/README.md explains the grammar."""

import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from mpifed import Result, UserError
from mpifed.extend import Array
from mpifed.report.curves import run_column
from mpifed.report.metrics import final_metric
from mpifed.report.metrics import metric_title as heading

SECONDS = {"tct", "lct", "elapsed_seconds", "compute_seconds", "client_seconds", "server_seconds"}  # of this machine
UNTIL = {"rounds", "round", "iterations", "exchanges", "bytes", "seconds", "simulated_seconds"}  # "rounds to", not "at"
OVER_ALL: dict[str, Callable[[Array], Any]] = {"max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
MEASURE = re.compile(r"(?:(max|min|mean) )?(\w+)(?: at (\w+) (<=|>=) (\S+))?")


class PaperMeasures(NamedTuple):
    """The measures and columns that a paper adds, by name: functions of a result."""

    measures: dict[str, Callable[[Result], float]]
    columns: dict[str, Callable[[Result], Array]]


class Parsed(NamedTuple):
    """The parts of "OVER_ALL NAME at CONDITION SIGN BOUND"; "" for a part that is not there."""

    over_all: str
    name: str
    condition: str
    sign: str
    bound: str


def paper_measures(folder: str) -> PaperMeasures:
    """Collect MEASURES and COLUMNS of benchmarks/<folder>/theory.py and measures.py."""
    found = PaperMeasures({}, {})
    for part in ("theory", "measures"):
        name = f"benchmarks.{folder}.{part}"
        if importlib.util.find_spec(f"benchmarks.{folder}") is None or importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        found.measures.update(getattr(module, "MEASURES", {}))
        found.columns.update(getattr(module, "COLUMNS", {}))
    return found


def parsed(measure: str) -> Parsed:
    """Split a measure into its parts. Raises UserError if it is malformed."""
    found = MEASURE.fullmatch(measure)
    try:
        if found is None:
            raise ValueError
        parts = Parsed(*(part or "" for part in found.groups()))
        if parts.bound and not math.isfinite(float(parts.bound)):
            raise ValueError
    except ValueError:
        raise UserError(f"{measure!r} is not a measure: write NAME, max NAME or NAME at NAME >= NUMBER") from None
    return parts


def value(result: Result, measure: str, own: PaperMeasures) -> float:
    """Evaluate a measure of a run: inf if its condition was never met, nan if the run failed or has no such number."""
    if result.status != "finished":
        return math.inf if " at " in measure else math.nan
    if measure in own.measures:
        return float(own.measures[measure](result))
    parts = parsed(measure)
    if parts.condition:
        return at_condition(result, parts, own)
    if parts.over_all:
        values = series(result, parts.name, own)
        if values is None or np.isnan(values).all():
            return math.nan
        return float(OVER_ALL[parts.over_all](values)) / unit_size(parts.name)
    if parts.name in own.columns:
        return float(own.columns[parts.name](result)[-1])
    return final_metric(result, parts.name) / unit_size(parts.name)


def at_condition(result: Result, parts: Parsed, own: PaperMeasures) -> float:
    """The value of NAME in the first round that meets the condition; inf if none does."""
    watched, values = series(result, parts.condition, own), series(result, parts.name, own)
    if watched is None or values is None:
        return math.nan
    met = watched <= float(parts.bound) if parts.sign == "<=" else watched >= float(parts.bound)
    return float(values[np.argmax(met)]) / unit_size(parts.name) if met.any() else math.inf


def last(result: Result, measure: str, own: PaperMeasures) -> float:
    """The value of NAME of "NAME at …" when the run ended; inf if it has none."""
    if measure in own.measures or result.status != "finished":
        return math.inf
    name = parsed(measure).name
    values = series(result, name, own)
    return math.inf if values is None else float(values[-1]) / unit_size(name)


def unit_size(name: str) -> float:
    """The size of the unit that tables use: bytes are shown in MB."""
    return 1e6 if name.startswith("bytes") else 1.0


def available(measure: str, results: Iterable[Result], own: PaperMeasures) -> bool:
    """Whether at least one of the results has the columns that a measure needs."""
    if measure in own.measures:
        return True
    names = {"rounds", "tct", "lct", "bytes", "seconds", "iterations", *own.columns}
    names |= {name for one in results for name in one.rounds}
    parts = parsed(measure)
    return parts.name in names and parts.condition in {"", *names}


def series(result: Result, name: str, own: PaperMeasures) -> Array | None:
    """A column over the rounds: recorded, bytes, rounds, iterations (rounds × k0) or a column of the paper."""
    if name in own.columns:
        return np.asarray(own.columns[name](result), float)
    if name in ("rounds", "round", "iterations"):
        rounds = np.asarray(result.rounds["round"], float)
        return rounds * result.config["algorithm"].get("k0", 1) if name == "iterations" else rounds
    return run_column(result, {"seconds": "elapsed_seconds", "tct": "elapsed_seconds"}.get(name, name))


def censored(result: Result, measure: str) -> bool:
    """Whether a run with a stop rule hit the round limit first, so that the measure only shows that limit."""
    if measure not in ("rounds", "exchanges", "tct"):
        return False
    rules = ("gradient", "objective_gap", "accuracy", "variance")
    has_rule = any(result.config.get("stop", {}).get(rule) for rule in rules)
    return has_rule and result.stop_reason.startswith("rounds:")


def title(measure: str) -> str:
    """The heading of a measure in a table."""
    parts = parsed(measure)
    head = heading(parts.name)
    if parts.name in SECONDS | {"simulated_seconds"}:
        head += " (s)"
    elif unit_size(parts.name) > 1:
        head += " (MB)"
    text = {"max": "highest ", "min": "lowest ", "mean": "mean "}.get(parts.over_all, "") + head
    if not parts.condition:
        return text
    until = "to" if parts.name in UNTIL | SECONDS else "at"
    sign = "≤" if parts.sign == "<=" else "≥"
    return f"{text} {until} {heading(parts.condition)} {sign} {parts.bound}"
