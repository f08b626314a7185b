"""What ``rounds`` and ``kernels`` are measured beside, as one would write it in numpy: loops over clients.

A method is a function (run, i, x, k, rng) that changes the state of client i and returns its upload. Options that are
not given are the defaults of mpifed; the loss is logistic, with (MU/2)‖x‖² over d_i.
"""

import math
import time
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from mpifed import Array
from mpifed.algorithms.parts.elastic_nets import elastic_net_mean
from mpifed.core.arrays import soft
from mpifed.experiment.config import Experiment

MU = 1e-3
STEPS = 5
GAMMA = 0.1
Draw = Callable[[int, int], np.random.Generator]  # client and round -> where its random numbers come from
Update = Callable[["Plain", int, Array, int, np.random.Generator], Array]


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


def gradient(problem: str, mu: float, A: Any, b: Array, x: Array) -> Array:
    """∇f_i(x) of a single client; of softmax x has the weights of each class and then the intercepts."""
    d, n = A.shape
    if problem == "softmax":
        classes = len(x) // (n + 1)
        Z = A @ x[: classes * n].reshape(classes, n).T + x[classes * n :]
        R = np.exp(Z - Z.max(axis=1, keepdims=True))
        R /= R.sum(axis=1, keepdims=True)
        R[np.arange(d), b.astype(np.intp)] -= 1
        R /= d
        return np.concatenate([(A.T @ R).T.ravel(), R.sum(axis=0)])
    if problem == "least-squares":
        return (A @ x - b) @ A / d
    g = (1 / (1 + np.exp(-(A @ x))) - b) @ A
    return (g + mu * (x if problem == "logistic" else x / (1 + x * x) ** 2)) / d


class Plain:
    """Clients with samples ``parts`` (A_i, b_i), in a list, and their states: ``state[name][i]``."""

    def __init__(self, options: dict[str, Any], parts: list[tuple[Array, Array]], draw: Draw) -> None:
        self.method = method = options["name"]
        self.parts = parts
        self.options = options
        self.draw = draw
        self.m, self.n = len(parts), parts[0][0].shape[1]
        zero = np.zeros(self.n, parts[0][0].dtype)
        self.x = self.c = zero
        self.k = self.rounds = 0
        self.pi, self.z, self.own = ([zero] * self.m for _ in range(3))
        self.eps = [float(options.get("k0", 0) ** 2)] * self.m
        self.r = [(np.linalg.eigvalsh(A.T @ A)[-1] / 4 + MU) / len(A) for A, _ in parts] if method == "fedadmm" else []
        if method == "fedepm":
            scale = 1 / options["mu0"] / math.sqrt(2)
            self.z = [draw(i, 0).laplace(0, scale, self.n).astype(zero.dtype) for i in range(self.m)]
            self.x = self.net()

    def round(self) -> None:
        """One round of all clients."""
        update, self.rounds = METHODS[self.method], self.rounds + 1
        with np.errstate(over="ignore"):  # of exp where a score is large; the share is 0 then
            total = reduce(np.add, (update(self, i, self.x, self.k, self.draw(i, self.rounds)) for i in range(self.m)))
        self.k += self.options.get("epochs") or self.options.get("k0", 0)
        if self.method == "fedadmm":
            self.x = total / (0.2 * sum(self.r) / self.m)
        elif self.method == "scaffold":
            self.x, self.c = self.x + total[0] / self.m, self.c + total[1] / self.m
        else:
            self.x = self.net() if self.method == "fedepm" else total / self.m

    def net(self) -> Array:
        """The model of FedEPM."""
        eta = self.eta()
        return elastic_net_mean(np.array(self.z), eta / 2, eta)

    def eta(self) -> float:
        return (0.02 * self.m + 1) * 1.1 * 1e-5

    def grad(self, i: int, w: Array, rows: Any = slice(None)) -> Array:
        """∇f_i(w) on some of its samples."""
        A, b = self.parts[i][0][rows], self.parts[i][1][rows]
        p = 1 / (1 + np.exp(-(A @ w)))
        return (p - b) @ A / A.dtype.type(len(b)) + A.dtype.type(MU / len(self.parts[i][1])) * w

    def batches(self, i: int, rng: np.random.Generator) -> Iterator[tuple[int, Array]]:
        """Mini-batches: epoch or iteration, and the numbers of the samples."""
        size, d = self.options["batch_size"], len(self.parts[i][1])
        for j in range(self.options.get("epochs") or self.options["k0"]):
            order = rng.permutation(d)
            for k in range(0, d if self.options.get("epochs") else size, size):
                yield j, order[k : k + size]


