"""Slow and absent clients: what goes with the table [system]."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature
from mpifed.features.findings import absent, partial
from mpifed.features.rule import ONE, Found, Rule
from mpifed.features.settings import Experiment


def no_deadline(c: Experiment) -> Found:
    """The key without which clients never take fewer local steps."""
    if not partial(c):
        return None
    return next(({"key": key} for key in ("deadline", "speed") if getattr(c.system, key) is None), None)


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: absent(c) and c.algorithm.takes.everyone,
        "system.{absence} = {absent} is wrong: {name} needs a gradient of every client in {when}, also of those that "
        "are not selected, so no client can be absent",
    ),
    Rule(
        lambda c: c.system and c.system.speed and c.system.passes is None and c.algorithm.work(ONE) is None,
        "system.passes is missing: {name} cannot tell beforehand how often its clients pass over their samples, so "
        "system.speed needs it",
    ),
    Rule(
        no_deadline,
        "system.partial = true is wrong without system.{key}: clients take fewer local steps where not all of them fit "
        "into the deadline",
    ),
    Rule(
        lambda c: partial(c) and c.algorithm.local_steps(ONE) is None,
        "system.partial = true is wrong: clients of {name} cannot take fewer local steps, those of {partial_methods} "
        "can",
    ),
]


class SimulatedTime(Feature):
    """Simulated devices, some of which are slow or absent."""

    # Times follow from the seed and numbers of samples, which are public here. Absent clients: see KEYS.
    keeps = Keeps.EVERYTHING

    rules = RULES
