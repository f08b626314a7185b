"""Proximal step at the end of every round that minimises F = f + h, h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖².

A method with a proximal step takes x⁺ = argmin_u h(u) + ‖u − v‖²/(2t), where v is the model after its round without h.
So rounds stay as they are, and h is taken into account after each of them.
"""

import numpy as np

from mpifed.core.typing import Array
from mpifed.features.penalty.penalty import ElasticNetPenalty
from mpifed.federation.method import Proximal, ServerState
from mpifed.federation.server import Federation
from mpifed.federation.transform import ServerTransform

OF_F = ("objective", "objective_samples", "lagrangian")  # sums to which h is added


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
