"""Slow and absent clients: what goes with the table [system]."""

from collections.abc import Iterator

from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature
from mpifed.features.findings import absent, compressors, partial
from mpifed.features.rule import ONE, Found, Rule
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import Devices
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import Setup


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

    # Times follow from the seed and numbers of samples: public for single samples, for whole clients a note says that
    # they are not covered. Absent clients: see KEYS.
    keeps = Keeps.EVERYTHING

    rules = RULES

    said = ""

    def notes(self) -> Iterator[str]:
        if self.said:
            yield self.said

    def schedule(self, setup: Setup, data: Dataset, selector: Selector) -> Schedule | None:
        self.said = "" if setup.counted is None else setup.counted.note
        # nodes of a graph and clients that arrive one by one wait for others: they have clocks of their own
        if self.config.graph is not None or self.config.asynchronous is not None:
            return None
        return DeviceRounds(devices(self.config, setup, data), setup.algorithm, selector.size)


def devices(c: Experiment, setup: Setup, data: Dataset) -> Devices:
    """The devices of a study with a table [system]."""
    assert c.system is not None
    return Devices(c.system, setup, data.sizes, compressors(c))
