"""Feature of a penalty h beside f."""

from collections.abc import Iterable, Iterator
from typing import cast

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.features.penalty.coefficients import select_penalised
from mpifed.features.penalty.proximal import ElasticNetPenalty, ProximalStep
from mpifed.federation.callback import Callback
from mpifed.federation.method import Proximal
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


class PenalisedObjective(Plugin, Callback):
    """Objective F = f + h with h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖²."""

    # The server takes a further step, from what it has received.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["penalty"]

    penalty: ElasticNetPenalty

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Make the penalty; raise UserError where ``objective.unpenalised`` names no coefficient."""
        objective = self.config.objective
        has_penalty = select_penalised(objective.unpenalised, self.config.problem, data)
        self.penalty = ElasticNetPenalty.of(objective.l1, objective.l2, has_penalty)
        return setup

    def notes(self) -> Iterator[str]:
        if self.config.objective.penalised:
            yield "objective is f with its penalty, F, and grad_norm_sq is ‖x − prox(x − ∇f(x))‖², 0 where F is least"

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[ProximalStep]:
        return [] if fed is None else [ProximalStep(fed, self.penalty, cast(Proximal, self.config.algorithm))]


def get_penalty(features: Iterable[Plugin]) -> ElasticNetPenalty:
    """Return the penalty of a study that has one."""
    return next(one.penalty for one in features if isinstance(one, PenalisedObjective))
