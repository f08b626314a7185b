"""What is evaluated of each client beside f: of those that train, and of those that never do."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from mpifed.algorithms.bases.algorithm import Client, Local
from mpifed.core.errors import Trouble
from mpifed.core.typing import Array
from mpifed.data.unseen import Unseen
from mpifed.experiment.prepare import Prepared, host_of
from mpifed.experiment.seen import seen_by
from mpifed.experiment.settings import Evaluate, Experiment
from mpifed.federation.client_numbers import known, named, numbers, told
from mpifed.federation.host import Host
from mpifed.federation.method import Method, PersonalFrom
from mpifed.federation.request import EVALUATE, Request, unpack
from mpifed.federation.server import Federation
from mpifed.federation.traits import steering
from mpifed.federation.transport import InProcess

ByClient = dict[str, Array]  # numbers of each client (m,), by name
Looks = dict[str, Callable[[Array], ByClient]]  # table of the result -> its numbers at the server's model


def looking(config: Experiment, fed: Federation, parts: Prepared) -> Looks:
    """What a study asks to be evaluated of clients, by the table of the result; nothing where it asks for nothing."""
    found: Looks = {}
    if config.evaluate.clients:
        there = known(config.problem)
        wanted = np.array([there.index(name) for name in named(config.problem, config.evaluate.clients)])
        found["clients"] = lambda x: told(fed.inspect(config.algorithm.by_client, args=(x, wanted)))
    if parts.unseen is not None:
        found["unseen"] = partial(of_unseen, fed, newcomers(config, parts, parts.unseen), parts.unseen)
    return found


class Newcomers:
    """The client methods of clients that never train: they keep nothing."""

    def __init__(self, algorithm: Method, names: list[str], evaluate: Evaluate) -> None:
        self.algorithm, self.names = algorithm, names
        self.evaluate = evaluate

    def join(self, f: Local) -> Client:
        return Client()

    def tested(self, f: Local, client: Client, x: Array) -> ByClient:
        """The numbers at the server's model x (n,), …_after ``steps`` gradient steps of each client, and at the
        personal model that a method makes from x; and a check of these models, 0: (c,) each.
        """
        X = self.trained(f, x)
        found = numbers(f, x, self.names)
        found |= {f"{name}_after": values for name, values in numbers(f, X, self.names).items()}
        if isinstance(self.algorithm, PersonalFrom):
            own = self.algorithm.personal_from(f, x)
            found |= {f"personal_{name}": values for name, values in numbers(f, own, self.names).items()}
            X = X + own
        return found | {"check": 0 * f.xp.sum(X, axis=1)}

    def trained(self, f: Local, x: Array) -> Array:
        """x_i ← x_i − γ ∇f_i(x_i), ``steps`` times from x: (c, n)."""
        X = f.xp.tile(x, (len(f), 1))
        gamma = self.evaluate.step
        sizes = 1 / f.lipschitz()[:, None] if gamma is None else gamma
        for _ in range(self.evaluate.steps):
            X = X - sizes * f.grad(X)
        return X


def newcomers(config: Experiment, parts: Prepared, unseen: Unseen) -> Host:
    """The host of the clients that never train, on rank 0, where they have numbers above those of all others."""
    names = named(config.problem, config.evaluate.clients or True)
    setup = parts.setup._replace(
        m=unseen.data.m,
        masks=None,
        compress=None,
        weights=None,
        factors=None,
        per_sample=0.0,
        local=seen_by(config.problem)[0],
    )
    host = host_of(setup, unseen.data, (unseen.first, unseen.data.m), unseen.data.m - unseen.first)
    host.use(cast(Method, Newcomers(parts.setup.algorithm, names, config.evaluate)))
    host.inspected = host.algorithm
    host.join()
    return host


def of_unseen(fed: Federation, host: Host, unseen: Unseen, x: Array) -> ByClient:
    """The numbers of clients that never train at the server's model x (n,). Trouble where their steps diverge."""
    transport = InProcess(host)
    reply = transport.send(Request(Newcomers.tested.__name__, (x,), key=(fed.round, 0), verb=EVALUATE))
    if transport.report.fault:
        client = unseen.ids[unseen.data.m - int(transport.report.fault)]
        raise Trouble(
            f"the model of client {client}, which never trains, is not finite after steps of its own in round "
            f"{fed.round}: look at evaluate.step and, where the method trains it, {steering(host.setup.algorithm)}"
        )
    rows: dict[str, Any] = unpack(reply)
    del rows["check"]
    return told(rows)


def clients_of(clients: ByClient, unseen: Unseen | None) -> dict[str, ByClient]:
    """/clients of the result and, where some clients never train, /unseen; both with the clients of the data."""
    if unseen is None:
        return {"clients": clients}
    first = unseen.first
    own = {"data_client": unseen.ids[first:], "samples": unseen.data.sizes[first:]}
    return {"clients": clients | {"data_client": unseen.ids[:first]}, "unseen": own}
