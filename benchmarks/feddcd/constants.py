"""The constants of sections 4 to 7 of FedDCD for a run on quadratic f_i."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mpifed import Result
from mpifed.experiment import config
from mpifed.extend import Array
from mpifed.theory import feddcd


class Theory(NamedTuple):
    """The quantities of sections 4 to 7 for a run on quadratic f_i.

    ``alpha`` and ``beta`` are the constants that the algorithm uses. ``most`` is the β of the construction (41), whose
    f_i are in fact smoother. w* minimises f, y*_i = ∇f_i(w*), and ``f`` is f(w*).
    """

    accelerated: bool
    N: int
    tau: int
    alpha: float
    beta: float
    most: float
    w: Array  # (n,) w*
    y: Array  # (N, n) y*
    f: float

    @property
    def r(self) -> float:
        """r = (τ − 1)/(N − 1)."""
        return (self.tau - 1) / (self.N - 1)

    @property
    def exchanges(self) -> int:
        """Exchanges per iteration."""
        return 2 if self.accelerated else 1

    @property
    def a(self) -> float:
        """a of Algorithm 2."""
        return feddcd.momentum_weight(self.r, self.alpha / self.beta)

    @property
    def upper(self) -> float:
        """The guaranteed factor per iteration: 1 − r α/β by (3), 1 − a by (10)."""
        return 1 - self.a if self.accelerated else feddcd.contraction_factor(self.r, self.alpha, self.beta)

    @property
    def delta(self) -> float:
        """δ = ((√(β/(Nα)) − 1)/(√(β/(Nα)) + 1))² of appendix F."""
        root = math.sqrt(self.most / (self.N * self.alpha))
        return ((root - 1) / (root + 1)) ** 2

    @property
    def lost(self) -> float:
        """The term missing in (10) for z = 0: (a² + b)/(2r²α)·‖y*‖² with b = a r² α/β; 0 without acceleration."""
        if not self.accelerated:
            return 0.0
        return feddcd.missing_term(self.a, self.r, self.alpha / self.beta, self.alpha, float(np.sum(self.y**2)))


@lru_cache(maxsize=4)
def theory(result: Result) -> Theory:
    """Compute the theory's quantities from the configuration of a run."""
    run = config.experiment(result.config)
    data = run.data.load(run.seed, "float64")
    X, y = data.rows(0, data.m)
    Q, b = np.asarray(X).reshape(data.m, data.n, data.n), np.asarray(y).reshape(data.m, data.n)
    w = np.linalg.solve(Q.mean(axis=0), b.mean(axis=0))
    spectrum = np.linalg.eigvalsh(Q)
    return Theory(
        accelerated=run.algorithm.label() == "accfeddcd",
        N=data.m,
        tau=run.selection.selector(run.seed, data.m, run.rounds).size,
        alpha=float(getattr(run.problem, "alpha", spectrum.min())),
        beta=float(spectrum.max()),
        most=float(getattr(run.data, "beta", spectrum.max())),
        w=w,
        y=Q @ w - b,
        f=float(-b.mean(axis=0) @ w / 2),
    )
