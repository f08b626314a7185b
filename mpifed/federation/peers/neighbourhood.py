"""What the nodes of a host get of their neighbours: rows of the state of other nodes, mixed, added up or as they are.

The rows of the host's own nodes and of those on other hosts stand in the order of their numbers, so that each sum runs
over the neighbours in rising number, whichever host they are on: the bits do not depend on the hosts.
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
GATHER = "gather"  # these three are verbs of requests
REPLACE = "replace"  # the method that puts what nodes get of their neighbours into the fields it comes from


class Neighbours(NamedTuple):
    """The rows of the neighbours of c nodes, node by node, neighbours in rising number.

    Those of node k are ``rows[first[k]:first[k + 1]]``.

        >>> near = mpifed.Neighbours(rows=np.ones((3, 2)), first=np.array([0, 2, 3]), weights=np.full(3, 0.5))
        >>> np.add.reduceat(near.rows, near.first[:-1])
        array([[2., 2.],
               [1., 1.]])
    """

    rows: Array  # (e, n)
    first: Array  # (c + 1,)
    weights: Array  # (e,) W_ij


class Links(Protocol):
    """Carries rows between hosts."""

    seconds: float  # that it took so far

    def carry(self, rows: Array, to: Array, come: Array) -> Array:
        """Send ``rows`` (k, N), ``to[h]`` of them to host h, in order; the rows that come, ``come[h]`` from host h."""


class Plan(NamedTuple):
    """What travels for the weights of a round, and the host's own rows of W."""

    mixing: Mixing
    W: Any  # csr_array (own nodes, ``below`` + own + other nodes), in rising number
    A: Any  # the same with 1 for every neighbour and without the node itself
    below: int  # nodes on other hosts with numbers below the host's own
    sent: Array  # own nodes, counted from lo, whose rows go to other hosts, host by host
    to: Array  # (hosts,) how many to each
    come: Array  # (hosts,) how many rows come from each


class FromNeighbours(NamedTuple):
    """What the host's nodes got: results (own, n), or with ``near`` the rows of their neighbours."""

    names: tuple[str, ...] = ()  # of the fields that the parts come from
    parts: tuple[Array, ...] = ()
    near: Neighbours | None = None

    def of(self, nodes: Array) -> tuple[Any, ...]:
        """The same for some nodes, counted from lo: arguments of a client method."""
        if self.near is None:
            return tuple([part[nodes] for part in self.parts])
        rows, first, weights = self.near
        counts = (first[1:] - first[:-1])[nodes]
        begins = np.concatenate([[0], np.cumsum(counts)])
        picks = np.arange(begins[-1]) + np.repeat(first[nodes] - begins[:-1], counts)
        return (Neighbours(rows[picks], begins, weights[picks]),)

    def replace(self, f: Any, client: Any, *values: Array) -> tuple[Any, None]:
        """A client method: the state with results in the fields that they come from."""
        return client._replace(**dict(zip(self.names, values, strict=True))), None


