"""A round of FedAvg as a bare loop over blocks of clients: the products of ours, and nothing else.

It has no record, timers, ledgers, evaluations or sums in a fixed order, and tries no sizes of blocks. So it shows how
much of a round is products with the samples, and what is left for everything else.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.plain import GAMMA, MU, STEPS
from mpifed import Array
from mpifed.experiment.config import Experiment
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import clients_per_block, make_dense_block

BYTES = 1 << 22  # of a block: of the powers of 2 the fastest in case A, float32, on an AMD EPYC with 1 MB of L2
Gradient = Callable[[Array], Array]


def bare_loop(setup: Experiment, compiled: bool) -> Callable[[], tuple[float, Array]]:
    """FedAvg with STEPS full gradients of size GAMMA, to be run: CPU seconds of a round, and the model.

    All clients are in every round and have as many samples.
    """
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    d = len(y) // data.m
    whole = make_dense_block(data.sizes, data.n, np.dtype(setup.dtype))
    whole.A[:, :d] = X.reshape(data.m, d, data.n)
    whole.b[:, :d] = y.reshape(data.m, d)
    count = clients_per_block(BYTES, whole.A[0].nbytes)
    gradient = by_kernel if compiled else by_numpy
    gradients = [gradient(whole.part(slice(k, k + count))) for k in range(0, data.m, count)]

    def run() -> tuple[float, Array]:
        x = np.zeros(data.n, setup.dtype)
        begun = time.process_time()
        for _ in range(setup.rounds):
            total = np.zeros_like(x)
            for grad in gradients:
                w = x[None]
                for _ in range(STEPS):
                    w = w - GAMMA * grad(w)
                total += w.sum(axis=0)
            x = total / data.m
        return (time.process_time() - begun) / setup.rounds, x

    return run


def by_numpy(block: Block) -> Gradient:
    """Gradients by two products of numpy."""
    half = block.w / 2
    rest = block.w * (0.5 - block.b)
    ridge = block.real(MU / block.d)[:, None]

    def gradient(w: Array) -> Array:
        return np.vecmat(half * np.tanh(np.matvec(block.A, w) * 0.5) + rest, block.A) + ridge * w

    return gradient


def by_kernel(block: Block) -> Gradient:
    """Gradients by the compiled kernel, one pass over the samples."""
    # not above: it needs numba
    from mpifed.kernels.compiled.compiling import LOGISTIC, get_kernel

    one_pass: Any = get_kernel(block.b.dtype)
    ridge = block.real(MU / block.d)[:, None]
    return lambda w: one_pass(block.A, w, block.b, block.w, ridge, LOGISTIC)[1]
