"""What may follow the rounds of a run's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpifed.core.typing import Array

if TYPE_CHECKING:
    from mpifed.federation.server import Federation


class Ending:
    """What happens to the server's state after a round and to what is evaluated; a plain run has none."""

    def observed(self, fed: Federation, server: Any) -> Any:
        """The server's state as it is recorded, and as the next round gets it."""
        return server

    def evaluated(self, fed: Federation, x: Array, found: dict[str, Array]) -> dict[str, Array]:
        """The sums over all clients at the model x (n,), by name."""
        return found
