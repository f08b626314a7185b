"""The exchange between neighbours on a graph: nodes of a host get rows of other nodes, mixed, summed or single.

Rows of nodes on this host and on others are ordered by node number, so each sum runs over neighbours in rising number,
and its bits do not depend on the hosts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.host import Host
from mpifed.federation.request import Request
from mpifed.graphs.weights import Mixing, Weights

MIX = "mix"
ADD = "add"
GATHER = "gather"  # these three are types of requests
REPLACE = "replace"  # the method that writes results of an exchange to its fields


class Neighbours(NamedTuple):
    """The rows of the neighbours of c nodes, node by node, neighbours in rising number.

    Those of node k are ``rows[first[k]:first[k + 1]]``.

        >>> near = mpifed.extend.Neighbours(rows=np.ones((3, 2)), first=np.array([0, 2, 3]), weights=np.full(3, 0.5))
        >>> np.add.reduceat(near.rows, near.first[:-1])
        array([[2., 2.],
               [1., 1.]])
    """

    rows: Array  # (e, n)
    first: Array  # (c + 1,)
    weights: Array  # (e,) W_ij


class HostLinks(Protocol):
    """A carrier of rows between hosts."""

    seconds: float  # spent so far

    def exchange_rows(self, rows: Array, to: Array, come: Array) -> Array:
        """Send ``rows`` (k, N) in order, ``to[h]`` to host h; return the received rows, ``come[h]`` from host h."""


class ExchangePlan(NamedTuple):
    """The plan of an exchange with the weights of a round: rows to send and receive, and this host's rows of W."""

    mixing: Mixing
    W: Any  # csr_array (own nodes, all nodes with a row here), in rising number
    A: Any  # W with 1 for every neighbour and without the diagonal
    below: int  # number of nodes on other hosts with numbers below this host's
    rows_to_send: Array  # own nodes, counted from lo, whose rows are sent, host by host
    to_hosts: Array  # (hosts,) number of rows to each
    from_hosts: Array  # (hosts,) number of rows from each


class NeighbourInput(NamedTuple):
    """Results (own, n) of an exchange for the host's nodes, or with ``neighbours`` the rows of their neighbours."""

    names: tuple[str, ...] = ()  # fields of the parts
    parts: tuple[Array, ...] = ()
    neighbours: Neighbours | None = None

    def select(self, nodes: Array) -> tuple[Any, ...]:
        """Return the results of some nodes, counted from lo, as arguments of a client method."""
        if self.neighbours is None:
            return tuple([part[nodes] for part in self.parts])
        rows, first, weights = self.neighbours
        counts = (first[1:] - first[:-1])[nodes]
        starts = np.concatenate([[0], np.cumsum(counts)])
        picks = np.arange(starts[-1]) + np.repeat(first[nodes] - starts[:-1], counts)
        return (Neighbours(rows[picks], starts, weights[picks]),)

    def replace(self, f: Any, client: Any, *values: Array) -> tuple[Any, None]:
        """Return the state with results written to their fields: a client method."""
        return client._replace(**dict(zip(self.names, values, strict=True))), None


