"""What a study may ask to be evaluated of each client."""

from mpifed.core.toml import toml_value
from mpifed.experiment.rule import Found, Rule
from mpifed.experiment.settings import Evaluate, Experiment
from mpifed.federation.client_numbers import known, named, usual


def nothing(c: Experiment) -> Found:
    """The key that asks for numbers of clients where a problem has none that are usual."""
    key = "unseen" if c.evaluate.unseen else "clients"
    asked = c.evaluate.clients is True or (c.evaluate.unseen and not c.evaluate.clients)
    return {"key": key, "value": toml_value(getattr(c.evaluate, key))} if asked and not usual(c.problem) else None


def unknown(c: Experiment) -> Found:
    """A number of clients that a problem has not."""
    there = known(c.problem)
    for name in named(c.problem, c.evaluate.clients):
        if name not in there:
            return {"number": name, "there": f"it has {', '.join(there)}" if there else "it has none"}
    return None


def idle(c: Experiment) -> Found:
    """The first key that is about clients that never train, where there are none."""
    if c.evaluate.unseen:
        return None
    keys = [key for key in ("steps", "step") if getattr(c.evaluate, key) != getattr(Evaluate(), key)]
    return {"key": keys[0]} if keys else None


EVALUATED: list[Rule[Experiment]] = [
    Rule(
        nothing,
        "evaluate.{key} = {value} is wrong: {loss} has neither classes nor a metric, so nothing is evaluated of each "
        "client",
    ),
    Rule(unknown, "evaluate.clients names {number!r}, which {loss} does not have of each client: {there}"),
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
