"""Feature of slow and absent clients, and the rules of the table [system]."""

from collections.abc import Iterator

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.findings import compressors, may_be_absent, may_shorten
from mpifed.features.rule import ONE, Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.federation.callback import Callback
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec


def no_deadline(c: Experiment) -> Violation:
    """Return the missing key without which clients never take fewer local steps, or None."""
    if not may_shorten(c):
        return None
    return next(({"key": key} for key in ("deadline", "speed") if getattr(c.system, key) is None), None)


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: may_be_absent(c) and c.algorithm.participation.everyone,
        "system.{absence} = {absent} is wrong: {name} needs a gradient of every client in {when}, also of those that "
        "are not selected, so no client can be absent",
    ),
    Rule(
        lambda c: c.system and c.system.speed and c.system.passes is None and c.algorithm.sample_gradients(ONE) is None,
        "system.passes is missing: {name} cannot tell beforehand how often its clients pass over their samples, so "
        "system.speed needs it",
    ),
    Rule(
        no_deadline,
        "system.partial = true is wrong without system.{key}: clients take fewer local steps where not all of them fit "
        "into the deadline",
    ),
    Rule(
        lambda c: may_shorten(c) and c.algorithm.local_steps(ONE) is None,
        "system.partial = true is wrong: clients of {name} cannot take fewer local steps, those of {partial_methods} "
        "can",
    ),
]


class SimulatedTime(Plugin, Callback):
    """Simulated devices, some of which are slow or absent."""

    # Times follow from the seed and numbers of samples, which are public if single samples are private; for whole
    # clients a note says that they are not covered. Absent clients: see KEYS.
    supports = Supports.EVERYTHING

    rules = RULES

    note = ""

    def notes(self) -> Iterator[str]:
        if self.note:
            yield self.note

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        self.note = "" if setup.counted is None else setup.counted.note
        # nodes of a graph and asynchronous clients wait for others: they have schedules of their own
        if self.config.graph is not None or self.config.asynchronous is not None:
            return None
        return DeviceRounds(make_devices(self.config, setup, data), setup.algorithm, selector.size)


def make_devices(c: Experiment, setup: RunSpec, data: Dataset) -> SimulatedDevices:
    """Return the simulated devices of a study with a table [system]."""
    assert c.system is not None
    return SimulatedDevices(c.system, setup, data.sizes, compressors(c))
