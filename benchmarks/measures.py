"""What the table tells of a run, by name; the names are explained in benchmarks/README.md."""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.report.curves import column
from mpifed.report.metrics import final
from mpifed.report.metrics import title as heading
from mpifed.results.result import Result

SECONDS = {"tct", "lct", "elapsed_seconds", "compute_seconds", "client_seconds", "server_seconds"}  # of another machine
UNTIL = {
    "rounds",
    "round",
    "iterations",
    "exchanges",
    "bytes",
    "seconds",
    "simulated_seconds",
}  # it takes to come there
OF_ALL: dict[str, Callable[[Array], Any]] = {"max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
MEASURE = re.compile(r"(?:(max|min|mean) )?(\w+)(?: at (\w+) (<=|>=) (\S+))?")


class Extra(NamedTuple):
    """What a paper needs beside: functions of a result, by name; benchmarks/<paper>/extra.py."""

    measures: dict[str, Callable[[Result], float]]
    columns: dict[str, Callable[[Result], Array]]


def extra(folder: str) -> Extra:
    """Those of a folder."""
    name = f"benchmarks.{folder}.extra"
    if importlib.util.find_spec(f"benchmarks.{folder}") is None or importlib.util.find_spec(name) is None:
        return Extra({}, {})
    module = importlib.import_module(name)
    return Extra(getattr(module, "MEASURES", {}), getattr(module, "COLUMNS", {}))


def value(result: Result, measure: str, more: Extra) -> float:
    """A measure of a run; inf where what it waits for never came, nan where the run has no such number or failed."""
    if result.status != "finished":
        return math.inf if " at " in measure else math.nan
    if measure in more.measures:
        return float(more.measures[measure](result))
    of_all, name, condition, sign, bound = parsed(measure)
    if condition:
        watched, values = series(result, condition, more), series(result, name, more)
        if watched is None or values is None:
            return math.nan
        reached = watched <= float(bound) if sign == "<=" else watched >= float(bound)
        return float(values[np.argmax(reached)]) / told_in(name) if reached.any() else math.inf
    if of_all:
        values = series(result, name, more)
        return math.nan if values is None or np.isnan(values).all() else float(OF_ALL[of_all](values)) / told_in(name)
    if name in more.columns:
        return float(more.columns[name](result)[-1])
    return final(result, name) / told_in(name)


def last(result: Result, measure: str, more: Extra) -> float:
    """What NAME of "NAME at …" had come to when the run ended."""
    if measure in more.measures or result.status != "finished":
        return math.inf
    name = parsed(measure)[1]
    values = series(result, name, more)
    return math.inf if values is None else float(values[-1]) / told_in(name)


def told_in(name: str) -> float:
    """Bytes are told in MB."""
    return 1e6 if name.startswith("bytes") else 1.0


def known(measure: str, results: Iterable[Result], more: Extra) -> bool:
    """Whether a measure is made of what one of the results has."""
    if measure in more.measures:
        return True
    there = {"rounds", "tct", "lct", "bytes", "seconds", "iterations", *more.columns}
    there |= {name for one in results for name in one.rounds}
    _, name, condition, _, _ = parsed(measure)
    return name in there and condition in {"", *there}


def parsed(measure: str) -> tuple[str, str, str, str, str]:
    """ "max" …, name, name of what is waited for, sign and bound. Raises UserError for what is no measure."""
    found = MEASURE.fullmatch(measure)
    try:
        parts = tuple(part or "" for part in found.groups()) if found else ()
        if not parts or (parts[4] and not math.isfinite(float(parts[4]))):
            raise ValueError
    except ValueError:
        raise UserError(f"{measure!r} is no measure: write NAME, max NAME or NAME at NAME >= NUMBER") from None
    return parts  # type: ignore[return-value]


def series(result: Result, name: str, more: Extra) -> Array | None:
    """A column over the rounds: a recorded one, bytes, rounds, iterations (rounds × k0) or one of ``more``."""
    if name in more.columns:
        return np.asarray(more.columns[name](result), float)
    if name in ("rounds", "round", "iterations"):
        rounds = np.asarray(result.rounds["round"], float)
        return rounds * result.config["algorithm"].get("k0", 1) if name == "iterations" else rounds
    return column(result, {"seconds": "elapsed_seconds", "tct": "elapsed_seconds"}.get(name, name))


def censored(result: Result, measure: str) -> bool:
    """Whether the most rounds ended a run that has another rule to stop, so that its measure tells of that limit."""
    rules = ("gradient", "objective_gap", "accuracy", "variance")
    ruled = any(result.config.get("stop", {}).get(rule) for rule in rules)
    return (
        " at " not in measure
        and measure in ("rounds", "exchanges", "tct")
        and ruled
        and (result.stop_reason.startswith("rounds:"))
    )


def title(measure: str) -> str:
    """What a table's head calls a measure."""
    of_all, name, condition, sign, bound = parsed(measure)
    head = heading(name) + (" (s)" if name in SECONDS | {"simulated_seconds"} else " (MB)" if told_in(name) > 1 else "")
    until = "to" if name in UNTIL | SECONDS else "at"
    text = {"max": "highest ", "min": "lowest ", "mean": "mean "}.get(of_all, "") + head
    return text + (f" {until} {heading(condition)} {'≤' if sign == '<=' else '≥'} {bound}" if condition else "")
