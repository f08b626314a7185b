"""Methods that average models, beside programs of D. A. E. Acar (FedDyn), J. Wang (FedNova), K. Yi (ProxSkip)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.agreement.row import Row, apart
from tests.agreement.stored import by_sizes, case, program, replayed, saved

# What the programs do otherwise, and stored or given numbers in the place of those that are drawn.
CLASSES = '''
from typing import NamedTuple

import numpy as np

from mpifed import algorithms
from mpifed.extend import Array, Distribution
from mpifed.algorithms.feddyn import Client as Term
from mpifed.algorithms.fednova import Client
from mpifed.algorithms.scaffold import Client as Variate


class Scaffold(algorithms.Scaffold):
    """c and changes of c_i with the factors s_i = d_i/mean d: c/s_i in local steps, s_i(c_i⁺ − c_i) at the server."""

    mean_size: float = 1.0

    def update(self, f, client, x, c, k):
        s = f.samples / self.mean_size
        y, total = self.descend(f, client, x, c / s, k)
        new = client.c - c + (x - y) / total
        return Variate(c=new), (y - x, s * (new - client.c))


class FedDyn(algorithms.FedDyn):
    """α_i = α/s_i in the place of α, h_i and h in the unit of models."""

    mean_size: float = 1.0

    def round(self, fed, server):
        selected = fed.select(server.x)
        theta = fed.mean(self.update, server.x, server.k, to=selected)
        h = server.h + fed.fraction(selected) * (theta - server.x)
        return server._replace(x=theta + h, h=h)

    def update(self, f, client, x, k):
        a = self.alpha * self.mean_size / f.samples
        theta = f.xp.tile(x, (len(f), 1))
        for _ in range(self.k0):
            theta = theta - self.step.a * (f.grad(theta) + a * (client.h + theta - x))
        return Term(h=client.h + theta - x), theta


class Server(NamedTuple):
    x: Array
    k: int
    u: Array


class FedNova(algorithms.FedNova):
    """With momentum at the server."""

    gmf: float = 0.0

    def init_server(self, fed):
        return Server(fed.initial(), 0, 0 * fed.initial())

    def round(self, fed, server):
        u = self.gmf * server.u + super().round(fed, server).x - server.x
        return server._replace(x=server.x + u, u=u)


class ProxSkip(algorithms.ProxSkip):
    """The numbers of local steps as they are stored."""

    path: str = ""

    def round(self, fed, server):
        steps = int(np.load(self.path)["counts"][fed.round - 1])
        selected = fed.select(server.x)
        x = fed.mean(self.descend, server.x, server.gamma, steps, to=selected)
        fed.call(self.correct, x, server.p / server.gamma, to=selected)
        return server._replace(x=x)


class Called(NamedTuple):
    h: Array
    x: Array  # what a client returned last
    calls: Array  # how often it was called


class Late(ProxSkip):
    """Clients correct h_i when they are called again, with the model of then, and count their steps by themselves."""

    def init_client(self, f):
        return Called(f.zeros(), f.initial(), f.xp.zeros(len(f), dtype=int))

    def round(self, fed, server):
        factor = server.p / server.gamma
        return server._replace(x=fed.mean(self.late, server.x, server.gamma, factor, to=fed.select(server.x)))

    def late(self, f, client, x, gamma, factor):
        h = client.h + np.where(client.calls[:, None] > 0, factor * (x - client.x), 0)
        steps, y = np.load(self.path)["counts"][client.calls, None], np.tile(x, (len(f), 1))
        for k in range(steps.max()):
            y = np.where(k < steps, y - gamma * (f.grad(y) - h), y)
        return Called(h, y, client.calls + 1), y


class Speeds(Distribution):
    """One number for each client."""

    numbers: list[float] = []

    def draw(self, rng, m):
        return np.array(self.numbers)
'''
CLIENTS = {"all": "6 clients", "uneven-all-zero": "6 uneven clients", "uneven-half-zero": "half of 6 uneven clients"}
HALF = "half of 6 uneven clients, weight decay 0.03 in the problem"
SCALED = {
    "scaffold": "the program has c d/d_i in local steps, d the mean of the d_i, and (d_i/d)(c_i⁺ − c_i) in c; "
    "the paper has neither",
    "feddyn": "the program has α d/d_i, d the mean of the d_i, in the place of α; the paper has one α",
}
LATE = (
    "the program corrects h_i when a client is called again, with the model of then, so that Σ h_i is not 0 and its f "
    "rises without end"
)


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "classes.py").write_text(CLASSES, "utf-8")
    for name, compared in CLIENTS.items():
        yield acar("fedavg", name, compared, scratch)
        yield acar("fedprox", name, compared, scratch, mu=0.2, inner=1)
    for method, title, more in (("scaffold", "Scaffold", {}), ("feddyn", "FedDyn", {"alpha": 0.3})):
        yield acar(method, "all", CLIENTS["all"], scratch, **more)
        row = acar(method, "uneven-half-decay", HALF, scratch, **more)
        more = more | {"name": f"{scratch / 'classes.py'}:{title}", "mean_size": 11.5}
        scaled = acar(method, "uneven-half-decay", f"{HALF}, sizes in the method by a derived class", scratch, **more)
        yield scaled.without(SCALED[method], row)
    yield wang("plain", "unequal steps", scratch)
    yield wang("equal-momentum", "unequal steps with momentum", scratch)
    yield wang("server-momentum", "unequal steps and sizes, the server's momentum by a derived class", scratch)
    yield yi("own-draws", "6 uneven clients, stored numbers of steps by a derived class", "ProxSkip", scratch)
    half, late = (
        yi("half", f"half of 6 uneven clients, {what} by a derived class", name, scratch)
        for name, what in (("ProxSkip", "stored numbers of steps"), ("Late", "stored numbers of steps, late h_i"))
    )
    yield late.without(LATE, half)


def acar(method: str, cohort: str, compared: str, scratch: Path, **more: Any) -> Row:
    """FedAvg and FedProx of that program average by sizes, the others do not."""
    Z = case(f"{method}-acar", cohort)
    algorithm = {"name": method, "k0": Z["steps"], "step": {"name": "constant", "a": Z["lr"]}} | more
    weights = {"weights": "samples" if method in ("fedavg", "fedprox") else "clients"}
    found, f = by_sizes(Z, scratch, algorithm=algorithm, objective=weights)
    x = apart(found.models["x"], Z["x"])
    return Row(method, *program(f"{method}-acar"), f"25 rounds, {compared}", x, apart(f, Z["f"]))


def wang(name: str, compared: str, scratch: Path) -> Row:
    """Clients have so much time in a round that they take as many steps as are stored."""
    Z = case("fednova-wang", name)
    file = scratch / "classes.py"
    momentum = {"optimizer": {"name": "momentum", "beta": Z["momentum"]}} if Z["momentum"] else {}
    server = {"name": f"{file}:FedNova", "gmf": Z["gmf"]} if Z["gmf"] else {"name": "fednova"}
    step = {"name": "constant", "a": Z["lr"]}
    speeds = {"name": f"{file}:Speeds", "numbers": (Z["sizes"] * (Z["steps"] + 0.5)).tolist()}
    found, f = by_sizes(
        Z,
        scratch,
        "LeastSquares",
        algorithm={"k0": int(np.max(Z["steps"])), "step": step} | momentum | server,
        system={"speed": speeds, "deadline": 1.0, "partial": True},
        selection="all",
    )
    x = apart(found.models["x"], Z["x"])
    return Row("fednova", *program("fednova-wang"), f"25 rounds, 5 clients, {compared}", x, apart(f, Z["f"]))


def yi(name: str, compared: str, method: str, scratch: Path) -> Row:
    Z = case("proxskip-yi", name)
    own = {"name": f"{scratch / 'classes.py'}:{method}", "path": saved(Z, scratch / f"{name}.npz")}
    found = replayed(
        Z,
        scratch,
        algorithm={"gamma": Z["lr"], "p": Z["p"]} | own,
        problem={"name": "logistic", "mu": Z["lam"], "regulariser": "whole"},
        **({} if "clients" in Z else {"selection": "all"}),
    )
    x, f = apart(found.models["x"], Z["x"]), apart(found.rounds["objective"], Z["f"])
    return Row("proxskip", *program("proxskip-yi"), f"40 rounds, {compared}", x, f)
