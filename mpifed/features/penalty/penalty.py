"""Penalty h of F(x) = f(x) + h(x), h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖²: its value, proximal operator and residual."""

from typing import NamedTuple

import numpy as np

from mpifed.core.arrays import soft
from mpifed.core.typing import Array


class ElasticNetPenalty(NamedTuple):
    """Penalty h(x) = Σ_j λ₁_j|x_j| + (λ₂_j/2)x_j², with λ₁_j = l1 and λ₂_j = l2, or both 0 without a penalty on x_j."""

    l1: Array  # (n,)
    l2: Array  # (n,)

    @classmethod
    def of(cls, l1: float, l2: float, penalised: Array) -> "ElasticNetPenalty":
        """Return the penalty of those of n coefficients that are ``penalised`` (n,) bool."""
        return cls(l1 * penalised, l2 * penalised)

    def value(self, x: Array) -> float:
        """Return h(x)."""
        x = np.asarray(x, float)
        return float(self.l1 @ np.abs(x) + self.l2 @ x**2 / 2)

    def prox(self, v: Array, step: float) -> Array:
        """Return argmin_u step·h(u) + ‖u − v‖²/2 = soft(v, step λ₁)/(1 + step λ₂), of the type of v: (n,)."""
        u = soft(np.asarray(v, float), step * self.l1) / (1 + step * self.l2)
        return np.asarray((u + 0.0).astype(v.dtype))  # 0 in place of −0

    def residual(self, x: Array, g: Array) -> Array:
        """Return x − soft(x − g − λ₂x, λ₁) for g = ∇f(x): (n,). It is 0 exactly where x minimises F, if f is convex.

        It is x − prox(x − ∇f(x)) with unit step and the λ₂ term as part of f. With λ₁ = 0 it is ∇F(x).
        """
        x = np.asarray(x, float)
        return np.asarray(x - soft(x - np.asarray(g, float) - self.l2 * x, self.l1))
