"""The table of decisions: which method for which features, from tuning workloads, and its regret on those held out."""

import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arena.plan import Facts, Plan, facts, file, labels, rules
from benchmarks.arena.scores import WORST, Final
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.report.statistics import band

KINDS = {"bits": ["bits"], "seconds": ["equal", "lognormal", "pareto"]}
FEATURES = ("counted", "curvature", "skew", "share")  # in this order: the last ones are dropped first
ENOUGH = 2  # tuning workloads that a row of the table rests on at least
MANY = 0.5  # share of clients a round from which on many take part
HEAD = "# Written by python -m benchmarks.arena decide, from runs on tuning workloads alone.\n"

Features = tuple[str, ...]
Pick = Callable[[Features], str]  # the method for a workload with these features


class Decisions(NamedTuple):
    """``skew``: the median of the tuning workloads'; ``settings``: the one try of each method for everything.

    ``rows``: features (the last ones may be missing) -> method; ``best``: the best for all; ``tries``: of each method.
    """

    plan: str
    tries: int
    skew: float
    settings: dict[str, int]
    best: str
    rows: dict[Features, str]

    def method(self, features: Features) -> str:
        """The method for a workload: that of the row with most of its features."""
        for length in range(len(features), 0, -1):
            if features[:length] in self.rows:
                return self.rows[features[:length]]
        return self.best


def features(known: Facts, counted: str, skew: float) -> Features:
    """What a user can see before the first round, in the order of FEATURES."""
    affordable = known.n <= rules().curvature.most and known.curved
    return (
        counted,
        "affordable" if affordable else "too dear",
        "strong" if known.skew > skew else "weak",
        "many" if known.share >= MANY else "few",
    )


def losses(final: Final, plan: Plan, name: str, counted: str) -> dict[str, float]:
    """Mean logarithm of a method's median cost over the least of any, over scores and goals; a miss: see WORST."""
    own = labels(plan)
    worst = math.log(WORST * rules().goal.cap)
    found = []
    for score in KINDS[counted]:
        medians = np.array([middle(final[name, label, score, plan.tries]) for label in own])  # (methods, goals)
        least = medians.min(axis=0)
        reached = np.isfinite(least)
        logs = np.full(medians.shape, worst)
        np.log(medians / np.where(reached, least, 1.0), out=logs, where=np.isfinite(medians) & reached)
        found.append(np.minimum(logs, worst)[:, reached])
    return dict(zip(own, np.concatenate(found, axis=1).mean(axis=1).tolist(), strict=True))


def middle(costs: Any) -> Any:
    """The median over seeds (goals, seeds), inf where half of them or more miss: (goals,)."""
    return np.sort(costs, axis=1)[:, costs.shape[1] // 2]


def made(final: Final, plan: Plan, names: Sequence[str], settings: dict[str, int], called: str) -> Decisions:
    """The table that tuning workloads give."""
    skew = float(np.median([facts()[name].skew for name in names]))
    cells: dict[Features, list[dict[str, float]]] = {}
    for name in names:
        for counted in KINDS:
            full = features(facts()[name], counted, skew)
            for length in range(len(full) + 1):
                cells.setdefault(full[:length], []).append(losses(final, plan, name, counted))
    rows = {cell: least(found) for cell, found in cells.items() if cell and len(found) >= ENOUGH}
    return Decisions(called, plan.tries, skew, settings, least(cells[()]), rows)


def least(found: Sequence[dict[str, float]]) -> str:
    """The method with the least mean loss."""
    return min(found[0], key=lambda label: sum(one[label] for one in found))


def needless(decisions: Decisions) -> Decisions:
    """The same without rows that say what a shorter row says."""
    rows: dict[Features, str] = {}
    for cell in sorted(decisions.rows, key=len):
        if decisions._replace(rows=rows).method(cell) != decisions.rows[cell]:
            rows[cell] = decisions.rows[cell]
    return decisions._replace(rows=rows)


def text(found: Decisions) -> str:
    """decisions.toml."""
    lines = [f"{key} = {toml_value(getattr(found, key))}" for key in ("plan", "tries", "skew", "settings", "best")]
    for cell, method in found.rows.items():
        lines += ["", "[[row]]", *(f"{key} = {toml_value(word)}" for key, word in zip(FEATURES, cell, strict=False))]
        lines.append(f"method = {toml_value(method)}")
    return HEAD + "\n".join(["", *lines, ""])


def read() -> Decisions:
    """decisions.toml. UserError where it is not there."""
    path = file("decisions.toml")
    if not path.exists():
        raise UserError("decisions.toml is missing: python -m benchmarks.arena decide writes it")
    found = tomllib.loads(path.read_text("utf-8"))
    rows = {tuple(row[key] for key in FEATURES if key in row): row["method"] for row in found.pop("row", [])}
    return Decisions(**found, rows=rows)


class Regret(NamedTuple):
    """What a choice costs on held-out workloads: the ratios to the best method's cost, inf for a miss."""

    ratios: list[float]

    @property
    def middle(self) -> float:
        """The median ratio."""
        return float(np.sort(self.ratios)[len(self.ratios) // 2])

    @property
    def within(self) -> int:
        """How many are at most twice the best."""
        return sum(ratio <= 2 for ratio in self.ratios)

    @property
    def missed(self) -> int:
        return sum(math.isinf(ratio) for ratio in self.ratios)


def regret(final: Final, plan: Plan, names: Sequence[str], pick: Pick) -> Regret:
    """The regret of ``pick(features)`` over workloads, scores and goals that some method reaches."""
    return Regret([ratio for _, _, _, _, ratio in cases(final, plan, names, pick)])


class Choices(NamedTuple):
    """The regret of the ``table``, of the ``best`` method on the tuning workloads, of the best in ``hindsight``.

    ``low`` to ``high``: a band of the table's share of cases at most twice the best, less that of ``best``.
    """

    table: Regret
    best: Regret
    label: str
    hindsight: Regret
    low: float
    high: float


def choices(final: Final, plan: Plan, names: Sequence[str], decisions: Decisions) -> Choices:
    """What rules of choice cost on held-out workloads, and whether table and one method differ."""

    def always(label: str) -> Pick:
        return lambda cell: label

    fixed = {label: regret(final, plan, names, always(label)) for label in labels(plan)}
    label = max(fixed, key=lambda one: (fixed[one].within, -fixed[one].missed))
    groups = []
    for name in names:
        both = [list(cases(final, plan, [name], pick)) for pick in (decisions.method, always(decisions.best))]
        groups.append(np.array([[ratio <= 2 for *_, ratio in one] for one in both], float).T)
    found = band(groups, lambda one: np.array(np.mean(one[:, 0] - one[:, 1])))
    mine = regret(final, plan, names, decisions.method)
    return Choices(mine, fixed[decisions.best], label, fixed[label], float(found.low), float(found.high))


def cases(final: Final, plan: Plan, names: Sequence[str], pick: Pick) -> Iterator[tuple[str, str, int, str, float]]:
    """Workload, score, goal, the method that was picked, and its median cost over the least of any method."""
    decisions = read()
    for name in names:
        for counted, scores in KINDS.items():
            label = pick(features(facts()[name], counted, decisions.skew))
            for score in scores:
                medians = {own: middle(final[name, own, score, plan.tries]) for own in labels(plan)}
                best = np.min(list(medians.values()), axis=0)
                for goal in np.flatnonzero(np.isfinite(best)).tolist():
                    yield name, score, goal, label, float(medians[label][goal] / best[goal])
