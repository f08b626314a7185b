"""Uploads whose privacy is guaranteed: what would break it."""

from collections.abc import Sequence
from typing import Any

from mpifed.data.base import Dataset
from mpifed.features.feature import Feature
from mpifed.features.findings import promises
from mpifed.features.guarantee.notes import privacy_notes
from mpifed.features.guarantee.prepared_data import leaking, levels
from mpifed.features.rule import Counted, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.setup import Setup

DATA_SHOW = (
    "selection = {selected_toml} is wrong: it asks clients for exact numbers of their data, and these and the clients "
    "that it selects break the privacy that {name} guarantees here, so it must be one that looks at no data, such as "
    "uniform, or importance with selection.odds that are known without the data"
)
NOISE_OF_ALL = "{name} guarantees privacy here for sums that have the noise of all {m} clients"


RULES: list[Rule[Experiment]] = [
    Rule(
        leaking, "data.{key} = {value} is wrong: {why}, so with the privacy that {name} guarantees it must be {right}"
    ),
    Rule(lambda c: c.selection.asks and promises(c), DATA_SHOW),
    Rule(
        lambda c: c.dtype != "float64" and promises(c, "double"),
        'dtype = "{dtype}" is wrong: the privacy that {name} guarantees here covers the rounding errors of double '
        'precision, so it must be "float64"',
    ),
]


COUNTED: list[Rule[Counted]] = [
    Rule(lambda c: c.selector.asks and promises(c), DATA_SHOW),
    Rule(
        lambda c: c.selector.size < c.m and promises(c, "sums"),
        "selection = {selected_toml} is wrong with {selector.size} clients a round: " + NOISE_OF_ALL + ", so it must "
        'be "all"',
    ),
    Rule(
        lambda c: c.system and c.system.absence() and promises(c, "sums"),
        "system.{absence} = {absent} is wrong: " + NOISE_OF_ALL + ", so it must be absent",
    ),
]


class Guarantee(Feature):
    """A method whose uploads have a guarantee of privacy."""

    rules = RULES
    counted = COUNTED
    levels: Sequence[str] = ()

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        self.levels = levels(self.config, data)
        return setup

    def attributes(self, redrawn: int) -> dict[str, Any]:
        privacy = self.config.algorithm.privacy()
        assert privacy is not None
        return {"privacy": str(privacy)} | ({"rounds_redrawn": redrawn} if privacy.holds else {})

    def notes(self) -> list[str]:
        return [*privacy_notes(self.config), *self.levels]
