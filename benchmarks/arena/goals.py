"""goals.toml: what is known of every workload before methods run, and the goals between its start and its optimum."""

from typing import Any

import msgspec
import numpy as np

from benchmarks.arena.costs import CACHE
from benchmarks.arena.plan import CALM, Facts, Workload, rules
from benchmarks.running import minimum, side_by_side
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.experiment import config as configuration
from mpifed.experiment.housing import prepare_in_process

POWER = 30  # iterations for the curvature of a network
STEP = 1e-6  # of differences between gradients; with longer ones the kinks of ReLU count as curvature
GAMMA = {"algorithm": {"name": "gd", "gamma": 1.0}}  # a step that no problem has to know
DIGITS = 6  # significant digits of facts
EXACT = 17  # of levels of f
DECAY = (0.9, 0.999)  # of Adam's two means

HEAD = "# Written by python -m benchmarks.arena goals, by the rules of rules.toml; plan.py says what numbers are.\n"


class Pooled:
    """f and ∇f of all clients in one place."""

    def __init__(self, workload: Workload) -> None:
        table = {key: value for key, value in workload.study.items() if key != "system"}
        self.config = configuration.experiment(CALM | table | {"seed": rules().goal.seed} | GAMMA)
        self.parts = prepare_in_process(self.config, CACHE)
        assert self.parts.host is not None
        self.blocks = self.parts.host.blocks
        self.start: Array = self.parts.setup.start

    def gradients(self, x: Array) -> Array:
        """∇f_i: (m, n)."""
        return np.concatenate([self.config.problem.grad(block, x) for block in self.blocks])

    def f(self, x: Array) -> float:
        return float(np.concatenate([self.config.problem.value(block, x) for block in self.blocks]).mean())


def seen(pooled: Pooled) -> Facts:
    """What is known of a workload before any method runs."""
    config, parts = pooled.config, pooled.parts
    x = pooled.start
    rows = pooled.gradients(x)
    mean = rows.mean(axis=0)
    skew = float(np.mean(np.sum((rows - mean) ** 2, axis=1)) / np.sum(mean**2))
    sizes = np.asarray(parts.data.sizes)
    m = len(sizes)
    r = curvature(pooled)
    samples, share = short(float(sizes.mean())), short(parts.selector.size / m)
    return Facts(m, x.size, samples, short(r), short(skew), share, config.problem.has("hess"))


def curvature(pooled: Pooled) -> float:
    """The largest r_i, or of a problem that has none ‖∇²f(x)v‖ for the v of some power iterations."""
    problem: Any = pooled.config.problem
    if problem.has("lipschitz"):
        return float(max(problem.lipschitz(block).max() for block in pooled.blocks))
    x = pooled.start
    v = np.ones_like(x) / np.sqrt(x.size)
    first, norm = pooled.gradients(x).mean(axis=0), 0.0
    for _ in range(POWER):
        v = (pooled.gradients(x + STEP * v).mean(axis=0) - first) / STEP
        norm = float(np.linalg.norm(v))
        v /= norm
    return norm


def goals(workload: Workload) -> Facts:
    """The facts of a workload with its goals: all that one gradient step does not meet."""
    pooled = Pooled(workload)
    known, x = seen(pooled), pooled.start
    start = pooled.f(x)
    optimum = adam(pooled) if workload.group == "network" else minimum(pooled.config, CACHE)
    first = pooled.f(x - pooled.gradients(x).mean(axis=0) / known.r)
    levels = {gap: optimum + gap * (start - optimum) for gap in rules().goal.gaps}
    left = {gap: short(level, EXACT) for gap, level in levels.items() if level < first}
    return msgspec.structs.replace(known, start=start, optimum=optimum, gaps=list(left), goals=list(left.values()))


def adam(pooled: Pooled) -> float:
    """The least f on the way of Adam with full gradients: of a network, whose least f nobody knows."""
    goal, x = rules().goal, pooled.start.copy()
    mean, square = np.zeros_like(x), np.zeros_like(x)
    least = pooled.f(x)
    for k in range(1, goal.steps + 1):
        g = pooled.gradients(x).mean(axis=0)
        mean = DECAY[0] * mean + (1 - DECAY[0]) * g
        square = DECAY[1] * square + (1 - DECAY[1]) * g * g
        x -= goal.rate * (mean / (1 - DECAY[0] ** k)) / (np.sqrt(square / (1 - DECAY[1] ** k)) + 1e-8)
        if k % 10 == 0:
            least = min(least, pooled.f(x))
    return least


def short(value: float, digits: int = DIGITS) -> float:
    """A number with few digits."""
    return float(f"{value:.{digits}g}")


def text(found: dict[str, Facts]) -> str:
    """goals.toml."""
    parts = [HEAD]
    for name, known in found.items():
        lines = [f"{key} = {toml_value(value)}" for key, value in msgspec.to_builtins(known).items()]
        parts.append("\n".join([f"[workload.{name}]", *lines, ""]))
    return "\n".join(parts)


def every(wanted: dict[str, Workload], processes: int) -> dict[str, Facts]:
    """The facts of all workloads."""
    found = side_by_side(goals, [(workload,) for workload in wanted.values()], processes)
    return dict(zip(wanted, found, strict=True))