class Neighbourhood:
    """The nodes lo <= i < hi of a graph on one host; ``cuts`` (hosts + 1,) are the first nodes of all hosts, and m."""

    def __init__(self, weights: Weights, lo: int, hi: int, cuts: list[int], dtype: Any) -> None:
        self.weights = weights
        self.lo = lo
        self.hi = hi
        self.cuts = np.asarray(cuts)
        self.dtype = dtype
        self.links: HostLinks | None = None
        self._plan: ExchangePlan | None = None

    def plan(self, round: int) -> ExchangePlan:
        """Return the plan of a round; rounds with the same weights share it."""
        mixing = self.weights.at(round)
        if self._plan is None or self._plan.mixing is not mixing:
            self._plan = self._make_plan(mixing)
        return self._plan

    def partners(self) -> Array:
        """Return the hosts that rows are sent to, and received from, in any round."""
        if self.weights.graph.is_redrawn:
            # links are made once, before round one, and a graph drawn anew may later connect any two hosts
            this_host = self.cuts.searchsorted(self.lo, side="right") - 1
            return np.delete(np.arange(len(self.cuts) - 1), this_host)
        return np.flatnonzero(self.plan(0).to_hosts)

    def _make_plan(self, mixing: Mixing) -> ExchangePlan:
        """Make the plan of an exchange with the weights ``mixing``."""
        W_own = mixing.W[self.lo : self.hi]
        rows = np.repeat(np.arange(self.hi - self.lo), np.diff(W_own.indptr))
        columns = W_own.indices.astype(np.int64)
        is_remote = (columns < self.lo) | (columns >= self.hi)
        others = np.unique(columns[is_remote])
        all_nodes = np.concatenate([others[others < self.lo], np.arange(self.lo, self.hi), others[others >= self.hi]])
        hosts, size = len(self.cuts) - 1, self.hi - self.lo
        owner = self.cuts.searchsorted(columns[is_remote], side="right") - 1
        # both sides compute the rows to send from W, which is symmetric, and need not ask each other
        sends = np.unique(owner * size + rows[is_remote])
        positions = all_nodes.searchsorted(columns)
        W = sp.csr_array((W_own.data.astype(self.dtype), positions, W_own.indptr), shape=(size, len(all_nodes)))
        below = int((others < self.lo).sum())
        off_diagonal = positions != rows + below
        first = np.concatenate([[0], np.cumsum(np.diff(W_own.indptr) - 1)])
        A = sp.csr_array((np.ones(int(first[-1]), self.dtype), positions[off_diagonal], first), shape=W.shape)
        come = np.bincount(self.cuts.searchsorted(others, side="right") - 1, minlength=hosts)
        return ExchangePlan(mixing, W, A, below, sends % size, np.bincount(sends // size, minlength=hosts), come)

    def request_handlers(self, host: Host) -> dict[str, Callable[[Request], Callable[..., tuple[Any, Any]]]]:
        """Return the handlers of graph requests: an exchange, and then the client method with its results."""

        def exchange(request: Request) -> Callable[..., tuple[Any, Any]]:
            inputs = self.receive_fields(request, host.state, None if host.sorted else host.slot)
            method = inputs.replace if request.method == REPLACE else host.client_method(request.method)
            return lambda batch, *args: method(batch.f, batch.state, *inputs.select(batch.f.ids - self.lo), *args)

        return dict.fromkeys((MIX, ADD, GATHER), exchange)

    def receive_fields(self, request: Request, state: Any, slot: Array | None) -> NeighbourInput:
        """Exchange the fields of the nodes' state that a request names, and return the results.

        ``slot[k]`` is the position of node lo + k in the state; None: k.
        """
        request_type, *names = request.request_type
        plan = self.plan(request.key[0])
        rows = self.rows(names, state, slot)
        if self.links is not None:
            received = self.links.exchange_rows(rows[plan.rows_to_send], plan.to_hosts, plan.from_hosts)
            # ordered by node number, not by host, so that each sum has the same order on any hosts
            rows = np.concatenate([received[: plan.below], rows, received[plan.below :]])  # in rising number
        if request_type == GATHER:
            nodes = np.repeat(np.arange(self.hi - self.lo), np.diff(plan.W.indptr))
            weights = plan.W.data[plan.W.indices != nodes + plan.below]
            return NeighbourInput(tuple(names), neighbours=Neighbours(rows[plan.A.indices], plan.A.indptr, weights))
        mixed = (plan.W if request_type == MIX else plan.A) @ rows
        return NeighbourInput(tuple(names), tuple(np.split(mixed, len(names), axis=1)))

    def rows(self, names: Sequence[str], state: Any, slot: Array | None) -> Array:
        """Return fields of the host's nodes side by side, nodes in rising number: (own, N)."""
        fields: list[Any] = [getattr(state, name, None) for name in names]
        for name, field in zip(names, fields, strict=True):
            if field is None or field.ndim != 2:
                raise UserError(
                    f"{name!r} cannot travel between nodes: it must be a field of the clients' state of shape (c, n), "
                    f"one of {', '.join(state._fields)}"
                )
        return np.concatenate([field if slot is None else field[slot] for field in fields], axis=1)
