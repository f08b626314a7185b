"""Proximal step at the end of every round that minimises F = f + h with the penalty h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖².

A method with a proximal step takes x⁺ = argmin_u h(u) + ‖u − v‖²/(2t), where v is the model after its round without h.
So rounds stay as they are, and h is taken into account after each of them.
"""

from typing import NamedTuple

import numpy as np

from mpifed.core.arrays import soft
from mpifed.core.typing import Array
from mpifed.federation.method import Proximal, ServerState
from mpifed.federation.server import Federation
from mpifed.federation.transform import ServerTransform

OF_F = ("objective", "objective_samples", "lagrangian")  # sums to which h is added


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


class ProximalStep(ServerTransform):
    """Proximal step after a round; F and its residual are evaluated."""

    def __init__(self, fed: Federation, penalty: ElasticNetPenalty, method: Proximal) -> None:
        self.fed = fed
        self.penalty = penalty
        self.method = method

    def transform_state(self, server: ServerState) -> ServerState:
        """Return the server's state with x⁺ = prox(x) after a round; the model that a run starts from stays."""
        # the start is no step of the method: a run that is resumed from round 0 would take it twice
        if self.fed.round == 0:
            return server
        return server._replace(x=self.penalty.prox(server.x, self.method.proximal_step(server, self.fed.m)))

    def transform_sums(self, x: Array, sums: dict[str, Array]) -> dict[str, Array]:
        """Return the sums over clients, with F in place of f and m times the optimality residual in place of m ∇f."""
        fed = self.fed
        counts = dict(zip(OF_F, (fed.m, fed.samples, 1), strict=True))
        h = self.penalty.value(x)
        sums = sums | {name: sums[name] + counts[name] * h for name in OF_F if name in sums}
        # grad_norm_sq is recorded from the sum of gradients: with m times the residual instead it is ‖residual‖²
        residual = self.penalty.residual(x, np.asarray(sums["gradient"], float) / fed.m)
        return sums | {"gradient": fed.m * residual}


def find_penalty(fed: Federation) -> ElasticNetPenalty | None:
    """Return the penalty of a federation's objective, or None where that is f alone."""
    return next((step.penalty for step in fed.server_transforms if isinstance(step, ProximalStep)), None)
