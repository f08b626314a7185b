"""An algorithm at work in this process: what the tests of algorithms share."""

import weakref
from itertools import pairwise

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.processor import DEFAULT_BLOCK_BYTES
from mpifed.data.pool import Pool
from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.data.sources.quadratic import RandomQuadratic
from mpifed.data.sources.synthetic import Synthetic
from mpifed.engine.asynchrony.arrivals import Arrivals
from mpifed.engine.asynchrony.feature import ComputedAhead
from mpifed.engine.graph import NeighbourCounts, NodeClocks
from mpifed.experiment.rounds import evaluate
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.compression.compress import Compress
from mpifed.features.compression.transform import MessageCompression
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.features.simulated_time.system import System
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.participation.selection import Selection, Selector, UniformSelection
from mpifed.federation.peers.graph_federation import GraphFederation
from mpifed.federation.peers.neighbourhood import ADD, GATHER, MIX, Neighbourhood
from mpifed.federation.request import ARRIVE, REST, HostReport, add_report
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import finish_reduction
from mpifed.federation.traits import Participation
from mpifed.federation.transport import InProcess
from mpifed.graphs.graph import Graph
from mpifed.graphs.weights import Weights
from mpifed.kernels.fill import BlockLayout, fill_blocks
from mpifed.problems.problem import Problem

M = 12
N = 10
SHARE = 0.4
SOURCES = {  # data that go with a problem
    "least-squares": LinregNoniid(clients=M, features=N, least=6, most=25),
    "quadratic": RandomQuadratic(clients=M, features=N, mu=0.2, L=1.0),
    "softmax": Synthetic(clients=M, features=N, classes=3, least=6, most=25),
    "mlp": Synthetic(clients=M, features=N, classes=3, least=6, most=25),
}


def build(name, options=()):
    return Algorithm.build({"name": name, **dict(options)}, "algorithm")


def same(one, other):
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


class Given(Selection, tag="given"):
    """These clients in every round, from the front again at the end; ``second`` in its second selection."""

    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...] = ()

    def selector(self, seed, m, rounds):
        def select(round, again):
            rows = self.second if again else self.first
            return np.sort(rows[(round - 1) % len(rows)])

        return Selector(min(map(len, self.first)), select)


class Several:
    """A transport to several hosts in this process."""

    def __init__(self, hosts):
        self.hosts, self.mpi = hosts, 0.0
        self.report = HostReport()

    def send(self, request):
        replies, reports = [], []
        if request.request_type[0] in (MIX, ADD, GATHER):
            post(self.hosts, request)
        for host in self.hosts:
            to = np.arange(self.hosts[-1].hi) if request.to is None else request.to
            mine = (host.lo <= to) & (to < host.hi)
            own = request if request.each is None else msgspec.structs.replace(request, each=request.each[mine])
            reply, report = host.handle(own)
            reports.append(report)
            if reply.layout is not None:
                layout = reply.layout
            replies.append(reply)
        first, *others = np.array(reports, float)
        for other in others:
            add_report(first, other)
        self.report = HostReport(*first.tolist())
        width = max(reply.rows.shape[1] for reply in replies)
        rows = [r.rows if r.rows.shape[1] == width else np.zeros((len(r.rows), width), r.rows.dtype) for r in replies]
        tree = [node for host in self.hosts for node in host.tree]
        return msgspec.structs.replace(
            replies[0], rows=finish_reduction(request, np.concatenate(rows), tree), layout=layout
        )


NEIGHBOURHOODS = weakref.WeakKeyDictionary()  # of hosts in this process


class Letters:
    """Links of a host in this process: what comes was put there before."""

    def __init__(self):
        self.come = None

    def exchange_rows(self, rows, to, come):
        assert (len(rows), len(self.come)) == (to.sum(), come.sum())
        return self.come


def post(hosts, request):
    """Put the rows that every host sends to the hosts that they are for, by host, as an exchange of MPI does."""
    parcels = []
    for host in hosts:
        near = NEIGHBOURHOODS[host]
        near.links = near.links or Letters()
        plan = near.plan(request.key[0])
        rows = near.rows(request.request_type[1:], host.state, host.slot)[plan.rows_to_send]
        parcels.append(np.split(rows, np.cumsum(plan.to_hosts)[:-1]))
    for k, host in enumerate(hosts):
        NEIGHBOURHOODS[host].links.come = np.concatenate([parcel[k] for parcel in parcels])


