"""The two sides of a run, with what its features put into each of them: hosts of clients, and the server."""

from functools import partial

from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.experiment.checkpoint import folder, piece
from mpifed.experiment.job import Job
from mpifed.experiment.prepare import Count, Prepared, prepare
from mpifed.experiment.warm_start import given_start
from mpifed.features.feature import Housing, MakeHost
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.request import SAVE
from mpifed.federation.saving import saving
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.transport import Transport


def housed(parts: Prepared, job: Job, clients: tuple[int, int], kernels: str) -> Prepared:
    """The same with the samples of the clients lo <= i < hi in a host that computes with these kernels."""
    setup = parts.setup._replace(kernels=kernels)
    make: MakeHost = in_memory
    for feature in parts.features:
        make = feature.hosts(kernels) or make
    host = make(setup, parts.data, clients, parts.selector.size)
    if make is in_memory:
        host.block_size = parts.block
    if job.path is not None:
        host.services[SAVE[0]] = saving(host, partial(piece, folder(job.path), owner=clients[0]))
    done = 0 if job.saved is None else job.saved.round
    housing = Housing(parts.cuts, make, job.config.rounds - done)
    for feature in parts.features:
        feature.host(host, housing)
    return parts._replace(setup=setup, host=host)


def in_memory(setup: Setup, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """A host whose clients are arrays of numpy."""
    return Host(setup, data, *clients)


def federation(config: Experiment, transport: Transport, parts: Prepared) -> Federation:
    """The server's side of a run; with a graph, that of its nodes."""
    kind = Federation
    for feature in parts.features:
        kind = feature.federation or kind
    made = kind(transport, parts.setup, parts.selector, parts.data.totals, parts.schedule, config.reproducible)
    made.ledger.before(*parts.data.exchanged)
    for feature in parts.features:
        feature.server(made)
    return made


def gathered(config: Experiment, cache: Cache | None = None, count: Count | None = None) -> Prepared:
    """The parts of an experiment that is looked at, not run: all clients live in one host, in this process."""
    x = None if config.start is None else given_start(config.start)
    parts = prepare(Job(config), 1, cache, x, count)
    return housed(parts, Job(config), (0, parts.data.m), parts.setup.kernels)
