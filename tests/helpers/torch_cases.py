"""Data and problems on which the tests of torch networks run."""

from __future__ import annotations

import numpy as np

from mpifed.data.fill import Layout, add_tests, fill
from mpifed.data.pool import Pool
from mpifed.federation.local import Local
from mpifed.federation.setup import Setup
from mpifed.problems.base import Problem

M, N, C = 4, 7, 3


def dataset(targets="classes", dtype="float64", tests=True, sizes=None):
    """M clients of 9 to 12 samples, and 0 to 3 test samples each."""
    rng, sizes = np.random.default_rng(1), 9 + np.arange(M) if sizes is None else np.asarray(sizes)
    d, sizes_test = sizes.sum(), np.arange(len(sizes))
    X = rng.standard_normal((d + sizes_test.sum(), N)) + rng.standard_normal(N)
    y = rng.integers(0, C, len(X)) if targets == "classes" else X[:, 0] + 0.1 * rng.standard_normal(len(X))
    test = (X[d:], y[d:], None, sizes_test) if tests else None
    return Pool(X[:d], y[:d], None, sizes, dtype, test)


def network(module, **options):
    return Problem.build({"name": "torch", "module": module, **options}, "problem")


def local(problem, data):
    """All clients of ``data``, of one padded size, in one block with their test samples."""
    layout = Layout(0, data.sizes, [np.arange(data.m)], np.dtype(data.dtype))
    blocks = fill(data, data.rows, layout, problem.labels)
    if data.sizes_test is not None:
        add_tests(blocks, data, layout, problem.labels)
    setup = Setup(problem, None, 0, data.m, problem.initial(data, 0).astype(data.dtype))
    return Local(blocks[0], setup, np.arange(data.m), (1, 0))


def samples(data, i, test=False):
    """(A_i, b_i) of a client."""
    sizes = data.sizes_test if test else data.sizes
    end = np.cumsum(sizes)[i]
    X, y = (data.rows_test if test else data.rows)(0, data.m)
    return X[end - sizes[i] : end], y[end - sizes[i] : end]
