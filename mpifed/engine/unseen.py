"""Feature of clients that never train and are only evaluated: evaluate.unseen.

They are taken out of the data set, whose other clients keep their order. Each rank with clients evaluates some of them
beside its host, as a service of that.
"""

import difflib
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.promises import Supports
from mpifed.core.roles import TRAINING, Role, choose_role, left_out_note
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, ReorderedDataset
from mpifed.data.labels import join_words
from mpifed.engine.by_client import compute_numbers, fill_missing, mean_joined_model
from mpifed.engine.plugin import EnginePlugin, HostDivision, MakeHost
from mpifed.features.conflicts import CONFLICTS, select_numbers
from mpifed.features.guarantee import unseen_notes
from mpifed.features.network_training import training_transforms
from mpifed.federation.callback import Callback, ClientTable
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.method import FederatedMethod, TrainsPersonalModels, find_method
from mpifed.federation.request import EVALUATE, HostReport, Reply, ReplyLayout, Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import divergence_advice

Chosen = float | int | str | Sequence[int | str]  # a share, how many, or clients by name and number


class UnseenClients(NamedTuple):
    """Data with the clients that never train last, from ``first`` on; ``ids`` (m,) are the numbers in the source."""

    data: Dataset
    first: int
    ids: Array

    @property
    def role(self) -> Role:
        """Samples on which they are evaluated."""
        return choose_role(None if self.data.sizes_test is None else self.data.sizes_test[self.first :])


def split_clients(data: Dataset, wanted: Chosen, seed: int) -> tuple[Dataset, UnseenClients]:
    """Split data into clients that train and clients that never do.

    ``wanted`` is a share or number of clients, drawn with ``seed``, or names among the data's ``owners`` and numbers of
    clients. UserError where one of the two would be empty, and for clients that do not exist.
    """
    if isinstance(wanted, float | int):
        chosen = draw_clients(data.m, wanted, seed)
    else:
        chosen = find_clients(data, [wanted] if isinstance(wanted, str) else wanted)
    rest = np.setdiff1d(np.arange(data.m), chosen)
    ids = np.concatenate([rest, chosen])
    train = ReorderedDataset(data, rest)
    many = f"{len(chosen)} of the {data.m} clients never train" if len(chosen) > 1 else "1 client never trains"
    train.notes = (*data.notes, f"{many} and {len(rest)} do: evaluate.unseen")
    unseen = UnseenClients(ReorderedDataset(data, ids), len(rest), ids)
    if unseen.role.name == TRAINING:
        train.notes += ("unseen clients have no test samples, so they are evaluated on what their own steps train on",)
    train.notes += tuple(left_out_note(unseen.role, len(chosen), ["their numbers"], "unseen clients"))
    return train, unseen


def draw_clients(m: int, amount: float, seed: int) -> Array:
    """Draw a share below 1 of m clients, or a number of them: rising."""
    count = max(1, round(amount * m)) if amount < 1 else int(amount)
    if count >= m:
        raise UserError(
            f"evaluate.unseen = {amount} is wrong: of {m} clients {count} would never train, so leave one at least"
        )
    return np.sort(stream(seed, "unseen").choice(m, count, replace=False, shuffle=False))


def find_clients(data: Dataset, clients: Sequence[int | str]) -> Array:
    """Return the numbers of clients that are given by names or numbers: rising."""
    m = data.m
    ids = [find_client(data, client) if isinstance(client, str) else client for client in clients]
    chosen = np.unique(np.asarray(ids, np.int64))
    if len(chosen) < len(clients):
        raise UserError("evaluate.unseen names a client twice: name each once")
    if chosen[-1] >= m:
        raise UserError(f"evaluate.unseen names client {chosen[-1]}, and there are the clients 0 to {m - 1}")
    if len(chosen) == m:
        raise UserError(f"evaluate.unseen names all {m} clients: at least one must train")
    return chosen


def find_client(data: Dataset, name: str) -> int:
    """Return the number of the client with this name; raise UserError where there is none."""
    if name in data.owners:
        return data.owners.index(name)
    wrong = f"evaluate.unseen names client {name!r}, and"
    if not data.owners:
        raise UserError(f"{wrong} clients have no names here: write their numbers, 0 to {data.m - 1}, as in [0, 2]")
    matches = difflib.get_close_matches(name, data.owners, 1)
    raise UserError(
        f"{wrong} the clients are {join_words(data.owners)}" + (f"; did you mean {matches[0]!r}?" if matches else "")
    )


class EmptyState(NamedTuple):
    """State of clients that keep nothing."""


