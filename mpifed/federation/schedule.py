"""The schedule of a run: which clients take part and when. The one here waits for all, and simulates no time."""

from collections.abc import Callable

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.request import Request
from mpifed.federation.transform import MessageCost
from mpifed.graphs.weights import Mixing

NOTHING_SENT = "no upload can arrive: fed.send must be called before fed.arrivals"

SelectionDraw = Callable[
    [int], Array | None
]  # number of the selection in the round, from 0 -> clients, rising (None: all)


class Schedule:
    """A schedule of rounds that wait for all selected clients; no time is simulated.

    ``selected`` are the clients that take part (None: all), ``requested_clients`` the selected ones including absent
    ones, ``times_selected`` (m,) the number of times that each has taken part, ``steps`` (c,) the local steps of the
    selected (None: all), ``seconds`` the simulated time, ``under_way`` the client method that runs beyond the round,
    ``present`` the clients among which a round selects (None: all).

        >>> class Alternating(mpifed.extend.Schedule):
        ...     def select(self, draw, repeats):
        ...         self.selected = np.arange(self.round % 2, self.m, 2)
        ...         self.count()
        ...         return self.selected
    """

    seconds = 0.0
    under_way = ""
    steps: Array | None = None
    present: Array | None = None

    def __init__(self, m: int) -> None:
        self.m = m
        self.times_selected = np.zeros(m, np.int64)
        self.selected: Array | None = None
        self.requested_clients: Array | None = None
        self.round = self.again = 0
        self._sent: tuple[Request, MessageCost] | None = None

    def begin(self, round: int) -> None:
        """Begin a round."""
        self.round = round
        self.again = 0

    def select(self, draw: SelectionDraw, repeats: int) -> Array | None:
        """Select clients, and return those that take part; they do ``repeats`` times the work of the method."""
        self.requested_clients = self.selected = draw(self.again)
        self.again += 1
        self.count()
        return self.selected

    @property
    def free(self) -> Array | None:
        """Clients that are not under way, rising; None: all."""
        return None

    def drop(self, age: int) -> None:
        """Discard work that clients began at least ``age`` rounds ago; there is none where rounds wait for all."""

    def check(self, request: Request) -> None:
        """Raise UserError for a request that the schedule does not allow."""

    def count(self) -> None:
        """Count the clients that take part."""
        self.times_selected[slice(None) if self.selected is None else self.selected] += 1

    def note_scores(self, candidates: Array, batch: int | None, size: int) -> None:
        """Note that candidates send scores of ``size`` bytes, computed on ``batch`` samples (0: all; None: by work)."""

    def send(self, request: Request, cost: MessageCost) -> bool:
        """Take a request whose uploads are asked for later; return whether it is sent at once."""
        self._sent = request, cost
        return False

    def arrivals(self) -> Array | None:
        """Return the clients whose uploads are there, rising (None: all): those that ``send`` went to."""
        if self._sent is None:
            raise UserError(NOTHING_SENT)
        return self._sent[0].to

    @property
    def ages(self) -> Array:
        """Age in rounds of each upload that arrived last: (c,)."""
        return np.zeros(self.m if self._sent is None else self._sent[0].count(self.m), np.int64)

    def uploads(self, of: Array | None) -> tuple[Request | None, Request, MessageCost]:
        """Return a request to compute first (None: nothing), the request for the uploads of ``of``, and its cost."""
        assert self._sent is not None
        sent, cost = self._sent
        request = Request(sent.method, sent.args, sent.to, sent.each)
        return None, request, MessageCost(bits=cost.bits)

    def note_exchange(self, mixing: Mixing, size: int, sending: Array | None) -> None:
        """Note that nodes of a graph, all or those in ``sending`` (m,) bool, send ``size`` bytes along each edge."""

    def row(self) -> dict[str, float]:
        """Return the recorded columns of the round."""
        return {}

    def export_state(self) -> dict[str, Array]:
        """Return arrays for a checkpoint, with a blank in their names; it has ``seconds`` and ``under_way`` besides."""
        return {}

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        """Restore the state from a checkpoint."""
        self.seconds = seconds
