"""The end of every round that minimises F = f + h, h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖².

The step of a method with a proximal step is x⁺ = argmin_u h(u) + ‖u − v‖²/(2t), where v is the model that its round
without h comes to. So the rounds stay as they are, and h is taken into account after each of them.
"""

import numpy as np

from mpifed.core.typing import Array
from mpifed.features.penalty.penalty import Penalty
from mpifed.federation.ending import Ending
from mpifed.federation.method import Proximal, ServerState
from mpifed.federation.server import Federation

OF_F = ("objective", "objective_samples", "lagrangian")  # sums to which h belongs


class ProximalEnding(Ending):
    """Every round ends with a proximal step; F and its residual are evaluated."""

    def __init__(self, fed: Federation, penalty: Penalty, method: Proximal) -> None:
        self.fed = fed
        self.penalty = penalty
        self.method = method

    def observed(self, server: ServerState) -> ServerState:
        """The server's state with the model x⁺ = prox(x) after a round; the model that a run starts from stays."""
        # the start is no step of the method: a run that is resumed from round 0 would take it twice
        if self.fed.round == 0:
            return server
        return server._replace(x=self.penalty.prox(server.x, self.method.proximal_step(server, self.fed.m)))

    def evaluated(self, x: Array, found: dict[str, Array]) -> dict[str, Array]:
        """The sums over clients, with F in place of f, and m times the optimality residual in place of m ∇f."""
        fed = self.fed
        counts = dict(zip(OF_F, (fed.m, fed.samples, 1), strict=True))
        h = self.penalty.value(x)
        found = found | {name: found[name] + counts[name] * h for name in OF_F if name in found}
        # grad_norm_sq is recorded from the sum of gradients: with m times the residual in its place it becomes
        # ‖residual‖²
        residual = self.penalty.residual(x, np.asarray(found["gradient"], float) / fed.m)
        return found | {"gradient": fed.m * residual}


def penalty_of(fed: Federation) -> Penalty | None:
    """The penalty of what a federation minimises; None where that is f alone."""
    return next((end.penalty for end in fed.endings if isinstance(end, ProximalEnding)), None)