class UnseenMethods:
    """Methods of unseen clients: ``steps`` gradient steps of size ``step`` (None: 1/r_i), and ``names`` of numbers."""

    def __init__(self, algorithm: FederatedMethod, names: list[str], steps: int, step: float | None) -> None:
        self.algorithm = algorithm
        self.names = names
        self.steps = steps
        self.step = step

    def init_client(self, f: Local) -> EmptyState:
        return EmptyState()

    def tested(self, f: Local, client: EmptyState, x: Array) -> dict[str, Array]:
        """Compute the numbers at the server's model x (n,), …_after each client's steps, and at its personal_… model.

        ``check`` is 0 where these models are finite. Each has shape (c,).
        """
        X = self.train(f, x)
        values = compute_numbers(f, x, self.names)
        values |= compute_numbers(f, X, self.names, "{}_after")
        if isinstance(self.algorithm, TrainsPersonalModels):
            personal = self.algorithm.newcomer_models(f, x)
            values |= compute_numbers(f, personal, self.names, "personal_{}")
            X = X + personal
        return values | {"check": 0 * f.xp.sum(X, axis=1)}

    def train(self, f: Local, x: Array) -> Array:
        """Return x_i after ``steps`` steps x_i ← x_i − γ ∇f_i(x_i) from x: (c, n)."""
        X = f.xp.tile(x, (len(f), 1))
        gamma = self.size(f, x)
        if f.home.any():
            gamma = gamma * f.xp.astype(f.home, x.dtype)
        for _ in range(self.steps):
            X = X - gamma * f.grad(X)
        return X

    def size(self, f: Local, x: Array) -> Array | float:
        """Return γ, (c, 1) where it is 1/r_i."""
        if self.step is not None:
            return self.step
        gamma = 1 / f.lipschitz()[:, None]
        if f.xp is np:
            return gamma
        return f.xp.astype(gamma, x.dtype)  # r_i are doubles, by which torch multiplies no float32


TESTED = UnseenMethods.tested.__name__


class UnseenService:
    """Service that evaluates unseen clients beside a host: those of ``unseen_host``, from ``first`` on of ``count``.

    It is no verb, because a verb is about blocks of a host's own clients. The reply is one row with the numbers of all
    unseen clients, 0 for those of other ranks: sums in any order put the rows together without rounding.
    ``unseen_host`` is None where the rank has none.
    """

    def __init__(self, host: Host, unseen_host: Host | None, first: int, count: int) -> None:
        self.host = host
        self.unseen_host = unseen_host
        self.first = first
        self.count = count

    def tested(self, request: Request) -> tuple[Reply, HostReport]:
        """Return the reply to a request for the numbers of unseen clients."""
        if self.unseen_host is None:
            return Reply(np.zeros((1, 0), self.host.dtype), None), HostReport()
        inner = Request(TESTED, request.args, key=(request.key[0], 0), request_type=EVALUATE)
        reply, report = self.unseen_host.handle(inner)
        self.host.evaluated += report.evaluating
        assert reply.layout is not None
        names = reply.layout.names
        rows = np.zeros((len(names), self.count), reply.rows.dtype)
        rows[:, self.first : self.first + len(reply.rows)] += reply.rows.T  # -0 becomes 0, as it does in sums
        return Reply(rows.reshape(1, -1), ReplyLayout(((self.count,),) * len(names), names)), report._replace(fault=0.0)


class Unseen(EnginePlugin, Callback):
    """Clients that never train and are only evaluated."""

    # They send nothing to the rounds, and are evaluated for the record alone; a note says so.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["unseen"]

    unseen: UnseenClients

    def data(self, data: Dataset) -> Dataset:
        if not self.config.evaluate.unseen:
            return data
        train, self.unseen = split_clients(data, self.config.evaluate.unseen, self.config.seed)
        train.notes += unseen_notes(self.config)
        return train

    def extend_host(self, host: Host, division: HostDivision) -> None:
        """Add the service of this rank's share of unseen clients; their numbers are above those of all others."""
        data, first, _ = self.unseen
        count = data.m - first
        lo, hi = division.split_range(host, count)
        unseen_host = None if lo == hi else self.make_unseen_host(host.setup, division.make, first + lo, first + hi)
        host.services[TESTED] = UnseenService(host, unseen_host, lo, count).tested

    def make_unseen_host(self, setup: RunSpec, make: MakeHost, lo: int, hi: int) -> Host:
        """Return a host of the unseen clients lo <= i < hi, which keep no state."""
        c, data = self.config, self.unseen.data
        host = make(setup._replace(m=data.m, role=self.unseen.role), data, (lo, hi), hi - lo)
        # they have no weights and no neighbours, but their local steps are like those of clients that train
        for transform in training_transforms(c):
            host.add_transform(transform)
        names = select_numbers(c.problem, c.evaluate.clients or True)
        methods = UnseenMethods(setup.algorithm, names, c.evaluate.unseen_steps, c.evaluate.unseen_step)
        host.find_method = partial(find_method, methods)
        host.evaluation.evaluators[TESTED] = methods.tested
        host.join()
        return host

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        return {"unseen": self.evaluate(fed, mean_joined_model(fed, x))}

    def evaluate(self, fed: Federation, x: Array) -> ClientTable:
        """Return the unseen clients' numbers at the server's model x (n,); raise RunError where steps diverge."""
        rows: ClientTable = fed.call_service(TESTED, "plain sum", (x,))
        check = rows.pop("check")
        bad = np.flatnonzero(~np.isfinite(check))
        if fed.setup.records_nonfinite:
            rows = {name: values + check for name, values in rows.items()}  # NaN where a model is not finite
        elif len(bad):
            client = self.unseen.ids[self.unseen.first + bad[0]]
            raise RunError(
                f"the model of client {client}, which never trains, is not finite after steps of its own in round "
                f"{fed.round}: look at evaluate.unseen_step and, where the method trains it, "
                f"{divergence_advice(self.config.algorithm)}"
            )
        return fill_missing(rows)

    def attributes(self, replayed: int) -> dict[str, Any]:
        return {"unseen_evaluated_on": self.unseen.role.name}

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        """Return the table /unseen, and for both tables the numbers of clients in the data."""
        data, first, ids = self.unseen
        unseen = {"data_client": ids[first:], "samples": data.sizes[first:]}
        return {"clients": {"data_client": ids[:first]}, "unseen": unseen}
