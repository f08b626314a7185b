"""Least squares on twelve nodes of different sizes, scales and hyperplanes, for the tests of methods on graphs."""

from __future__ import annotations

import numpy as np

import mpifed

M, N = 12, 6
HALF = {"name": "uniform", "share": 0.5}
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
        d = 12 + 3 * (i % 4)
        A = rng.uniform(0.5, 1.5) * rng.standard_normal((d, N))
        yield A, A @ rng.standard_normal(N) + 0.3 * rng.standard_normal(d)


def quadratics():
    """(Q_i, q_i) with ∇f_i(x) = Q_i x − q_i."""
    return [(A.T @ A / len(A), A.T @ b / len(A)) for A, b in nodes()]


def smoothness():
    """max r_i."""
    return max(np.linalg.eigvalsh(Q)[-1] for Q, _ in quadratics())


def best():
    """The minimiser of f."""
    return np.linalg.solve(sum(Q for Q, _ in quadratics()), sum(q for _, q in quadratics()))


def run(rounds, graph=None, selection=None, problem="least-squares", **algorithm):
    """The result of a method, on a graph or with a server."""
    X, y = (np.concatenate(parts) for parts in zip(*nodes(), strict=True))
    sizes = [len(A) for A, _ in nodes()]
    more = {"graph": graph} if graph else {}
    return mpifed.run(
        {"rounds": rounds, "kernels": "numpy", "algorithm": algorithm, "selection": selection or "all", **more},
        data=mpifed.arrays(X, y if problem == "least-squares" else y > 0, sizes),
        problem=problem,
    )


def names(table):
    """What a case is called."""
    return "-".join(str(value) for value in table.values())
