"""Least squares on twelve nodes of different sizes, scales and hyperplanes, for the tests of methods on graphs."""

from functools import cache

import numpy as np

from mpifed.data.pool import Pool
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import Run, build

M, N = 12, 6
GRAPHS = [
    {"name": "ring"},
    {"name": "torus", "rows": 3},
    {"name": "star"},
    {"name": "erdos-renyi", "p": 0.4},
    {"name": "exponential"},
    {"name": "complete"},
]
CHANGING = [{"name": "torus", "rows": 3, "loss": 0.2}, {"name": "erdos-renyi", "p": 0.3, "redraw": True}]


def nodes():
    """(A_i, b_i) of all nodes."""
    rng = np.random.default_rng(11)
    for i in range(M):
        A = rng.uniform(0.5, 1.5) * rng.standard_normal((12 + 3 * (i % 4), N))
        yield A, A @ rng.standard_normal(N) + 0.3 * rng.standard_normal(len(A))


@cache
def data():
    X, y = (np.concatenate(parts) for parts in zip(*nodes(), strict=True))
    return Pool(X, y, None, np.array([len(A) for A, _ in nodes()]))


@cache
def quadratics():
    """(Q_i, q_i) with ∇f_i(x) = Q_i x − q_i."""
    return [(A.T @ A / len(A), A.T @ b / len(A)) for A, b in nodes()]


@cache
def smoothness():
    """max r_i."""
    return float(max(np.linalg.eigvalsh(Q)[-1] for Q, _ in quadratics()))


@cache
def best():
    """The minimiser of f."""
    return np.linalg.solve(sum(Q for Q, _ in quadratics()), sum(q for _, q in quadratics()))


def begun(name, graph, selection=None, **options):
    """A method at work on the nodes, all of them by default."""
    graph = {"name": graph} if isinstance(graph, str) else graph
    return Run(build(name, options), data=data(), graph=graph, selection=selection or All())


def names(table):
    """What a case is called."""
    return "-".join(str(value) for value in table.values())
