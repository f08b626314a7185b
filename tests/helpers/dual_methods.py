"""Functions whose dual is known, and dual methods at work on them."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from mpifed.data.sources.quadratic import LowerBound, RandomQuadratic
from mpifed.federation.participation.selection import UniformSelection
from mpifed.problems.quadratic import Quadratic
from tests.helpers.algorithm_runs import Given, Run, build, quadratics


class Loose(Quadratic, tag="loose", kw_only=True):
    """A quadratic that knows but a bound ``alpha`` of its strong convexity."""

    alpha: float

    def convexity(self, block):
        return np.full(len(block), self.alpha)


class Dual:
    """G(y) = Σ f_i*(y_i) of f_i = ½wᵀQ_i w − b_iᵀw, whose minimum over Σ y_i = 0 is at y_i* = ∇f_i(w*)."""

    def __init__(self, data):
        X, y = data.rows(0, data.m)
        self.data = data
        self.Q = X.reshape(data.m, data.n, data.n)
        self.b = y.reshape(data.m, data.n)
        self.inverse = np.linalg.inv(self.Q)
        self.w = np.linalg.solve(self.Q.sum(axis=0), self.b.sum(axis=0))
        self.y = self.Q @ self.w - self.b
        eigenvalues = np.linalg.eigvalsh(self.Q)
        self.alpha = eigenvalues.min()
        self.beta = eigenvalues.max()
        self.m = data.m

    def gap(self, y):
        """G(y) − G*."""
        e = y - self.y
        return np.vecdot(e, np.matvec(self.inverse, e)).sum() / 2

    def value(self, y):
        return np.vecdot(y + self.b, np.matvec(self.inverse, y + self.b)).sum() / 2


def begun(dual, selection=None, name="feddcd", problem="quadratic", **options):
    """A dual method at work on these functions."""
    return Run(build(name, options), problem, data=dual.data, selection=selection)


def after(run, **fields):
    """The clients' state after one round from these states, in client order."""
    host = run.hosts[0]
    for name, value in fields.items():
        getattr(host.state, name)[:] = value[host.order]
    run.rounds(1)
    return run.states()


def on_every_set(dual, size, **options):
    """All sets of so many clients, and a run for each in which these are selected."""
    sets = list(combinations(range(dual.m), size))
    return sets, [begun(dual, Given((some,), (some,)), **options) for some in sets]


def sharp(c, alpha, m=10, n=40):
    """The dual of f_i = (c/2)‖w − m_i‖², and the problem that knows of it that α = alpha."""
    centres = np.random.default_rng(0).standard_normal((m, n)) * np.linspace(0.5, 2, m)[:, None]
    return Dual(quadratics(np.tile(c * np.eye(n), (m, 1, 1)), c * centres)), Loose(alpha=alpha)


@cache
def duals():
    """Random quadratics and the lower-bound functions (41)–(42)."""
    sources = [RandomQuadratic(clients=5, features=4, mu=mu, L=1.0) for mu in (0.05, 0.3, 0.9)]
    sources += [LowerBound(clients=5, features=12, alpha=alpha, beta=1.0) for alpha in (0.01, 0.15)]
    return [Dual(source.load(seed, "float64")) for seed, source in enumerate(sources)]


every_dual = pytest.mark.parametrize(
    "place", [0, *(pytest.param(place, marks=pytest.mark.slow) for place in range(1, 5))]
)


def trajectory(name, dual):
    """The states of the clients before some of the rounds, of two runs with random draws."""
    for seed in range(2):
        run = Run(build(name), "quadratic", data=dual.data, selection=UniformSelection(count=2), seed=seed)
        for _ in range(4):
            yield run.states()
            run.rounds(4)
