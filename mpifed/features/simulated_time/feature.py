"""Feature of slow and absent clients: the table [system]."""

from collections.abc import Iterator

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.conditions import compressors
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.federation.callback import Callback
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec


class SimulatedTime(Plugin, Callback):
    """Simulated devices, some of which are slow or absent."""

    # Times follow from the seed and numbers of samples, which are public if single samples are private; for whole
    # clients a note says that they are not covered. Absent clients: see KEYS.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["simulated_time"]

    note = ""

    def notes(self) -> Iterator[str]:
        if self.note:
            yield self.note

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        self.note = "" if setup.counted is None else setup.counted.note
        # nodes of a graph and asynchronous clients wait for others: they have schedules of their own
        if self.config.graph is not None or self.config.asynchronous is not None:
            return None
        among = selector.among if selector.batch_size is None else None
        return DeviceRounds(make_devices(self.config, setup, data), setup.algorithm, selector.size, among)


def make_devices(c: Experiment, setup: RunSpec, data: Dataset) -> SimulatedDevices:
    """Return the simulated devices of a study with a table [system]."""
    assert c.system is not None
    return SimulatedDevices(c.system, setup, data.sizes, compressors(c))
