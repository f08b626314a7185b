"""Settings with which every method runs in the tests, and how to start it."""

from math import ceil

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.compressed_gradients import CompressedGradients
from mpifed.problems.problem import Problem
from tests.helpers import traits
from tests.helpers.algorithm_runs import SHARE, M, N, Run, build

CHOSEN = ceil(SHARE * M)


def constant(a):
    return {"name": "constant", "a": a}


GRAPHED = [name for name in Algorithm.choices if traits.on_graphs(name)]  # without a server
SERVED = [name for name in Algorithm.choices if name not in GRAPHED]
LOSSY = {"name": "torus", "loss": 0.2}
PENALTY = {"step_scale": "one", "mu0": 30.0, "k0": 3, "lam": 1e-3}
HALF = {"name": "topk", "k": "0.5n"}
GRAPH_SETTINGS = {
    "fedepm-graph": PENALTY | {"noise": "none", "eta": 2.0},
    "choco": {"compressor": HALF},
    "beer": {"compressor": "natural"},
    "motef": {"compressor": {"name": "dither", "s": 8}, "lam": 0.9},
}
MOREAU = {"lam": 20.0, "lr": 0.01, "rho": 1.0, "batch_size": 0}
MOMENTUM = {"name": "momentum", "beta": 0.5}
GRAPH_CASES = [(name, GRAPH_SETTINGS.get(name, {}), {"name": "erdos-renyi", "p": 0.5}) for name in GRAPHED] + [
    ("dgd", {"gamma": 0.02, "order": "adapt-combine", "k0": 2}, LOSSY),
    ("dgd", {"gamma": 0.02}, {"name": "erdos-renyi", "p": 0.3, "redraw": True}),
    ("extra", {"gamma": 0.02}, {"name": "star"}),
    ("gradient-tracking", {"gamma": 0.02}, LOSSY),
    ("gradient-tracking", {"gamma": 0.02, "order": "adapt-combine"}, {"name": "star"}),
    ("k-gt", {"gamma": 0.004}, LOSSY),
    ("aug-dgm", {"gamma": 0.02}, LOSSY),
    ("choco", {"compressor": {"name": "randk", "k": "0.5n"}, "batch_size": 20}, {"name": "torus"}),
]
# An algorithm that is not named here runs with its defaults.
SETTINGS = {
    "fedgia": {"k0": 5},
    "fedadmm": {"k0": 5},
    "fedadmm-insa": {"c": 0.1},
    "fedavg": {"step": constant(0.02)},
    "fedopt": {"step": constant(0.02)},
    "fedprox": {"step": constant(0.004), "mu": 0.1},
    "fedpd": {"eta": 0.5, "step": constant(0.05)},
    "scaffold": {"step": constant(0.01)},
    "fedepm": PENALTY | {"noise": "none", "eta": 2e-3},
    "sfedavg": {"noise": "none", "step": constant(0.01), "k0": 4},
    "sfedprox": {"noise": "none", "step": constant(0.004), "k0": 4},
    "feddcd": {},
    "accfeddcd": {},
    "flame": MOREAU,
    "flame-dp": MOREAU | {"clip": 5.0, "noise_multiplier": 0.0},
    "ditto": {"step": constant(0.02)},
    "apfl": {"step": constant(0.02)},
    "fedrep": {"step": constant(0.02), "k0": 5},
    "pfedme": {"lam": 5.0, "lr": 0.02, "eta": 0.2, "batch_size": 0},
    "fedadmm-deep": {"rho": 1.0, "lr": 0.02, "batch_size": 0},
    "local-gd": {"gamma": 0.02},
    "feddyn": {"step": constant(0.02), "alpha": 1.0},
    "ef21": {"gamma": 0.02, "compressor": {"name": "topk", "k": "0.5n"}},
    **{name: {"gamma": 0.02, "compressor": {"name": "topk", "k": "0.5n"}} for name in ("ef21-hb", "ef21-page")},
    "ef21-bc": {"gamma": 0.02, "compressor": {"name": "topk", "k": "0.5n"}, "down": {"name": "topk", "k": "0.5n"}},
    "ef21-sgd": {"gamma": 0.02, "compressor": {"name": "topk", "k": "0.5n"}, "batch_size": 100},
    "diana": {"gamma": 0.02, "compressor": {"name": "randk", "k": "0.5n"}},
    "marina": {"gamma": 0.02, "compressor": {"name": "randk", "k": "0.5n"}},
    "proxskip": {"p": 0.5},
    "fednova": {"step": constant(0.02)},
    "fedbuff": {"lr": 0.02},
    "ringmaster": {"gamma": 0.02},
    "ringleader": {"gamma": 0.02},
    "fedgia-async": {"k0": 5},
    "q-fedavg": {"lr": 0.02},
    "fedvarp": {"step": constant(0.01)},
    "mifa": {"step": constant(0.005)},
    "fednew": {"rho": 1.0},
}
PROBLEMS = {"feddcd": "quadratic", "accfeddcd": "quadratic"}  # what it runs on; otherwise least squares
CASES = [(name, SETTINGS.get(name, {})) for name in SERVED] + [
    ("fedgia", {"H": "gram"}),
    ("fedgia", {"H": "zero", "k0": 1, "t": 2.0}),
    ("fedgia", {"k0": 2, "t": 0.01, "adaptive": True}),
    ("fedadmm", {"inner_max": 1, "k0": 1}),
    ("fedgia-async", {"H": "zero", "k0": 2, "t": 1.0}),
    ("ad-admm", {"rho": 0.5, "gamma": 1.0, "solver": {"name": "gd", "steps": 5}}),
    ("fedbuff", {"lr": 0.01, "batch_size": 5, "epochs": 3, "server_lr": 0.8}),
    ("malenia", {"gamma": 0.05, "batch_size": 12}),
    ("ringleader", {"gamma": 0.05, "batch_size": 12}),
    ("ringmaster", {"gamma": 0.05, "batch_size": 12, "R": 2}),
    ("rennala", {"gamma": 0.05, "batch_size": 12, "B": 2}),
    ("fedavg", {"aggregate": "all", "scale": "1/m", "step": constant(0.2)}),
    ("fedavg", {"step": constant(0.01), "batch_size": 4}),
    ("fedavg", {"step": constant(0.01), "batch_size": 7, "epochs": 2, "aggregate": "all"}),
    ("fedopt", {"step": constant(0.02), "server": {"name": "momentum", "beta": 0.3}}),
    ("fedopt", {"step": constant(0.02), "server": {"name": "yogi", "lr": 0.005}, "batch_size": 7, "epochs": 2}),
    ("fedopt", {"step": constant(0.02), "server": {"name": "adagrad", "lr": 0.05, "beta1": 0.0}}),
    ("fedopt", {"step": constant(0.02), "server": {"name": "fedexp", "eps": 0.1}}),
    ("fedprox", {"aggregate": "all", "inner": 2, "step": {"name": "sqrt-samples", "a": 0.002}}),
    ("fedprox", {"step": constant(0.004), "mu": 0.1, "batch_size": 5, "epochs": 1}),
    ("fedpd", {"scale": "1/m", "step": constant(0.2)}),
    ("fedavg", {"step": constant(0.05), "optimizer": "adam", "batch_size": 7, "epochs": 1}),
    ("fedprox", {"step": constant(0.002), "mu": 0.1, "batch_size": 5, "epochs": 1, "optimizer": MOMENTUM}),
    ("flame", {"lam": 20.0, "lr": 0.002, "rho": 1.0, "batch_size": 7, "optimizer": "momentum"}),
    ("scaffold", {"step": constant(0.004), "batch_size": 7, "epochs": 2}),
    ("scaffold", {"step": constant(0.01), "batch_size": 5, "server_lr": 0.5}),
    ("fedepm", {"noise": "none", "mu0": 400.0, "k0": 2, "lam": 1e-2, "eta": 2e-2}),
    ("fedepm", PENALTY | {"epsilon": 100.0, "eta": 2e-3}),
    ("fedepm", PENALTY | {"noise": "clipped", "noise_seed": 3, "clip": 50.0, "epsilon": 1e4, "k0": 2}),
    ("sfedavg", {"noise": "matched", "epsilon": 100.0, "step": constant(0.01), "k0": 4}),
    ("sfedavg", {"noise": "matched", "epsilon": 100.0, "step": constant(0.01), "k0": 4, "average": "new"}),
    ("feddcd", {"solver": {"name": "gd", "steps": 5}, "eta": 0.5, "dual": True}),
    ("accfeddcd", {"solver": {"name": "gd", "delta": 0.1}, "r": 0.3, "kappa": 0.2}),
    ("feddcd", {"eta": {"name": "log2", "a": 1.0}}),
    ("accfeddcd", {"eta": {"name": "constant", "a": 0.8}, "model": "random"}),
    ("flame", MOREAU | {"rho": 0.3, "epochs": 10, "batch_size": 5, "center": "local", "weight_decay": 0.01}),
    ("flame-dp", MOREAU | {"clip": 5.0, "noise_multiplier": 1e-3, "noise_seed": 4}),
    ("ditto", {"step": constant(0.004), "batch_size": 4, "optimizer": MOMENTUM}),
    ("apfl", {"step": constant(0.01), "batch_size": 7, "epochs": 2, "aggregate": "all", "alpha": 0.8}),
    ("pfedme", {"lam": 5.0, "lr": 0.02, "eta": 0.2, "batch_size": 5, "epochs": 3, "weight_decay": 0.01}),
    ("fedadmm-deep", {"rho": 5.0, "lr": 0.01, "batch_size": 5, "weight_decay": 0.01}),
    ("gd", {"gamma": 0.02}),
    ("local-gd", {"gamma": 0.004, "k0": 20}),
    ("fednova", {"step": constant(0.01), "batch_size": 4, "epochs": 1}),
    ("fednova", {"step": constant(0.005), "batch_size": 7, "optimizer": {"name": "momentum", "beta": 0.6}}),
    ("proxskip", {"p": 1.0}),
    ("proxskip", {"p": 0.2, "gamma": 0.01, "batch_size": 5}),
    ("feddyn", {"step": constant(0.01), "alpha": 10.0, "batch_size": 5, "epochs": 2}),
    ("fedadmm-insa", {"c": 1.0, "mu": 1e9, "memory": 0.0, "inner_max": 1}),
    ("sisa", {"rho": 0.0, "sigma": 30.0, "batch_size": 15}),
    ("sisa", {"preconditioner": "smoothness", "gamma": 0.999}),
    ("ef21", {"gamma": 0.02, "compressor": {"name": "randseqk", "k": 5}}),
    ("ef21", {"gamma": 0.02, "compressor": {"name": "topk", "k": 5}, "start": "full"}),
    ("ef21-sgd", {"gamma": 0.02, "compressor": {"name": "randk", "k": "0.5n"}, "batch_size": 7}),
    ("ef21-page", {"gamma": 0.02, "compressor": {"name": "randk", "k": "0.5n"}, "batch_size": 7, "p": 0.5}),
    ("diana", {"gamma": 0.02, "compressor": "natural"}),
    ("marina", {"gamma": 0.02, "compressor": {"name": "dither", "s": 8}, "p": 0.3}),
    ("nesterov", {"mu": 0.05, "gamma": 0.02}),
    ("q-fedavg", {"q": 0.5, "lr": 0.004, "batch_size": 7, "epochs": 2}),
    ("fednl", {"compressor": {"name": "randseqk", "k": "8n"}, "alpha": 0.5}),
    ("fednl-pp", {"compressor": "identity", "alpha": 0.5}),
    ("mifa", {"step": constant(0.002), "batch_size": 5, "epochs": 2}),
    ("aggregated-lbfgs", {"memory": 2, "gamma": 0.02}),
]
VECTORS = {"scaffold": 2}  # how many vectors go down and up together, where it is not one
ALONE = {"nids"}  # nodes of these send nothing in round one
AGAIN = {"proxskip"}  # clients that trained receive the new model at once where not all of them train
EXCHANGES = {"accfeddcd": 2, "newton": 2}  # how many a round has, where it is not one
BEFORE = {
    "fednl": N * (N + 1) // 2,
    "fednl-pp": N * (N + 3) // 2,
    "lbfgs": N + 1,
}  # numbers that clients send before round one


