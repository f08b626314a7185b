"""Feature of robust means of single uploads and of attackers that know other uploads: the table [robust]."""

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.robust.averaging import RobustAveraging, RobustRows
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


class Robust(Plugin):
    """Mean that is made of single uploads."""

    # As the means themselves, which say so too.
    supports = BITS_AND_RESUME
    unsupported = RobustMean.unsupported
    conflicts = MESSAGES["robust"]

    bad: Array | None = None  # (m,) bool: who attacks

    def data(self, data: Dataset) -> Dataset:
        c = self.config
        self.bad = None if c.attack is None else c.attack.attackers(data.m, c.seed)
        return data

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[RobustRows]:
        return [RobustRows(setup, RobustAveraging(setup, self.config.robust, self.config.attack, self.bad))]
