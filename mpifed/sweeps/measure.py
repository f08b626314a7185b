"""The measure by which settings are compared, such as ``rounds to grad_norm_sq <= 1e-6``."""

import math
import re
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, unknown
from mpifed.core.roles import Role
from mpifed.core.typing import Array
from mpifed.features.stop import Stop
from mpifed.results.columns import COLUMNS, role_in
from mpifed.results.result import Result

COSTS = ("rounds", "exchanges", "bytes", "seconds", "simulated_seconds")  # measures of how long a run takes
REACHED = ("gradient", "objective_gap", "accuracy", "variance")  # stop rules that a run reaches
LAST = 10  # rounds whose mean says how near a run came
GRAMMAR = re.compile(r"(\w+)(?: to (\w+) (<=|>=) (\S+)( for good)?)?")
EXAMPLE = 'write NAME or NAME to NAME <= NUMBER, such as accuracy or "rounds to grad_norm_sq <= 1e-6"'


class Score(NamedTuple):
    """How good a run is: ``value``, less is better, inf where it does not get there; then how ``near`` it came."""

    value: float
    near: float


FAILED = Score(math.inf, math.inf)


class Measure(NamedTuple):
    """``name``, at the end of a run or in the first round in which ``watched`` is beyond ``bound``.

    ``for_good``: from which on it stays there. ``factor`` is −1 where more of ``name`` is better.
    """

    text: str
    name: str
    factor: float = 1.0
    watched: str = ""
    sign: str = "<="
    bound: float = 0.0
    for_good: bool = False

    def score(self, result: Result) -> Score:
        """The score of a run. UserError where it lacks a column."""
        if result.status != "finished":
            return FAILED
        values = series(result, self.name)
        if self.watched:
            watched = series(result, self.watched)
            met = watched <= self.bound if self.sign == "<=" else watched >= self.bound
            near = mean_of_last(watched) * (1.0 if self.sign == "<=" else -1.0)
            # argmax of booleans is the first True, and 0 where there is none
            if not self.for_good:
                return Score(float(values[np.argmax(met)]) if met.any() else math.inf, near)
            outside = np.flatnonzero(~met & np.isfinite(watched))
            first = int(outside[-1]) + 1 if len(outside) else 0
            return Score(float(values[first]) if first < len(values) else math.inf, near)
        # a cost is how long a run takes to get somewhere: where it stopped for another reason, it says nothing
        if self.name in COSTS:
            ended = result.stop_reason.partition(":")[0]
            near = mean_of_last(series(result, "grad_norm_sq" if ended == "gradient" else "objective"))
            return Score(float(values[-1]) if ended in REACHED else math.inf, near)
        finite = values[np.isfinite(values)]
        return Score(self.factor * float(finite[-1]), 0.0) if len(finite) else FAILED

    def roles(self, result: Result) -> list[Role]:
        """The samples that its columns are over, of those that are over samples, and an accuracy that ended the run."""
        ended = "accuracy" if self.name in COSTS and result.stop_reason.startswith("accuracy:") else ""
        found = [role_in(result.attrs, name) for name in (self.name, self.watched, ended)]
        return [role for role in found if role is not None]


def parsed(text: str, stop: Stop, option: str = "--measure") -> Measure:
    """The measure that a text stands for, for runs with the rules ``stop``. UserError where it is none."""
    found = GRAMMAR.fullmatch(" ".join(text.split()))
    if found is None:
        raise UserError(f"{option} {text!r} is wrong: {EXAMPLE}")
    name, watched, sign, number, good = found.groups()
    for one in filter(None, (name, watched)):
        if one not in COSTS and one not in COLUMNS:
            unknown("measure", one, dict.fromkeys([*COSTS, *COLUMNS]))
    try:
        bound = float(number or 0)
    except ValueError:
        raise UserError(f"{option} {text!r} is wrong: {number} is not a number; {EXAMPLE}") from None
    better = -1 if name in COSTS else COLUMNS[name].better
    if name in COSTS and not watched and not any(getattr(stop, rule) for rule in REACHED):
        lacking = "the study has no stop rule that says where a run has got to"
        right = f'write "{name} to grad_norm_sq <= 1e-6", or give stop.gradient'
        raise UserError(f"{option} {text!r} is wrong: {lacking}; {right}")
    if not better:
        raise UserError(f"{option} {text!r} is wrong: neither more nor less of {name} is better")
    if "objective_gap" in (name, watched) and stop.optimum is None:
        raise UserError(f"{option} {text!r} is wrong: objective_gap needs stop.optimum, the least value of f")
    return Measure(text, name, float(-better), watched or "", sign or "<=", bound, bool(good))


def series(result: Result, name: str) -> Array:
    """A column over the rounds. UserError where the run has none of this name."""
    if name == "bytes":
        return series(result, "bytes_up") + series(result, "bytes_down")
    column = {"rounds": "round", "seconds": "elapsed_seconds"}.get(name, name)
    if column not in result.rounds:
        raise UserError(f"{result.path} has no column {column}: this problem or algorithm does not record it")
    return np.asarray(result.rounds[column], float)


def mean_of_last(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[-LAST:].mean()) if len(finite) else math.inf
