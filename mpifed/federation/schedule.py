"""When clients take part, and how time passes: what every schedule does, and the one that waits for all."""

from collections.abc import Callable, Sequence

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.request import Request
from mpifed.federation.stage import Postage, ServerStage
from mpifed.graphs.weights import Mixing

NOTHING_SENT = "no upload can arrive: fed.send must be called before fed.arrivals"

Draw = Callable[[int], Array | None]  # number of the selection in the round, from 0 -> the clients, rising; None: all


class Schedule:
    """Rounds that wait for all the clients that they select; no time is simulated.

    ``selected`` are the clients that take part (None: all), ``asked`` those of the selection, also the absent,
    ``times_selected`` (m,) how often each has taken part, ``steps`` (c,) the local steps of the selected (None: all),
    ``seconds`` the simulated time, ``under_way`` the client method that runs beyond the round, ``stages`` what requests
    pass because of the schedule.
    """

    seconds = 0.0
    under_way = ""
    steps: Array | None = None
    stages: Sequence[ServerStage] = ()

    def __init__(self, m: int) -> None:
        self.m = m
        self.times_selected = np.zeros(m, np.int64)
        self.selected: Array | None = None
        self.asked: Array | None = None
        self.round = self.again = 0
        self._sent: tuple[Request, Postage] | None = None

    def begin(self, round: int) -> None:
        """A new round."""
        self.round = round
        self.again = 0

    def select(self, draw: Draw, units: int) -> Array | None:
        """The clients of a selection that take part; they do ``units`` times the work of the method."""
        self.asked = self.selected = draw(self.again)
        self.again += 1
        self.count()
        return self.selected

    @property
    def free(self) -> Array | None:
        """The clients that are not under way, rising; None: all."""
        return None

    def drop(self, age: int) -> None:
        """Let the clients drop their work that began it at least ``age`` rounds ago; none where rounds wait for all."""

    def count(self) -> None:
        """Count those that take part."""
        self.times_selected[slice(None) if self.selected is None else self.selected] += 1

    def scored(self, candidates: Array, batch: int | None, size: int) -> None:
        """Candidates score themselves on ``batch`` samples (0: all; None: they work), and send ``size`` bytes."""

    def send(self, request: Request, postage: Postage) -> bool:
        """Take a request whose uploads are asked for later; whether it is on its way at once."""
        self._sent = request, postage
        return False

    def arrivals(self) -> Array | None:
        """The clients whose uploads are there, rising, None for all: those that ``send`` went to."""
        if self._sent is None:
            raise UserError(NOTHING_SENT)
        return self._sent[0].to

    @property
    def ages(self) -> Array:
        """How many rounds old the uploads are that arrived last: (c,)."""
        return np.zeros(self.m if self._sent is None else self._sent[0].count(self.m), np.int64)

    def uploads(self, of: Array | None) -> tuple[Request | None, Request, Postage]:
        """What must be computed before (None: nothing), and the request for the uploads of the clients ``of``."""
        assert self._sent is not None
        sent, postage = self._sent
        request = Request(sent.method, sent.args, sent.to, sent.each)
        return None, request, Postage(bits=postage.bits)

    def exchanged(self, mixing: Mixing, size: int, sending: Array | None) -> None:
        """Nodes of a graph send messages of ``size`` bytes along all edges, or only those ``sending`` (m,) bool."""

    def row(self) -> dict[str, float]:
        """The columns of the round."""
        return {}

    def saved(self) -> dict[str, Array]:
        """What a checkpoint keeps beside ``seconds`` and ``under_way``: arrays with a blank in their names."""
        return {}

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        """Go on from a checkpoint."""
        self.seconds = seconds
