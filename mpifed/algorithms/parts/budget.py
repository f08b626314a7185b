"""Privacy budget spent by noisy uploads."""

from typing import Any, NamedTuple, Protocol, TypeVar

from mpifed.algorithms.bases.algorithm import Privacy
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.federation.method import ServerState

# for noise that no seed repeats: other bits on other ranks and after resuming, and lost uploads count again
DRAWN_ANEW = Supports.SURVIVAL | Supports.DEVICES
# factor of ε that covers the Rényi divergence of discrete Laplace noise of a scale of 1024 steps or more
GRID = 1 + 1e-6


class UploadCounts(ServerState, Protocol):
    """Server state that counts the noisy uploads of each client so far."""

    @property
    def uploads(self) -> Array: ...  # (m,)


State = TypeVar("State", bound=UploadCounts)


def count_replayed_uploads(server: State, rounds: int, privacy: Privacy | None) -> State:
    """Return the state with ``rounds`` more ``uploads`` of each client, if noise with a guarantee is drawn anew.

    Lost draws may have left their clients, so they count too.
    """
    # noise of a stream is drawn again as it was: whoever saw it twice has not seen more
    return server._replace(uploads=server.uploads + rounds) if privacy and privacy.holds else server


def import_accounting() -> Any:
    """Import the library dp-accounting; raise UserError where it is missing."""
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError:
        raise UserError(
            "noise that guarantees privacy is accounted for with dp-accounting: pip install 'mpifed[privacy]'"
        ) from None
    return dp_accounting


class Budget(NamedTuple):
    """Privacy budget of ``releases`` of Laplace noise, each ``epsilon``-private for the samples of one client."""

    epsilon: float
    releases: int

    def basic_epsilon(self) -> float:
        """Return the ε spent by basic composition, the sum."""
        return self.epsilon * self.releases

    def renyi_epsilon(self, delta: float) -> float:
        """Return the ε at ``delta`` by Rényi accounting of the Laplace mechanism, at most the sum.

        It bounds the law of rows too, for which the change of one number alone is the worst case, and with ``GRID``
        that of noise of whole grid steps. Raises UserError where the library dp-accounting is missing.
        """
        if self.releases == 0:
            return 0.0
        # Rényi accounting tries orders from a list, and can lose to the plain sum where there are few releases
        return min(
            self.basic_epsilon(),
            compute_renyi_epsilon("LaplaceDpEvent", 1 / (self.epsilon * GRID), self.releases, delta),
        )


def compute_renyi_epsilon(event: str, scale: float, releases: int, delta: float) -> float:
    """Return the ε at ``delta`` of releases by Rényi accounting; ``scale`` of the noise is in sensitivities."""
    library = import_accounting()
    accountant = library.rdp.RdpAccountant(neighboring_relation=library.NeighboringRelation.REPLACE_ONE)
    accountant.compose(getattr(library, event)(scale), releases)
    return float(accountant.get_epsilon(delta))