def called(algorithm):
    """How many clients an exchange calls."""
    return M if traits.all_reply(algorithm) or not traits.selections(algorithm) else CHOSEN


def traffic(algorithm, itemsize):
    """The bytes that a client uploads and downloads in one exchange."""
    if algorithm.label() == "newton":  # every other exchange is a trial point, at which f_i is one number
        return (2 + N + N * (N + 1) // 2) * itemsize / 2, N * itemsize
    if algorithm.label() == "fedns":
        return (algorithm.k + 1) * N * itemsize, N * itemsize
    if algorithm.label().startswith("fednl"):
        return (N * (N + 1) // 2 + N + 1) * itemsize, N * itemsize
    vectors = VECTORS.get(algorithm.label(), 1) * N
    if isinstance(algorithm, CompressedGradients):
        down = ceil(algorithm.down.bits(N, itemsize) / 8) if hasattr(algorithm, "down") else vectors * itemsize
        return ceil(algorithm.compressor.bits(N, itemsize) / 8), down
    one_more = algorithm.label() in ("fednova", "fedadmm-insa", "lbfgs", "q-fedavg") or (
        algorithm.label() == "fedopt" and algorithm.server.spread
    )
    told = getattr(algorithm, "adaptive", False)  # a penalty down, and an error up
    return (vectors + one_more + told) * itemsize, (vectors + told) * itemsize


def members(table):
    ids = [f"{name}-{k}" for k, (name, _) in enumerate(table)]
    return pytest.mark.parametrize("algorithm", [build(*case) for case in table], ids=ids)


def start(algorithm, **options):
    """The algorithm at work on a problem that it takes."""
    return Run(algorithm, PROBLEMS.get(algorithm.label(), "least-squares"), **options)


class Still(Problem, tag="still"):
    """f_i = 0, with a start model that is not 0."""

    def initial(self, data, seed):
        return np.linspace(-1, 2, data.n)

    def value_grad(self, block, X):
        return np.zeros(len(block), block.b.dtype), np.zeros((len(block), block.n), block.b.dtype)

    def lipschitz(self, block):
        return np.ones(len(block))

    def hess(self, block, X):
        """Of some f_i, so that there is a direction: it is 0 like the gradient."""
        return np.tile(np.eye(block.n, dtype=block.b.dtype), (len(block), 1, 1))

    def majorizer_inverse(self, block, scale, shift):
        return lambda V: V / (scale + shift)

    def clipped_grad(self, block, X, bound):
        return self.grad(block, X)
