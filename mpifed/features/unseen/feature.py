"""Clients that never train: what goes with evaluate.unseen, evaluate.steps and evaluate.step."""

from mpifed.features.feature import Feature
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Evaluate, Experiment


def idle(c: Experiment) -> Found:
    """The first key that is about clients that never train, where there are none."""
    if c.evaluate.unseen:
        return None
    keys = [key for key in ("steps", "step") if getattr(c.evaluate, key) != getattr(Evaluate(), key)]
    return {"key": keys[0]} if keys else None


RULES: list[Rule[Experiment]] = [
    Rule(idle, "evaluate.{key} has no effect without evaluate.unseen: leave it out"),
    Rule(
        lambda c: c.evaluate.unseen and c.evaluate.step is None and not c.problem.has("lipschitz"),
        "evaluate.step is missing: {loss} tells no Lipschitz constants r_i, so the steps of clients that never train "
        "need a size, such as evaluate.step = 0.1",
    ),
    Rule(
        lambda c: c.evaluate.unseen and getattr(c.data, "standardise", None) == "federated",
        'data.standardise = "federated" is wrong with evaluate.unseen: sums would travel from clients that never take '
        'part, so it must be "own"',
    ),
]


class Unseen(Feature):
    """Clients that never train and are only evaluated."""

    rules = RULES
