"""What every rank knows before round one: the data, what server and hosts agree on, who takes part, and when."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.processor import BlockSize, block_size
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.experiment.job import Job
from mpifed.experiment.warm_start import fitting
from mpifed.features.feature import Feature
from mpifed.features.listed import brought, features_of, refuse_counts, refuse_large, refuse_study
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import CountedWork, Setup
from mpifed.federation.sums import cuts

Count = Callable[[Experiment, Dataset, Array], CountedWork | None]  # study, data as loaded, samples of clients


class Prepared(NamedTuple):
    """``cuts``: first clients of the hosts, and m; ``host`` is None before ``housed`` and where a rank only serves."""

    data: Dataset
    setup: Setup
    selector: Selector
    schedule: Schedule
    cuts: list[int]
    block: BlockSize
    features: list[Feature]
    host: Host | None = None
    blas: tuple[str, ...] = ()  # of each rank, at rank 0, as the next
    devices: tuple[str, ...] = ()  # of PyTorch; empty where it does not compute


def prepare(
    job: Job, ranks: int, cache: Cache | None = None, x: Array | None = None, count: Count | None = None
) -> Prepared:
    """Load the data of a job (from ``cache``, if given) and check all that can be wrong before round one on ``ranks``.

    ``x``: a model to start from (n,), or (m, n) that of each node; ``count``: what counts work that no method states.
    Raises UserError for what does not go together, where that is known already before data are loaded.
    """
    config = job.config
    features = features_of(config, job.survive)
    refuse_study(config, features)
    loaded = (config.data.load if cache is None else partial(cache.load, config.data))(config.seed, config.dtype)
    data = config.problem.fitted(loaded)
    for feature in features:
        data = feature.data(data)
    problem, data = config.problem.settled(data) if config.problem.has("settled") else (config.problem, data)
    features = [*brought(config, data), *features]
    refuse_ranks(ranks, data.m)
    block = block_size(config.block_bytes)
    with config.problem.refusing():
        first = problem.initial(data, config.seed).astype(config.dtype)
    nodes = None
    if x is not None:
        first, nodes = fitting(x, (data.m, first.size), config)
    setup = Setup(problem, config.algorithm, config.seed, data.m, first, block.bytes, nodes=nodes, role=data.role)
    if count is not None:
        setup = setup._replace(counted=count(config, loaded, data.sizes))
    for feature in features:
        setup = feature.prepared(setup, data)
    refuse_large(setup)
    selector = selecting(config, data.m, features)
    schedule = Schedule(data.m)
    for feature in features:
        schedule = feature.schedule(setup, data, selector) or schedule
    return Prepared(data, setup, selector, schedule, cuts(data.sizes, max(1, ranks - 1)), block, features)


def refuse_ranks(ranks: int, m: int) -> None:
    """Raise UserError where some of so many ranks would have no client."""
    if ranks > m + 1:
        raise UserError(
            f"{ranks} ranks are too many for {m} clients: start at most {m + 1}, one for the server "
            "and one for each client"
        )


def selecting(config: Experiment, m: int, features: list[Feature]) -> Selector:
    """Who of m clients takes part in each round, or how many arrive. UserError for what does not go together."""
    if config.asynchronous is not None:
        return Selector(config.asynchronous.arrivals, lambda round, again: None)
    selector = config.selection.selector(config.seed, m, config.rounds)
    refuse_counts(config, selector, m, features)
    config.algorithm.verify(selector.size)
    selections = config.algorithm.takes.selections
    if selections and selector.learn is None:
        # a recorded selection may have nothing for the second time of a round, which is found out by asking
        selector.select(1, selections - 1)
    return selector