class Run:
    """An algorithm at work, by default on M clients of a small problem; ``data`` takes its place."""

    def __init__(
        self,
        algorithm,
        problem="least-squares",
        seed=0,
        dtype="float64",
        selection=None,
        cuts=None,
        data_seed=0,
        data=None,
        block_bytes=DEFAULT_BLOCK_BYTES,
        compress=None,
        system=None,
        asynchronous=None,
        graph=None,
        host=Host,
    ):
        self.problem = problem if isinstance(problem, Problem) else Problem.build(problem, "problem")
        self.data = SOURCES[self.problem.label()].load(data_seed, dtype) if data is None else data
        start = self.problem.initial(self.data, seed)
        self.m, self.n = self.data.m, len(start)
        cuts = (0, self.m) if cuts is None else cuts
        table = None if compress is None else Compress.build(compress, "compress")
        ways = {} if table is None else table.by_direction()
        first = start.astype(dtype)
        setup = RunSpec(self.problem, algorithm, seed, self.m, first, block_bytes, role=self.data.role)
        if graph is not None:
            weights = Weights(Graph.build(graph, "graph"), seed, self.m)
        self.hosts = [host(setup, self.data, lo, hi) for lo, hi in pairwise(cuts)]
        for host in self.hosts:
            if graph is not None:
                host.add_transform(NeighbourCounts(weights))
            host.join()
            if table is not None:
                host.add_transform(MessageCompression(setup, table))
            if graph is not None:
                NEIGHBOURHOODS[host] = Neighbourhood(weights, host.lo, host.hi, list(cuts), host.dtype)
                host.request_handlers |= NEIGHBOURHOODS[host].request_handlers(host)
            if asynchronous is not None:
                ahead = ComputedAhead(host)
                host.request_handlers |= {REST[0]: ahead.rest, ARRIVE[0]: ahead.arrive}
                host.add_transform(ahead)
        count = len(self.hosts)
        transport = InProcess(*self.hosts) if count == 1 else Several(self.hosts)
        self.selector = (selection or UniformSelection(share=SHARE)).selector(seed, self.m, 1000)
        schedule = None
        devices = (
            None if system is None else SimulatedDevices(System.build(system, "system"), setup, self.data.sizes, ways)
        )
        if asynchronous is not None:
            arrivals = Asynchronous.build(asynchronous, "asynchronous")
            self.selector = Selector(arrivals.arrivals, lambda round, again: None)
            schedule = Arrivals(arrivals, devices)
        elif graph is not None and system is not None:
            schedule = NodeClocks(devices, algorithm.participation is Participation.ALL)
        elif system is not None:
            schedule = DeviceRounds(devices, algorithm, 1)
        kind = Federation if graph is None else GraphFederation
        self.fed = kind(transport, setup, self.selector, self.data.sizes, schedule)
        if graph is not None:
            self.fed.weights = weights
        if table is not None:
            self.fed.add_transform(MessageCompression(setup, table))
        self.algorithm, self.round = algorithm, 0
        self.server = self.fed.transform_state(algorithm.init_server(self.fed))

    def rounds(self, count):
        """The server's models after each of ``count`` further rounds, (count, n)."""
        models = []
        for _ in range(count):
            self.round += 1
            self.fed.begin(self.round)
            self.server = self.fed.transform_state(self.algorithm.round(self.fed, self.server))
            models.append(self.server.x.copy())
        return np.array(models)

    def measure(self):
        """f and ‖∇f‖² at the server's model."""
        sums = self.fed.evaluate(self.server.x).sums
        g = sums["gradient"] / self.m
        return float(sums["objective"] / self.m), float(g @ g)

    def row(self):
        """What is recorded of the server's model, and of simulated devices."""
        return evaluate(self.algorithm, self.fed, self.server) | self.fed.schedule.row()

    def states(self):
        """Every field of the clients' state, in client order."""
        parts = [[field[host.slot] for field in host.state] for host in self.hosts]
        return type(self.hosts[0].state)(*map(np.concatenate, zip(*parts, strict=True)))

    def samples(self):
        """(A_i, b_i) of every client."""
        X, y = self.data.rows(0, self.m)
        ends = np.cumsum(self.data.sizes)
        return [(X[end - d : end], y[end - d : end]) for d, end in zip(self.data.sizes, ends, strict=True)]


def gradients(run, x):
    """∇f_i of least squares at x, (n,) or a row a client, written out: (m, n)."""
    rows = np.broadcast_to(x, (run.m, run.n))
    return np.array([A.T @ (A @ xi - b) / len(A) for (A, b), xi in zip(run.samples(), rows, strict=True)])


def minimiser(run):
    """The minimiser of (1/m) Σ (1/2d_i) ‖A_i x − b_i‖²."""
    A = np.concatenate([A / len(A) ** 0.5 for A, _ in run.samples()])
    b = np.concatenate([b / len(b) ** 0.5 for _, b in run.samples()])
    return np.linalg.lstsq(A, b)[0]


def distance(run):
    """‖x − x*‖/‖x*‖ of least squares."""
    x = minimiser(run)
    return np.linalg.norm(run.server.x - x) / np.linalg.norm(x)


def smoothness(run):
    """r_i of least squares: (m,)."""
    return np.array([np.linalg.norm(A, 2) ** 2 / len(A) for A, _ in run.samples()])


def lowest(run):
    """The minimiser of (1/m) Σ (½xᵀQ_i x − b_iᵀx)."""
    Q, b = (sum(parts) for parts in zip(*run.samples(), strict=True))
    return np.linalg.solve(Q, b)


def quadratics(Q, b):
    """The data set of the functions ½xᵀQ_i x − b_iᵀx, Q (m, n, n) and b (m, n)."""
    m, n, _ = Q.shape
    return Pool(Q.reshape(m * n, n), b.ravel(), None, np.full(m, n))


def local(data, problem, ids=None, place=(1, 0), seed=0):
    """All clients of ``data``, of one padded size, in one block: the f of a client method."""
    layout = BlockLayout(0, data.sizes, [np.arange(data.m)], np.dtype(data.dtype))
    (block,) = fill_blocks(data, layout, problem.labels)
    ids = np.arange(data.m) if ids is None else ids
    return Local(block, RunSpec(problem, None, seed, data.m, problem.initial(data, seed)), ids, place)


def systems(c, n, seed=0, spread=3.0):
    """(c, n, n) positive definite matrices of different condition, and right-hand sides (c, n)."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((c, n, n)))[0]
    e = np.exp(rng.uniform(-1, 1, (c, n)) * np.linspace(0, spread, c)[:, None])
    return np.matmul(U * e[:, None], U.mT), rng.standard_normal((c, n))
