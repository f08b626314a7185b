"""A user's file with methods that each make the mistake that their option ``slip`` names, in what is seldom written."""

import threading
from typing import NamedTuple

import numpy as np

from mpifed import Algorithm, Array, GraphMethod, Max, Mean, Need, Sum, Takes, Upload


class Client(NamedTuple):
    z: Array  # (c, n)


class Server(NamedTuple):
    x: Array  # (n,) model
    rest: object = 0.0


class Near(NamedTuple):
    a: float
    b: float


KEPT = {}  # what a method must not keep from one call to the next


class Method(Algorithm):
    """Gradient descent, but for its slip."""

    slip: str = ""

    def join(self, f):
        KEPT["f"] = f
        Z = f.zeros(f.n)
        match self.slip:
            case "join masked":
                return Client(np.ma.masked_less(Z, 1))
            case "join objects":
                return Client(Z.astype(object))
            case "join nested":
                return Client((Z, Z))
            case "join 0-d":
                return Client(np.array(1.0))
            case "join generator":
                return (z for z in Z)
            case "join calls":
                return self.gradient(f, Client(Z), f.initial()[0])[0]
            case "join class":
                return Client
        return Client(Z)

    def start(self, fed):
        x = fed.initial()
        KEPT["fed"] = fed
        return {
            "start tuple": Server(x, (1.0, x)),
            "start near": Server(x, Near(1.0, 2.0)),
            "start dict": Server(x, {"a": x}),
            "start None": Server(x, None),
            "start ragged": Server(x, [[1.0], [1.0, 2.0]]),
            "start list x": Server(x.tolist()),
            "start masked": Server(np.ma.masked_less(x, 1)),
            "start nan": Server(x + np.nan),
            "start int": Server(np.zeros(fed.n, int)),
            "start objects": Server(x.astype(object)),
            "start grows": Server(x, np.zeros(0)),
            "start bool": Server(x, True),
            "start text": Server(x, "a"),
        }.get(self.slip, Server(x))

    def round(self, fed, server):
        x = server.x
        match self.slip:
            case "to set":
                g = fed.mean(self.gradient, x, to={1, 2})
            case "to text":
                g = fed.mean(self.gradient, x, to="12")
            case "to names":
                g = fed.mean(self.gradient, x, to=["1", "2"])
            case "to number":
                g = fed.mean(self.gradient, x, to=3)
            case "to dict":
                g = fed.mean(self.gradient, x, to={1: 2})
            case "to generator":
                g = fed.mean(self.gradient, x, to=(i for i in range(3)))
            case "to ragged":
                g = fed.mean(self.gradient, x, to=[[1], [2, 3]])
            case "to none":
                g = fed.mean(self.gradient, x, to=[])
            case "to objects":
                g = fed.mean(self.gradient, x, to=np.array([1, "2", None], object))
            case "to masked":
                g = fed.mean(self.gradient, x, to=np.ma.array([1, 2, 3], mask=[0, 1, 0]))
            case "to range":
                g = fed.mean(self.gradient, x, to=range(3))
            case "to flags":
                g = fed.mean(self.gradient, x, to=[True, False] * 3)
            case "each ragged":
                g = fed.mean(self.scaled, x, to=[1, 2], each=[[1.0], [1.0, 2.0]])
            case "each texts":
                g = fed.mean(self.scaled, x, to=[1, 2], each=["a", "b"])
            case "each none":
                g = fed.mean(self.scaled, x, to=[1, 2], each=[None, 1.0])
            case "each objects":
                g = fed.mean(self.scaled, x, to=[1, 2], each=np.array([1.0, 2.0], object))
            case "each set":
                g = fed.mean(self.scaled, x, to=[1, 2], each={1.0, 2.0})
            case "each complex":
                g = fed.mean(self.scaled, x, to=[1, 2], each=np.array([1j, 2j]))
            case "arg text":
                g = fed.mean(self.given, "a")
            case "arg list":
                g = fed.mean(self.given, [1.0, 2.0])
            case "arg dict":
                g = fed.mean(self.given, {"x": x})
            case "arg none":
                g = fed.mean(self.given, None)
            case "arg function":
                g = fed.mean(self.given, len)
            case "arg state":
                g = fed.mean(self.given, server)
            case "arg objects":
                g = fed.mean(self.given, np.array([None, 1]))
            case "arg complex":
                g = fed.mean(self.given, x * 1j)
            case "arg large":
                g = fed.mean(self.given, 10**400)
            case "arg named":
                g = fed.mean(self.gradient, x=x)
            case "last unknown":
                g = fed.mean(self.gradient, x, last="y")
            case "last number":
                g = fed.mean(self.gradient, x, last=3)
            case "select nothing":
                g = fed.mean(self.gradient, x, to=fed.select())
            case "method text":
                g = fed.mean("gradient", x)
            case "method called":
                g = fed.mean(self.gradient(x))
            case "method none":
                g = fed.mean(None, x)
            case "no method":
                g = fed.mean()
            case "sum none":
                g = fed.mean(self.silent, x)
            case "round generator":
                return (s for s in [server])
            case "recursion":
                return self.round(fed, server)
            case "empty":
                raise RuntimeError
            case "breaks":
                raise ValueError("one\ntwo\nthree")
            case "breaks first":
                raise ValueError("\n\none")
            case "umlaut":
                raise ValueError("Größe µ ist falsch\x07")
            case "exits":
                raise SystemExit(3)
            case "unwritten":
                raise NotImplementedError
            case "stops":
                next(iter([]))
            case "asserts":
                assert fed.m < 0
            case "bad text":
                raise Mute
            case "system":
                raise OSError(2, "no such", "file")
            case "f later":
                g = KEPT["f"].grad(x)
            case "thread":
                found = []
                thread = threading.Thread(target=lambda: found.append(fed.mean(self.gradient, x)))
                thread.start()
                thread.join()
                g = found[0]
            case "grows":
                return Server(np.append(x, 0.0))
            case "rest grows":
                return Server(x, np.zeros(3))
            case "x ints":
                return Server(x.astype(int))
            case "x nan":
                return Server(x * np.nan)
            case "mix":
                g = fed.mix("z", self.gradient)
            case "solve bad":
                g = fed.solve(self.gradient, x, then=self.wrong)
            case "solve lambda":
                g = fed.solve(self.gradient, x, then=lambda rows: rows.mean(axis=0))
            case "mask text":
                g = fed.mask("a") @ np.ones((fed.m, fed.n))
            case _:
                g = fed.mean(self.gradient, x)
        if self.slip == "named":
            g = g["g"]
        return Server(x - 0.1 * g, server.rest)

    def gradient(self, f, client, x):
        G = f.grad(x)
        match self.slip:
            case "masked":
                return client, np.ma.masked_less(G, 0)
            case "objects":
                return client, G.astype(object)
            case "generator":
                return client, (g for g in G)
            case "0-d":
                return client, np.array(1.0)
            case "named":
                return client, {"g": G} if f.round < 2 else {"h": G}
            case "number names":
                return client, {1: G}
            case "nested":
                return client, (G, (G, G))
            case "nested names":
                return client, {"g": {"h": G}}
            case "wider":
                return client, G if f.round < 2 else np.hstack([G, G])
            case "by block":
                return client, G if f.ids[0] == 0 else np.hstack([G, G])
            case "none by block":
                return client, G if f.ids[0] == 0 else None
            case "part by block":
                return client, G if f.ids[0] == 0 else (G, G)
            case "by rank":
                return client, G if f.ids[0] < 3 else np.hstack([G, G])
            case "none by rank":
                return client, G if f.ids[0] < 3 else None
            case "none by rank first":
                return client, None if f.ids[0] < 3 else G
            case "empty tuple":
                return client, ()
            case "empty dict":
                return client, {}
            case "state masked":
                return client._replace(z=np.ma.masked_less(G, 0)), G
            case "state objects":
                return client._replace(z=G.astype(object)), G
            case "state class":
                return Client, G
            case "state plain":
                return (G,), G
            case "state bool":
                return client._replace(z=G > 0), G
            case "client recursion":
                return self.gradient(f, client, x)
            case "client fed":
                return client, KEPT["fed"].mean(self.gradient, x)
            case "client exits":
                raise SystemExit("bye")
            case "client empty":
                raise KeyError
            case "client breaks":
                raise ValueError("one\ntwo")
            case "client unwritten":
                raise NotImplementedError
            case "client stops":
                raise StopIteration
            case "x (c, n) wrong":
                return client, f.grad(np.zeros((len(f) + 1, f.n)))
            case "x short":
                return client, f.grad(x[1:])
            case "x list":
                return client, f.grad(x.tolist())
            case "x objects":
                return client, f.grad(x.astype(object))
            case "x none":
                return client, f.grad(None)
            case "writes state":
                client.z[:] = 1
        return client, G

    def scaled(self, f, client, x, a):
        return client, a.reshape(len(f), -1)[:, :1] * f.grad(x)

    def silent(self, f, client, x):
        return client, None

    def given(self, f, client, x):
        return client, f.grad(np.zeros(f.n))

    def wrong(self, rows):
        return rows[:, :1]


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Spoken(Algorithm):
    """Gradient descent with hooks that return what they must not."""

    slip: str = ""
    what: str = ""

    takes = Takes.ALL

    def join(self, f):
        return Client(f.zeros(f.n))

    def start(self, fed):
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
            "array": np.ones(c),
            "plain": {"snr": np.ones(c)},
            "pair": [("snr", Sum(np.ones(c)))],
            "number": {"snr": Sum(1.0)},
            "rows": {"snr": Sum(np.ones(c + 1))},
            "table": {"snr": Max(np.ones((c, 2)))},
            "complex": {"snr": Sum(np.ones(c) * 1j)},
            "text": {"snr": Sum(np.array(["a"] * c))},
            "list": {"snr": Sum([1.0] * c)},
            "key": {1: Sum(np.ones(c))},
            "empty key": {"": Sum(np.ones(c))},
            "taken": {"objective": Sum(np.ones(c))},
            "gradient": {"gradient": Sum(np.ones(c))},
            "by block": {f"snr{f.ids[0]}": Sum(np.ones(c))},
            "by rank": {f"snr{f.ids[0] < 3}": Sum(np.ones(c))},
            "odd": {"snr": Sum(np.full(c, np.nan))},
            "class": {"snr": Sum},
            "slash": {"a/b": Sum(np.ones(c))},
            "umlaut": {"größe": Sum(np.ones(c))},
            "ints": {"snr": Sum(np.ones(c, int))},
        }[self.slip]


