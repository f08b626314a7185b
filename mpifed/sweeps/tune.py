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
from mpifed.features.settings import Experiment
from mpifed.results.columns import OF_SAMPLES
from mpifed.results.result import load, read_result_file
from mpifed.results.validate import read_attributes
from mpifed.sweeps.cost import cost
from mpifed.sweeps.grid import Point, file_name
from mpifed.sweeps.measure import FAILED, FOR_REPORTS, Measure, Score
from mpifed.sweeps.runner import ReportLine, SweepLayout, SweepTally, run_points, unfinished_points
from mpifed.sweeps.runs import FAILED as POINT_FAILED
from mpifed.sweeps.runs import FINISHED, SKIP, PointRunner, first_difference, next_action
from mpifed.sweeps.search import Trial, TunedMethod

DIVERGED = ("diverges", "not finite")  # in the error of a run that failed because of its setting


class TuningPlan(NamedTuple):
    """The plan of a tuning: the study, whose [algorithm] is replaced, methods, seeds of every setting, and the measure.

    ``middle`` is the mean or the median over seeds.
    """

    study: dict[str, Any]
    methods: list[TunedMethod]
    seeds: list[int]
    measure: Measure
    middle: str = "mean"


class TrialResult(NamedTuple):
    """A setting that was tried: the score of every seed, their middle, and counts of runs that diverged or failed."""

    setting: Trial
    scores: list[Score]
    middle: Score
    diverged: int
    unfinished: int  # for another reason than that they diverged
    roles: Sequence[Role] = ()  # of the samples behind the scores

    @property
    def seeds_reached(self) -> int:
        """The number of seeds that reach their goal."""
        return sum(math.isfinite(score.value) for score in self.scores)

    @property
    def sd(self) -> float:
        """The standard deviation of the scores, NaN for a single seed or an infinite score."""
        values = [score.value for score in self.scores]
        return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan


class TuningOutcome(NamedTuple):
    """The settings of a method that were tried, the best of them, and its options at an end of their range."""

    label: str
    trials: list[TrialResult]
    best: TrialResult
    edges: list[str]


def plan_points(plan: TuningPlan) -> dict[tuple[str, int, int], Point]:
    """Return the runs of a plan, by (label, number of the setting, seed)."""
    runs: dict[tuple[str, int, int], Point] = {}
    for method in plan.methods:
        if any(method.label == label for label, _, _ in runs):
            advice = 'label = "NAME" in its table [[method]], or label=NAME among the words of --method'
            raise UserError(f"two methods are called {method.label!r}: give one a name of its own, {advice}")
        for k, setting in enumerate(method.tries):
            for seed in plan.seeds:
                table = copy.deepcopy(plan.study) | {"algorithm": setting.algorithm, "seed": seed}
                try:
                    config = configuration.experiment(table)
                except UserError as mistake:
                    raise UserError(f"method {method.label}: {mistake}") from None
                refuse_test_samples(config, plan.measure)
                runs[method.label, k, seed] = Point(run_name(method.label, setting, seed), (), config, cost(config))
    return runs


def refuse_test_samples(config: Experiment, measure: Measure) -> None:
    """Raise UserError where a run would be measured by test samples, as far as the study says which samples it has."""
    data = config.data
    may_have_others = data.held or "path" in type(data).__struct_fields__
    kept = getattr(data, "test", 0) and not getattr(data, "validation", 0) and not may_have_others
    if kept and not measure.by_test and {measure.name, measure.watched} & OF_SAMPLES.keys():
        raise UserError(f"--measure {measure.text!r} would choose by test samples, {FOR_REPORTS}")


def run_name(label: str, setting: Trial, seed: int) -> str:
    """Return the name of a run's file without .h5: fedgia,k0=5,seed=100,t=0.02."""
    options = [(key, toml_value(value)) for key, value in setting.options.items()]
    clean = re.sub(r"[^\w.+-]+", "-", label, flags=re.ASCII)
    return f"{clean},{file_name([*options, ('seed', str(seed))])}"


