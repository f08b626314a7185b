"""A user's file with a method and a problem that are right, and others that each have one mistake."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

import mpifed

KEPT = {}  # what a method hides from the state


class Client(NamedTuple):
    """Clients keep nothing."""


class Server(NamedTuple):
    x: mpifed.extend.Array  # (n,) model


class Descent(mpifed.extend.Algorithm):
    """x⁺ = x − γ mean of ∇f_i(x) over the selected clients."""

    gamma: Annotated[float, Meta(gt=0, description="step size γ")] = 0.01

    def init_client(self, f):
        return Client()

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        return Server(server.x - self.gamma * fed.mean(self.gradient, server.x, to=fed.select(server.x)))

    def gradient(self, f, client, x):
        return client, f.grad(x)


class SelectsNobody(Descent):
    def round(self, fed, server):
        return Server(server.x - self.gamma * fed.mean(self.gradient, server.x))


class AsksOthers(Descent):
    def round(self, fed, server):
        fed.call(self.gradient, server.x, to=~fed.mask(fed.select(server.x)))
        return Server(server.x)


class AsksNobodyElse(Descent):
    participation = mpifed.extend.Participation.SELECTED_AND_ALL


class SendsTwo(Descent):
    def round(self, fed, server):
        g, _ = fed.mean(self.gradient, server.x, to=fed.select(server.x))
        return Server(server.x - self.gamma * g)

    def gradient(self, f, client, x):
        return client, (f.grad(x), f.grad(x))


class WorksMore(Descent):
    def gradient(self, f, client, x):
        return client, f.grad(x) + 0 * f.grad(x)

    def sample_gradients(self, d):
        return d


class GetsMore(Descent):
    def round(self, fed, server):
        return Server(server.x - self.gamma * fed.mean(self.gradient, server.x, server.x, to=fed.select(server.x)))

    def gradient(self, f, client, x, y):
        return client, f.grad(x)


class KeepsElsewhere(Descent):
    upload = mpifed.extend.Upload(last_upload="z")


class NeedsMore(Descent):
    def gradient(self, f, client, x):
        f.lipschitz()
        return client, f.grad(x)


class NeedsLess(Descent):
    requires = (mpifed.extend.Requirement("hessian"),)


class LooksAside(Descent):
    def gradient(self, f, client, x):
        G = f.grad(x)
        return client, G * (1 + 0.1 * len(f))


class DrawsAnywhere(Descent):
    def gradient(self, f, client, x):
        return client, f.grad(x) + 1e-3 * np.random.standard_normal(len(x))  # noqa: NPY002


class Remembers(Descent):
    def init_server(self, fed):
        KEPT["v"] = np.zeros(fed.n)
        return Server(fed.initial())

    def round(self, fed, server):
        g = fed.mean(self.gradient, server.x, to=fed.select(server.x))
        KEPT["v"] = 0.5 * KEPT.get("v", 0) + g
        return Server(server.x - self.gamma * KEPT["v"])


class Longer(NamedTuple):
    x: mpifed.extend.Array
    path: mpifed.extend.Array  # as many numbers as rounds


class Grows(Descent):
    def init_server(self, fed):
        return Longer(fed.initial(), np.zeros(0))

    def round(self, fed, server):
        x = super().round(fed, server).x
        return Longer(x, np.append(server.path, x[0]))


class FirstOfAll(Descent):
    def round(self, fed, server):
        return Server(server.x - self.gamma * fed.call(self.gradient, server.x, to=fed.select(server.x))[0])


class Shrinks(Descent):
    def round(self, fed, server):
        return Server(fed.sum(self.moved, server.x, to=fed.select(server.x)) / fed.m)

    def moved(self, f, client, x):
        return client, x - self.gamma * f.grad(x)


class Fails(Descent):
    def gradient(self, f, client, x):
        return client, f.gradients(x)


class Squares(mpifed.extend.LinearModel):
    """(z − b)²/2."""

    curvature = 1.0

    def loss(self, Z, b):
        return (Z - b) ** 2 / 2

    def slope(self, Z, b):
        return Z - b

    def bend(self, Z):
        return np.ones_like(Z)


class WrongSlope(Squares):
    def slope(self, Z, b):
        return 1.01 * (Z - b)


class WrongBend(Squares):
    def bend(self, Z):
        return np.full_like(Z, 1.1)


class LowBound(Squares):
    curvature = 0.5


class Written(mpifed.extend.Problem):
    """Least squares from ``value_grad``, but for its slip."""

    slip: str = ""

    def value_grad(self, block, X):
        R = block.matvec(X) - block.b
        f, G = np.vecdot(block.w, R**2) / 2, block.vecmat(R * block.w)
        if self.slip == "neighbours":
            G = G * (1 + 1e-14 * len(block))
        if self.slip == "common" and X.ndim == 2:
            G = 1.0 * G[::-1]
            f = f[::-1]
        return f, G

    def value(self, block, X):
        return self.value_grad(block, X)[0] + (1e-3 if self.slip == "value" else 0)

    def convexity(self, block):
        return np.full(len(block), {"convexity": 1e3, "unknown": np.nan}.get(self.slip, 0.0))

    def clipped_grad(self, block, X, bound):
        return self.grad(block, X) * (0.5 if self.slip == "clipped" else 1)

    def hessian(self, block, X):
        factor = 2.0 if self.slip == "hessian" else 1.0
        return lambda V: factor * block.vecmat(block.matvec(V) * block.w)


class Half(mpifed.extend.Compressor):
    """C(x) = x/2 on average, but for its slip."""

    slip: str = ""

    def message(self, rows, rngs, symmetric):
        if self.slip == "delta":
            return np.where(np.ptp(rows, axis=1, keepdims=True) > 0, rows / 2, 0)
        if self.slip == "rows":
            return rows / 2 + rows.mean(axis=0) / 100
        return rows / 2

    def bits(self, N, itemsize, symmetric=False):
        return 8 * itemsize * N

    def delta(self, N, symmetric=False):
        return None if self.slip == "omega" else 0.75

    def omega(self, N, symmetric=False):
        return 0.5 if self.slip == "omega" else None


class InTurn(mpifed.extend.Selection):
    """Half of the clients, by turns, but for its slip."""

    slip: str = ""

    def selector(self, seed, m, rounds):
        size, last = m // 2, [0]

        def select(round, again):
            last[0] += 1
            turn = last[0] if self.slip == "turn" else round
            if self.slip == "weights":
                turn = 0
            return (np.arange(size) + turn) % m

        return mpifed.extend.Selector(size, select, weights=np.ones(m))


class Noise(mpifed.extend.Data):
    """Samples of 6 clients, but for its slip."""

    slip: str = ""

    def load(self, seed, dtype):
        rng = np.random if self.slip == "draws" else mpifed.extend.stream(seed, "noise")
        X = rng.standard_normal((24, 4))
        return mpifed.extend.Pool(X, X.sum(axis=1), None, np.full(6, 4), dtype)


class Shuffled(mpifed.extend.Partition):
    slip: str = ""

    def deal(self, y, m, rng):
        order = np.random.permutation(len(y)) if self.slip else rng.permutation(len(y))  # noqa: NPY002
        return order, np.full(m, len(y) // m)


class Relative(mpifed.algorithms.parts.Step):
    slip: str = ""

    def gamma(self, k, k0, d):
        return 0.001 * d / (d.sum() if self.slip else 10)


class Uphill(mpifed.algorithms.parts.Solver):
    slip: str = ""

    def minimise(self, f, Y, W, alpha, beta, share):
        return W + {"": -1, "up": 1, "unknown": np.nan}[self.slip] / beta * (f.grad(W) - Y)


class Coin(mpifed.extend.Attack):
    slip: str = ""

    def alone(self, u, draws):
        return u * (np.random.random() if self.slip else 0.5)  # noqa: NPY002


class Path(mpifed.algorithms.parts.ServerOptimizer):
    slip: str = ""

    def rate(self, delta, spread):
        return 1.0

    def direction(self, memory, delta):
        return delta, memory._replace(u=np.append(memory.u, delta[0])) if self.slip else memory
