"""A user's file with classes that each make the mistake that their option ``slip`` names."""

import threading
from typing import NamedTuple

import numpy as np

import mpifed
from mpifed.graphs.graph import Edges


class Client(NamedTuple):
    z: mpifed.extend.Array  # (c, n)


class Server(NamedTuple):
    x: mpifed.extend.Array  # (n,) model
    rest: object = 0.0


class Bare(NamedTuple):
    y: mpifed.extend.Array


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


KEPT = {}  # what a method counts from one call to the next
TO = {  # clients that a call names
    "to set": {1, 2},
    "to mask": np.ones(7, bool),
    "to outside": [1, 99],
    "to twice": [1, 1, 2],
    "to none": [],
    "to range": range(3),
}
RAISED = {"empty": RuntimeError(), "breaks": ValueError("\n\nGröße µ ist falsch\x07\ntwo"), "bad text": Mute()}


class Method(mpifed.extend.Algorithm):
    """Gradient descent, but for its slip."""

    slip: str = ""

    def init_client(self, f):
        Z = f.zeros(f.n)
        if self.slip == "join calls":
            return self.gradient(f, Client(Z), f.initial()[0])[0]
        return {"join rows": Client(np.zeros((len(f) + 1, f.n))), "join nan": Client(Z + np.nan)}.get(
            self.slip, Client(Z)
        )

    def init_server(self, fed):
        x = fed.initial()
        return {
            "start none": None,
            "start no x": Bare(x),
            "start text": Server(np.array(["a"] * fed.n)),
            "start shape": Server(np.zeros(fed.n + 1)),
            "start int": Server(np.zeros(fed.n, int)),
        }.get(self.slip, Server(x))

    def round(self, fed, server):
        x = server.x
        if self.slip in RAISED:
            raise RAISED[self.slip]
        match self.slip:
            case "each short":
                g = fed.mean(self.scaled, x, to=[1, 2, 3], each=np.ones(2))
            case "of others":
                fed.send(self.gradient, x, to=np.array([1, 2]))
                fed.arrivals()
                g = fed.mean(of=[1, 3])
            case "arg text" | "arg none":
                g = fed.mean(self.given, "a" if self.slip == "arg text" else None)
            case "lambda":
                g = fed.mean(lambda f, client, x: (client, f.grad(x)), x)
            case "method none":
                g = fed.mean(None, x)
            case "sets":
                self.slip = "changed"
            case "field":
                g = server.model
            case "mix":
                g = fed.mix("z", self.gradient)
            case "rest grows":
                return Server(x, np.zeros(3))
            case "thread":
                found = []
                thread = threading.Thread(target=lambda: found.append(fed.mean(self.gradient, x)))
                thread.start()
                thread.join()
                g = found[0]
            case _:
                g = fed.mean(self.gradient, x, to=TO.get(self.slip))
        return Server(x - 0.1 * g, server.rest)

    def gradient(self, f, client, x):
        G = f.grad(x.tolist() if self.slip == "x list" else x)
        if self.slip == "writes":
            x += 1
        if self.slip == "exits":
            raise SystemExit("bye")
        return {
            "reply three": (client, G, G),
            "reply state": (G, client),
            "state shape": (client._replace(z=G[:, :1]), G),
            "upload list": (client, [G]),
            "by block": (client, (G, G) if f.ids[0] == 0 else {"g": G}),
            "by rank": (client, G if f.ids[0] < 3 else np.hstack([G, G])),
        }.get(self.slip, (client, G))

    def scaled(self, f, client, x, a):
        return client, a[:, None] * f.grad(x)

    def given(self, f, client, x):
        return client, f.grad(np.zeros(f.n))


class Spoken(mpifed.extend.Algorithm):
    """Gradient descent with hooks that return what they must not."""

    slip: str = ""

    participation = mpifed.extend.Participation.ALL

    def init_client(self, f):
        return Client(f.zeros(f.n))

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        return Server(server.x - 0.1 * fed.mean(self.gradient, server.x))

    def gradient(self, f, client, x):
        return client, f.grad(x)


class Recording(Spoken):
    def record(self, f, client, x):
        c = len(f)
        return {
            "none": None,
            "plain": {"snr": np.ones(c)},
            "rows": {"snr": mpifed.algorithms.parts.Sum(np.ones(c + 1))},
            "key": {1: mpifed.algorithms.parts.Sum(np.ones(c))},
            "taken": {"objective": mpifed.algorithms.parts.Sum(np.ones(c))},
            "by block": {f"snr{f.ids[0]}": mpifed.algorithms.parts.Sum(np.ones(c))},
            "odd": {"größe": mpifed.algorithms.parts.Sum(np.ones(c, int))},
        }[self.slip]