def tune(wanted: Sequence[Point], runs: PointRunner, layout: SweepLayout, tally: SweepTally) -> Iterator[ReportLine]:
    """Run the missing runs of a plan, on every rank; rank 0 alone has them, and yields lines about them.

    A run that diverges is no failure: its setting is a bad one.
    """
    # cheap runs first, so that mistakes in options show early and the estimate of the time left improves
    todo = unfinished_points(
        sorted(wanted, key=lambda point: point.cost), runs, tally, lambda point: is_over(point, runs)
    )
    yield from tally.report_finished()
    for ended in run_points(todo, runs, layout):
        diverged = ended.status == POINT_FAILED and any(word in ended.text for word in DIVERGED)
        lines = tally.count_end(ended._replace(status=FINISHED) if diverged else ended)
        yield from (line for line in lines if not line.fine)
    yield from tally.summary()


def is_over(point: Point, runs: PointRunner) -> bool:
    """Return whether a run has ended, well or by diverging."""
    path = str(runs.folder / point.file)
    if next_action(point.config, path, runs.force) == SKIP:
        return True
    try:
        attrs = read_result_file(path, read_attributes)
        return has_diverged(attrs) and not first_difference(point.config, attrs, path)
    except (UserError, OSError):
        return False


def has_diverged(attrs: dict[str, Any]) -> bool:
    """Return whether a run failed by diverging, from the attributes of its result."""
    return attrs.get("status") == "failed" and any(word in str(attrs.get("stop_reason")) for word in DIVERGED)


def best_settings(plan: TuningPlan, folder: Path) -> list[TuningOutcome]:
    """Return the best setting of every method; raise UserError if a run is missing that has not failed."""
    runs = plan_points(plan)
    results = []
    for method in plan.methods:
        tried = [
            score_setting(setting, [runs[method.label, k, seed] for seed in plan.seeds], plan, folder)
            for k, setting in enumerate(method.tries)
        ]
        best = min(tried, key=sort_key)
        results.append(TuningOutcome(method.label, tried, best, edge_options(best, tried)))
    return results


def score_setting(setting: Trial, points: Sequence[Point], plan: TuningPlan, folder: Path) -> TrialResult:
    """Return the scores of a setting; a run without a result counts as failed."""
    scores: list[Score] = []
    roles: list[Role] = []
    diverged = unfinished = 0
    for point in points:
        path = folder / point.file
        result = load(path) if path.exists() else None
        # counted, not left out, which would reward settings that fail on hard seeds
        scores.append(FAILED if result is None else plan.measure.score(result))
        roles += [] if result is None else plan.measure.roles(result)
        if result is None or result.status != "finished":
            bad = result is not None and has_diverged(result.attrs)
            diverged += bad
            unfinished += not bad
    middle = median if plan.middle == "median" else fmean
    value, near = (float(middle(part)) for part in zip(*scores, strict=True))
    return TrialResult(setting, scores, Score(value, near), diverged, unfinished, roles)


def sort_key(tried: TrialResult) -> tuple[float, int, float]:
    """Return the key that sorts settings, the best first: their middle, seeds that got there, nearness of the rest."""
    return tried.middle.value, -tried.seeds_reached, tried.middle.near


def edge_options(best: TrialResult, tried: Sequence[TrialResult]) -> list[str]:
    """Return the options of the best setting that are the smallest or largest of at least three values tried."""
    sentences = []
    for key, value in best.setting.options.items():
        numbers = sorted({other.setting.options[key] for other in tried if is_number(other.setting.options.get(key))})
        if is_number(value) and len(numbers) > 2 and value in (numbers[0], numbers[-1]):
            sentences.append(f"{key} is at the {'lower' if value == numbers[0] else 'upper'} end of what was tried")
    return sentences
