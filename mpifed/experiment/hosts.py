"""The hosts of a rank: of its clients and, beside these, of those that never train."""

from typing import cast

from mpifed.data.base import Dataset
from mpifed.data.unseen import Unseen
from mpifed.experiment.kernels import device
from mpifed.experiment.of_samples import put
from mpifed.features.settings import Experiment
from mpifed.federation.client_numbers import named
from mpifed.federation.host import Host
from mpifed.federation.method import Method
from mpifed.federation.newcomers import Newcomers, beside
from mpifed.federation.seen import seen_by
from mpifed.federation.setup import Setup
from mpifed.mpi.world import World


def host_of(setup: Setup, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """The host of the clients lo <= i < hi, in memory or on the kernels' device; ``cohort``: how many a round calls."""
    where = device(setup.kernels)
    if where is None:
        made = Host(setup, data, *clients)
        put(data.columns, made)
        return made
    from mpifed.federation.device_host import DeviceHost

    return DeviceHost(setup, data, *clients, where, cohort)


def with_newcomers(host: Host, setup: Setup, unseen: Unseen, config: Experiment, world: World) -> Host:
    """A rank's host with its share of the clients that never train; these have numbers above those of all others."""
    data, first, _ = unseen
    count = data.m - first
    ranks = max(1, world.size - 1)
    k = max(world.rank - 1, 0)
    lo = k * count // ranks
    hi = (k + 1) * count // ranks
    if lo == hi:
        return beside(host, None, lo, count)
    plain, _ = seen_by(config.problem)
    setup = setup._replace(m=data.m, masks=None, compress=None, weights=None, factors=None, local=plain)
    own = host_of(setup, data, (first + lo, first + hi), hi - lo)
    names = named(config.problem, config.evaluate.clients or True)
    own.use(cast(Method, Newcomers(setup.algorithm, names, config.evaluate.steps, config.evaluate.step)))
    own.inspected = own.algorithm
    own.join()
    return beside(host, own, lo, count)