class Reporting(Spoken):
    def report(self, server, row, m):
        match self.slip:
            case "fails":
                return {"a": row["b"]}
            case "rounds":
                KEPT["count"] = KEPT.get("count", 0) + 1
                return {f"a{KEPT['count']}": 1.0}
        return {
            "none": None,
            "number": 1.0,
            "array": {"a": np.ones(3)},
            "text": {"a": "b"},
            "value none": {"a": None},
            "complex": {"a": 1j},
            "key": {1: 1.0},
            "taken": {"objective": 1.0},
            "round": {"round": 7.0},
            "empty key": {"": 1.0},
            "slash": {"a/b": 1.0},
            "dot": {".": 1.0},
            "umlaut": {"größe": 1.0},
            "one": {"a": np.array([2.0])},
            "0-d": {"a": np.array(2.0)},
            "bool": {"a": True},
            "odd": {"a": float("nan")},
        }[self.slip]


class Personal(Spoken):
    def personalised(self, f, client):
        Z = f.zeros(f.n)
        return {"none": None, "shape": Z[:, 1:], "one": Z[0], "list": Z.tolist(), "pair": (Z, Z)}[self.slip]


class Counting(Spoken):
    def hook(self, name, right):
        if self.what != name:
            return right
        if self.slip == "fails":
            raise KeyError(name)
        return {
            "none": None,
            "number": 3.0,
            "text": "three",
            "list": [3.0] * 6,
            "negative": np.full(6, -1.0),
            "odd": np.full(6, np.nan),
            "short": np.ones(2),
            "objects": np.full(6, None),
            "triple": (1.0, 2.0, 3.0),
            "pair": ("a", "b"),
            "minus": (-1.0, -1.0),
            "generator": (i for i in range(2)),
            "dict": {"a": 1},
            "zero": np.zeros(6),
            "floats": np.full(6, 2.5),
            "empty": "",
        }[self.slip]

    def work(self, d):
        return self.hook("work", d)

    def traffic(self, n):
        return self.hook("traffic", (n, n))

    def local_steps(self, d):
        return self.hook("local_steps", None)

    def advice(self, m):
        return self.hook("advice", None)

    def certificate(self, known):
        return self.hook("certificate", None)

    def privacy(self):
        return self.hook("privacy", None)

    def verify(self, selected):
        return self.hook("verify", None)

    def redrawn(self, server, rounds):
        return self.hook("redrawn", server)

    def received(self, f, client, upload):
        return self.hook("received", client)


