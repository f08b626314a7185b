"""The run of clients on a graph: nodes that exchange vectors with their neighbours, without a server."""

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.ids import parse_client_argument
from mpifed.federation.local import Local
from mpifed.federation.method import Args, ClientMethod, ServerState
from mpifed.federation.peers.neighbourhood import ADD, GATHER, MIX, REPLACE, Neighbours
from mpifed.federation.request import EVALUATE, FOR_THE_RECORD, Request
from mpifed.federation.server import Federation
from mpifed.federation.sums import divide_sum
from mpifed.federation.transform import MessageCost
from mpifed.graphs.weights import Weights

Fields = str | tuple[str, ...]
NodeCall = Callable[[Local, Any, *Args], tuple[Any, None]]  # nodes upload nothing


class GraphFederation(Federation):
    """The nodes of a graph behind a transport, and the weights W of its edges.

    A round consists of calls of ``local``, ``mix``, ``add`` and ``gather``. They call a client method
    method(f, client, …), which returns the new state and None: nothing travels to rank 0. Further arguments are single
    numbers that all nodes know, such as a step size. Each call reads the state that the one before it left.

    - ``net.local(method, *args)``: every node works on its own state; nothing travels.
    - ``net.mix("z", method, *args)``: every node gets Σ_j W_ij z_j, including itself: method(f, client, mixed, *args).
    - ``net.add("z", method, *args)``: every node gets Σ_j z_j over its neighbours, without itself.
    - ``net.gather("z", method, *args)``: every node gets the z_j of its neighbours, as ``Neighbours``.

    "z" is a field of the clients' state of shape (c, n), or a tuple of such fields, which travel as one message and
    arrive as one argument each. Without a method the results of ``mix`` and ``add`` replace the fields. Sums run over
    j in rising number, so that they have the same bits on any number of ranks. ``f.neighbours`` (c, 1) are the numbers
    of neighbours d_i in this round. Before round one, ``max``, ``sum`` and ``call`` may be used too, for constants that
    all nodes agree on; they are charged to no ledger.

    Rank 0 records the mean of the field ``x`` of the clients' state.

        >>> class Twice(mpifed.algorithms.DGD, tag="twice"):
        ...     def round(self, net: mpifed.extend.GraphFederation, server):
        ...         net.mix("x")
        ...         return super().round(net, server)
        >>> mpifed.run(algorithm=Twice(), graph="ring", rounds=2).cr
        2
    """

    weights: Weights

    @property
    def min_eigenvalue(self) -> float:
        """Lower bound of the eigenvalues of W."""
        return self.weights.min_eigenvalue

    def local(self, method: NodeCall[*Args], *args: *Args, to: Array | None = None) -> None:
        """Run method(f, client, *args) on the nodes ``to`` (rising numbers; None: all), each on its own state."""
        self._work(Request(method.__name__, args, to))

    @overload
    def mix(self, fields: Fields, *, of: Array | None = None, bits: int | None = None) -> None: ...
    @overload
    def mix(
        self,
        fields: str,
        method: NodeCall[Array, *Args],
        *args: *Args,
        of: Array | None = None,
        bits: int | None = None,
    ) -> None: ...
    @overload
    def mix(
        self,
        fields: tuple[str, str],
        method: NodeCall[Array, Array, *Args],
        *args: *Args,
        of: Array | None = None,
        bits: int | None = None,
    ) -> None: ...
    def mix(  # type: ignore[misc]  # mypy does not see that Any takes *Args
        self,
        fields: Fields,
        method: ClientMethod | None = None,
        *args: Any,
        of: Array | None = None,
        bits: int | None = None,
    ) -> None:
        """Give each node Σ_j W_ij z_j over itself and its neighbours.

        ``of`` are the nodes (rising) that send. Fields of the others have not changed since they were sent last, so
        their neighbours have them: sums are over all neighbours, but only senders are charged and waited for. ``bits``
        is the size of a message if short messages replace the fields, such as compressed differences.
        """
        self._exchange(graph_request(MIX, fields, method, args), of, bits)

    @overload
    def add(self, fields: Fields, *, of: Array | None = None) -> None: ...
    @overload
    def add(self, fields: str, method: NodeCall[Array, *Args], *args: *Args, of: Array | None = None) -> None: ...
    def add(  # type: ignore[misc]  # mypy does not see that Any takes *Args
        self, fields: Fields, method: ClientMethod | None = None, *args: Any, of: Array | None = None
    ) -> None:
        """Give each node Σ_j z_j over its neighbours."""
        self._exchange(graph_request(ADD, fields, method, args), of)

    def gather(
        self,
        field: str,
        method: NodeCall[Neighbours, *Args],
        *args: *Args,
        of: Array | None = None,
        to: Array | None = None,
    ) -> None:
        """Give each node (or only those ``to``) the rows z_j of its neighbours: method(f, client, near, *args)."""
        self._exchange(graph_request(GATHER, field, method, args, to), of)

    def transform_state(self, server: ServerState) -> ServerState:
        """Return the server's state with the mean model of the nodes in its field x; charged to no ledger."""
        total = self._ask(Request("model", reduce=self._sum, request_type=EVALUATE))
        return super().transform_state(server._replace(x=divide_sum(total, self.m)))

    def _exchange(self, exchange: Request, of: Array | None, bits: int | None = None) -> None:
        """Run an exchange, charge its messages, and tell the schedule."""
        of = None if of is None else parse_client_argument(of, self.m, "of=")
        self._work(exchange)
        if not self.round:
            return
        mixing = self.weights.at(self.round)
        if bits is None:
            bits = 8 * (len(exchange.request_type) - 1) * self.n * self.dtype.itemsize
        # an edge carries one message each way
        messages = 2 * mixing.edges if of is None else int(mixing.degrees[of].sum())
        self.ledger.charge_edges(messages, bits)
        self.schedule.note_exchange(mixing, -(-bits // 8), None if of is None else self.mask(of))

    def _work(self, request: Request) -> None:
        """Run a request on nodes; raise UserError if it sends an array or returns an upload."""
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

    def _ask(self, request: Request, cost: MessageCost | None = None) -> Any:
        """Send a request; raise UserError if it needs a server in a round."""
        if self.round and request.request_type not in FOR_THE_RECORD:
            raise UserError(
                f"{self.setup.algorithm.label()} calls {request.method} through a server in round {self.round}, and "
                "with a table [graph] there is none: a round may use local, mix, add and gather only"
            )
        return super()._ask(request, cost)


def graph_request(
    request_type: str, fields: Fields, method: ClientMethod | None, args: tuple[Any, ...], to: Array | None = None
) -> Request:
    """Make a graph request about some fields; without a method the results replace the fields."""
    names = (fields,) if isinstance(fields, str) else tuple(fields)
    return Request(REPLACE if method is None else method.__name__, args, to, request_type=(request_type, *names))
