"""goals.toml: what is known of every workload before methods run, and the goals that the references set."""

from itertools import product
from typing import Any

import msgspec
import numpy as np

from benchmarks.arena.costs import CACHE, Curve, run
from benchmarks.arena.plan import CALM, SCORES, Facts, Workload, rules, setting
from benchmarks.running import side_by_side
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.experiment import config as configuration
from mpifed.experiment.housing import gathered

POWER = 30  # iterations for the curvature of a network
STEP = 1e-6  # of differences between gradients; with longer ones the kinks of ReLU count as curvature
GAMMA = {"algorithm": {"name": "gd", "gamma": 1.0}}  # a step that no problem has to know
DIGITS = 6  # significant digits of what is written

HEAD = "# Written by python -m benchmarks.arena goals, by the rules of rules.toml; plan.py says what numbers are.\n"


def seen(workload: Workload) -> Facts:
    """What is known of a workload before any method runs."""
    goal = rules().goal
    config = configuration.experiment(CALM | workload.study | {"seed": goal.seed} | GAMMA)
    parts = gathered(config, CACHE)
    assert parts.host is not None
    x = parts.setup.start
    rows = np.concatenate([config.problem.grad(block, x) for block in parts.host.blocks])
    mean = rows.mean(axis=0)
    skew = float(np.mean(np.sum((rows - mean) ** 2, axis=1)) / np.sum(mean**2))
    sizes = np.asarray(parts.data.sizes)
    m = len(sizes)
    share = parts.selector.size / m
    r = curvature(config.problem, parts.host.blocks, x)
    return Facts(m, x.size, short(float(sizes.mean())), short(r), short(skew), short(share), config.problem.has("hess"))


def curvature(problem: Any, blocks: list[Any], x: Array) -> float:
    """The largest r_i, or of a problem that has none ‖∇²f(x)v‖ for the v of some power iterations."""
    if problem.has("lipschitz"):
        return float(max(problem.lipschitz(block).max() for block in blocks))

    def mean(at: Array) -> Array:
        return np.concatenate([problem.grad(block, at) for block in blocks]).mean(axis=0)

    v = np.ones_like(x) / np.sqrt(x.size)
    first, norm = mean(x), 0.0
    for _ in range(POWER):
        v = (mean(x + STEP * v) - first) / STEP
        norm = float(np.linalg.norm(v))
        v /= norm
    return norm


def goals(workload: Workload) -> Facts:
    """The facts of a workload with its goals."""
    goal, known = rules().goal, seen(workload)
    tries = [setting(label, k, known.r) for label, k in product(goal.references, range(goal.tries))]
    curves = [run(workload, known, one, goal.seed, 2 * goal.rounds) for one in tries]
    return with_goals(known, [found for found in curves if found is not None], goal.gaps)


def with_goals(known: Facts, curves: list[Curve], gaps: list[float]) -> Facts:
    """The goals that the best of these runs sets, and the least cost of each under each score."""
    start, best = float(curves[0].f[0]), min(float(np.nanmin(found.f)) for found in curves)
    levels = [short(best + gap * (start - best)) for gap in gaps]
    reference = {score: [short(least(curves, score, level)) for level in levels] for score in SCORES}
    return msgspec.structs.replace(known, goals=levels, reference=reference)


def least(curves: list[Curve], score: str, level: float) -> float:
    """The least cost at which one of the runs has f at most a level."""
    met = [(found.costs[score], found.f <= level) for found in curves]
    return min(float(costs[np.argmax(reached)]) for costs, reached in met if reached.any())


def short(value: float) -> float:
    """A number with few digits."""
    return float(f"{value:.{DIGITS}g}")


def text(found: dict[str, Facts]) -> str:
    """goals.toml."""
    parts = [HEAD]
    for name, known in found.items():
        lines = [f"{key} = {toml_value(value)}" for key, value in msgspec.to_builtins(known).items()]
        parts.append("\n".join([f"[workload.{name}]", *lines, ""]))
    return "\n".join(parts)


def write(wanted: dict[str, Workload], processes: int) -> dict[str, Facts]:
    """The facts of all workloads."""
    found = side_by_side(goals, [(workload,) for workload in wanted.values()], processes)
    return dict(zip(wanted, found, strict=True))
