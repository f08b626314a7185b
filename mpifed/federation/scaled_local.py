"""Clients whose f_i have weights p_i: f = Σ p_i f_i in place of (1/m) Σ f_i.

Most methods are given f_i' = m p_i f_i, whose plain mean is f, so that all they compute is exact for f. Methods that
average models (``Upload.averaged``) keep f_i in their local steps; the server's means have the weights (wire/averages).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.problems.base import Factors, Solve


class ScaledLocal(Local):
    """c clients with f_i' = m p_i f_i in place of f_i."""

    @cached_property
    def factors(self) -> Array:
        """m p_i: (c,)."""
        own = factors_of(self._study)[self.ids]
        return self.xp.asarray(own.astype(self._study.start.dtype))

    def value(self, X: Array) -> Array:
        return self.factors * super().value(X)

    def grad(self, X: Array) -> Array:
        return self.factors[:, None] * super().grad(X)

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        f, G = super().value_grad(X)
        return self.factors * f, self.factors[:, None] * G

    def clipped_grad(self, X: Array, bound: float) -> Array:
        return self.factors[:, None] * super().clipped_grad(X, bound)

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        f, G, *rest = super().evaluate(X)
        return self.factors * f, self.factors[:, None] * G, *rest

    def lipschitz(self) -> Array:
        return self.factors * super().lipschitz()

    def convexity(self) -> Array:
        return self.factors * super().convexity()

    def least_curvature(self) -> Array:
        return self.factors * super().least_curvature()

    def hessian(self, X: Array) -> Solve:
        product = super().hessian(X)
        return lambda V: self.factors[:, None] * product(V)

    def hess(self, X: Array) -> Array:
        return self.factors[:, None, None] * super().hess(X)

    def packed_hess(self, X: Array) -> Array:
        return self.factors[:, None] * super().packed_hess(X)

    def majorizer_inverse(self, scale: float, shift: float) -> Solve:
        return self.problem.majorizer_inverse(self.block, scale, shift, by_samples(self._study))


def factors_of(study: Any) -> Array:
    """m p_i of all clients: (m,)."""
    found: Array = study.factors
    return found


def by_samples(study: Any) -> Factors:
    """m p_i of the clients of a block, where weights are numbers of samples."""
    return lambda block: study.per_sample * block.d


def shares(weights: Any, sizes: Array) -> Array:
    """m p_i (m,) for the weights "samples" or given numbers."""
    if isinstance(weights, str):
        return len(sizes) * sizes / sizes.sum()
    given = np.asarray(weights, float)
    return len(given) * given / given.sum()
