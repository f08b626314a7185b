"""Preparation on every rank before round one: data, setup, participation and schedule."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.processor import BlockSize, choose_block_size
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.engine.listed import LoadedSettings, Moment, make_data_features, make_features, refuse_large, refuse_study
from mpifed.experiment.config import Job
from mpifed.experiment.warm_start import split_start_model
from mpifed.features.feature import Callbacks, Plugin
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import CountedWork, RunSpec
from mpifed.federation.sums import rank_offsets

CountWork = Callable[[Experiment, Dataset, Array], CountedWork | None]  # study, data as loaded, samples of clients


class PreparedRun(NamedTuple):
    """Data, setup and participation of a run; ``cuts``: first clients of hosts, and m; ``host``: None in a server."""

    data: Dataset
    setup: RunSpec
    selector: Selector
    schedule: Schedule
    cuts: list[int]
    block: BlockSize
    features: list[Plugin]
    callbacks: Callbacks = ()  # at rank 0
    host: Host | None = None
    blas: tuple[str, ...] = ()  # of each rank, at rank 0; devices likewise
    devices: tuple[str, ...] = ()  # of PyTorch; "" where it does not compute


def prepare(
    job: Job, ranks: int, cache: Cache | None = None, x: Array | None = None, count: CountWork | None = None
) -> PreparedRun:
    """Load the data of a job (from ``cache``, if given) and refuse all that can be wrong before round one on ``ranks``.

    ``x``: a model to start from (n,), or (m, n) with one for each node; ``count``: counts the work of a method that
    states none. Raises UserError for settings that do not go together, before data are loaded where possible.
    """
    config = job.config
    features = make_features(config, job.survive)
    refuse_study(config, features=features)
    loaded = (config.data.load if cache is None else partial(cache.load, config.data))(config.seed, config.dtype)
    data = config.problem.fit_labels(loaded)
    for feature in features:
        data = feature.data(data)
    problem, data = config.problem.settle(data) if config.problem.has("settle") else (config.problem, data)
    features = [*make_data_features(config, data), *features]
    refuse_ranks(ranks, data.m)
    selector = build_selector(config, data, features)
    block = choose_block_size(config.block_bytes)
    with config.problem.raise_user_errors():
        first = problem.initial(data, config.seed).astype(config.dtype)
    nodes = None
    if x is not None:
        first, nodes = split_start_model(x, (data.m, first.size), config)
    if config.stop.by or config.stop.accuracy:
        config.stop.check_roles(data.role, data.validation)
    setup = RunSpec(problem, config.algorithm, config.seed, data.m, first, block.bytes, nodes=nodes, space=config.space)
    losses = data.validation is not None or config.stop.by_test
    setup = setup._replace(role=data.role, validation=data.validation, test_loss=losses)
    if count is not None:
        setup = setup._replace(counted=count(config, loaded, data.sizes))
    for feature in features:
        setup = feature.prepare(setup, data)
    refuse_large(setup)
    schedule = Schedule(data.m)
    for feature in features:
        schedule = feature.schedule(setup, data, selector) or schedule
    return PreparedRun(data, setup, selector, schedule, rank_offsets(data.sizes, max(1, ranks - 1)), block, features)


def make_arriving(config: Experiment) -> Selector:
    """Return the selector of an asynchronous run, which takes those that arrive."""
    assert config.asynchronous is not None
    return Selector(config.asynchronous.arrivals, lambda round, again: None)


def refuse_ranks(ranks: int, m: int) -> None:
    """Raise UserError where some of ``ranks`` ranks would have no client."""
    if ranks > m + 1:
        raise UserError(
            f"{ranks} ranks are too many for {m} clients: start at most {m + 1}, one for the server "
            "and one for each client"
        )


def build_selector(config: Experiment, data: Dataset, features: list[Plugin]) -> Selector:
    """Return who of the clients takes part in each round, or how many arrive. UserError for conflicting settings."""
    arrive = config.asynchronous is not None
    selector = make_arriving(config) if arrive else config.selection.selector(config.seed, data.m, config.rounds)
    refuse_study(LoadedSettings(config, selector, data.m, data), Moment.DATA, features)
    if arrive:
        return selector
    config.algorithm.verify(selector.size)
    selections = config.algorithm.participation.selections
    if selections and selector.learn is None:
        # a recorded selection may lack the second selection of a round: only asking shows it
        selector.select(1, selections - 1)
    return selector
