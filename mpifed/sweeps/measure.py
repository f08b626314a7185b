"""The measure by which settings are compared, such as ``rounds to grad_norm_sq <= 1e-6``."""

import math
import re
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.roles import TEST, VALIDATED, Role
from mpifed.core.typing import Array
from mpifed.features.stop import StopRules
from mpifed.results.columns import COLUMNS, OF_SAMPLES, sample_role
from mpifed.results.result import RunRecord

COSTS = ("rounds", "exchanges", "bytes", "seconds", "simulated_seconds")  # measures of how long a run takes
REACHED = ("gradient", "objective_gap", "accuracy", "variance")  # stop rules that a run reaches
FOR_REPORTS = (
    "which are to report and not to choose by: keep validation samples with data.validation = 0.1, or say "
    'stop.by = "test"'
)
LAST = 10  # rounds whose mean tells how near a run came
GRAMMAR = re.compile(r"(\w+)(?: to (\w+) (<=|>=) (\S+)( for good)?)?")
EXAMPLE = 'write NAME or NAME to NAME <= NUMBER, such as accuracy or "rounds to grad_norm_sq <= 1e-6"'


class Score(NamedTuple):
    """The score of a run: ``value``, less is better, inf if it does not reach its goal; then how ``near`` it came."""

    value: float
    near: float


FAILED = Score(math.inf, math.inf)


class Measure(NamedTuple):
    """A measure ``name``, at the end of a run or in the first round in which ``watched`` is beyond ``bound``.

    ``for_good``: the first round from which on it stays there. ``factor`` is −1 if more of ``name`` is better.
    Of numbers over samples it takes those of validation samples where there are any, and those of test samples only
    with ``by_test``.
    """

    text: str
    name: str
    factor: float = 1.0
    watched: str = ""
    sign: str = "<="
    bound: float = 0.0
    for_good: bool = False
    by_test: bool = False

    def score(self, result: RunRecord) -> Score:
        """Return the score of a run; raise UserError if it lacks a column."""
        if result.status != "finished":
            return FAILED
        values = read_column(result, self.column(result, self.name))
        if self.watched:
            watched = read_column(result, self.column(result, self.watched))
            met = watched <= self.bound if self.sign == "<=" else watched >= self.bound
            near = mean_of_last(watched) * (1.0 if self.sign == "<=" else -1.0)
            # argmax of booleans is the first True, and 0 if there is none
            if not self.for_good:
                return Score(float(values[np.argmax(met)]) if met.any() else math.inf, near)
            outside = np.flatnonzero(~met & np.isfinite(watched))
            first = int(outside[-1]) + 1 if len(outside) else 0
            return Score(float(values[first]) if first < len(values) else math.inf, near)
        # a cost is what a run takes to reach its goal: if it stopped for another reason, it has none
        if self.name in COSTS:
            ended = result.stop_reason.partition(":")[0]
            near = mean_of_last(read_column(result, "grad_norm_sq" if ended == "gradient" else "objective"))
            return Score(float(values[-1]) if ended in REACHED else math.inf, near)
        finite = values[np.isfinite(values)]
        return Score(self.factor * float(finite[-1]), 0.0) if len(finite) else FAILED

    def roles(self, result: RunRecord) -> list[Role]:
        """Return the roles (training, test …) of the samples behind its columns and an accuracy that ended the run."""
        ended = "accuracy" if self.name in COSTS and result.stop_reason.startswith("accuracy:") else ""
        names = [self.column(result, name) for name in (self.name, self.watched, ended)]
        roles = [sample_role(result.attrs, name) for name in names]
        return [role for role in roles if role is not None]

    def column(self, result: RunRecord, name: str) -> str:
        """Return the column of a run that ``name`` stands for; UserError for test samples that nobody asked for."""
        if self.by_test or name not in OF_SAMPLES:
            return name
        if f"{VALIDATED}{name}" in result.rounds:
            return f"{VALIDATED}{name}"
        role = sample_role(result.attrs, name)
        if role is not None and role.name == TEST:
            raise UserError(f"{self.text!r} would choose by test samples, {FOR_REPORTS}")
        return name


def parse_measure(text: str, stop: StopRules, option: str = "--measure") -> Measure:
    """Parse the text of a measure for runs with the rules ``stop``; raise UserError if it is none."""
    match = GRAMMAR.fullmatch(" ".join(text.split()))
    if match is None:
        raise UserError(f"{option} {text!r} is wrong: {EXAMPLE}")
    name, watched, sign, number, for_good = match.groups()
    for part in filter(None, (name, watched)):
        if part not in COSTS and part not in COLUMNS:
            raise_unknown("measure", part, dict.fromkeys([*COSTS, *COLUMNS]))
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
    return Measure(text, name, float(-better), watched or "", sign or "<=", bound, bool(for_good), stop.by == TEST)


def read_column(result: RunRecord, name: str) -> Array:
    """Return a column over the rounds; raise UserError if the run has none of this name."""
    if name == "bytes":
        return read_column(result, "bytes_up") + read_column(result, "bytes_down")
    column = {"rounds": "round", "seconds": "elapsed_seconds"}.get(name, name)
    if column not in result.rounds:
        raise UserError(f"{result.path} has no column {column}: this problem or algorithm does not record it")
    return np.asarray(result.rounds[column], float)


def mean_of_last(values: Array) -> float:
    """Return the mean of the last finite values; inf if there is none."""
    finite = values[np.isfinite(values)]
    return float(finite[-LAST:].mean()) if len(finite) else math.inf
