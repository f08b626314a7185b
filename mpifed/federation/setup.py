"""The facts of a run that server and hosts share from before the first round."""

from typing import NamedTuple

import numpy as np

from mpifed.core.processor import DEFAULT_BLOCK_BYTES
from mpifed.core.roles import Role
from mpifed.core.typing import Array
from mpifed.federation.method import FederatedMethod
from mpifed.problems.problem import Problem


class CountedWork(NamedTuple):
    """Sample gradients that clients compute between two selections, as counted in a rehearsal."""

    work: Array  # (m,)
    note: str  # a sentence for the user; empty where there is nothing to say


class RunSpec(NamedTuple):
    """The problem and the algorithm of a run, its seed, the number of clients and the model that it starts from.

    ``block_bytes`` is the approximate size of a block of samples; no result depends on it.

        >>> class FromOnes(mpifed.extend.Plugin):
        ...     def prepare(self, setup: mpifed.extend.RunSpec, data):
        ...         return setup._replace(start=np.ones_like(setup.start))
    """

    problem: Problem
    algorithm: FederatedMethod
    seed: int
    m: int
    start: Array  # (n,), of the type that models and messages have
    block_bytes: int = DEFAULT_BLOCK_BYTES
    kernels: str = "numpy"  # the kernels that compute: numpy, compiled, torch or cuda
    role: Role = Role()  # the samples on which models are evaluated
    validation: Role | None = None  # those by which models are chosen, if there are any
    test_loss: bool = False  # whether f_i of test samples is evaluated too
    nodes: Array | None = None  # (m, n) start models of the nodes of a graph, with the mean ``start``; None: alike
    counted: CountedWork | None = None  # None: the algorithm states its work, or nobody asks
    client_weights: Array | None = None  # (m,) weights m p_i of clients in means of uploads; None: 1 each
    records_nonfinite: bool = False  # whether an evaluation that is not finite is recorded and does not end the run
    space: str = "auto"  # where local steps of linear models are computed: auto, samples or parameters
    home: Array | None = None  # (n,) bool: parameters that stay with the clients, 0 at the server; None: none

    @property
    def shared_start(self) -> Array:
        """The part of ``start`` that travels between server and clients: (n,), less what stays with the clients."""
        return self.start if self.home is None else self.start[~self.home]

    def initial(self, ids: Array) -> Array:
        """Return the models that some clients start from: (c, n)."""
        return np.tile(self.start, (len(ids), 1)) if self.nodes is None else self.nodes[ids]
