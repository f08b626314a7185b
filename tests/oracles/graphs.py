"""The weights W of a graph in every round, written out with loops."""

import math

import numpy as np

from mpifed.core.streams import stream


def edges(table, m, seed, round):
    """The edges (i, j), i < j, of a table [graph]."""
    name = table["name"]
    if name == "star":
        return [(0, j) for j in range(1, m)]
    if name == "erdos-renyi":
        return sorted(random_edges(table["p"], m, stream(seed, "graph", round if table.get("redraw") else 0, 0)))
    if name == "torus":
        rows = table["rows"]
        columns = m // rows
        cells = [(i, *divmod(i, columns)) for i in range(m)]
        found = {(i, (r + 1) % rows * columns + c) for i, r, c in cells}
        found |= {(i, r * columns + (c + 1) % columns) for i, r, c in cells}
    else:
        powers = [2**k for k in range(math.ceil(math.log2(m)))]
        hops = {"ring": [1], "complete": range(1, m), "exponential": powers}[name]
        found = {(i, (i + hop) % m) for i in range(m) for hop in hops}
    return sorted({(min(pair), max(pair)) for pair in found if pair[0] != pair[1]})


def random_edges(p, m, rng):
    """Pairs (0, 1), (0, 2), (1, 2), (0, 3) … in turn: the next edge is as many pairs on as a geometric number says."""
    every = [(i, j) for j in range(m) for i in range(j)]
    gaps = rng.geometric(p, 4 * len(every) + 100)
    numbers = np.cumsum(gaps) - 1
    return {every[k] for k in numbers if k < len(every)}


def matrices(table, m, rounds, seed=0):
    """W of the rounds 1, 2 …: (rounds, m, m)."""
    found = []
    for round in range(1, rounds + 1):
        pairs = edges(table, m, seed, round)
        degree = [sum(i in pair for pair in pairs) for i in range(m)]
        W = np.eye(m)
        for i, j in pairs:
            w = 1 / (1 + max(degree[i], degree[j]))
            W[i, j] = W[j, i] = w
            W[i, i] -= w
            W[j, j] -= w
        if table.get("loss"):
            for (i, j), u in zip(pairs, stream(seed, "graph", round, 1).random(len(pairs)), strict=True):
                if u < table["loss"]:
                    w = W[i, j]
                    W[i, j] = W[j, i] = 0
                    W[i, i] += w
                    W[j, j] += w
        found.append(W)
    return np.array(found)


def at_the_mean(points):
    """The mean of the nodes' models in every round, from those (rounds + 1, m, n), and their distance from it."""
    means = [np.mean(X, axis=0) for X in points]
    squares = [np.sum((X - x) ** 2, axis=1) for X, x in zip(points, means, strict=True)]
    return means, {"consensus": np.mean(squares, axis=1), "consensus_max": np.max(squares, axis=1)}


def default_step(clients, table, seed=0):
    """(1 + λ)/(2 max r_i), λ the least eigenvalue of W without losses, rounded down as mpifed does."""
    W = matrices({**table, "loss": 0.0}, len(clients), 1, seed)[0]
    least = (round(np.linalg.eigvalsh(W)[0] * 2**20) - 1) / 2**20
    return (1 + least) / (2 * max(client.lipschitz for client in clients))
