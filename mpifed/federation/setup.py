"""What server and hosts agree on before the first round."""

from typing import NamedTuple

from mpifed.core.processor import UNKNOWN
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.graphs.weights import Weights
from mpifed.kernels.blocks import Block
from mpifed.problems.base import Problem


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
    weights: Weights | None = None  # of the graph whose nodes are the clients
    factors: Array | None = None  # (m,) m p_i, where clients have weights
    per_sample: float = 0.0  # m/d, where these weights are by samples
    local: type[Local] = Local  # what client methods see
    block: type[Block] = Block  # in what samples are, without kernels of their own
