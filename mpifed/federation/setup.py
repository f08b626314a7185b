"""What server and hosts agree on before the first round."""

from typing import NamedTuple

from mpifed.core.processor import UNKNOWN
from mpifed.core.typing import Array
from mpifed.federation.method import Method
from mpifed.problems.problem import Problem


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
