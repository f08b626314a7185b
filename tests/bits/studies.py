"""The studies whose bits are recorded, as method/kernels/feature; ``special`` stands for what has no row of its own.

Problem, options, selection and precision of a study follow from a checksum of its method and feature, so that a new
method or feature leaves the other studies as they are. Which of them the rules refuse is recorded too.
"""

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp

import mpifed

Table = dict[str, Any]
KERNELS = {"numpy": "numpy", "compiled": "compiled", "tensors": "torch"}
BASE = {"rounds": 3, "seed": 1, "block_bytes": 1500, "stop": {"gradient": 0.0, "diverged": 0}}
SIZES = {"clients": 8, "least": 4, "most": 12}
TWO = {"name": "synthetic", "features": 5, "classes": 2, **SIZES}
THREE = {"name": "synthetic", "features": 4, "classes": 3, **SIZES}
PROBLEMS: dict[str, Table] = {
    "least-squares": {"problem": "least-squares", "data": {"name": "linreg-noniid", "features": 6, **SIZES}},
    "logistic": {"problem": {"name": "logistic", "mu": 0.1, "regulariser": "whole"}, "data": TWO},
    "softmax": {"problem": {"name": "softmax", "lam": 0.1, "bias": False}, "data": THREE},
}
EXACT = ("accfeddcd", "feddcd", "proxskip")  # methods that need exact downloads
CONVEX = (*EXACT, "fednl", "fednl-pp", "newton")  # methods that need curvature above 0
SCALAR = ("fedepm", "fedepm-graph", "fedgia")  # methods with options that softmax does not go with
SELECTIONS = ["uniform", "all", {"name": "cover", "share": 0.4}]
TYPES = ["float64", "float32", "float64"]
SLOW = {"speed": {"name": "lognormal", "median": 200.0, "sigma": 1.0}, "passes": 2}
ABSENT = {**SLOW, "dropout": 0.2, "deadline": 0.2, "jitter": 0.3, "least": 3}
FEATURES: dict[str, Table] = {
    "plain": {},
    "weights": {"objective": {"weights": "samples"}},
    "l1": {"objective": {"l1": 0.01, "l2": 0.01}},
    "columns": {},  # weights and offsets of samples, see ``made``
    "compress": {"compress": {"up": "natural", "down": {"name": "topk", "k": 2}}},
    "masks": {"masks": {"sums": "masked"}},
    "robust": {"attack": {"name": "little", "clients": 3}, "robust": {"name": "trimmed-mean", "bucket": 2}},
    "asynchronous": {"system": SLOW, "asynchronous": {"arrivals": 3, "staleness": 2}},
    "absent": {"system": ABSENT},
    "graph": {"graph": {"name": "erdos-renyi", "p": 0.6, "redraw": True, "loss": 0.2}},
    "unseen": {"evaluate": {"unseen": 2, "unseen_steps": 2}},
    "by-client": {"evaluate": {"clients": True}},
    "personal": {"record": {"personal": True}},
    "validation": {"data": {"validation": 0.3}, "record": {"best": True}},
    "available": {"system": {**SLOW, "availability": {"name": "diurnal", "period": 2.0, "share": 0.6}}},
    "private": {"privacy": {"clip": 0.5, "noise_multiplier": 1.0, "noise_seed": 3}, "selection": {"count": 3}},
    "at-home": {"personal": ["x0", "x[23]"], "record": {"personal": True}},
}
CHANGES = ("fedavg", "feddyn", "fedopt", "fedprox", "fedrep", "scaffold")  # methods that upload changes of models
ABLE = {"private": ("apfl", "ditto", "fedbuff", *CHANGES), "at-home": ("local-gd", *CHANGES)}  # with all others refused
BATCHES = {"batch_size": 3, "epochs": 2}
SMALL = {"step": {"name": "constant", "a": 1e-4}, "epsilon": 100.0, "k0": 3}
PENALTY = {"step_scale": "one", "mu0": 30.0, "k0": 3, "lam": 1e-3, "eta": 2e-3, "epsilon": 100.0}
SEEDED = {**PENALTY, "noise": "clipped", "noise_seed": 3, "clip": 5.0, "epsilon": 1e4}
NO_NOISE = {"noise": "none"}
GD = {"name": "gd", "steps": 3}
OPTIONS: dict[str, list[Table]] = {  # a study takes one of them; plain ones take each in turn
    "accfeddcd": [{}, {"solver": GD, "r": 0.3, "kappa": 0.2}, {"model": "random", "solver": GD}],
    "ad-admm": [{}, {"rho": 0.5, "gamma": 1.0, "solver": GD}],
    "aggregated-lbfgs": [{}, {"memory": 1, "damping": 0.1}],
    "apfl": [{}, {**BATCHES, "aggregate": "all"}],
    "fedrep": [{}, {**BATCHES, "head_epochs": 1}],
    "dgd": [{}, {"order": "adapt-combine", "k0": 2}],
    "diana": [{"compressor": {"name": "randk", "k": 2}}, {"compressor": "natural"}],
    "ditto": [{}, {"batch_size": 3, "optimizer": "momentum"}],
    "ef21": [{"compressor": {"name": "topk", "k": 2}}, {"compressor": {"name": "randseqk", "k": 2}}],
    "ef21-bc": [{"compressor": {"name": "topk", "k": 2}, "down": {"name": "randk", "k": 2}}],
    "ef21-hb": [{"compressor": {"name": "topk", "k": 2}}],
    "ef21-page": [{"compressor": {"name": "topk", "k": 2}, "batch_size": 3}],
    "ef21-sgd": [{"compressor": {"name": "topk", "k": 2}, "batch_size": 3}],
    "fedadmm": [{}, {"inner_max": 1, "k0": 1}],
    "fedadmm-deep": [{"batch_size": 0}, {"batch_size": 3, "weight_decay": 0.01}],
    "fedadmm-insa": [{}, {"c": 1.0, "inner_max": 1}],
    "fedavg": [{}, BATCHES, {**BATCHES, "optimizer": "adam"}, {"aggregate": "all", "scale": "1/m"}],
    "fedbuff": [{}, {"batch_size": 3, "epochs": 2, "server_lr": 0.8}],
    "feddcd": [{}, {"solver": GD, "eta": 0.5, "dual": True}, {"solver": {"name": "sgd", "batch_size": 3}}],
    "feddyn": [{}, BATCHES],
    "fedepm": [PENALTY, PENALTY | NO_NOISE, SEEDED],
    "fedepm-graph": [PENALTY, PENALTY | NO_NOISE, SEEDED],
    "fedgia": [{}, {"H": "gram"}, {"H": "zero"}, {"adaptive": True, "t": 0.5, "k0": 2}],
    "fedgia-async": [{}, {"H": "zero", "k0": 2, "t": 1.0}],
    "flame": [{"batch_size": 0}, {"batch_size": 3, "center": "local", "lagrangian": True, "envelope": True}],
    "flame-dp": [{"noise_seed": 2}, {"noise_seed": 4, "batch_size": 3, "clip": 0.1}],
    "fednl": [{}, {"compressor": {"name": "randk", "k": "1n"}, "option": "A", "line_search": True}],
    "fednl-pp": [{}, {"compressor": "natural"}],
    "fednova": [{}, {"batch_size": 3, "optimizer": "momentum"}],
    "fedopt": [{}, *({"server": name, **BATCHES} for name in ("momentum", "yogi", "adagrad", "fedexp"))],
    "fednew": [{}, {"period": 2, "compressor": "uniform"}],
    "fedns": [{}, {"k": 6, "regulariser": "inside"}],
    "fedpd": [{}, {"scale": "1/m"}],
    "fedprox": [{}, {**BATCHES, "aggregate": "all"}],
    "malenia": [{"S": 9}, {"batch_size": 3, "stop": True}],
    "fedvarp": [{}, BATCHES],
    "mifa": [{}, {**BATCHES, "server_lr": 0.5}],
    "lbfgs": [{}, {"memory": 1}],
    "nesterov": [{}, {"mu": 0.01}],
    "q-fedavg": [{}, {**BATCHES, "q": 0.5}],
    "marina": [{"compressor": {"name": "randk", "k": 2}}, {"compressor": {"name": "dither", "s": 8}, "p": 0.3}],
    "pfedme": [{"batch_size": 0}, {"batch_size": 3, "epochs": 2}],
    "proxskip": [{}, {"batch_size": 3}],
    "rennala": [{"B": 5}, {"batch_size": 3, "B": 5, "stop": True}],
    "ringleader": [{}, {"batch_size": 3}],
    "ringmaster": [{"R": 2}, {"batch_size": 3, "R": 1, "stop": True}],
    "scaffold": [{}, {**BATCHES, "server_lr": 0.5}],
    "sfedavg": [SMALL, SMALL | NO_NOISE, SMALL | {"noise": "matched", "average": "new"}],
    "sfedprox": [SMALL, SMALL | NO_NOISE],
    "sisa": [{}, {"preconditioner": "smoothness", "gamma": 0.9}, {"batch_size": 3}],
}
UNABLE = {"aggregate": "all", "server": "fedexp"}  # options that private means and parts at home refuse
PARTIAL = ("apfl", "fedavg", "fednova", "fedopt", "fedprox")


