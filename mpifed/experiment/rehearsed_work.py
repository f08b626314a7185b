"""The sample gradients between two selections of a user's method that does not state them, counted in a rehearsal."""

import numpy as np
from msgspec.structs import replace

from mpifed.core.errors import UserError
from mpifed.core.guards import Slip
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Data, Dataset
from mpifed.data.reordered import Reordered
from mpifed.experiment.housing import federation, gathered
from mpifed.experiment.rounds import played
from mpifed.features.settings import Checkpoint, Evaluate, Experiment, Objective, Record
from mpifed.features.stop import Stop
from mpifed.federation.counted import Tally
from mpifed.federation.method import ServerState, states_work
from mpifed.federation.participation.selection import All
from mpifed.federation.request import Request
from mpifed.federation.schedule import Draw, Schedule
from mpifed.federation.setup import CountedWork
from mpifed.federation.stage import Postage
from mpifed.federation.transport import InProcess
from mpifed.graphs.graph import Graph

ROUNDS = 3
ONE = "one gradient of f_i is taken; define work(d), or set system.passes"
CLIENTS = 16  # that take part, the smallest and the largest among them


class Some(Cache):
    """In the place of any data set, the clients ``ids`` of one that is loaded already."""

    def __init__(self, whole: Dataset, ids: Array) -> None:
        super().__init__()
        self.whole = whole
        self.ids = ids

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        return Reordered(self.whole, self.ids)


class Charged(Schedule):
    """All clients take part. ``units`` (m,): how many times ``work`` each would be charged with."""

    def __init__(self, m: int, config: Experiment) -> None:
        super().__init__(m)
        self.sent = config.asynchronous is not None  # there an upload is charged, elsewhere a selection
        self.always = not self.sent and not config.algorithm.takes.selections
        self.units = np.zeros(m)

    def begin(self, round: int) -> None:
        super().begin(round)
        self.units = np.full(self.m, float(self.always))

    def select(self, draw: Draw, units: int) -> Array | None:
        self.units += 0 if self.sent else units
        return super().select(draw, units)

    def send(self, request: Request, postage: Postage) -> bool:
        self.units[slice(None) if request.to is None else request.to] += self.sent
        return super().send(request, postage)


def unstated(config: Experiment) -> bool:
    """Whether simulated time needs the work of a user's method that does not state it."""
    system = config.system
    if system is None or system.speed is None or system.passes is not None or not config.rounds:
        return False
    return not states_work(type(config.algorithm))


def counted_work(config: Experiment, data: Dataset, sizes: Array) -> CountedWork | None:
    """What clients with ``sizes`` samples compute between two selections, from some of ``data`` in a rehearsal.

    Work is a function of a client's samples, so that of other sizes is interpolated. UserError for second derivatives.
    """
    if not unstated(config):
        return None
    name = config.algorithm.label()
    work = config.algorithm.work(sizes)
    stated = np.asarray(sizes if work is None else work)
    order = np.argsort(data.sizes, kind="stable")
    ids = np.sort(order[np.unique(np.linspace(0, len(order) - 1, min(CLIENTS, len(order))).round().astype(int))])
    try:
        rows, second = rehearsed(config, Some(data, ids))
    except Exception as error:  # the run comes to a mistake of the class as well, and says what is wrong
        why = f"{type(error).__name__}: {error}".removeprefix(f"{Slip.__name__}: ")
        return CountedWork(stated, unstated_note(name, f"its first rounds fail ({why}), so {ONE}"))
    if second:
        raise UserError(
            f"system.passes is missing: {name} asks for f.{next(iter(second))}, and second derivatives are no sample "
            "gradients, so system.speed needs it"
        )
    return found(name, rows, data.sizes[ids], np.asarray(sizes), stated)


def rehearsed(config: Experiment, cache: Cache) -> tuple[Array, dict[str, None]]:
    """Sample gradients by round and client for each unit of work, NaN where none is charged, and second derivatives."""
    small = Experiment(
        data=config.data,
        problem=replace(config.problem, device="cpu") if hasattr(config.problem, "device") else config.problem,
        algorithm=config.algorithm,
        selection=All(),
        stop=Stop(),
        objective=Objective(),
        evaluate=Evaluate(),
        record=Record(),
        checkpoint=Checkpoint(),
        graph=None if config.graph is None else Graph.build("complete", "graph"),
        seed=config.seed,
        rounds=min(ROUNDS, config.rounds),
        dtype=config.dtype,
        kernels="numpy",
    )
    parts = gathered(small, cache)
    host = parts.host
    assert host is not None
    tally = Tally(host.setup.m)
    host.wraps.append(tally.wrap)
    host.join()
    schedule = Charged(host.setup.m, config)
    fed = federation(small, InProcess(host), parts._replace(schedule=schedule))
    server: ServerState | None = None
    rows = []
    for round in range(small.rounds + 1):
        tally.clear()
        server, _ = played(small.algorithm, fed, round, server, 0)
        server = fed.observed(server)
        if round:
            rows.append(np.where(schedule.units > 0, tally.clear() / np.maximum(schedule.units, 1), np.nan))
    return np.array(rows), tally.second


def found(name: str, rows: Array, some: Array, sizes: Array, stated: Array) -> CountedWork:
    """The work of clients with ``sizes`` samples, from that (rounds, c) of clients with ``some``, and what to say."""
    if np.isnan(rows).any():
        note = f"its rounds do not select clients as its takes says, so {ONE}"
        return CountedWork(stated, unstated_note(name, note))
    known, at = np.unique(some, return_inverse=True)
    mean = rows.mean(axis=0)
    each = np.bincount(at, mean) / np.bincount(at)
    work = np.interp(sizes, known, each)
    if (rows == np.round(rows)).all() and (rows == rows[0]).all():
        work = np.round(work)  # what is interpolated is a number of gradients, too
    differ = not np.allclose(rows, each[at], rtol=1e-9, atol=0)
    if not differ and np.array_equal(work, stated):
        return CountedWork(work, "")
    near = "" if np.isin(sizes, known).all() else ", and for numbers of samples between theirs what lies between"
    return CountedWork(work, unstated_note(name, amount(rows / some, len(sizes), near, differ)))


def amount(shares: Array, m: int, near: str, differ: bool) -> str:
    """A clause about work that was counted as these ``shares`` (rounds, c) of the samples of c of m clients."""
    least = float(shares.min())
    most = float(shares.max())
    each = f"{least:.4g}" if np.isclose(least, most) else f"{least:.4g} to {most:.4g}"
    rounds = "round" if len(shares) == 1 else f"{len(shares)} rounds"
    text = f"a rehearsal of {rounds} with {shares.shape[1]} of {m} clients has counted {each} for each sample"
    if not most:
        return f"{text}: it computes without f.grad, so set system.passes"
    if differ:
        return f"{text}: rounds or clients of the same size differ, and their mean is taken"
    return text if np.isclose(least, most) else f"{text}{near}"


def unstated_note(name: str, why: str) -> str:
    """A sentence about the simulated time of a method."""
    return f"simulated_seconds need the sample gradients of {name}, which does not define work(d): {why}"
