"""Clients that never train: each rank with clients has some of them beside its host, and they are a service of it."""

from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.features.by_client.client_numbers import numbers
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.method import Method, PersonalFrom
from mpifed.federation.request import EVALUATE, HostReport, Layout, Reply, Request


class Nothing(NamedTuple):
    """The state of clients that keep nothing."""


class Trying:
    """Their client methods: ``steps`` gradient steps of the size ``step`` (None: 1/r_i), and the numbers ``names``."""

    def __init__(self, algorithm: Method, names: list[str], steps: int, step: float | None) -> None:
        self.algorithm = algorithm
        self.names = names
        self.steps = steps
        self.step = step

    def join(self, f: Local) -> Nothing:
        return Nothing()

    def tested(self, f: Local, client: Nothing, x: Array) -> dict[str, Array]:
        """The numbers at the server's model x (n,), …_after the steps of each client, and at the personal model that a
        method makes from x; ``check`` is 0 where these models are finite: (c,) each.
        """
        X = self.trained(f, x)
        found = numbers(f, x, self.names)
        found |= numbers(f, X, self.names, "{}_after")
        if isinstance(self.algorithm, PersonalFrom):
            own = self.algorithm.personal_from(f, x)
            found |= numbers(f, own, self.names, "personal_{}")
            X = X + own
        return found | {"check": 0 * f.xp.sum(X, axis=1)}

    def trained(self, f: Local, x: Array) -> Array:
        """x_i ← x_i − γ ∇f_i(x_i), ``steps`` times from x: (c, n)."""
        X = f.xp.tile(x, (len(f), 1))
        gamma = self.size(f, x)
        for _ in range(self.steps):
            X = X - gamma * f.grad(X)
        return X

    def size(self, f: Local, x: Array) -> Array | float:
        """γ, (c, 1) where it is 1/r_i."""
        if self.step is not None:
            return self.step
        gamma = 1 / f.lipschitz()[:, None]
        if f.xp is np:
            return gamma
        return f.xp.astype(gamma, x.dtype)  # r_i are doubles, and torch multiplies no samples of float32 with them


TESTED = Trying.tested.__name__


class Beside:
    """The service of a host that has clients beside it that never train: ``own`` of all ``count``, from ``first`` on.

    No verb: what a host does at a verb it does for each block of its own clients, and these are no clients of it.

    Their reply is one row with the numbers of all of them, 0 for those of other ranks: sums in any order put the rows
    together without rounding. Without ``own`` the rank has none of them.
    """

    def __init__(self, host: Host, own: Host | None, first: int, count: int) -> None:
        self.host = host
        self.own = own
        self.first = first
        self.count = count

    def tested(self, request: Request) -> tuple[Reply, HostReport]:
        """The reply to a request for their numbers."""
        if self.own is None:
            return Reply(np.zeros((1, 0), self.host.dtype), None), HostReport()
        asked = Request(TESTED, request.args, key=(request.key[0], 0), verb=EVALUATE)
        reply, report = self.own.handle(asked)
        self.host.evaluated += report.evaluating
        assert reply.layout is not None
        names = reply.layout.names
        rows = np.zeros((len(names), self.count), reply.rows.dtype)
        rows[:, self.first : self.first + len(reply.rows)] += reply.rows.T  # -0 becomes 0, as it does in sums
        return Reply(rows.reshape(1, -1), Layout(((self.count,),) * len(names), names)), report._replace(fault=0.0)