def gamma(k: int) -> np.float32:
    return np.float32(0.01 / math.log2(k + 2))


def fedavg(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    w = x
    for j, rows in run.batches(i, rng):
        w = w - gamma(k + j) * run.grad(i, w, rows)
    return w


def scaffold(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    y = x
    own = run.own[i]
    total = np.float32(0)
    for j, rows in run.batches(i, rng):
        step = gamma(k + j)
        y = y - step * (run.grad(i, y, rows) - own + run.c)
        total += step
    run.own[i] = own - run.c + (x - y) / total
    return np.array([y - x, run.own[i] - own])


def fedadmm(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    r = np.float32(run.r[i] / run.m)
    sigma = np.float32(0.2) * r
    pi = run.pi[i]
    first = run.grad(i, x) / np.float32(run.m)
    for _ in range(run.options["k0"]):
        run.eps[i] *= 0.95
        w, g = x, first
        for step in range(3):
            w = (r * w + sigma * x - (g + pi)) / (r + sigma)
            if step < 2:
                g = run.grad(i, w) / np.float32(run.m)
                residual = g + pi + sigma * (w - x)
                if residual @ residual <= run.eps[i]:
                    break
        pi = pi + sigma * (w - x)
    run.pi[i] = pi
    return sigma * w + pi


def fedpd(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    pi, first = run.pi[i], run.grad(i, x)
    for j in range(run.options["k0"]):
        w, step = x, gamma(k + j)
        for inner in range(5):
            g = run.grad(i, w) if inner else first
            w = w - step * (g + pi + (w - x))
        pi = pi + (w - x)
    run.pi[i] = pi
    return w + pi


def personal(run: Plain, i: int, x: Array, rng: np.random.Generator) -> Array:
    """The personal model of FLAME and pFedMe."""
    theta = run.own[i]
    lam = np.float32(5)
    lr = np.float32(0.01)
    for _, rows in run.batches(i, rng):
        theta = theta - lr * (run.grad(i, theta, rows) + lam * (theta - x))
    run.own[i] = theta
    return theta


def flame(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    pull, rho = np.float32(5 / run.m), np.float32(0.01)
    theta = personal(run, i, x, rng)
    w = (pull * theta + rho * x - run.pi[i]) / (pull + rho)
    run.pi[i] = run.pi[i] + rho * (w - x)
    return w + run.pi[i] / rho


def pfedme(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    return x - np.float32(2.5) * (x - personal(run, i, x, rng))


def fedepm(run: Plain, i: int, x: Array, k: int, rng: np.random.Generator) -> Array:
    w = run.own[i]
    g = run.grad(i, x)
    eta = run.eta()
    d = len(run.parts[i][1])
    for j in range(run.options["k0"]):
        away = w - x
        mu = run.options["mu0"] * (1 + 1e-8 * (away @ away)) * 1.001 ** (k + j + 1)
        step = np.float32(mu / d)
        w = x + soft(step * away - g, eta / 2) / (eta + step)
    run.own[i] = w
    run.z[i] = w + rng.laplace(0, 2 * np.abs(g).sum() / mu / 0.1, run.n).astype(w.dtype)
    return run.z[i]


METHODS: dict[str, Update] = {
    "fedadmm": fedadmm,
    "fedpd": fedpd,
    "flame": flame,
    "pfedme": pfedme,
    "scaffold": scaffold,
    "fedavg": fedavg,
    "fedepm": fedepm,
}
