"""goals.toml: what is known of every workload before methods run, and the goals between its start and its optimum."""

from typing import Any

import msgspec
import numpy as np

import mpifed
from benchmarks.arena.costs import ACCURACY, CACHE, met
from benchmarks.arena.plan import CALM, Facts, Workload, rules
from benchmarks.running import optimum, side_by_side
from mpifed import UserError
from mpifed.core.errors import RunError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.experiment import config as configuration
from mpifed.experiment.housing import prepare_in_process

POWER = 30  # iterations for the curvature of a network
STEP = 1e-6  # of differences between gradients; with longer ones the kinks of ReLU count as curvature
GAMMA = {"algorithm": {"name": "gd", "gamma": 1.0}}  # a step that no problem has to know
DIGITS = 6  # significant digits of facts
EXACT = 17  # of levels of f
LOSS = "validation_objective"

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
    numbers = int(sizes.sum()) * (parts.data.n + 1)
    return Facts(m, x.size, samples, short(r), short(skew), share, config.problem.has("hess"), numbers)


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
    """The facts of a workload with its goals: all that one gradient step does not meet, of networks all."""
    pooled = Pooled(workload)
    known = seen(pooled)
    network = workload.group == "network"
    found = validated(workload, known) if network else minimised(workload, pooled, known)
    return msgspec.structs.replace(found, pooled=once(workload, found))


def minimised(workload: Workload, pooled: Pooled, known: Facts) -> Facts:
    """Goals between f at the start and f*, at which ∇f must vanish; λ = 0 is refused, with which there may be none."""
    problem = pooled.config.problem
    if getattr(problem, "lam", getattr(problem, "mu", 1.0)) <= 0:
        raise UserError(f"{workload.name} has λ = 0, with which f may have no minimiser: set it above 0")
    x = pooled.start
    g = pooled.gradients(x).mean(axis=0)
    start, best = pooled.f(x), optimum(pooled.config, CACHE)
    left = float(np.linalg.norm(pooled.gradients(best.x).mean(axis=0)) / np.linalg.norm(g))
    if not left <= rules().goal.gradient:
        raise RunError(
            f"{workload.name} has no minimiser that a solver finds: {left:.1e} of the first gradient is left"
        )
    first = pooled.f(x - g / known.r)
    levels = {gap: best.f + gap * (start - best.f) for gap in rules().goal.gaps}
    kept = {gap: short(level, EXACT) for gap, level in levels.items() if level < first}
    found = msgspec.structs.replace(known, start=start, optimum=best.f, gradient=short(left))
    return msgspec.structs.replace(found, columns=["objective"] * len(kept), gaps=[*kept], goals=[*kept.values()])


def validated(workload: Workload, known: Facts) -> Facts:
    """Goals of the validation loss and accuracy, as shares of the way to the best of a long run of Adam."""
    goal = rules().goal
    server = {"name": "adam", "lr": goal.rate}
    adam = {"name": "fedopt", "k0": 1, "batch_size": 0, "step": {"name": "constant", "a": 1.0}, "server": server}
    rows = mpifed.run(alone(workload) | {"algorithm": adam, "rounds": goal.steps}, progress=False).rounds
    found = msgspec.structs.replace(known, start=float(rows[LOSS][0]), optimum=float(rows[LOSS].min()))
    for column, best in ((LOSS, found.optimum), (ACCURACY, float(rows[ACCURACY].max()))):
        for gap in goal.apart:
            found.columns.append(column)
            found.gaps.append(gap)
            found.goals.append(short(best + gap * (float(rows[column][0]) - best), EXACT))
    return found


def alone(workload: Workload) -> dict[str, Any]:
    """The study of a workload where all clients take part and reply."""
    table = {key: value for key, value in workload.study.items() if key != "system"}
    return CALM | table | {"seed": rules().goal.seed, "selection": "all"}


def once(workload: Workload, known: Facts) -> list[float]:
    """The passes in which L-BFGS on all samples reaches each goal, that at the start included; -1: never."""
    rows = mpifed.run(alone(workload) | {"algorithm": "lbfgs", "rounds": rules().goal.rounds}, progress=False).rounds
    found = [met(column, rows[column], level) for column, level in zip(known.columns, known.goals, strict=True)]
    return [float(1 + np.argmax(one)) if one.any() else -1.0 for one in found]


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
