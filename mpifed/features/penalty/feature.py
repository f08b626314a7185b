"""A penalty h beside f: which methods take it into account."""

from mpifed.algorithms.bases.graph_method import GraphMethod
from mpifed.features.feature import Feature
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.method import proximal


def no_proximal_step(c: Experiment) -> Found:
    """Why the server of a method has no step for a penalty."""
    if not c.objective.penalised:
        return None
    why = "mpifed has no proximal step for its server"
    if isinstance(c.algorithm, GraphMethod):
        why = "it has no server, which would take the proximal step"
    elif c.algorithm.upload.averaged:
        why = "its server averages models that clients have trained on their f_i, without the penalty"
    elif proximal(c.algorithm):
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


class Penalised(Feature):
    """F = f + h with h(x) = λ₁‖x‖₁ + (λ₂/2)‖x‖²."""

    rules = RULES
