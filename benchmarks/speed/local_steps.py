"""python -m benchmarks.speed.local_steps: CPU time of a round over its number of local steps, in both forms of them.

FedAvg with full-gradient steps on logistic loss, all clients in every round: a plain numpy loop over clients, mpifed
with steps on the parameters (space=parameters) and on the scores of samples (space=samples), in one process in turn;
milliseconds a round, the least of the repetitions, and ratios to the loop. A: 128 clients × 70 samples × 1024 features;
W: 128 × 70 × 7850; M: 200 × 20 × 784; S: 1000 × 100 × 100, where the scores do not pay; I: softmax with ten classes,
100 × 60 × 784. --methods takes fedprox, scaffold and fedadmm too, beside loops that take the same steps. What a run
does once is part of its rounds: K_i = A_iA_iᵀ, and the sizes of blocks that the first rounds try.

``reading`` and ``scores`` are what a round on the scores cannot go below: two products of all samples with a vector,
and a product of all K_i with one a step, by numpy. With ``--busy`` a copy on each core measures at once, after the
measurement alone, and ratios of the worst copy are told. With ``--to`` a picture of each case, if matplotlib is there.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.measuring import Table, among, everyone, figure, kernels, parser, quoted, tiny
from benchmarks.speed.rounds import GAMMA, MU, away, ours
from mpifed.experiment import config
from mpifed.extend import Array
from mpifed.report.style import matplotlib_style

CASES = {"A": (128, 70, 1024), "W": (128, 70, 7850), "M": (200, 20, 784), "S": (1000, 100, 100), "I": (100, 60, 784)}
CLASSES = 10  # of I
OPTIONS: dict[str, dict[str, Any]] = {  # of methods that take as many gradients of each client as there are steps
    "fedavg": {},
    "fedprox": {"inner": 1, "mu": 0.1},
    "scaffold": {},
    "fedadmm": {"inner_max": 2, "eps0": 0.0},  # all steps are taken, besides a gradient at the start
}
LINES = {"loop": "plain loop", "parameters": "mpifed, on the parameters", "scores": "mpifed, on the scores"}


class Times(NamedTuple):
    """One repetition: CPU seconds of a round of each, of two readings and of the products with K_i; a deviation."""

    loop: float
    parameters: float
    scores: float
    reading: float
    products: float
    deviation: float


def study(case: str, method: str, steps: int, kind: str, rounds: int) -> dict[str, Any]:
    """The experiment."""
    m, d, n = CASES[case]
    data: dict[str, Any] = {"name": "gaussian", "clients": m, "samples": d, "features": n}
    problem = {"name": "logistic", "mu": MU}
    if case == "I":
        side = math.isqrt(n)
        data = {"name": "images", "clients": m, "samples": d, "size": side, "channels": 1, "test": 0.0}
        data |= {"classes": CLASSES, "per_client": CLASSES}
        problem = {"name": "softmax"}
    step = {} if method == "fedadmm" else {"step": {"name": "constant", "a": GAMMA}}
    return {
        "rounds": rounds,
        "dtype": "float32",
        "kernels": kind,
        "data": data,
        "problem": problem,
        "evaluate": {"every": 20},
        "stop": {"gradient": 0.0},
        "algorithm": {"name": method, "k0": steps, **step, **OPTIONS[method]},
        "selection": "all",
    }


Gradient = Callable[[Array], Array]  # of a client, at a model


def logistic(A: Array, b: Array) -> Gradient:
    """The gradient of a client with the samples A (d, n) and labels b."""
    return lambda w: ((1 / (1 + np.exp(-(A @ w))) - b) @ A + np.float32(MU) * w) / np.float32(len(b))


def softmax(A: Array, b: Array) -> Gradient:
    """The same for ten classes, with weights (10, n) and then biases in one vector."""
    labels = np.eye(CLASSES, dtype=A.dtype)[b.astype(int)]

    def gradient(w: Array) -> Array:
        W, bias = w[:-CLASSES].reshape(CLASSES, -1), w[-CLASSES:]
        Z = A @ W.T + bias
        P = np.exp(Z - Z.max(1, keepdims=True))
        R = (P / P.sum(1, keepdims=True) - labels) / np.float32(len(b))
        return np.concatenate([(R.T @ A).ravel(), R.sum(0)])

    return gradient


class PlainLoop:
    """A method as a loop over clients, written out in numpy."""

    def __init__(self, setup: config.Experiment, method: str) -> None:
        data = setup.data.load(setup.seed, setup.dtype)
        X, y = (part.astype(setup.dtype) for part in data.rows(0, data.m))
        kind = softmax if setup.problem.takes() == "classes" else logistic
        ends = np.cumsum(data.sizes)[:-1]
        parts = list(zip(np.split(X, ends), np.split(y, ends), strict=True))
        self.gradients = [kind(*part) for part in parts]
        self.rounds = setup.rounds
        self.method = method
        self.m = np.float32(data.m)
        algorithm: Any = setup.algorithm
        self.k0 = algorithm.k0
        self.gamma = np.float32(GAMMA)
        self.mu = np.float32(OPTIONS["fedprox"]["mu"])
        self.own = np.zeros((data.m, setup.problem.dim(data)), setup.dtype)  # c_i of scaffold, π_i of fedadmm
        if method == "fedadmm":
            # r_i of the gradient's Lipschitz constant, and σ_i: what mpifed computes once too
            tops = [np.linalg.eigvalsh(A @ A.T)[-1] for A, _ in parts]
            self.r = [np.float32((top / 4 + MU) / len(b)) / self.m for top, (_, b) in zip(tops, parts, strict=True)]
            self.r0 = np.float32(algorithm.r0)

    def local(self, i: int, grad: Gradient, x: Array, c: Array) -> Array:
        """Local steps of client i from x; ``c`` is the mean control variate of scaffold."""
        w, shift = x, c - self.own[i] if self.method == "scaffold" else c
        for _ in range(self.k0):
            if self.method == "scaffold":
                w = w - self.gamma * (grad(w) + shift)
            else:
                w = w - self.gamma * (grad(w) + self.mu * (w - x) if self.method == "fedprox" else grad(w))
        if self.method == "scaffold":
            self.own[i] += (x - w) / (self.gamma * np.float32(self.k0)) - c
        return w

    def admm(self, i: int, grad: Gradient, x: Array) -> Array:
        """σ_i w_i + π_i after k0 iterations of client i."""
        w, first = x, grad(x) / self.m
        r, pi = self.r[i], self.own[i]
        sigma = self.r0 * r
        for _ in range(self.k0):
            w = ((r + sigma) * x - (first + pi)) / (r + sigma)
            w = (r * w + sigma * x - (grad(w) / self.m + pi)) / (r + sigma)
            pi += sigma * (w - x)
        return sigma * w + pi

    def run(self) -> tuple[float, Array]:
        """CPU seconds of a round, and the model."""
        x = np.zeros_like(self.own[0])
        self.own[:] = 0
        dual = self.method == "fedadmm"
        begun = time.process_time()
        for _ in range(self.rounds):
            total, c = np.zeros_like(x), self.own.mean(axis=0) if self.method == "scaffold" else x
            for i, grad in enumerate(self.gradients):
                total += self.admm(i, grad, x) if dual else self.local(i, grad, x, c)
            x = total / (self.r0 * sum(self.r) if dual else self.m)
        return (time.process_time() - begun) / self.rounds, x


def prepare(case: str, method: str, steps: int, kind: str, rounds: int) -> Callable[[], Times]:
    """A repetition, to be run."""
    m, d, n = CASES[case]
    table = study(case, method, steps, kind, rounds)
    plain, scores = (config.experiment(table | {"space": space}) for space in ("parameters", "samples"))
    loop = PlainLoop(plain, method)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, d, n), np.float32)
    K = np.matmul(A, A.mT)

    def run() -> Times:
        of_loop, x = loop.run()
        of_plain, y = ours(plain)
        of_scores, z = ours(scores)
        least = 2 * clock_product(A), steps * clock_product(K)
        return Times(of_loop, of_plain, of_scores, *least, max(away(y, x), away(z, x)))

    return run


def clock_product(matrices: Array) -> float:
    """CPU seconds of a product of every matrix with a vector, the least of five."""
    vectors = np.ones((len(matrices), matrices.shape[-1]), matrices.dtype)
    seconds = []
    for _ in range(5):
        begun = time.process_time()
        np.matvec(matrices, vectors)
        seconds.append(time.process_time() - begun)
    return min(seconds)


def ratio(own: list[Times], name: str) -> float:
    """The ratio of the least of some repetitions to the loop's."""
    return float(min(getattr(times, name) for times in own) / min(times.loop for times in own))