class Reporting(Spoken):
    def report(self, server, row, m):
        KEPT["count"] = KEPT.get("count", 0) + 1
        return {
            "none": None,
            "text": {"a": "b"},
            "odd": {f"größe{KEPT['count']}": None, "0-d": np.array(2.0), "bool": True, "nan": float("nan")},
        }[self.slip]


class Personal(Spoken):
    def personal_models(self, f, client):
        return f.zeros(f.n)[:, 1:]


class Counting(Spoken):
    """The hook that ``slip`` names returns a number."""

    def hook(self, name, right=None):
        return 3.0 if self.slip == name else right

    def sample_gradients(self, d):
        return None if self.slip == "no work" else self.hook("sample_gradients", d)

    def message_size(self, n):
        return self.hook("message_size", (n, n))

    def advice(self, m):
        return self.hook("advice")

    def certificate(self, known):
        return self.hook("certificate")

    def privacy(self):
        return self.hook("privacy")


class Scoring(Spoken):
    participation = mpifed.extend.Participation.SELECTED

    def round(self, fed, server):
        return Server(server.x - 0.1 * fed.mean(self.gradient, server.x, to=fed.select(server.x)))

    def score(self, f, client, x, size):
        return {"alone": np.ones(len(f)), "right": (client, -np.ones(len(f)))}[self.slip]


for name, wrong in {  # classes that differ from Spoken in one attribute
    "Requires": {"requires": ("lipschitz",)},
    "RequiresOption": {"requires": (mpifed.extend.Requirement("lipschitz", unless=("gama",)),)},
    "TakesText": {"participation": "all"},
    "UploadKind": {"upload": mpifed.extend.Upload(content="modle")},
    "RecordText": {"record": "a"},
    "BadDefault": {"__annotations__": {"gamma": float}, "gamma": "a"},
}.items():
    globals()[name] = type(Spoken)(name, (Spoken,), {"__module__": __name__} | wrong)


class StaticRound(Spoken):
    @staticmethod
    def round(fed, server):
        return server


class PostFails(Spoken):
    def __post_init__(self):
        raise KeyError("gamma")


class PostRefuses(Spoken):
    def __post_init__(self):
        raise ValueError("gamma is not right")


class Größe(Spoken):
    """Non-ASCII name."""

    μ: float = 0.1


class Nodes(mpifed.extend.GraphAlgorithm):
    """Gradient descent on a graph, but for its slip."""

    slip: str = ""

    def init_client(self, f):
        Z = f.zeros(f.n)
        return Client(Z) if self.slip == "no x" else Server(Z, f.zeros(2))

    def init_server(self, net):
        return Server(net.initial())

    def round(self, net, server):
        match self.slip:
            case "mean":
                net.mean(self.step)
            case "array":
                net.mix("x", self.step, server.x)
            case "field":
                net.mix("y", self.step)
            case "falling":
                net.local(self.plus, None, to=[3, 1])
                net.mix("x", self.step, of=[3, 1])
            case "none":
                net.local(self.plus, None)
            case _:
                net.mix("x", self.step)
        return server

    def step(self, f, client, mixed):
        new = client._replace(x=mixed - 0.1 * f.grad(client.x))
        return new, new.x if self.slip == "upload" else None

    def plus(self, f, client, a):
        return client, None


class Chosen(mpifed.extend.Selection):
    """Clients 1, 2 and 3, but for its slip."""

    slip: str = ""

    def selector(self, seed, m, rounds):
        return {
            "list": [1, 2, 3],
            "size": mpifed.extend.Selector(m + 1, self.select),
            "weights": mpifed.extend.Selector(3, self.select, weights=np.ones(3)),
        }.get(self.slip, mpifed.extend.Selector(3, self.select))

    def select(self, round, again):
        return {"few": [1, 2], "none": []}[self.slip]


class Linear(mpifed.extend.LinearModel):
    """Least squares, but for its slip."""

    slip: str = ""

    def loss(self, Z, b):
        R = (Z - b) ** 2 / 2
        return R.sum(axis=1) if self.slip == "loss" else R

    def slope(self, Z, b):
        return Z - b

    def weight(self, d):
        return 0.1 if self.slip == "weight" else np.zeros(len(d))


