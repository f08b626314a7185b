"""The privacy budget that noisy uploads spend."""

from typing import Any, NamedTuple, Protocol, TypeVar

from mpifed.algorithms.bases.algorithm import Privacy
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.federation.method import ServerState

# of noise that no seed repeats: it has other bits on other ranks and after resuming, and lost uploads count again
DRAWN_ANEW = Keeps.SURVIVAL | Keeps.DEVICES
# how much more ε covers the Rényi divergence of discrete Laplace noise of a scale of 1024 steps or more
GRID = 1 + 1e-6


class Counting(ServerState, Protocol):
    """The state of a server that counts the noisy uploads of each client so far."""

    @property
    def uploads(self) -> Array: ...  # (m,)


State = TypeVar("State", bound=Counting)


def recounted(server: State, rounds: int, privacy: Privacy | None) -> State:
    """The server's state with ``rounds`` more ``uploads`` of each client, where noise with a guarantee is drawn anew.

    The lost draws may have left their clients, so they count too.
    """
    # noise of a stream is drawn again as it was: whoever saw it twice has not seen more
    return server._replace(uploads=server.uploads + rounds) if privacy and privacy.holds else server


def accounting() -> Any:
    """The library dp-accounting; UserError where it is missing."""
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError:
        raise UserError(
            "noise = \"clipped\" accounts for its budget with dp-accounting: pip install 'mpifed[privacy]'"
        ) from None
    return dp_accounting


class Budget(NamedTuple):
    """``releases`` of Laplace noise, each ``epsilon``-differentially private for the samples of one client."""

    epsilon: float
    releases: int

    def basic(self) -> float:
        """The ε spent by basic composition: the sum."""
        return self.epsilon * self.releases

    def accounted(self, delta: float) -> float:
        """The ε at ``delta`` by Rényi accounting of the Laplace mechanism, at most the sum.

        It bounds the law of rows too, for which the change of one number alone is the worst case, and with ``GRID``
        that of noise of whole grid steps. Raises UserError where the library dp-accounting is missing.
        """
        if self.releases == 0:
            return 0.0
        # Rényi accounting tries orders from a list, and can lose to the plain sum where there are few releases
        return min(self.basic(), composed("LaplaceDpEvent", 1 / (self.epsilon * GRID), self.releases, delta))


def composed(event: str, scale: float, releases: int, delta: float) -> float:
    """The ε at ``delta`` of releases with noise of a ``scale`` in units of the sensitivity, by Rényi accounting."""
    library = accounting()
    accountant = library.rdp.RdpAccountant(neighboring_relation=library.NeighboringRelation.REPLACE_ONE)
    accountant.compose(getattr(library, event)(scale), releases)
    return float(accountant.get_epsilon(delta))
