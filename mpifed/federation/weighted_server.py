"""The server of a run whose clients have weights."""

from mpifed.core.typing import Array
from mpifed.federation.scaled_local import factors_of
from mpifed.federation.server import Federation


class WeightedFederation(Federation):
    """A federation in which clients count by their weights."""

    def share(self, clients: Array | None) -> float:
        return 1.0 if clients is None else float(factors_of(self._setup)[clients].sum()) / self.m
