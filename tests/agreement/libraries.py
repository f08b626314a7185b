"""Methods beside Flower, FedJAX, Optax, PyProximal and glum, stored by programs.py: models after every round."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.agreement.packages import CLASSES, COUNTS, POSITIVE, SHIFTS, SIZES, WEIGHTS, A, ours
from tests.agreement.row import Row, apart
from tests.agreement.stored import replayed

STORED = Path(__file__).parent / "programs.npz"
PROGRAMS = {
    "flower": ("adap/flower", "1.42.0"),
    "fedjax": ("google/fedjax", "0.0.17"),
    "optax": ("google-deepmind/optax", "0.2.8"),
    "pyproximal": ("PyLops/pyproximal", "0.13.0"),
    "glum": ("Quantco/glum", "3.4.1"),
}
# What Flower and FedJAX do otherwise than the papers.
CLASSES_OF_THEIRS = '''
from typing import NamedTuple

import numpy as np

from mpifed import algorithms
from mpifed.algorithms.parts import server_optimizers
from mpifed.extend import Array


class Zero:
    """v begins at 0."""

    def begin(self, x):
        return server_optimizers.Memory(np.zeros_like(x), np.zeros_like(x))


class Yogi(Zero, server_optimizers.Yogi):
    pass


class Adagrad(Zero, server_optimizers.Adagrad):
    pass


class Adam(server_optimizers.ServerAdam):
    """v begins at 0, and the step is corrected as if a round had gone before; u has the rounds too, at its end."""

    def begin(self, x):
        return server_optimizers.Memory(np.append(0 * x, 1), 0 * x)

    def direction(self, memory, delta):
        k = memory.u[-1] + 1
        d, new = super().direction(memory._replace(u=memory.u[:-1]), delta)
        return d * np.sqrt(1 - self.beta2**k) / (1 - self.beta1**k), new._replace(u=np.append(new.u, k))


class QFedAvg(algorithms.QFedAvg):
    def losses(self, f, x):
        return super().losses(f, x) + 1e-10


class Own(NamedTuple):
    w: Array
    v: Array
    alpha: Array  # 0 until a client is called


class APFL(algorithms.APFL):
    """Own models begin at the server's, have steps without α, and α_i is learnt."""

    def init_client(self, f):
        return Own(f.initial(), f.initial(), f.zeros()[:, :1])

    def update(self, f, client, x, k, most=None):
        new = client.alpha == 0
        a, v, w = np.where(new, self.alpha, client.alpha), np.where(new, x, client.v), np.tile(x, (len(f), 1))
        for j in range(self.k0):
            gamma, g, h = self.step.gamma(k + j, self.k0, f.samples), f.grad(a * v + (1 - a) * w), f.grad(w)
            v, w, a = v - gamma * g, w - gamma * h, np.clip(a - gamma * ((v - w) * g).sum(1, keepdims=True), 0, 1)
        return Own(w, v, a), w

    def personal_models(self, f, client):
        return client.v
