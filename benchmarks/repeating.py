"""What repeating the iterations of a run takes: its clients in memory, and a comparison with what it recorded."""

import tomllib
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from mpifed import Array, Problem, Result
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.housing import gathered
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
    parts = gathered(config)
    host, sizes = cast(Host, parts.host), parts.data.sizes
    r = max(float(config.problem.lipschitz(block).max()) for block in host.blocks)
    return Clients(config.problem, host.blocks, host.ids, parts.setup.start, int(np.sum(sizes)), r)


def by_block(clients: Clients, mask: Array) -> list[Array]:
    """Split (m,) in the order of ``ids`` into a column (clients of the block, 1) for each block."""
    return np.split(mask[:, None], np.cumsum([len(block) for block in clients.blocks])[:-1])


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
