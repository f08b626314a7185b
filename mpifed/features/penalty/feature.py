"""Feature of a penalty h beside f, and the rules about methods that take it into account."""

from collections.abc import Iterable, Iterator
from typing import cast

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.penalty.coefficients import select_penalised
from mpifed.features.penalty.penalty import ElasticNetPenalty
from mpifed.features.penalty.proximal import ProximalStep
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.method import Proximal, has_proximal_step
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


def no_proximal_step(c: Experiment) -> Violation:
    """Return why the server of a method has no proximal step for a penalty, or None."""
    if not c.objective.penalised:
        return None
    why = c.algorithm.no_proximal_step.why
    if c.algorithm.on_graph:
        why = "it has no server, which would take the proximal step"
    elif c.algorithm.upload.averaged:
        why = "its server averages models that clients have trained on their f_i, without the penalty"
    elif has_proximal_step(c.algorithm):
        return None
    elif "hess" in {need.name for need in c.algorithm.requires}:
        why = "its steps are in the metric of Hessians, in which the proximal operator of a penalty has no closed form"
    key = "l1" if c.objective.l1 else "l2"
    return {"key": key, "value": getattr(c.objective, key), "why": why}


RULES: list[Rule[Experiment]] = [
    Rule(
        no_proximal_step,
        "objective.{key} = {value} is wrong: {name} cannot take a penalty into account, because {why}; "
        "{proximal_methods} can",
    ),
    Rule(
        lambda c: c.objective.unpenalised is not None and not c.objective.penalised,
        "objective.unpenalised is wrong without objective.l1 and objective.l2: there is no penalty to leave out",
    ),
]


class PenalisedObjective(Plugin, Callback):
    """Objective F = f + h with h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖²."""

    # The server takes a further step, from what it has received.
    supports = Supports.EVERYTHING

    rules = RULES
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
