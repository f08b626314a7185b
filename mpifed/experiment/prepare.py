"""What a rank needs before the first round: data, setup, selection and, where clients live, their host."""

from functools import partial
from typing import NamedTuple, cast

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.parts.decay import told
from mpifed.core.errors import UserError
from mpifed.core.guards import own
from mpifed.core.memory import check_memory, size_of
from mpifed.core.processor import BlockSize, block_size
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.cache import Cache
from mpifed.data.sample_columns import totals_of
from mpifed.experiment.checkpoint import folder, piece
from mpifed.experiment.hosts import host_of
from mpifed.experiment.job import Job
from mpifed.experiment.kernels import device
from mpifed.experiment.of_samples import block_of, problem_of
from mpifed.experiment.warm_start import fitting, given_start
from mpifed.features.feature import Feature, Housing
from mpifed.features.listed import features_of, refuse_counts, refuse_study
from mpifed.features.rule import Counted
from mpifed.features.settings import Experiment
from mpifed.federation import sums
from mpifed.federation.checked_replies import CheckedAnswers
from mpifed.federation.host import Host
from mpifed.federation.method import Method
from mpifed.federation.participation.selection import Selector
from mpifed.federation.seen import seen_by
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.timing.arrivals import Arrivals
from mpifed.federation.timing.device_rounds import DeviceRounds
from mpifed.federation.timing.devices import Devices
from mpifed.federation.timing.node_clocks import NodeClocks
from mpifed.federation.timing.schedule import Schedule
from mpifed.federation.traits import Takes, needs
from mpifed.federation.transport import Transport
from mpifed.mpi.world import World
from mpifed.problems.base import Problem
from mpifed.results.columns import COLUMNS, MEASURES, SCALES

MATRICES = 4  # of a client or of the mean: made, packed, unpacked and factorised


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


def prepare(job: Job, world: World, cache: Cache | None = None, x: Array | None = None) -> Prepared:
    """Load the data of a job (from ``cache``, where one is given) and check everything that can be wrong before round
    one.

    ``x`` (n,) is the model to start from, where one is given. Raises UserError for what does not go together, as far as
    that can be known before data are loaded.
    """
    config, saved = job.config, job.saved
    refuse_study(config)
    features = features_of(config, job.survive)
    data = loaded(config, cache)
    for feature in features:
        data = feature.data(data)
    refuse_data(config.problem, data, world.size)
    block = block_size(config.block_bytes)
    setup = setup_of(config, data, x, block.bytes)
    for feature in features:
        setup = feature.prepared(setup, data)
    refuse_large(setup)
    if saved is not None and saved.cuts[-1] != data.m:
        raise UserError(
            f"the data have changed: the checkpoint has {saved.cuts[-1]} clients, and now there are {data.m}"
        )
    selector = selecting(config, data.m)
    selections = config.algorithm.takes.selections
    if config.rounds and selections and selector.learn is None:
        selector.select(1, selections - 1)  # refuses a second selection that is not there
    schedule = schedule_of(config, setup, data, selector)
    cuts = sums.cuts(data.sizes, max(1, world.size - 1))
    return Prepared(data, setup, selector, schedule, cuts, block, features)


def setup_of(config: Experiment, data: Dataset, x: Array | None, block_bytes: int) -> Setup:
    """What server and hosts agree on in every run; ``x`` (n,) is the model to start from, where one is given."""
    with config.problem.refusing():
        first = config.problem.initial(data, config.seed).astype(config.dtype)
    if x is not None:
        first = fitting(x, first.size, config.dtype, config.start or "")
    problem = problem_of(config, data)
    method = told(config.algorithm, config.problem, data, config.dtype)
    made = Setup(problem, method, config.seed, data.m, first, block_bytes)
    return made._replace(masks=config.masks, compress=config.compress, local=seen_by(config.problem)[0])