class Scoring(Algorithm):
    slip: str = ""

    def join(self, f):
        return Client(f.zeros(f.n))

    def start(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        return Server(server.x - 0.1 * fed.mean(self.gradient, server.x, to=fed.select(server.x)))

    def gradient(self, f, client, x):
        return client, f.grad(x)

    def scores(self, f, client):
        c = np.ones(len(f))
        return {
            "none": None,
            "alone": c,
            "rows": (client, np.ones((len(f), 2))),
            "number": (client, 1.0),
            "odd": (client, c * np.nan),
            "negative": (client, -c),
            "state": (c, c),
            "right": (client, c),
        }[self.slip]

    def score(self, f, client, x, size):
        return self.scores(f, client)

    def score_loss(self, f, client, x, size):
        return self.scores(f, client)

    def importance(self, f, client):
        return self.scores(f, client)

    def smoothness(self, f, client):
        return self.scores(f, client)


class Requires(Spoken):
    requires = ("lipschitz",)


class RequiresText(Spoken):
    requires = "lipschitz"


class RequiresUnknown(Spoken):
    requires = (Need("lipshitz"),)


class RequiresOption(Spoken):
    requires = (Need("lipschitz", unless=("gama",)),)


class TakesText(Spoken):
    takes = "all"


class MeanText(Spoken):
    mean = "unbiased"


class MeanClass(Spoken):
    mean = Mean


class UploadText(Spoken):
    upload = "model"


class UploadKind(Spoken):
    upload = Upload(kind="modle")


class UploadKept(Spoken):
    upload = Upload(kind="model", kept="y")


class UploadKnown(Spoken):
    upload = Upload(kind="model", known="y")


class UploadVectors(Spoken):
    upload = Upload(kind="model", vectors="2")


class AsyncText(Spoken):
    asynchronous = "yes"


class RecordTable(Spoken):
    record = "a"


class WorkNumber(Spoken):
    work = 3


class Static(Spoken):
    @staticmethod
    def gradient(f, client, x):
        return client, f.grad(x)


class OfClass(Spoken):
    @classmethod
    def gradient(cls, f, client, x):
        return client, f.grad(x)


class Valued(Spoken):
    @property
    def gradient(self):
        return lambda f, client, x: (client, f.grad(x))


class Coroutine(Spoken):
    async def gradient(self, f, client, x):
        return client, f.grad(x)


class AsyncRound(Spoken):
    async def round(self, fed, server):
        return server


class YieldRound(Spoken):
    def round(self, fed, server):
        yield server


class YieldGradient(Spoken):
    def gradient(self, f, client, x):
        yield client, f.grad(x)


class StaticRound(Spoken):
    @staticmethod
    def round(fed, server):
        return server


class FewArguments(Spoken):
    def round(self, fed):
        return fed


class NoRound(Algorithm):
    def join(self, f):
        return Client(f.zeros(f.n))

    def start(self, fed):
        return Server(fed.initial())


class RoundAttribute(Spoken):
    round = None


class PostFails(Spoken):
    def __post_init__(self):
        raise KeyError("gamma")


class PostRefuses(Spoken):
    def __post_init__(self):
        raise ValueError("gamma is not right")


class PostSets(Spoken):
    gamma: float = 0.1

    def __post_init__(self):
        self.gamma = "a"


class BadDefault(Spoken):
    gamma: float = "a"


class SetOption(Spoken):
    gamma: set[int] = frozenset()


class Unannotated(Spoken):
    gamma = 0.1


class Recursive(Spoken):
    inner: "Recursive | None" = None


class Größe(Spoken):
    """Non-ASCII name."""

    μ: float = 0.1


def made(gamma=0.1):
    return Spoken()


instance = Spoken()


class Plain:
    pass


class Nodes(GraphMethod):
    """Gradient descent on a graph, but for its slip."""

    slip: str = ""

    def join(self, f):
        Z = f.zeros(f.n)
        if self.slip == "no x":
            return Client(Z)
        return Server(Z, f.zeros(2) if self.slip != "rest" else np.zeros(len(f), object))

    def start(self, net):
        return None if self.slip == "start none" else Server(net.initial())

    def round(self, net, server):
        match self.slip:
            case "mean":
                net.mean(self.step)
            case "array":
                net.mix("x", self.step, server.x)
            case "field":
                net.mix("y", self.step)
            case "fields":
                net.mix(("x", "y"), self.step)
            case "field number":
                net.mix(3, self.step)
            case "no field":
                net.mix(self.step)
            case "narrow":
                net.mix("rest", self.step)
            case "lambda":
                net.mix("x", lambda f, client, mixed: (client, None))
            case "to twice":
                net.local(self.alone, to=[1, 1])
            case "to outside":
                net.local(self.alone, to=[9])
            case "to falling":
                net.local(self.alone, to=[3, 1])
            case "of outside":
                net.mix("x", self.step, of=[9])
            case "of falling":
                net.mix("x", self.step, of=[3, 1])
            case "gather none":
                net.gather("x", None)
            case "gather pair":
                net.gather(("x", "rest"), self.step)
            case "arguments":
                net.mix("x", self.alone)
            case "text":
                net.local(self.plus, "a")
            case "none":
                net.local(self.plus, None)
            case "round none":
                net.mix("x", self.step)
                return None
            case _:
                net.mix("x", self.step)
        return server

    def step(self, f, client, mixed):
        new = client._replace(x=mixed - 0.1 * f.grad(client.x))
        return {
            "upload": (new, new.x),
            "alone": new,
            "shape": (client._replace(x=mixed[:, :1]), None),
            "reply none": None,
        }.get(self.slip, (new, None))

    def alone(self, f, client):
        return client, None

    def plus(self, f, client, a):
        return client, None


class Draws(Spoken):
    """Two draws of the server in a round are two draws."""

    def round(self, fed, server):
        assert fed.rng.random() != fed.rng.random()
        return super().round(fed, server)