def draw(case: str, kind: str, found: dict[int, list[Times]], path: Path) -> None:
    """Draw milliseconds of a round over steps, with the two lines that bound the scores from below."""
    if find_spec("matplotlib") is None:
        print("the picture needs matplotlib: pip install matplotlib")
        return
    from matplotlib.figure import Figure

    def least(name: str) -> list[float]:
        return [1e3 * min(getattr(times, name) for times in own) for own in found.values()]

    with matplotlib_style():
        page = Figure(figsize=(5.4, 3.6), layout="constrained")
        axis: Any = page.subplots()
        for name, label in LINES.items():
            axis.loglog([*found], least(name), marker="o", label=label)
        axis.loglog([*found], least("reading"), color="gray", linestyle="--", label="samples read twice")
        axis.loglog([*found], least("products"), color="gray", linestyle=":", label="products with $K_i$")
        axis.set_xticks([*found], [str(steps) for steps in found])
        axis.minorticks_off()
        size = " × ".join(f"{number:,}" for number in CASES[case])
        axis.set(
            xlabel="local steps of a round", ylabel="CPU milliseconds of a round", title=f"{size}, float32, {kind}"
        )
        page.legend(loc="outside lower center", ncols=2, fontsize="small")
        page.savefig(path, dpi=150)
    print(f"written to {path}")


