"""The sample gradients per selection of a user's method that does not state its work, counted in a rehearsal."""

import numpy as np
from msgspec.structs import replace

from mpifed.core.errors import UserError
from mpifed.core.guards import UserClassError
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Data, Dataset, ReorderedDataset
from mpifed.experiment.housing import build_federation, prepare_in_process
from mpifed.experiment.rounds import play_round
from mpifed.features.settings import Checkpoint, Evaluate, Experiment, Objective, Record
from mpifed.features.stop import StopRules
from mpifed.federation.gradient_counter import GradientCounter
from mpifed.federation.method import ServerState, declares_work, wrap_methods
from mpifed.federation.participation.selection import All
from mpifed.federation.request import Request
from mpifed.federation.schedule import Schedule, SelectionDraw
from mpifed.federation.setup import CountedWork
from mpifed.federation.transform import MessageCost
from mpifed.federation.transport import InProcess
from mpifed.graphs.graph import Graph

ROUNDS = 3
ONE = "one gradient of f_i is taken; define sample_gradients(d), or set system.passes"
CLIENTS = 16  # clients of the rehearsal, the smallest and the largest among them


class ClientSubset(Cache):
    """A cache that returns, for any data set, the clients ``ids`` of one that is loaded already."""

    def __init__(self, full: Dataset, ids: Array) -> None:
        super().__init__()
        self.full = full
        self.ids = ids

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        return ReorderedDataset(self.full, self.ids)


class CountingSchedule(Schedule):
    """A schedule with all clients that counts ``repeats`` (m,) of ``sample_gradients`` with which each is charged."""

    def __init__(self, m: int, config: Experiment) -> None:
        super().__init__(m)
        self.sent = config.asynchronous is not None  # asynchronous: an upload is charged, otherwise a selection
        self.always = not self.sent and not config.algorithm.participation.selections
        self.repeats = np.zeros(m)

    def begin(self, round: int) -> None:
        super().begin(round)
        self.repeats = np.full(self.m, float(self.always))

    def select(self, draw: SelectionDraw, repeats: int) -> Array | None:
        self.repeats += 0 if self.sent else repeats
        return super().select(draw, repeats)

    def send(self, request: Request, message_cost: MessageCost) -> bool:
        self.repeats[slice(None) if request.to is None else request.to] += self.sent
        return super().send(request, message_cost)


def needs_rehearsal(config: Experiment) -> bool:
    """Return True if simulated time needs the work of a user's method that does not state it."""
    system = config.system
    if system is None or system.speed is None or system.passes is not None or not config.rounds:
        return False
    return not declares_work(type(config.algorithm))


def count_work(config: Experiment, data: Dataset, sizes: Array) -> CountedWork | None:
    """Count the work of clients with ``sizes`` samples per selection, in a rehearsal on part of ``data``.

    Work is a function of a client's samples; for other sizes it is interpolated. UserError for second derivatives.
    """
    if not needs_rehearsal(config):
        return None
    name = config.algorithm.label()
    work = config.algorithm.sample_gradients(sizes)
    stated = np.asarray(sizes if work is None else work)
    order = np.argsort(data.sizes, kind="stable")
    ids = np.sort(order[np.unique(np.linspace(0, len(order) - 1, min(CLIENTS, len(order))).round().astype(int))])
    try:
        rows, second = rehearse(config, ClientSubset(data, ids))
    except Exception as error:  # the run itself will report the mistake of the class
        why = f"{type(error).__name__}: {error}".removeprefix(f"{UserClassError.__name__}: ")
        return CountedWork(stated, time_note(name, f"its first rounds fail ({why}), so {ONE}"))
    if second:
        raise UserError(
            f"system.passes is missing: {name} asks for f.{next(iter(second))}, and second derivatives are no sample "
            "gradients, so system.speed needs it"
        )
    return interpolate_work(name, rows, data.sizes[ids], np.asarray(sizes), stated)


def rehearse(config: Experiment, cache: Cache) -> tuple[Array, dict[str, None]]:
    """Rehearse a few rounds; return gradients per unit of work (rounds, c), NaN for none, and second derivatives."""
    small = Experiment(
        data=config.data,
        problem=replace(config.problem, device="cpu") if hasattr(config.problem, "device") else config.problem,
        algorithm=config.algorithm,
        selection=All(),
        stop=StopRules(),
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
    parts = prepare_in_process(small, cache)
    host = parts.host
    assert host is not None
    tally = GradientCounter(host.setup.m)
    host.find_method = wrap_methods(host.find_method, tally.wrap)
    host.join()
    schedule = CountingSchedule(host.setup.m, config)
    fed = build_federation(small, InProcess(host), parts._replace(schedule=schedule))
    server: ServerState | None = None
    rows = []
    for round in range(small.rounds + 1):
        tally.clear()
        server, _ = play_round(small.algorithm, fed, round, server, 0)
        server = fed.transform_state(server)
        if round:
            rows.append(np.where(schedule.repeats > 0, tally.clear() / np.maximum(schedule.repeats, 1), np.nan))
    return np.array(rows), tally.second


def interpolate_work(name: str, rows: Array, counted: Array, sizes: Array, stated: Array) -> CountedWork:
    """Interpolate the work at ``sizes`` samples from ``rows`` (rounds, c) of clients with ``counted`` samples."""
    if np.isnan(rows).any():
        note = f"its rounds do not select clients as its participation says, so {ONE}"
        return CountedWork(stated, time_note(name, note))
    distinct, index = np.unique(counted, return_inverse=True)
    mean = rows.mean(axis=0)
    each = np.bincount(index, mean) / np.bincount(index)
    work = np.interp(sizes, distinct, each)
    if (rows == np.round(rows)).all() and (rows == rows[0]).all():
        work = np.round(work)  # interpolated values are numbers of gradients, too
    differ = not np.allclose(rows, each[index], rtol=1e-9, atol=0)
    if not differ and np.array_equal(work, stated):
        return CountedWork(work, "")
    between = "" if np.isin(sizes, distinct).all() else ", and for numbers of samples between theirs what lies between"
    return CountedWork(work, time_note(name, describe_work(rows / counted, len(sizes), between, differ)))


def describe_work(fractions: Array, m: int, between: str, differ: bool) -> str:
    """Describe counted work, as ``fractions`` (rounds, c) of the samples of c of m clients, in a clause."""
    low = float(fractions.min())
    high = float(fractions.max())
    each = f"{low:.4g}" if np.isclose(low, high) else f"{low:.4g} to {high:.4g}"
    rounds = "round" if len(fractions) == 1 else f"{len(fractions)} rounds"
    text = f"a rehearsal of {rounds} with {fractions.shape[1]} of {m} clients has counted {each} for each sample"
    if not high:
        return f"{text}: it computes without f.grad, so set system.passes"
    if differ:
        return f"{text}: rounds or clients of the same size differ, and their mean is taken"
    return text if np.isclose(low, high) else f"{text}{between}"


def time_note(name: str, why: str) -> str:
    """Return a sentence about the simulated time of a method."""
    return f"simulated_seconds need the sample gradients of {name}, which does not define sample_gradients(d): {why}"
