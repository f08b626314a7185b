"""A user's file with classes that each make the mistake that their option ``slip`` names."""

from typing import NamedTuple

import numpy as np

from mpifed import (
    Algorithm,
    Array,
    Compressor,
    Data,
    Dataset,
    Distribution,
    Graph,
    LinearModel,
    Optimizer,
    Partition,
    Problem,
    Selection,
    Selector,
    ServerOptimizer,
    Solver,
    Step,
)
from mpifed.graphs.base import Edges


class Client(NamedTuple):
    z: Array  # (c, n)


class Bare(NamedTuple):
    y: Array


class Server(NamedTuple):
    x: Array  # (n,) model


class Method(Algorithm):
    """Gradient descent, but for its slip."""

    slip: str = ""

    def join(self, f):
        Z = f.zeros(f.n)
        return {
            "join none": None,
            "join dict": {"z": Z},
            "join tuple": (Z,),
            "join number": Client(0.0),
            "join rows": Client(np.zeros((len(f) + 1, f.n))),
            "join complex": Client(Z * 1j),
            "join nan": Client(Z + np.nan),
            "join list": Client([0.0] * len(f)),
        }.get(self.slip, Client(Z))

    def start(self, fed):
        x = fed.initial()
        return {
            "start none": None,
            "start array": x,
            "start no x": Bare(x),
            "start shape": Server(np.zeros(fed.n + 1)),
            "start text": Server(np.array(["a"] * fed.n)),
            "start number": Server(0.0),
        }.get(self.slip, Server(x))

    def round(self, fed, server):
        x = server.x
        match self.slip:
            case "to twice":
                g = fed.mean(self.gradient, x, to=[1, 1, 2])
            case "to outside":
                g = fed.mean(self.gradient, x, to=[1, 99])
            case "to negative":
                g = fed.mean(self.gradient, x, to=np.array([-1, 2]))
            case "to floats":
                g = fed.mean(self.gradient, x, to=[1.0, 2.0])
            case "to table":
                g = fed.mean(self.gradient, x, to=np.array([[1, 2]]))
            case "to mask":
                g = fed.mean(self.gradient, x, to=np.ones(fed.m + 1, bool))
            case "mask of":
                g = fed.mask([0, fed.m]) @ np.ones((fed.m, fed.n))
            case "each short":
                g = fed.mean(self.scaled, x, to=[1, 2, 3], each=np.ones(2))
            case "each of all":
                g = fed.mean(self.scaled, x, each=np.ones(fed.m + 1))
            case "each number":
                g = fed.mean(self.scaled, x, to=[1, 2], each=2.0)
            case "of others":
                fed.send(self.gradient, x, to=np.array([1, 2]))
                fed.arrivals()
                g = fed.mean(of=np.array([1, 3]))
            case "of twice":
                fed.send(self.gradient, x, to=np.array([1, 2]))
                fed.arrivals()
                g = fed.mean(of=[1, 1])
            case "lambda":
                g = fed.mean(lambda f, client, x: (client, f.grad(x)), x)
            case "function":
                g = fed.mean(outside, x)
            case "round none":
                return None
            case "round array":
                return x
            case "round other":
                return Bare(x)
            case "round shape":
                return Server(x[:1])
            case "round complex":
                return Server(x * 1j)
            case "sets":
                self.slip = "changed"
            case "field":
                g = server.model
            case "arguments":
                g = fed.mean(self.gradient)
            case "no method":
                g = fed.mean(self.gradeint, x)
            case _:
                g = fed.mean(self.gradient, x)
        return Server(x - 0.1 * g)

    def gradient(self, f, client, x):
        G = f.grad(x)
        match self.slip:
            case "reply none":
                return None
            case "reply alone":
                return G
            case "reply three":
                return client, G, G
            case "reply list":
                return [client, G]
            case "reply state":
                return G, client
            case "reply swapped":
                return Server(G), G
            case "upload list":
                return client, [G]
            case "upload number":
                return client, 1.0
            case "upload mean":
                return client, G.mean(axis=0)[None, :].repeat(len(f) + 1, axis=0)
            case "upload complex":
                return client, G * 1j
            case "upload text":
                return client, np.array(["a"] * len(f))
            case "upload part":
                return client, (G, 3.0)
            case "upload named":
                return client, {"g": None}
            case "state shape":
                return client._replace(z=G[:, :1]), G
            case "state none":
                return client._replace(z=None), G
            case "state list":
                return client._replace(z=G.tolist()), G
            case "state rows":
                return client._replace(z=np.vstack([G, G])), G
            case "client sets":
                self.count = 1
            case "client fails":
                return client, f.gradient(x)
            case "divides":
                return client, G / 0
            case "writes":
                x += 1
        return client, G

    def scaled(self, f, client, x, a):
        return client, a[:, None] * f.grad(x)


def outside(f, client, x):
    return client, f.grad(x)


class Chosen(Selection):
    """Clients 1, 2 and 3, but for its slip."""

    slip: str = ""

    def selector(self, seed, m, rounds):
        match self.slip:
            case "list":
                return [1, 2, 3]
            case "size":
                return Selector(m + 1, lambda round, again: None)
            case "half":
                return Selector(2.5, lambda round, again: None)
            case "weights":
                return Selector(3, self.select, weights=np.ones(3))
        return Selector(3, self.select)

    def select(self, round, again):
        found = {
            "twice": [1, 1, 2],
            "negative": [-1, 2, 3],
            "outside": [1, 2, 99],
            "few": [1, 2],
            "many": [0, 1, 2, 3],
            "none": [],
            "all": None,
            "floats": [1.0, 2.0, 3.0],
            "mask": np.ones(3, bool),
        }
        if self.slip == "fails":
            return [1, 2, 3][self.slip]
        return found.get(self.slip, [3, 1, 2])


