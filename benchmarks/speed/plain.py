"""Plain loops over clients in numpy, and a bare loop over blocks, beside which ``rounds`` measures ours.

The loss is logistic, with (MU/2)‖x‖² over d_i.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.experiment.config import Experiment
from mpifed.extend import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import clients_per_block, make_dense_block

MU = 1e-3
STEPS = 5
GAMMA = 0.1
BYTES = 1 << 22  # of a bare loop's block: of the powers of 2 the fastest in case A, float32, on an AMD EPYC, 1 MB of L2


def fedavg_loop(setup: Experiment) -> Callable[[], tuple[float, Array]]:
    """FedAvg with STEPS full gradients of size GAMMA, to be run: CPU seconds of a round, and the model."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    X, y = X.astype(setup.dtype), y.astype(setup.dtype)
    ends = np.cumsum(data.sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, data.sizes, strict=True)]

    def run() -> tuple[float, Array]:
        selector = setup.selection.selector(setup.seed, data.m, setup.rounds)
        x = np.zeros(data.n, setup.dtype)
        begun = time.process_time()
        for round in range(1, setup.rounds + 1):
            selected = selector.select(round, 0)
            total = np.zeros_like(x)
            ids = range(data.m) if selected is None else selected
            for i in ids:
                A, b = parts[i]
                w = x
                for _ in range(STEPS):
                    p = 1 / (1 + np.exp(-(A @ w)))
                    w = w - np.float32(GAMMA) * (((p - b) @ A + np.float32(MU) * w) / np.float32(len(b)))
                total += w
            x = total / np.float32(len(ids))
        return (time.process_time() - begun) / setup.rounds, x

    return run


def bare_loop(setup: Experiment, compiled: bool) -> Callable[[], tuple[float, Array]]:
    """The same as a loop over blocks of clients, all in every round and with as many samples.

    It has the products of ours and no record, timers, ledgers, evaluations or sums in a fixed order, and tries no sizes
    of blocks: it shows how much of a round is products with the samples, and what is left for everything else.
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


def by_numpy(block: Block) -> Callable[[Array], Array]:
    """Gradients by two products of numpy."""
    half = block.w / 2
    rest = block.w * (0.5 - block.b)
    ridge = block.real(MU / block.d)[:, None]

    def gradient(w: Array) -> Array:
        return np.vecmat(half * np.tanh(np.matvec(block.A, w) * 0.5) + rest, block.A) + ridge * w

    return gradient


def by_kernel(block: Block) -> Callable[[Array], Array]:
    """Gradients by the compiled kernel, one pass over the samples."""
    # not above: it needs numba
    from mpifed.kernels.compiled.compiling import LOGISTIC, get_kernel

    one_pass: Any = get_kernel(block.b.dtype)
    ridge = block.real(MU / block.d)[:, None]
    return lambda w: one_pass(block.A, w, block.b, block.w, ridge, LOGISTIC)[1]
