"""Rounds of methods through mpifed for ``benchmarks.speed.gpu_linear``: server, messages, host and sums, on one GPU."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpifed.experiment.gpu_kernels import local_steps

from benchmarks.speed.gpu_machines import GAMMA, MU, STEPS, Row, Samples
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.data.pool import Pool
from mpifed.federation.device_host import DeviceHost
from mpifed.federation.participation.selection import All
from mpifed.federation.server import Federation
from mpifed.federation.setup import LAUNCHED, Setup
from mpifed.federation.transport import InProcess
from mpifed.problems.base import Problem

SINGLE = "single steps"
METHODS: dict[str, dict[str, Any]] = {  # column -> method; all take STEPS steps of the size GAMMA
    "fedavg": {"name": "fedavg"},
    "fedprox": {"name": "fedprox", "inner": 1, "mu": 0.1},
    "scaffold": {"name": "scaffold"},
    SINGLE: {"name": "fedavg"},
}


class Clients(NamedTuple):
    """All clients of a row in one host on a device, and what their server needs."""

    host: DeviceHost
    setup: Setup
    data: Pool


def clients(row: Row, samples: Samples, device: Any) -> Clients:
    """The clients of a row from ``samples`` in the memory of the CPU, which the host copies to the device."""
    sizes = np.full(row.clients, row.samples)
    data = Pool(samples.A.reshape(-1, row.features), samples.b.reshape(-1), None, sizes, row.dtype)
    problem = Problem.build({"name": "logistic", "mu": MU}, "problem")
    setup = Setup(problem, method("fedavg"), 0, row.clients, samples.x, kernels=LAUNCHED)
    return Clients(DeviceHost(setup, data, 0, row.clients, device, row.clients), setup, data)


def method(column: str) -> Algorithm:
    """The method of a column."""
    return Algorithm.build(METHODS[column] | {"k0": STEPS, "step": GAMMA}, "algorithm")


def rounds(own: Clients, column: str) -> Callable[[], np.ndarray]:
    """One round after the other of the method of a column, from its start: a function that returns the model."""
    algorithm: Any = method(column)
    host, setup, data = own
    setup = setup._replace(algorithm=algorithm)
    steps = None if column == SINGLE else local_steps(setup)
    host.use(algorithm if steps is None else steps)
    host.state = None
    host.join()
    fed = Federation(InProcess(host), setup, All().selector(0, setup.m, 0), data.sizes)
    fed.begin(0)
    servers = [algorithm.start(fed)]

    def round() -> np.ndarray:
        fed.begin(fed.round + 1)
        servers[0] = algorithm.round(fed, servers[0])
        return np.asarray(servers[0].x)

    return round