def loaded(config: Experiment, cache: Cache | None) -> Dataset:
    """The data of all clients."""
    load = config.data.load if cache is None else partial(cache.load, config.data)
    return config.problem.fitted(load(config.seed, config.dtype))


def selecting(config: Experiment, m: int) -> Selector:
    """Who of m clients takes part in each round, or how many arrive. UserError for what does not go together."""
    if config.asynchronous is not None:
        return Selector(config.asynchronous.arrivals, lambda round, again: None)
    selector = config.selection.selector(config.seed, m, config.rounds)
    refuse_counts(Counted(config, selector, m))
    config.algorithm.verify(selector.size)
    return selector


def schedule_of(config: Experiment, setup: Setup, data: Dataset, selector: Selector) -> Schedule:
    """When clients take part, and how time passes."""
    if config.system is None:
        return Schedule(setup.m)
    devices = Devices(config.system, setup, data.sizes)
    if setup.weights is not None:
        return NodeClocks(devices, config.algorithm.takes is Takes.ALL)
    if config.asynchronous is not None:
        return Arrivals(config.asynchronous, devices)
    return DeviceRounds(devices, setup.algorithm, selector.size)


def federation(config: Experiment, transport: Transport, parts: Prepared) -> Federation:
    """The server's side of a run; with a graph, that of its nodes."""
    kind = next((feature.federation for feature in parts.features if feature.federation), Federation)
    made = kind(transport, parts.setup, parts.selector, totals_of(parts.data), parts.schedule, config.reproducible)
    made.ledger.before(*parts.data.exchanged)
    for feature in parts.features:
        feature.server(made)
    return made


def refuse_large(setup: Setup) -> None:
    """UserError where there is no memory for the few matrices that methods with second derivatives have at a time."""
    n, name = setup.start.size, setup.algorithm.label()
    if "hess" in needs(setup.algorithm):
        check_memory(
            MATRICES * size_of((n, n), setup.start.itemsize),
            f"the {MATRICES} matrices of {n:,} × {n:,} numbers that {name} has at a time",
        )


def housed(parts: Prepared, job: Job, world: World, kernels: str) -> Prepared:
    """The same with these kernels and with the samples of this rank's clients in its host."""
    setup = parts.setup._replace(kernels=kernels, block=block_of(parts.data))
    parts = parts._replace(setup=setup)
    if not world.hosting:
        return parts
    lo, hi = parts.cuts[max(world.rank - 1, 0)], parts.cuts[max(world.rank - 1, 0) + 1]
    made = host_of(parts.setup, parts.data, (lo, hi), parts.selector.size)
    if device(kernels) is None:
        made.block_size = parts.block
    if own(type(parts.setup.algorithm)):
        made.use(cast(Method, CheckedAnswers(parts.setup.algorithm, Algorithm)))
    if job.path is not None:
        made.checkpoint = partial(piece, folder(job.path), owner=lo)
    housing = Housing(parts.setup, lo, hi, parts.cuts, host_of)
    for feature in parts.features:
        feature.host(made, housing)
    return parts._replace(host=made)


def gathered(config: Experiment, cache: Cache | None = None) -> Prepared:
    """The same for an experiment that is looked at, not run: all clients live in one host, in this process."""
    x = None if config.start is None else given_start(config.start)
    parts = prepare(Job(config), World(), cache, x)
    return housed(parts, Job(config), World(), parts.setup.kernels)


def refuse_data(problem: Problem, data: Dataset, ranks: int) -> None:
    """UserError for a metric under the name of a column that is none of measures, and for more ranks than clients."""
    for name in problem.measured():
        if name in {*COLUMNS, *SCALES} - {*MEASURES}:
            raise UserError(
                f"the metric {name} of the problem is wrong: there is a column {name}, so rename the function"
            )
    if ranks > data.m + 1:
        raise UserError(
            f"{ranks} ranks are too many for {data.m} clients: start at most {data.m + 1}, one for the server "
            "and one for each client"
        )
