"""Tuning: the best setting of every method, found with the same number of runs for each."""

import copy
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError
from mpifed.core.roles import Role
from mpifed.core.toml import toml_value
from mpifed.experiment import config as configuration
from mpifed.results.result import load, read
from mpifed.results.validate import attributes
from mpifed.sweeps.cost import cost
from mpifed.sweeps.grid import Point, file_name
from mpifed.sweeps.measure import FAILED, Measure, Score
from mpifed.sweeps.runner import Layout, Line, Tally, carried_out, missing
from mpifed.sweeps.runs import FAILED as POINT_FAILED
from mpifed.sweeps.runs import FINISHED, SKIP, Runs, difference, state
from mpifed.sweeps.search import Method, Try

DIVERGED = ("diverges", "not finite")  # what a run says that failed because of its setting


class Plan(NamedTuple):
    """The study, whose [algorithm] is replaced, the methods, the seeds of every setting, and how settings are compared.

    ``middle`` is the mean or the median over seeds.
    """

    study: dict[str, Any]
    methods: list[Method]
    seeds: list[int]
    measure: Measure
    middle: str = "mean"


class Tried(NamedTuple):
    """A setting that was tried: the score of every seed, their middle, how many runs diverged or did not finish, and
    the samples that scores are over.
    """

    setting: Try
    scores: list[Score]
    middle: Score
    diverged: int
    unfinished: int  # for another reason than that they diverged
    roles: Sequence[Role] = ()

    @property
    def reached(self) -> int:
        """The number of seeds that have a value."""
        return sum(math.isfinite(score.value) for score in self.scores)

    @property
    def sd(self) -> float:
        values = [score.value for score in self.scores]
        return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan


class Outcome(NamedTuple):
    """The settings of a method that were tried, the best of them, and its options at an end of what was tried."""

    label: str
    tried: list[Tried]
    best: Tried
    edges: list[str]


def points(plan: Plan) -> dict[tuple[str, int, int], Point]:
    found: dict[tuple[str, int, int], Point] = {}
    for method in plan.methods:
        if any(method.label == label for label, _, _ in found):
            own = 'label = "NAME" in its table [[method]], or label=NAME among the words of --method'
            raise UserError(f"two methods are called {method.label!r}: give one a name of its own, {own}")
        for k, setting in enumerate(method.tries):
            for seed in plan.seeds:
                table = copy.deepcopy(plan.study) | {"algorithm": setting.algorithm, "seed": seed}
                try:
                    config = configuration.experiment(table)
                except UserError as mistake:
                    raise UserError(f"method {method.label}: {mistake}") from None
                found[method.label, k, seed] = Point(name(method.label, setting, seed), (), config, cost(config))
    return found


def name(label: str, setting: Try, seed: int) -> str:
    """The name of a run's file without .h5: fedgia,k0=5,seed=100,t=0.02."""
    options = [(key, toml_value(value)) for key, value in setting.options.items()]
    plain = re.sub(r"[^\w.+-]+", "-", label, flags=re.ASCII)
    return f"{plain},{file_name([*options, ('seed', str(seed))])}"


def tune(wanted: Sequence[Point], runs: Runs, layout: Layout, tally: Tally) -> Iterator[Line]:
    """Run what is missing of the runs of a plan, on every rank; rank 0 alone has them, and yields lines about them.

    A run that diverges is no failure: its setting is a bad one.
    """
    # cheap runs first: mistakes in options show early, and the estimate of the time left gets better
    todo = missing(sorted(wanted, key=lambda point: point.cost), runs, tally, lambda point: done(point, runs))
    yield from tally.already()
    for ended in carried_out(todo, runs, layout):
        diverged = ended.what == POINT_FAILED and any(word in ended.text for word in DIVERGED)
        lines = tally.over(ended._replace(what=FINISHED) if diverged else ended)
        yield from (line for line in lines if not line.fine)
    yield from tally.summary()


def done(point: Point, runs: Runs) -> bool:
    """Whether a run has ended, well or by diverging."""
    path = str(runs.folder / point.file)
    if state(point.config, path, runs.force) == SKIP:
        return True
    try:
        attrs = read(path, attributes)
        return has_diverged(attrs) and not difference(point.config, attrs, path)
    except (UserError, OSError):
        return False


def has_diverged(attrs: dict[str, Any]) -> bool:
    return attrs.get("status") == "failed" and any(word in str(attrs.get("stop_reason")) for word in DIVERGED)


def outcomes(plan: Plan, folder: Path) -> list[Outcome]:
    """The best setting of every method. UserError where a run is missing that has not failed."""
    runs = points(plan)
    found = []
    for method in plan.methods:
        tried = [
            examined(setting, [runs[method.label, k, seed] for seed in plan.seeds], plan, folder)
            for k, setting in enumerate(method.tries)
        ]
        best = min(tried, key=order)
        found.append(Outcome(method.label, tried, best, edges(best, tried)))
    return found


def examined(setting: Try, points: Sequence[Point], plan: Plan, folder: Path) -> Tried:
    """The scores of a setting. A run without a result counts as failed."""
    scores: list[Score] = []
    roles: list[Role] = []
    diverged = unfinished = 0
    for point in points:
        path = folder / point.file
        result = load(path) if path.exists() else None
        # it counts for its setting: leaving it out would reward settings that fail on hard seeds
        scores.append(FAILED if result is None else plan.measure.score(result))
        roles += [] if result is None else plan.measure.roles(result)
        if result is None or result.status != "finished":
            bad = result is not None and has_diverged(result.attrs)
            diverged += bad
            unfinished += not bad
    middle = median if plan.middle == "median" else fmean
    value, near = (float(middle(part)) for part in zip(*scores, strict=True))
    return Tried(setting, scores, Score(value, near), diverged, unfinished, roles)


def order(tried: Tried) -> tuple[float, int, float]:
    """What settings are sorted by, the best first: their middle, how many seeds got there, how near the rest came."""
    return tried.middle.value, -tried.reached, tried.middle.near


def edges(best: Tried, tried: Sequence[Tried]) -> list[str]:
    """The options of the best setting that are the least or the largest of at least three numbers tried."""
    found = []
    for key, value in best.setting.options.items():
        numbers = sorted({one.setting.options[key] for one in tried if is_number(one.setting.options.get(key))})
        if is_number(value) and len(numbers) > 2 and value in (numbers[0], numbers[-1]):
            found.append(f"{key} is at the {'lower' if value == numbers[0] else 'upper'} end of what was tried")
    return found
