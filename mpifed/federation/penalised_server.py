"""The server of a run that minimises F = f + h, h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖².

The step of a method with a proximal step is x⁺ = argmin_u h(u) + ‖u − v‖²/(2t), where v is the model that its round
without h comes to. So the rounds stay as they are, and h is taken into account after each of them.
"""

from typing import Any, cast

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.method import Proximal
from mpifed.federation.penalty import Penalty
from mpifed.federation.server import Federation

OF_F = ("objective", "objective_samples", "lagrangian")  # sums to which h belongs


class PenalisedFederation(Federation):
    """A federation whose server ends every round with a proximal step, and evaluates F and its residual."""

    @property
    def penalty(self) -> Penalty:
        found = self._setup.penalty
        assert found is not None
        return found

    def observed(self, server: Any) -> Any:
        """The server's state with the model x⁺ = prox(x) after a round; the model that a run starts from stays."""
        if self.round == 0:
            return server
        method = cast(Proximal, self._setup.algorithm)
        return server._replace(x=self.penalty.prox(server.x, method.proximal_step(server, self.m)))

    def evaluate(self, x: Array) -> dict[str, Array]:
        """The sums over clients, with F in place of f, and m times the optimality residual in place of m ∇f."""
        found = super().evaluate(x)
        counts = dict(zip(OF_F, (self.m, self.samples, 1), strict=True))
        h = self.penalty.value(x)
        found |= {name: found[name] + counts[name] * h for name in OF_F if name in found}
        residual = self.penalty.residual(x, np.asarray(found["gradient"], float) / self.m)
        return found | {"gradient": self.m * residual}


def penalty_of(fed: Federation) -> Penalty | None:
    """The penalty of what a federation minimises; None where that is f alone."""
    return fed.penalty if isinstance(fed, PenalisedFederation) else None