class Neighbourhood:
    """The nodes lo <= i < hi of a graph, on one of the hosts that ``cuts`` (hosts + 1,) names."""

    def __init__(self, weights: Weights, lo: int, hi: int, cuts: list[int], dtype: Any) -> None:
        self.weights = weights
        self.lo = lo
        self.hi = hi
        self.cuts = np.asarray(cuts)
        self.dtype = dtype
        self.links: Links | None = None
        self._plan: Plan | None = None

    def plan(self, round: int) -> Plan:
        """The plan of a round; one for all rounds with the same weights."""
        mixing = self.weights.at(round)
        if self._plan is None or self._plan.mixing is not mixing:
            self._plan = self._made(mixing)
        return self._plan

    def partners(self) -> Array:
        """The hosts that rows are sent to, and come from, in any round."""
        if self.weights.graph.drawn_anew:
            # a graph that is drawn anew may connect any two hosts in some round: links are made once, before round one
            own = self.cuts.searchsorted(self.lo, side="right") - 1
            return np.delete(np.arange(len(self.cuts) - 1), own)
        return np.flatnonzero(self.plan(0).to)

    def _made(self, mixing: Mixing) -> Plan:
        own = mixing.W[self.lo : self.hi]
        rows = np.repeat(np.arange(self.hi - self.lo), np.diff(own.indptr))
        columns = own.indices.astype(np.int64)
        away = (columns < self.lo) | (columns >= self.hi)
        others = np.unique(columns[away])
        known = np.concatenate([others[others < self.lo], np.arange(self.lo, self.hi), others[others >= self.hi]])
        hosts, size = len(self.cuts) - 1, self.hi - self.lo
        owner = self.cuts.searchsorted(columns[away], side="right") - 1
        # hosts do not tell each other what they need: both sides compute it from W, which is symmetric
        sent = np.unique(owner * size + rows[away])
        places = known.searchsorted(columns)
        W = sp.csr_array((own.data.astype(self.dtype), places, own.indptr), shape=(size, len(known)))
        below = int((others < self.lo).sum())
        other = places != rows + below
        first = np.concatenate([[0], np.cumsum(np.diff(own.indptr) - 1)])
        A = sp.csr_array((np.ones(int(first[-1]), self.dtype), places[other], first), shape=W.shape)
        come = np.bincount(self.cuts.searchsorted(others, side="right") - 1, minlength=hosts)
        return Plan(mixing, W, A, below, sent % size, np.bincount(sent // size, minlength=hosts), come)

    def verbs(self, host: Host) -> dict[str, Callable[[Request], Callable[..., tuple[Any, Any]]]]:
        """What the host does at the verbs of a graph: the exchange, then the client method with what has come."""

        def exchange(request: Request) -> Callable[..., tuple[Any, Any]]:
            came = self.arrived(request, host.state, None if host.sorted else host.slot)
            method = came.replace if request.method == REPLACE else host.client_method(request.method)
            return lambda visit, *args: method(visit.f, visit.state, *came.of(visit.f.ids - self.lo), *args)

        return dict.fromkeys((MIX, ADD, GATHER), exchange)

    def arrived(self, request: Request, state: Any, slot: Array | None) -> FromNeighbours:
        """What a request brings to the nodes, from the fields that it names of their state.

        ``slot``: where the node lo + k stands in the state; None: at k.
        """
        kind, *names = request.verb
        plan = self.plan(request.key[0])
        rows = self.rows(names, state, slot)
        if self.links is not None:
            come = self.links.carry(rows[plan.sent], plan.to, plan.come)
            # rows stand by client number, not by host, so that each sum runs over neighbours in the same order
            # everywhere
            rows = np.concatenate([come[: plan.below], rows, come[plan.below :]])  # in rising number
        if kind == GATHER:
            nodes = np.repeat(np.arange(self.hi - self.lo), np.diff(plan.W.indptr))
            weights = plan.W.data[plan.W.indices != nodes + plan.below]
            return FromNeighbours(tuple(names), near=Neighbours(rows[plan.A.indices], plan.A.indptr, weights))
        mixed = (plan.W if kind == MIX else plan.A) @ rows
        return FromNeighbours(tuple(names), tuple(np.split(mixed, len(names), axis=1)))

    def rows(self, names: Sequence[str], state: Any, slot: Array | None) -> Array:
        """The fields of the host's own nodes side by side, in rising number: (own, N)."""
        fields: list[Any] = [getattr(state, name, None) for name in names]
        for name, field in zip(names, fields, strict=True):
            if field is None or field.ndim != 2:
                raise UserError(
                    f"{name!r} cannot travel between nodes: it must be a field of the clients' state of shape (c, n), "
                    f"one of {', '.join(state._fields)}"
                )
        return np.concatenate([field if slot is None else field[slot] for field in fields], axis=1)