class Study(NamedTuple):
    """Settings of a run; ``first`` are those of a run whose final model it starts from."""

    settings: Table
    first: Table | None = None
    until: int = 0  # where above 0 the run ends after so many rounds and is resumed
    twin: str = ""  # the study that must have the same bits


@cache
def methods() -> dict[str, type]:
    """All methods of the package by name."""
    classes = [getattr(mpifed.algorithms, name) for name in dir(mpifed.algorithms)]
    return {str(one.__struct_config__.tag): one for one in sorted(classes, key=lambda one: one.__struct_config__.tag)}


def one_of(options: Any, *words: str) -> Any:
    """The option that a checksum of the words names."""
    return options[crc32(" ".join(words).encode()) % len(options)]


def merged(*tables: Table) -> Table:
    """Tables one over the other, in a new one."""
    found: Table = {}
    for table in tables:
        for key, value in table.items():
            old = found.get(key)
            both = (old, value) if isinstance(old, dict) else (value,)
            found[key] = merged(*both) if isinstance(value, dict) else value
    return found


def held(problem: str, sparse: bool = False) -> Any:
    """Arrays of a program, uneven, with weights and offsets, or sparse ones without."""
    rng = np.random.Generator(np.random.PCG64(5))
    sizes = np.arange(4, 12)
    X = rng.integers(-8, 9, (sizes.sum(), 6)) / 8
    y = X @ np.arange(-3, 3) + rng.integers(-8, 9, len(X)) / 4
    y = y if problem == "least-squares" else (y > 0).astype(float)
    if sparse:
        return mpifed.arrays(sp.csr_array(np.where(abs(X) > 0.5, X, 0.0)), y, sizes)
    weight, offset = rng.integers(1, 9, len(X)) / 4, rng.integers(-8, 9, len(X)) / 16
    return mpifed.arrays(X, y, sizes, weight=weight, offset=offset)


