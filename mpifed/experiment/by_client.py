"""What is evaluated of each client beside f: of those that train, and of those that never do."""

from collections.abc import Callable
from functools import partial

import numpy as np

from mpifed.core.errors import Trouble
from mpifed.core.typing import Array
from mpifed.data.unseen import Unseen
from mpifed.experiment.prepare import Prepared
from mpifed.features.settings import Experiment
from mpifed.federation.client_numbers import known, named, told
from mpifed.federation.newcomers import Newcomers
from mpifed.federation.server import Federation
from mpifed.federation.traits import steering

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
        found["unseen"] = partial(of_unseen, config, fed, parts.unseen)
    return found


def of_unseen(config: Experiment, fed: Federation, unseen: Unseen, x: Array) -> ByClient:
    """The numbers of clients that never train at the server's model x (n,). Trouble where their steps diverge."""
    rows: ByClient = fed.inspect(Newcomers.tested, "plain sum", (x,))
    bad = np.flatnonzero(~np.isfinite(rows.pop("check")))
    if len(bad):
        client = unseen.ids[unseen.first + bad[0]]
        raise Trouble(
            f"the model of client {client}, which never trains, is not finite after steps of its own in round "
            f"{fed.round}: look at evaluate.step and, where the method trains it, {steering(config.algorithm)}"
        )
    return told(rows)


def clients_of(clients: ByClient, unseen: Unseen | None) -> dict[str, ByClient]:
    """/clients of the result and, where some clients never train, /unseen; both with the clients of the data."""
    if unseen is None:
        return {"clients": clients}
    first = unseen.first
    own = {"data_client": unseen.ids[first:], "samples": unseen.data.sizes[first:]}
    return {"clients": clients | {"data_client": unseen.ids[:first]}, "unseen": own}