class Quadratic(mpifed.extend.Problem):
    """Least squares from ``value_grad``, but for its slip."""

    slip: str = ""

    def dim(self, data):
        return 2.5 if self.slip == "dim" else data.n

    def initial(self, data, seed):
        return np.zeros(data.n + (self.slip == "initial"))

    def value_grad(self, block, X):
        R = block.matvec(X) - block.b
        f, G = np.vecdot(block.w, R**2) / 2, block.vecmat(R * block.w)
        return {"grad": (f, G.sum(axis=0)), "alone": f}.get(self.slip, (f, G))

    def lipschitz(self, block):
        return np.full(len(block), 10.0)

    def hess(self, block, X):
        n = X.shape[-1]
        H = np.broadcast_to(np.eye(n), (len(block), n, n)).copy()
        H[:, 0, 1] += self.slip == "symmetric"
        return H


class Ring(mpifed.extend.Graph):
    """A ring, but for its slip."""

    slip: str = ""

    def edges(self, m, rng):
        ring = np.array([[i, (i + 1) % m] for i in range(m)])
        return {
            "loop": Edges(np.vstack([ring, [[1, 1]]])),
            "outside": Edges(ring + 1),
            "floats": ring.astype(float),
            "rows": Edges(ring, np.full(m, 0.25), np.full(m, 0.3)),
            "two weights": Edges(np.vstack([ring, ring]), np.r_[np.full(m, 0.25), np.full(m, 0.2)]),
            "weights": Edges(ring, np.full(m - 1, 0.25)),
        }[self.slip]


class Half(mpifed.extend.Compressor):
    """C(x) = x/2: δ = 3/4, but for its slip."""

    slip: str = ""

    def message(self, rows, rngs, symmetric):
        return {"shape": rows[0], "not finite": rows * np.nan}.get(self.slip, rows / 2)

    def bits(self, N, itemsize, symmetric=False):
        return 7.5 if self.slip == "bits" else N

    def delta(self, N, symmetric=False):
        return {"large": 1.5, "below": None}.get(self.slip, 0.75)

    def omega(self, N, symmetric=False):
        return -1 if self.slip == "below" else None


class Six(mpifed.extend.Dataset):
    def __init__(self, slip):
        self.m, self.n, self.slip = 6, 5, slip
        self.sizes = {"empty": np.array([4, 4, 0, 4, 4, 4]), "five": np.full(5, 4)}.get(slip, np.full(6, 4))

    def rows(self, lo, hi):
        d = int(np.sum(self.sizes[lo:hi]))
        X, y = np.ones((d, 5)), np.ones(d)
        return {"y": (X, y[1:]), "alone": X}.get(self.slip, (X, y))


class Source(mpifed.extend.Data):
    """Six clients of four samples, but for its slip."""

    slip: str = ""

    def load(self, seed, dtype):
        found = Six(self.slip)
        if self.slip == "no n":
            del found.n
        return (np.ones((4, 3)), np.ones(4)) if self.slip == "tuple" else found


class Deal(mpifed.extend.Partition):
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
        }[self.slip]


class Rule(mpifed.algorithms.parts.Step):
    """A step size that is none."""

    slip: str = ""

    def gamma(self, k, k0, d):
        return -1.0 if self.slip == "negative" else np.ones(3)


class Direction(mpifed.algorithms.parts.Optimizer):
    """A direction that is none."""

    slip: str = ""

    def direction(self, memory, g, w):
        return {"alone": g, "shape": (g[0], memory)}[self.slip]


class ServerStep(mpifed.algorithms.parts.ServerOptimizer):
    """A server's step that is none."""

    slip: str = ""

    def rate(self, delta, spread):
        return delta if self.slip == "rate" else 1.0

    def direction(self, memory, delta):
        return delta


class Inner(mpifed.algorithms.parts.Solver):
    """A solver that returns one point for all clients."""

    def minimise(self, f, Y, W, alpha, beta, share):
        return W[0] if W.ndim > 1 else W


class Spread(mpifed.extend.Distribution):
    """A property of devices that is none."""

    slip: str = ""

    def draw(self, rng, m):
        return {"negative": np.full(m, -1.0), "infinite": np.r_[np.ones(m - 1), np.inf]}.get(self.slip, np.ones(3))
