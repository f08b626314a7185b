"""What may follow the rounds of a run's server."""

from mpifed.core.typing import Array
from mpifed.federation.method import ServerState


class Ending:
    """What happens to the server's state after a round and to what is evaluated; a plain run has none.

    >>> class Log(mpifed.Ending):
    ...     def observed(self, server):
    ...         print(float(server.x.sum()))
    ...         return server
    >>> class Logging(mpifed.Feature):
    ...     def server(self, fed):
    ...         fed.endings.append(Log())
    """

    def observed(self, server: ServerState) -> ServerState:
        """The server's state as it is recorded, and as the next round gets it."""
        return server

    def evaluated(self, x: Array, found: dict[str, Array]) -> dict[str, Array]:
        """The sums over all clients at the model x (n,), by name."""
        return found