'''
ZERO = "the program begins v at 0, Algorithm 2 of the paper at τ² or above"
BIAS = "the program begins v at 0 and corrects the step for it as Adam does, one round ahead; Algorithm 2 does neither"
ADDED = "the program adds 1e-10 to every f_i, which the paper does not"
LEARNT = "the program learns each α_i, has no α in the step of own models, and begins these at the server's model"
RIDGE = 0.25  # μ in the f_i of FedDCD
MEANS = "10 rounds, 12 clients, least squares"
FIVE = f"{MEANS}, 5 of them replayed"


class Case(NamedTuple):
    """A stored trajectory, and what mpifed runs beside it."""

    method: str
    key: str
    algorithm: dict[str, Any]
    compared: str = ""
    study: dict[str, Any] = {}  # noqa: RUF012
    reason: str = ""
    own: str = ""  # class that has what ``reason`` says; of the server's optimiser where there is one


def average(**more: Any) -> dict[str, Any]:
    return {"name": "fedavg", "k0": 3, "step": {"name": "constant", "a": 0.1}} | more


def server(name: str, **more: Any) -> dict[str, Any]:
    return average(name="fedopt", server={"name": name} | more)


def root(name: str, **more: Any) -> dict[str, Any]:
    step = {"name": "sqrt-samples", "a": 0.02}
    return {"name": name, "k0": 3, "step": step, "noise": "none"} | more


BY_SIZES = {"objective": {"weights": "samples"}}
ADAPTIVE = {"lr": 0.1, "tau": 0.01}
FAIR = {"name": "q-fedavg", "q": 1.0, "lr": 0.1, "k0": 3}
PROX = average(name="fedprox", mu=0.5, inner=1)
MOMENTUM, ADAM = {"name": "momentum", "beta": 0.8}, {"name": "adam"}
EXACT = {"name": "newton", "tol": 1e-14}
LOCAL_GD = {"name": "local-gd", "k0": 3, "gamma": 0.1}
FEDERATED = [
    Case("fedavg", "flower average", average()),
    Case("fedavg", "flower average, five", average()),
    Case("fedavg", "flower average, sizes", average(), "weights by sizes", BY_SIZES),
    Case("fedavg", "flower average, sizes, five", average(), "weights by sizes", BY_SIZES),
    Case("local-gd", "flower average", LOCAL_GD),
    Case("local-gd", "flower average, five", LOCAL_GD),
    Case("fedopt, momentum", "flower momentum", server("momentum", lr=0.5, beta=0.8)),
    Case("fedopt, adam", "flower adam", server("adam", **ADAPTIVE), "", {}, BIAS, "Adam"),
    Case("fedopt, yogi", "flower yogi", server("yogi", **ADAPTIVE), "", {}, ZERO, "Yogi"),
    Case("fedopt, adagrad", "flower adagrad", server("adagrad", beta1=0.0, **ADAPTIVE), "", {}, ZERO, "Adagrad"),
    *[
        Case(method, f"flower {key}{five}", algorithm, "", study, *((ADDED, "QFedAvg") if key == "fair" else ()))
        for five in ("", ", five")
        for method, key, algorithm, study in (
            ("fedavg, median", "median", average(), {"robust": {"name": "median"}}),
            ("fedavg, trimmed mean", "trimmed", average(), {"robust": {"name": "trimmed-mean", "share": 0.2}}),
            ("fedavg, krum", "krum", average(), {"robust": {"name": "krum", "share": 0.2}}),
            ("q-fedavg", "fair", FAIR, {}),
            ("sfedavg, no noise", "root steps", root("sfedavg"), {}),
            ("sfedprox, no noise", "proximal root steps", root("sfedprox", mu=0.5, inner=2), {}),
        )
    ],
    Case("fedavg", "fedjax average", average(), "weights by sizes", BY_SIZES),
    Case("fedavg", "fedjax average, five", average(), "weights by sizes", BY_SIZES),
    Case("fedavg, momentum", "fedjax client momentum", average(optimizer=MOMENTUM), "weights by sizes", BY_SIZES),
    Case("fedavg, adam", "fedjax client adam", average(optimizer=ADAM), "weights by sizes", BY_SIZES),
    Case(
        "fedopt, momentum", "fedjax server momentum", server("momentum", lr=0.5, beta=0.8), "weights by sizes", BY_SIZES
    ),
    Case("fedprox", "fedjax prox", PROX, "weights by sizes", BY_SIZES),
    Case("fedprox", "fedjax prox, five", PROX, "weights by sizes", BY_SIZES),
    Case("apfl", "fedjax apfl", average(name="apfl"), "weights by sizes", BY_SIZES, LEARNT, "APFL"),
    Case("gd", "pyproximal gradient", {"name": "gd", "gamma": 0.25}, "ℓ1 penalty", {"objective": {"l1": 0.125}}),
    Case(
        "nesterov", "pyproximal fista", {"name": "nesterov", "gamma": 0.25}, "ℓ1 penalty", {"objective": {"l1": 0.125}}
    ),
    Case("nesterov", "pyproximal fista, smooth", {"name": "nesterov", "gamma": 0.25}),
    Case(
        "ad-admm",
        "pyproximal admm",
        {"name": "ad-admm", "rho": 0.5, "solver": EXACT},
        "ADMM of Boyd et al., all clients",
    ),
    Case(
        "feddcd",
        "pyproximal dual",
        {"name": "feddcd", "solver": EXACT},
        "projected gradient steps on the dual, all clients",
    ),
]
LOCAL = "6 rounds of 10 full-batch local steps, 1 client, 60 samples"
POOLED = "{} full-batch rounds, 60 samples on 3 clients"
OPTIMISED: list[tuple[str, str, dict[str, Any]]] = [
    ("fedavg, sgd", "sgd", {"optimizer": {"name": "sgd"}}),
    ("fedavg, momentum", "momentum", {"optimizer": MOMENTUM}),
    ("fedavg, nesterov", "nesterov", {"optimizer": {"name": "momentum", "nesterov": True}}),
    ("fedavg, adam", "adam", {"optimizer": ADAM}),
    ("fedavg, adamw", "adamw", {"optimizer": {"name": "adamw", "weight_decay": 0.1}}),
    ("fedopt, momentum", "server momentum", {"server": {"name": "momentum", "lr": 0.1, "beta": 0.8}}),
    ("fedopt, adam without β₁", "server rmsprop", {"server": {"name": "adam", "beta1": 0.0, **ADAPTIVE}}),
    ("gd", "gd", {"name": "gd", "gamma": 0.5}),
    ("nesterov, constant momentum", "constant momentum", {"name": "nesterov", "gamma": 0.5, "mu": 0.125}),
    ("lbfgs", "lbfgs", {"name": "lbfgs", "memory": 5}),
]
MINIMA: list[tuple[str, str, np.ndarray, dict[str, np.ndarray]]] = [
    ("poisson", "glum poisson", COUNTS, {}),
    ("poisson", "glum poisson, weights", COUNTS, {"frequency": WEIGHTS}),
    ("poisson", "glum poisson, offsets", COUNTS, {"offset": SHIFTS}),
    ("gamma", "glum gamma", POSITIVE, {}),
    ("gamma", "glum gamma, both", POSITIVE, {"frequency": WEIGHTS, "offset": SHIFTS}),
]


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "theirs.py").write_text(CLASSES_OF_THEIRS, "utf-8")
    stored = dict(np.load(STORED))
    private = np.load(STORED.with_name("private.npz"))
    for case in FEDERATED:
        program = PROGRAMS[case.key.split()[0]]
        five = "five" in case.key or "apfl" in case.key
        local = "local steps by a plain loop" if case.key.startswith("flower") else ""
        compared = ", ".join(part for part in (FIVE if five else MEANS, case.compared, local) if part)
        beside = partial(federated, case, five, stored, dict(private), scratch)
        row = Row(case.method, *program, compared, beside(""), math.nan)
        if case.own:
            own = row._replace(
                compared=f"{compared}, by a derived class", x=beside(f"{scratch / 'theirs.py'}:{case.own}")
            )
            row = own.without(case.reason, row)
        yield row
    for method, key, options in OPTIMISED:
        theirs = stored[f"optax {key}"]
        compared = LOCAL if "optimizer" in options else POOLED.format(len(theirs) - 1)
        x = apart(optimised(options, len(theirs) - 1), theirs)
        yield Row(method, *PROGRAMS["optax"], compared, x, math.nan)
    for loss, key, labels, columns in MINIMA:
        found = ours({"name": loss, "lam": 0.1}, A, labels, columns=columns)
        compared = f"the minimum, 60 samples on 3 clients, {key.partition(' ')[2]}"
        yield Row(f"newton, {loss}", *PROGRAMS["glum"], compared, apart(found.x, stored[key]), math.nan)


def federated(case: Case, five: bool, stored: dict[str, Any], Z: dict[str, Any], scratch: Path, own: str) -> float:
    """How far the models of a run are from the stored ones; ``own`` is the path of a class for the method's, if any.

    PyProximal names its point after a step, ADMM the model before the proximal steps, the dual its minimisers.
    """
    theirs, algorithm, problem = stored[case.key], case.algorithm, "least-squares"
    data: dict[str, Any] = {"X": Z["A"], "y": Z["b"], "sizes": Z["sizes"]}
    if own:
        algorithm = algorithm | (
            {"server": algorithm["server"] | {"name": own}} if "server" in algorithm else {"name": own}
        )
    if case.method == "feddcd":
        data, least = tilted(Z)
        problem, algorithm = "quadratic", algorithm | {"eta": 0.5 * RIDGE / least}
    first = {"ad-admm": 0, "feddcd": 2}.get(case.method, 0 if len(theirs) == Z["rounds"] + 1 else 1)
    found = replayed(
        data | {"x0": np.zeros(5), "rounds": len(theirs) - 1 + first} | ({"clients": Z["five"]} if five else {}),
        scratch,
        algorithm=algorithm,
        problem=problem,
        record={"models": 1, "personal": case.method == "apfl"},
        **({} if five else {"selection": "all"}) | case.study,
    )
    x = apart(found.models["x"][first:], theirs)
    return max(x, apart(found.personal, stored[f"{case.key}/v"])) if case.method == "apfl" else x


def tilted(Z: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The f_i with (μ/2)‖x‖² as quadratic functions, and the least eigenvalue."""
    ends = np.cumsum(Z["sizes"])[:-1]
    parts = list(zip(np.split(Z["A"], ends), np.split(Z["b"], ends), strict=True))
    Q = [a.T @ a / len(b) + RIDGE * np.eye(5) for a, b in parts]
    c = [a.T @ b / len(b) for a, b in parts]
    least = min(float(np.linalg.eigvalsh(H)[0]) for H in Q)
    return {"X": np.concatenate(Q), "y": np.concatenate(c), "sizes": np.full(len(Q), 5)}, least


def optimised(options: dict[str, Any], rounds: int) -> np.ndarray:
    """The models of a run on the sixty samples: one client with an optimiser, or three with one step each."""
    if "name" in options:
        algorithm, sizes = options, SIZES
    else:
        local = "optimizer" in options
        step = {"name": "constant", "a": 0.05 if local else 1.0}
        algorithm = {"name": "fedavg" if local else "fedopt", "k0": 10 if local else 1, "step": step} | options
        sizes = (60,) if local else SIZES
    return ours("softmax", A, CLASSES, sizes, algorithm=algorithm, rounds=rounds, record={"models": 1}).models["x"]
