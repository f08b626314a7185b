"""What the page tells, as numbers: profiles, wins, winners, and what remains without a workload or a method."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.plan import SCORES, Plan, labels
from benchmarks.arena.scores import Final, cube
from mpifed.core.typing import Array
from mpifed.report.statistics import Band, Pair, band, pairwise, profile, winners

TWICE = np.array([2.0])  # the factor at which methods are ranked


class Standing(NamedTuple):
    """How methods stand under a score: the share of instances at most twice the best, with bands; ``best`` tie."""

    score: str
    methods: list[str]
    within: Band
    best: list[str]


def instances(costs: Array) -> list[Array]:
    """Costs (workloads, methods, goals, seeds) as a group of instances (goals × seeds, methods) for each workload."""
    return [np.moveaxis(one, 0, -1).reshape(-1, one.shape[0]) for one in costs]


def groups(final: Final, plan: Plan, names: Sequence[str], score: str, after: int) -> list[Array]:
    """The instances of a score, workload by workload."""
    return instances(cube(final, plan, names, score, after).costs)


def standing(final: Final, plan: Plan, names: Sequence[str], score: str, after: int) -> Standing:
    """How methods stand under a score after so many tries."""
    found = band(groups(final, plan, names, score, after), lambda one: profile(one, TWICE)[:, 0])
    own = labels(plan)
    return Standing(score, own, found, [own[k] for k in winners(found)])


def ranking(found: Sequence[Array], methods: Sequence[str]) -> list[str]:
    """The methods by the share of instances at most twice the best, the largest first."""
    shares = profile(np.concatenate(list(found)), TWICE)[:, 0]
    return [methods[k] for k in np.argsort(-shares, kind="stable")]


def pairs(final: Final, plan: Plan, names: Sequence[str], score: str) -> list[Pair]:
    """Wins between methods: an instance is a workload at its hardest goal, its cost the median over seeds."""
    costs = cube(final, plan, names, score, plan.tries).costs
    middles = np.sort(costs, axis=3)[..., costs.shape[3] // 2]
    return pairwise(middles[:, :, -1])


def without_workloads(final: Final, plan: Plan, names: Sequence[str], score: str) -> dict[str, str]:
    """Workload -> the best method without it."""
    found, own = groups(final, plan, names, score, plan.tries), labels(plan)
    return {name: ranking([one for k, one in enumerate(found) if k != left], own)[0] for left, name in enumerate(names)}


def without_methods(final: Final, plan: Plan, names: Sequence[str], score: str) -> dict[str, list[str]]:
    """Method -> the ranking of the others without it, for its costs are no longer among the least."""
    found, own = groups(final, plan, names, score, plan.tries), labels(plan)
    return {
        name: ranking([np.delete(one, left, axis=1) for one in found], [one for one in own if one != name])
        for left, name in enumerate(own)
    }


class Winner(NamedTuple):
    """Who wins on a workload under a score at the hardest goal that some method reaches: one, or several that tie."""

    goal: int
    best: list[str]
    cost: float


def winner(final: Final, plan: Plan, name: str, score: str) -> Winner | None:
    """The methods whose bands of the median over seeds reach that of the least; None where all miss."""
    own, costs = labels(plan), cube(final, plan, [name], score, plan.tries).costs[0]  # (methods, goals, seeds)
    middles = np.sort(costs, axis=2)[..., costs.shape[2] // 2]
    reached = np.flatnonzero(np.isfinite(middles).any(axis=0))
    if not len(reached):
        return None
    goal = int(reached[-1])
    found = medians(costs[:, goal])
    best = winners(found, -1)
    return Winner(goal + 1, [own[k] for k in best], float(found.middle.min()))


def medians(costs: Array) -> Band:
    """Medians over seeds (methods, seeds) with bands; those of a miss are inf."""
    return band([costs.T], lambda one: np.sort(one, axis=0)[len(one) // 2])


def reached(final: Final, plan: Plan, names: Sequence[str], after: int) -> dict[str, float]:
    """The share of goals that each method reaches, over workloads, goals, seeds and scores."""
    own = labels(plan)
    costs = [cube(final, plan, names, score, after).costs for score in SCORES]
    found = np.mean([np.isfinite(one).mean(axis=(0, 2, 3)) for one in costs], axis=0)
    return dict(zip(own, found.tolist(), strict=True))
