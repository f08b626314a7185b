"""Changes of the server's state after a round, and of what is evaluated."""

from mpifed.core.typing import Array
from mpifed.federation.method import ServerState


class Ending:
    """A change of the server's state after a round, and of the evaluated sums; a plain run has none.

    >>> class Log(mpifed.Ending):
    ...     def observed(self, server):
    ...         print(float(server.x.sum()))
    ...         return server
    >>> class Logging(mpifed.Plugin):
    ...     def server(self, fed):
    ...         fed.endings.append(Log())
    """

    def transform_state(self, server: ServerState) -> ServerState:
        """Return the server's state as it is recorded and as the next round gets it."""
        return server

    def transform_sums(self, x: Array, sums: dict[str, Array]) -> dict[str, Array]:
        """Return the evaluated sums over all clients at the model x (n,), by name."""
        return sums
