"""Feature that stores personal models in the result."""

from typing import Any

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.features.feature import Plugin
from mpifed.features.rule import Rule
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.method import HasPersonalModels
from mpifed.federation.server import Federation

RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.record.personal and not isinstance(c.algorithm, HasPersonalModels),
        "record.personal = true is wrong: {name} has no personal models",
    ),
]


class PersonalModels(Plugin, Callback):
    """Personal model of each client, stored in the result."""

    # They are stored when the run is over; a note says that they are from the true data.
    supports = Supports.EVERYTHING

    rules = RULES

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        assert isinstance(self.config.algorithm, HasPersonalModels)
        return {"personal": fed.inspect(self.config.algorithm.personal_models)}
