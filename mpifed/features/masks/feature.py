"""Feature of secure aggregation: the table [masks]."""

from mpifed.core.promises import Supports
from mpifed.features.feature import Plugin
from mpifed.features.masks.masked_sums import MaskedSums
from mpifed.features.masks.masks import Masks
from mpifed.features.message_conflicts import MESSAGES
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


class SecureAggregation(Plugin):
    """Uploads under masks that cancel in their sum."""

    # Its transform speaks for itself.
    supports = Supports.EVERYTHING
    conflicts = MESSAGES["masks"]

    @property
    def table(self) -> Masks:
        assert self.config.masks is not None
        return self.config.masks

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[MaskedSums]:
        # after compression: masks hide what is left of an upload
        return [MaskedSums(setup, self.table, None if fed is None else fed.schedule)]
