"""Problems, data and sizes on which the tests of problems run."""

import numpy as np
import scipy.sparse as sp

from mpifed.data.dataset import Dataset
from mpifed.data.pool import Pool
from mpifed.kernels.fill import BlockLayout, fill_blocks
from mpifed.problems.problem import Problem
from tests.oracles.problems import function

LAYERS = {"hidden": [5, 4]}
TORCH = ("cnn", "torch")  # tests/networks
PROBLEMS = {  # every other problem, some with more than one set of options
    **{name: {"name": name} for name in Problem.choices if name not in TORCH},
    "mlp": {"name": "mlp", **LAYERS},
    "logistic, whole": {"name": "logistic", "mu": 0.5, "regulariser": "whole"},
    "softmax, lam": {"name": "softmax", "lam": 0.3},
    "softmax, no bias": {"name": "softmax", "lam": 0.3, "bias": False},
    "svm, lam": {"name": "svm", "lam": 0.3, "bias": False},
    "mlp, lam": {"name": "mlp", "lam": 0.3, **LAYERS},
    "poisson, lam": {"name": "poisson", "lam": 0.3},
    "gamma, no bias": {"name": "gamma", "lam": 0.3, "bias": False},
    "huber, lam": {"name": "huber", "lam": 0.3, "delta": 0.5},
    "huber, no bias": {"name": "huber", "bias": False},
    "cox, breslow": {"name": "cox", "ties": "breslow"},
    "cox, lam": {"name": "cox", "lam": 0.3},
}
NAMES = list(PROBLEMS)
REAL_LABELS = ("least-squares", "quadratic", "huber")
CLASSES = ("softmax", "svm", "mlp")  # labels 0, 1, 2; of the others 0 and 1


class Compiled(Pool):
    """Samples that compiled kernels read."""


def having(method):
    return [name for name in NAMES if Problem.member(PROBLEMS[name]["name"], "problem").has(method)]


CURVED, BOUNDED, TWICE, CLIPPED = map(having, ("majorizer_inverse", "lipschitz", "hessian", "clipped_grad"))


def problem_of(name):
    return Problem.build(PROBLEMS[name], "problem")


def dataset(name, size, kind="dense", dtype="float64", m=4, n=6):
    """m clients of ``size`` to ``size`` + 2 samples (n of a quadratic, whose matrices are symmetric).

    ``kind``: "dense", "csr", or "compiled", dense for compiled kernels.
    """
    problem = problem_of(name)
    name, rng = name.split(",")[0], np.random.default_rng([size, n])
    sizes = np.full(m, n) if name == "quadratic" else size + np.arange(m) % 3
    X, d = rng.standard_normal((sizes.sum(), n)) * (rng.random((sizes.sum(), n)) < 0.7), sizes.sum()
    if name == "quadratic":
        X = np.concatenate([Q + Q.T + 6 * np.eye(n) for Q in X.reshape(m, n, n)])
    y = drawn(name, rng, d)
    if name in CLASSES:
        y[:3] = 0, 1, 2
    if name == "cox":  # an event of every client
        y[np.cumsum(sizes) - 1] = 2
    pool = Compiled if kind == "compiled" else Pool
    data = problem.fit_labels(pool(sp.csr_array(X) if kind == "csr" else X, y, None, sizes, dtype))
    data.dtype = dtype
    return data


def drawn(name, rng, d):
    """Random labels that a problem takes: (d,)."""
    if name in ("poisson", "gamma"):
        return getattr(rng, name)(2.0, size=d).astype(float)
    if name == "cox":  # many at one time
        return rng.integers(1, 6, d) * rng.choice([1.0, -1.0], d)
    if name in REAL_LABELS:
        return rng.standard_normal(d)
    return rng.integers(0, 3 if name in CLASSES else 2, d).astype(float)


def one_block(problem, data: Dataset):
    """All clients of ``data`` in one block: their sizes have one padded size."""
    kernels = "compiled" if isinstance(data, Compiled) else "numpy"
    layout = BlockLayout(0, data.sizes, [np.arange(data.m)], np.dtype(data.dtype), kernels=kernels)
    (block,) = fill_blocks(data, layout, problem.labels)
    return block


def written_out(name, block):
    """The f_i of a block's clients as plain formulas."""
    return [function(PROBLEMS[name], block.dense(i), block.b[i, :d]) for i, d in enumerate(block.d)]
