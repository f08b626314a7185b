"""The host of a rank and the federation of the server, with what plug-ins add to each."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from mpifed.core import checksummed
from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.engine.plugin import EnginePlugin, HostDivision, MakeHost
from mpifed.experiment.checkpoint import checkpoint_folder, part_path
from mpifed.experiment.config import Job
from mpifed.experiment.prepare import CountWork, PreparedRun, prepare
from mpifed.experiment.warm_start import read_start_model
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.request import SAVE, HostReport, Reply, ReplyLayout, Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transport import Transport


def make_save_service(host: Host, place: Callable[[int], Path]) -> Callable[[Request], tuple[Reply, HostReport]]:
    """Return the service that writes the state of a host's clients to ``place`` of a checkpoint's serial number.

    The reply is the system's error number, or 0.
    """

    def write_state(request: Request) -> tuple[Reply, HostReport]:
        error_number = 0
        # an exception would end all ranks; as a number the error reaches rank 0, which reports it
        try:
            checksummed.write(place(int(request.args[0])), host.export_state())
        except OSError as error:
            error_number = error.errno or 1
        return Reply(np.full((1, 1), error_number, host.dtype), ReplyLayout(((),))), HostReport()

    return write_state


def add_host(parts: PreparedRun, job: Job, clients: tuple[int, int], kernels: str) -> PreparedRun:
    """Add a host to ``parts`` with the samples of the clients lo <= i < hi, computed by these kernels."""
    setup = parts.setup._replace(kernels=kernels)
    make: MakeHost = make_numpy_host
    for part in engine_plugins(parts):
        make = part.host_maker(kernels) or make
    host = make(setup, parts.data, clients, parts.selector.size)
    if make is make_numpy_host:
        host.block_size = parts.block
    if job.path is not None:
        host.services[SAVE[0]] = make_save_service(
            host, partial(part_path, checkpoint_folder(job.path), owner=clients[0])
        )
    done = 0 if job.saved is None else job.saved.round
    division = HostDivision(parts.cuts, make, job.config.rounds - done)
    for feature in parts.features:
        for transform in feature.transforms(setup, None):
            host.add_transform(transform)
    for part in engine_plugins(parts):
        part.extend_host(host, division)
    return parts._replace(setup=setup, host=host)


def make_numpy_host(setup: RunSpec, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """Make a host whose clients are numpy arrays."""
    return Host(setup, data, *clients)


def build_federation(config: Experiment, transport: Transport, parts: PreparedRun) -> Federation:
    """Build the federation of a run, the server's side; with a graph, that of its nodes."""
    cls = Federation
    for part in engine_plugins(parts):
        cls = part.federation or cls
    fed = cls(transport, parts.setup, parts.selector, parts.data.totals, parts.schedule, config.reproducible)
    fed.ledger.charge_preparation(*parts.data.exchanged)
    for feature in parts.features:
        for transform in feature.transforms(parts.setup, fed):
            fed.add_transform(transform)
    for part in engine_plugins(parts):
        part.extend_server(fed)
    return fed


def engine_plugins(parts: PreparedRun) -> list[EnginePlugin]:
    """Return the parts of a run that change where clients live or how ranks exchange messages."""
    return [feature for feature in parts.features if isinstance(feature, EnginePlugin)]


def prepare_in_process(config: Experiment, cache: Cache | None = None, count: CountWork | None = None) -> PreparedRun:
    """Prepare an experiment without running it: all clients live in one host, in this process."""
    x = None if config.start is None else read_start_model(config.start)
    parts = prepare(Job(config), 1, cache, x, count)
    return add_host(parts, Job(config), (0, parts.data.m), parts.setup.kernels)
