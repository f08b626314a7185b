"""What repeating the iterations of a run takes: its clients in memory, and a comparison with what it recorded."""

import tomllib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from mpifed import Result
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.housing import prepare_in_process
from mpifed.extend import Array, Problem
from mpifed.federation.host import Host
from mpifed.kernels.blocks import Block

SAME = 1e-8  # largest relative difference between f here and f in the result file: rounding


class Clients(NamedTuple):
    """The clients of a run in memory: ``ids`` (m,) in the order of the blocks, d samples, r = max r_i."""

    problem: Problem
    blocks: list[Block]
    ids: Array
    start: Array
    d: int
    r: float


def clients_of(result: Result) -> Clients:
    """Load the clients of a run."""
    return load(experiment({key: result.config[key] for key in ("seed", "dtype", "data", "problem")}).toml())


@lru_cache(maxsize=32)
def load(text: str) -> Clients:
    """Load the clients of an experiment file."""
    config: Experiment = experiment(tomllib.loads(text))
    parts = prepare_in_process(config)
    host, sizes = cast(Host, parts.host), parts.data.sizes
    r = max(float(config.problem.lipschitz(block).max()) for block in host.blocks)
    return Clients(config.problem, host.blocks, host.ids, parts.setup.start, int(np.sum(sizes)), r)


def by_block(clients: Clients, mask: Array) -> list[Array]:
    """Split (m,) in the order of ``ids`` into a column (clients of the block, 1) for each block."""
    return np.split(mask[:, None], np.cumsum([len(block) for block in clients.blocks])[:-1])


def duals(result: Result, clients: Clients, X: list[Array]) -> list[Array]:
    """π_i⁰: 0, or −∇f_i(x⁰)/m, by block."""
    if result.config["algorithm"]["start"] == "zero":
        return [np.zeros_like(x) for x in X]
    return [-clients.problem.grad(block, x) / len(clients.ids) for block, x in zip(clients.blocks, X, strict=True)]


class Stationarity(NamedTuple):
    """What is 0 at a stationary point: norms of all ∇f_i(x_i)/m + π_i, of all x_i − x, of Σ π_i, and of Σ ∇f_i(x_i)/m.

    Source: fedadmm, (4.1), Theorem 4.2 a), and (4.6), Theorem 4.1 c); fedgia, Theorems IV.2 i) and, (27), IV.1 ii).
    """

    duals: float
    models: float
    balance: float
    gradient: float


def stationarity(clients: Clients, X: list[Array], Pi: list[Array], x: Array) -> Stationarity:
    """The four norms at x (n,) and, by block, x_i and π_i (clients of the block, n)."""
    m = len(clients.ids)
    G = [clients.problem.grad(block, x_i) / m for block, x_i in zip(clients.blocks, X, strict=True)]
    parts = [np.concatenate([g + pi for g, pi in zip(G, Pi, strict=True)]), np.concatenate(X) - x]
    parts += [np.concatenate(Pi).sum(axis=0), np.concatenate(G).sum(axis=0)]
    return Stationarity(*(float(np.sqrt(np.square(part).sum())) for part in parts))


def gradients_left(ending: Callable[[Result], Stationarity], result: Result) -> float:
    """The larger of ‖∇F‖ and ‖∇f‖ at the end, divided by ‖∇f‖ at the start: tends to 0."""
    norm = np.sqrt(np.asarray(result.rounds["grad_norm_sq"], float))
    return max(ending(result).gradient, float(norm[-1])) / float(norm[0])


def optimality_left(ending: Callable[[Result], Stationarity], result: Result) -> float:
    """The largest of the other three norms at the end, those of duals divided by ‖∇f‖ at the start: tends to 0."""
    left, norm = ending(result), float(np.sqrt(result.rounds["grad_norm_sq"][0]))
    return max(left.duals / norm, left.models, left.balance / norm)


class Key:
    """A result, compared by identity, so that what is costly is computed once for all measures."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def __hash__(self) -> int:
        return hash(id(self.result))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.result is self.result


def agree(f: float, recorded: float, round: int) -> None:
    """Raise ValueError if f differs from the recorded value by more than rounding."""
    if not abs(f - recorded) <= SAME * max(1.0, abs(recorded)):
        raise ValueError(f"round {round} differs from the run: f = {f!r} here and {recorded!r} in the result file")