class Linear(LinearModel):
    """Least squares, but for its slip."""

    slip: str = ""

    def loss(self, Z, b):
        R = (Z - b) ** 2 / 2
        return {"loss number": R.sum(), "loss of clients": R.sum(axis=1)}.get(self.slip, R)

    def slope(self, Z, b):
        R = Z - b
        return {"slope number": 0.3, "slope of clients": R.sum(axis=1), "slope none": None}.get(self.slip, R)

    def weight(self, d):
        return {"weight": 0.1}.get(self.slip, np.zeros(len(d)))


class Quadratic(Problem):
    """Least squares from ``value_grad``, but for its slip."""

    slip: str = ""

    def dim(self, data):
        return 2.5 if self.slip == "dim" else data.n

    def initial(self, data, seed):
        return np.zeros(data.n + (self.slip == "initial"))

    def value_grad(self, block, X):
        R = block.matvec(X) - block.b
        f, G = np.vecdot(block.w, R**2) / 2, block.vecmat(R * block.w)
        return {"value": (f.sum(), G), "grad": (f, G.sum(axis=0)), "alone": f, "swapped": (G, f)}.get(self.slip, (f, G))

    def lipschitz(self, block):
        return 10.0 if self.slip == "lipschitz" else np.full(len(block), 10.0)

    def hess(self, block, X):
        n = X.shape[-1]
        H = np.broadcast_to(np.eye(n), (len(block), n, n)).copy()
        H[:, 0, 1] += self.slip == "symmetric"
        return H[0] if self.slip == "hess" else H


class Ring(Graph):
    """A ring, but for its slip."""

    slip: str = ""

    def edges(self, m, rng):
        ring = np.array([[i, (i + 1) % m] for i in range(m)])
        return {
            "array": ring,
            "both": Edges(np.vstack([ring, ring[:, ::-1], ring])),
            "pairs": [(i, (i + 1) % m) for i in range(m)],
            "loop": Edges(np.vstack([ring, [[1, 1]]])),
            "outside": Edges(ring + 1),
            "floats": ring.astype(float),
            "none": None,
            "rows": Edges(ring, np.full(m, 0.25), np.full(m, 0.3)),
            "two weights": Edges(np.vstack([ring, ring]), np.r_[np.full(m, 0.25), np.full(m, 0.2)]),
            "weights": Edges(ring, np.full(m - 1, 0.25)),
        }[self.slip]


class Half(Compressor):
    """C(x) = x/2: δ = 3/4, but for its slip."""

    slip: str = ""

    def message(self, rows, rngs, symmetric):
        return {"shape": rows[0], "not finite": rows * np.nan}.get(self.slip, rows / 2)

    def bits(self, N, itemsize, symmetric=False):
        return {"negative": -4, "fraction": 7.5}.get(self.slip, N)

    def delta(self, N, symmetric=False):
        return {"delta": 0.9, "large": 1.5, "omega": None}.get(self.slip, 0.75)

    def omega(self, N, symmetric=False):
        return {"omega": 0.1}.get(self.slip)


class Six(Dataset):
    def __init__(self, slip):
        self.m, self.n, self.slip = 6, 5, slip
        self.sizes = {"empty": np.array([4, 4, 0, 4, 4, 4]), "five": np.full(5, 4), "floats": np.full(6, 4.0)}.get(
            slip, np.full(6, 4)
        )

    def rows(self, lo, hi):
        d = int(np.sum(self.sizes[lo:hi]))
        X, y = np.ones((d, 5)), np.ones(d)
        return {"y": (X, y[1:]), "X": (X[:, 1:], y), "alone": X}.get(self.slip, (X, y))


class Source(Data):
    """Six clients of four samples, but for its slip."""

    slip: str = ""

    def load(self, seed, dtype):
        return (np.ones((4, 3)), np.ones(4)) if self.slip == "tuple" else Six(self.slip)


class Deal(Partition):
    """Equal parts, but for its slip."""

    slip: str = ""

    def deal(self, y, m, rng):
        d = len(y)
        rows, sizes = np.arange(d), np.full(m, d // m)
        return {
            "too many": (rows, np.full(m, d)),
            "twice": (np.zeros(d, int), sizes),
            "outside": (rows + 1, sizes),
            "alone": rows,
            "empty": (rows, np.r_[0, sizes[1:]]),
            "floats": (rows / 2, sizes),
        }[self.slip]


class Rule(Step):
    """A step size that is none."""

    slip: str = ""

    def gamma(self, k, k0, d):
        return {"negative": -1.0, "none": None, "shape": np.ones(3), "not finite": float("nan")}[self.slip]


class Direction(Optimizer):
    """A direction that is none."""

    slip: str = ""

    def direction(self, memory, g, w):
        return {"alone": g, "shape": (g[0], memory)}[self.slip]


class ServerStep(ServerOptimizer):
    """A server's step that is none."""

    slip: str = ""

    def rate(self, delta, spread):
        return delta if self.slip == "rate" else 1.0

    def direction(self, memory, delta):
        return (delta[:1], memory) if self.slip == "shape" else delta


class Inner(Solver):
    """A solver that returns one point for all clients."""

    def minimise(self, f, Y, W, alpha, beta, share):
        return W[0] if W.ndim > 1 else W


class Spread(Distribution):
    """A property of devices that is none."""

    slip: str = ""

    def draw(self, rng, m):
        return {
            "number": 1.0,
            "negative": np.full(m, -1.0),
            "shape": np.ones(3),
            "not finite": np.full(m, np.nan),
        }[self.slip]