def main() -> None:
    options: dict[str, Any] = {"rounds": 100, "repeat": 3, "cases": "A", "steps": "2,5,10,20,40", "methods": "fedavg"}
    args = parser(__doc__, **options | {"kernels": "numpy", "busy": False, "to": None}).parse_args()
    columns = {
        "case": 4,
        "method": 8,
        "steps": 5,
        "kernels": 8,
        "loop ms": 8,
        "parameters": 10,
        "scores": 7,
        "reading": 7,
    }
    columns |= {"products": 8, "deviation": 9, "plain": 6, "alone": 6} | ({"busy": 6, "quoted": 6} if args.busy else {})
    table = Table(columns, args.to and args.to / "local_steps.csv")
    for case, method, kind in product(among(args.cases, CASES), args.methods.split(","), kernels(args)):
        found = {}
        for steps in args.steps:
            copies = everyone(partial(prepare, case, method, steps, kind, args.rounds), args)
            found[steps] = copies[0]
            cells = [figure(1e3 * min(times[k] for times in copies[0])) for k in range(5)]
            deviation = tiny(max(times.deviation for times in copies[0]))
            ratios = quoted([ratio(own, "scores") for own in copies])
            table.row(
                case, method, steps, kind, *cells, deviation, max(ratio(own, "parameters") for own in copies), *ratios
            )
        if args.to and method == "fedavg":
            draw(case, kind, found, args.to / f"local_steps_{case}_{kind}.png")


if __name__ == "__main__":
    main()