def suitable(method: str, feature: str) -> list[str]:
    """The problems that a method and a feature go with."""
    # least squares measure nothing of a client, and their data here have no validation samples
    measured = feature in ("unseen", "by-client", "validation")
    without = {"least-squares"} if measured or method in CONVEX else set()
    without |= {"softmax"} if feature == "columns" or method in SCALAR else set()  # it has no offsets
    return [name for name in PROBLEMS if name not in without]


def recorded_options(method: str, feature: str) -> list[Table]:
    """The options that a study of a method and a feature takes one of; none where it is not recorded."""
    every = OPTIONS.get(method, [{}])
    if feature not in ABLE:
        return every
    able = [options for options in every if not any(options.get(key) == value for key, value in UNABLE.items())]
    return able if method in ABLE[feature] else []


def made(method: str, feature: str, options: Table, problem: str) -> Table:
    """The settings of a method with a feature on a problem, for kernels of any kind."""
    of_graphs = issubclass(methods()[method], mpifed.extend.GraphAlgorithm)
    found = merged(BASE, PROBLEMS[problem], FEATURES[feature], {"algorithm": {"name": method, **options}})
    found["dtype"] = one_of(TYPES, feature, method)
    if feature == "columns":
        found["data"] = held(problem)
    if feature == "compress" and method in EXACT:
        found["compress"] = {"up": "natural"}
    if feature == "absent" and method in PARTIAL:
        found["system"] = {**ABSENT, "partial": True}
    if of_graphs and feature == "graph" and method == "extra":
        found["graph"] = "star"  # its graph must not change
    elif of_graphs and feature != "graph":
        found["graph"] = one_of(["ring", "exponential", "erdos-renyi"], method, feature)
    elif feature not in ("asynchronous", "private") and not of_graphs:
        found["selection"] = one_of(SELECTIONS, feature, method, "selection")
    return found


def pairs() -> dict[str, Study]:
    """Every method with every feature that is recorded with it, and all kernels."""
    found = {}
    for method in methods():
        for feature in FEATURES:
            every = recorded_options(method, feature)
            plain = feature == "plain"
            problem = one_of(suitable(method, feature), method, feature)
            for k, options in enumerate(every if plain or not every else [one_of(every, method, feature, "options")]):
                for kernels, value in KERNELS.items():
                    compiled = "logistic" if problem == "softmax" and kernels == "compiled" else problem
                    settings = merged(made(method, feature, options, compiled), {"kernels": value})
                    found[f"{method}/{kernels}/{feature}" + (f"-{k}" if plain and k else "")] = Study(settings)
    return found


def crossed() -> dict[str, Study]:
    """Every two features together, of a method that may have them."""
    found = {}
    for one, other in combinations(list(FEATURES)[1:], 2):
        two = {one, other}
        method = "fedadmm"
        if "personal" in two:
            method = "ditto"
        if two & ABLE.keys():
            method = "ditto" if two == {"private", "personal"} else "fedavg" if "robust" in two else "scaffold"
        if "graph" in two:
            method = "fedgia-graph"
        settings = merged(made(method, one, {}, "logistic"), FEATURES[other], {"kernels": "numpy"})
        if two & ABLE.keys() and "graph" not in two:
            settings["selection"] = FEATURES["private"]["selection"]
        if two == {"compress", "private"}:
            settings["compress"].pop("up")  # short uploads may be longer than their bound
        if "columns" in two:
            settings["data"] = held("logistic")
        if "asynchronous" in two:
            settings.pop("selection", None)  # arrivals select
            settings.get("compress", {}).pop("down", None)
        found[f"{method}/numpy/{one}+{other}"] = Study(settings)
    return found
