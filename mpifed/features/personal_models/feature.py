"""Personal models in the result."""

from typing import Any

from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.features.feature import Feature
from mpifed.features.rule import Rule
from mpifed.features.settings import Experiment
from mpifed.federation.method import Personalised
from mpifed.federation.server import Federation

RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.record.personal and not isinstance(c.algorithm, Personalised),
        "record.personal = true is wrong: {name} has no personal models",
    ),
]


class PersonalModels(Feature):
    """The personal model of each client, stored."""

    # They are stored when the run is over; a note says that they are of the true data.
    keeps = Keeps.EVERYTHING

    rules = RULES

    def after(self, fed: Federation, x: Array) -> dict[str, Any]:
        assert isinstance(self.config.algorithm, Personalised)
        return {"personal": fed.inspect(self.config.algorithm.personalised)}
