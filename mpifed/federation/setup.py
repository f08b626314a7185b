"""What server and hosts agree on before the first round."""

from typing import NamedTuple

import numpy as np

from mpifed.core.processor import UNKNOWN
from mpifed.core.roles import Role
from mpifed.core.typing import Array
from mpifed.federation.method import Method
from mpifed.problems.problem import Problem


class CountedWork(NamedTuple):
    """The sample gradients that clients compute between two selections, where a rehearsal has counted them."""

    work: Array  # (m,)
    note: str  # a sentence for the user; empty where there is nothing to say


class Setup(NamedTuple):
    """The problem and the algorithm of a run, its seed, the number of clients and the model that it starts from.

    ``block_bytes`` is about the size of a block of samples; no result depends on it.
    """

    problem: Problem
    algorithm: Method
    seed: int
    m: int
    start: Array  # (n,), of the type that models and messages have
    block_bytes: int = UNKNOWN
    kernels: str = "numpy"  # what computes: numpy, compiled, torch or cuda
    role: Role = Role()  # the samples on which models are evaluated
    nodes: Array | None = None  # (m, n) where nodes of a graph start from models of their own; ``start`` is their mean
    counted: CountedWork | None = None  # None where the algorithm states its work, or nothing asks for it

    def initial(self, ids: Array) -> Array:
        """The models that some clients start from: (c, n)."""
        return np.tile(self.start, (len(ids), 1)) if self.nodes is None else self.nodes[ids]
