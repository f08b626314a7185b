"""Clients as nodes of a graph: they work on their own and exchange vectors with their neighbours, without a server."""

from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.calls import ClientMethod
from mpifed.federation.ids import numbers_or_refused
from mpifed.federation.method import ServerState
from mpifed.federation.peers.neighbourhood import ADD, GATHER, MIX, REPLACE
from mpifed.federation.request import EVALUATE, FOR_THE_RECORD, Request
from mpifed.federation.server import Federation
from mpifed.federation.stage import Postage
from mpifed.federation.sums import divided
from mpifed.graphs.weights import Weights

Fields = str | tuple[str, ...]


class Network(Federation):
    """m nodes behind a transport, and the weights W of the graph between them.

    A round consists of the four verbs ``local``, ``mix``, ``add`` and ``gather``. They call a client method
    method(f, client, …), which returns the new state and None: nothing travels to rank 0. Its further arguments are
    single numbers that all nodes know, such as a step size. A verb reads the state that the one before it left.

    - ``net.local(method, *args)``: every node works on its own state; nothing travels.
    - ``net.mix("z", method, *args)``: every node gets Σ_j W_ij z_j, with itself: method(f, client, mixed, *args).
    - ``net.add("z", method, *args)``: every node gets Σ_j z_j over its neighbours, without itself.
    - ``net.gather("z", method, *args)``: every node gets the z_j themselves, as ``Neighbours``.

    "z" is a field of the clients' state of shape (c, n), or a tuple of such fields, which travel as one message and
    arrive as one argument each. Without a method the results of ``mix`` and ``add`` replace the fields. Sums run over
    j in rising number, so that they have the same bits on any number of ranks. ``f.neighbours`` (c, 1) are the numbers
    of neighbours d_i in this round. Before round one also ``max``, ``sum`` and ``call`` may be used, for constants that
    all nodes have agreed on; they are charged to no ledger.

    What rank 0 records is the mean of the field ``x`` of the clients' state.

        >>> class Twice(mpifed.algorithms.DGD, tag="twice"):
        ...     def round(self, net: mpifed.Network, server):
        ...         net.mix("x")
        ...         return super().round(net, server)
        >>> mpifed.run(algorithm=Twice(), graph="ring", rounds=2).cr
        2
    """

    weights: Weights

    @property
    def least(self) -> float:
        """A lower bound of the eigenvalues of W."""
        return self.weights.least

    def local(self, method: ClientMethod, *args: Any, to: Array | None = None) -> None:
        """Run method(f, client, *args) on the nodes ``to`` (rising numbers; None: all), each on its own state."""
        self._work(Request(method.__name__, args, to))

    def mix(
        self,
        fields: Fields,
        method: ClientMethod | None = None,
        *args: Any,
        of: Array | None = None,
        bits: int | None = None,
    ) -> None:
        """Each node gets Σ_j W_ij z_j over itself and its neighbours.

        ``of`` names the nodes (rising) that send: the others' fields are what they were when they were sent last, so
        their neighbours still have them. It says what is charged and waited for; the sums are over all neighbours.
        ``bits`` is what one message has where the fields do not travel themselves, but short messages from which
        neighbours know them, such as compressed differences to what they knew before.
        """
        self._exchange(request(MIX, fields, method, args), of, bits)

    def add(self, fields: Fields, method: ClientMethod | None = None, *args: Any, of: Array | None = None) -> None:
        """Each node gets Σ_j z_j over its neighbours."""
        self._exchange(request(ADD, fields, method, args), of)

    def gather(
        self, field: str, method: ClientMethod, *args: Any, of: Array | None = None, to: Array | None = None
    ) -> None:
        """Each node (or only those ``to``) gets the rows z_j of its neighbours: method(f, client, near, *args)."""
        self._exchange(request(GATHER, field, method, args, to), of)

    def observed(self, server: ServerState) -> ServerState:
        """The server's state with the mean model of the nodes in its field x; charged to no ledger."""
        total = self._ask(Request("model", reduce=self._sum, verb=EVALUATE))
        return super().observed(server._replace(x=divided(total, self.m)))

    def _exchange(self, exchange: Request, of: Array | None, bits: int | None = None) -> None:
        of = None if of is None else numbers_or_refused(of, self.m, "of=")
        self._work(exchange)
        if not self.round:
            return
        mixing = self.weights.at(self.round)
        if bits is None:
            bits = 8 * (len(exchange.verb) - 1) * self.n * self.dtype.itemsize
        # an edge carries one message each way
        messages = 2 * mixing.edges if of is None else int(mixing.degrees[of].sum())
        self.ledger.carry(messages, bits)
        self.schedule.exchanged(mixing, -(-bits // 8), None if of is None else self.mask(of))

    def _work(self, request: Request) -> None:
        """Have nodes work; they reply with nothing."""
        if any(isinstance(value, np.ndarray) for value in request.args):
            raise UserError(
                f"the client method {request.method} gets an array as an argument, and nodes have no server that could "
                "send it: arguments must be single numbers"
            )
        if super()._ask(request) is not None:
            raise UserError(
                f"the client method {request.method} returns an upload, and nodes have no server to send it to: it "
                "must return the new state and None"
            )

    def _ask(self, request: Request, postage: Postage | None = None) -> Any:
        """Refuse what takes a server in a round."""
        if self.round and request.verb not in FOR_THE_RECORD:
            raise UserError(
                f"{self.setup.algorithm.label()} calls {request.method} through a server in round {self.round}, and "
                "with a table [graph] there is none: a round may use local, mix, add and gather only"
            )
        return super()._ask(request, postage)


def request(
    kind: str, fields: Fields, method: ClientMethod | None, args: tuple[Any, ...], to: Array | None = None
) -> Request:
    """The request of a verb about some fields; without a method what nodes get replaces these."""
    names = (fields,) if isinstance(fields, str) else tuple(fields)
    return Request(REPLACE if method is None else method.__name__, args, to, verb=(kind, *names))
