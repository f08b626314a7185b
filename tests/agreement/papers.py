"""FedGiA, two of the name FedADMM, FedEPM, FLAME and FedNL: programs of their authors beside mpifed, on small samples.

``recorded.npz`` has the model, and f where the program computes it, after every round. The MATLAB programs ran under
Octave 7.3, without what they print, with stored permutations in the place of ``randperm`` and, FedEPM, with Laplace
noise of 0; the Python of FLAME and of the deep FedADMM with float64, one batch a client and a linear model of the
samples' size that starts from 0; the Python of FedNL as it is. Samples, selections and settings of all but FedNL are
among the stored trajectories.
"""

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from tests.agreement.row import Row, apart
from tests.agreement.stored import case as stored_case
from tests.agreement.stored import saved, trajectories

RECORDED = Path(__file__).parent / "recorded.npz"
GIA = ("ShenglongZhou/FedGiA", "5d5c08a3")
ADMM = ("ShenglongZhou/FedADMM", "23ba5d5c")
ADMM_2022 = ("ShenglongZhou/FedADMM", "727acd8f")
EPM = ("ShenglongZhou/FedEPM", "3d7c53f5")
FLAME = ("zsk66/FLAME-master", "40154982")
DEEP = ("YonghaiGong/FedADMM", "3d1dca8c")
FEDNL = ("Rustem-Islamov/FedNL-Public", "93523634")
LOGISTIC = {"name": "logistic", "mu": 1e-3}
HALF = "8 rounds, 6 of 12 clients"
# What three programs do otherwise than their papers, and the r_i of a fourth.
CLASSES = '''
import numpy as np

from mpifed import algorithms, problems
from mpifed.algorithms.fedadmm_deep import Client as Duals
from mpifed.algorithms.fednl import Client as Hessians
from mpifed.core.symmetric import unpack


class Stale(algorithms.FedADMM):
    """(3.5) with the gradient of the inner step before."""

    def update(self, f, client, w):
        r, sigma = f.lipschitz()[:, None] / f.m, self.sigma(f)[:, None]
        pi, eps, first = client.pi, client.eps, f.grad(np.tile(w, (len(f), 1))) / f.m
        for _ in range(self.k0):
            eps, g, new = self.nu * eps, first, np.tile(w, (len(f), 1))
            running = np.ones((len(f), 1), bool)
            for _ in range(self.inner_max):
                new = np.where(running, (r * new + sigma * w - g - pi) / (r + sigma), new)
                running &= (np.square(g + pi + sigma * (new - w)).sum(axis=1) > eps)[:, None]
                g = f.grad(new) / f.m
            pi = pi + sigma * (new - w)
        return client._replace(pi=pi, eps=eps, z=sigma * new + pi), sigma * new + pi


class Deep(algorithms.FedADMMDeep):
    """Uploads differ by w_i − w and the change of π_i/ρ."""

    def update(self, f, client, w):
        change = self.descend(f, client, w) - w
        z = client.z + 2 * change
        return Duals(client.pi + self.rho * change, z), z


class Spectral(algorithms.FedNL):
    """l_i is a spectral norm."""

    def learn(self, f, client, x):
        D, S, H = self.learn_hessian(f, client.H, x)
        return Hessians(H), (f.grad(x), S, np.linalg.norm(unpack(D, f.n), 2, axis=(1, 2)))


class Fifth(problems.Logistic):
    """With λ_max/5 in r_i."""

    curvature = 0.2
'''
TEST = "the program tests the gradient of the inner step before the last, (3.5) of the paper that at the new point"
CURVATURE = "the program has λ_max/5 in r_i, which is no Lipschitz constant of a logistic loss, the paper λ_max/4"
NORM = "the program has the spectral norm in l_i, Algorithm 1 of the paper the norm of Frobenius"
MESSAGE = (
    "the program sends w_i less the server's model of the round, plus the change of π_i/ρ; by Algorithm 1 it is the "
    "change of w_i + π_i/ρ since the client's last round"
)
OWN = {TEST: ("algorithm", "Stale"), CURVATURE: ("problem", "Fifth"), MESSAGE: ("algorithm", "Deep")}


class Case(NamedTuple):
    """``study`` is what the folder's own study.toml has otherwise."""

    method: str
    program: tuple[str, str]
    compared: str
    key: str  # in recorded.npz
    folder: str
    study: dict[str, Any]
    reason: str = ""


def admm(k0: int, **options: float) -> dict[str, Any]:
    return {"algorithm": {"name": "fedadmm", "k0": k0, **options}}


PENALTY = {"name": "fedepm", "k0": 6, "eta": 2e-3, "lam": 1e-3, "mu0": 0.5, "alpha": 1.01, "noise": "none"}
FLAMES = {"rho": 0.05, "lam": 2.0, "lr": 0.1, "epochs": 5, "batch_size": 0, "center": "global"}
OPEN = FLAMES | {"name": "flame-dp", "noise_multiplier": 0.0, "clip": 1e9}
CASES = [
    Case("fedgia, gram", GIA, f"{HALF}, least squares", "fedgia-gram-linear", "fedgia-gram-linear", {}),
    Case("fedgia", GIA, f"{HALF}, least squares", "fedgia-diagonal-linear", "fedgia-diagonal-linear", {}),
    Case(
        "fedgia, gram", GIA, f"{HALF}, logistic", "fedgia-gram-logistic", "fedgia-gram-logistic", {"problem": LOGISTIC}
    ),
    Case(
        "fedgia",
        GIA,
        f"{HALF}, logistic",
        "fedgia-diagonal-logistic",
        "fedgia-gram-logistic",
        {"problem": LOGISTIC, "algorithm": {"name": "fedgia", "k0": 4}},
    ),
    Case(
        "fedgia, gram",
        GIA,
        f"{HALF}, non-convex logistic",
        "fedgia-gram-nonconvex",
        "fedgia-diagonal-nonconvex",
        {"algorithm": {"name": "fedgia", "k0": 10, "H": "gram"}},
    ),
    Case("fedgia", GIA, f"{HALF}, non-convex logistic", "fedgia-diagonal-nonconvex", "fedgia-diagonal-nonconvex", {}),
    Case(
        "fedadmm",
        ADMM,
        f"{HALF}, least squares, one inner step",
        "fedadmm-linear",
        "fedadmm-linear",
        admm(4, r0=0.5 / math.log10(13), eps0=240.0),
    ),
    Case(
        "fedadmm",
        ADMM,
        f"{HALF}, least squares, 1 to 3 inner steps",
        "fedadmm-linear-tests",
        "fedadmm-linear",
        {},
        TEST,
    ),
    Case(
        "fedadmm",
        ADMM,
        f"{HALF}, logistic, one inner step",
        "fedadmm-2023-logistic",
        "fedadmm-logistic",
        admm(3, r0=0.2, eps0=135.0),
        CURVATURE,
    ),
    Case(
        "fedadmm",
        ADMM_2022,
        f"{HALF}, logistic, one inner step, the first program",
        "fedadmm-2022-logistic",
        "fedadmm-logistic",
        admm(3, r0=0.1 / math.log10(12), inner_max=5),
    ),
    Case(
        "fedadmm",
        ADMM_2022,
        f"{HALF}, logistic, 1 to 5 inner steps, the first program",
        "fedadmm-2022-logistic-tests",
        "fedadmm-logistic",
        admm(3, r0=0.2, eps0=1e-5, inner_max=5),
        TEST,
    ),
    Case("fedepm", EPM, f"{HALF}, logistic, no noise", "fedepm", "fedepm", {"algorithm": PENALTY}),
    Case(
        "fedepm-graph, complete graph",
        EPM,
        f"{HALF}, logistic, no noise",
        "fedepm",
        "fedepm",
        {"algorithm": PENALTY | {"name": "fedepm-graph"}, "graph": {"name": "complete"}},
    ),
    Case(
        "flame-dp, no noise, no clipping",
        FLAME,
        "8 rounds, 5 of 12 clients, softmax",
        "flame",
        "flame-softmax-global",
        {"algorithm": OPEN},
    ),
    Case("flame", FLAME, "8 rounds, 5 of 12 clients, softmax", "flame", "flame-softmax-global", {}),
    Case("flame", FLAME, "8 rounds, 12 clients, softmax, weight decay", "flame-decay", "flame-softmax-decay", {}),
    Case("pfedme", FLAME, "8 rounds, 5 of 12 clients, softmax", "pfedme", "pfedme-softmax", {}),
    Case(
        "fedadmm-deep",
        DEEP,
        "8 rounds, 5 of 12 clients, softmax, η = 5/12",
        "fedadmm-deep",
        "fedadmm-deep-softmax",
        {},
        MESSAGE,
    ),
]
TOPK, RANK = {"name": "topk", "k": 12}, {"name": "rank", "r": 1}
# Name in words, options, start, key in recorded.npz, reason.
HESSIANS = [
    ("fednl, option A", {"name": "fednl", "option": "A", "compressor": TOPK}, "start", "fednl-topk", ""),
    ("fednl, option A", {"name": "fednl", "option": "A", "compressor": RANK}, "start", "fednl-rank", ""),
    ("fednl, option B", {"name": "fednl", "option": "B", "compressor": TOPK}, "start", "fednl-topk-2", NORM),
    ("fednl, option B", {"name": "fednl", "option": "B", "compressor": RANK}, "start", "fednl-rank-2", NORM),
    (
        "fednl, line search",
        {"name": "fednl", "option": "A", "compressor": TOPK, "line_search": True},
        "far",
        "fednl-ls",
        "",
    ),
    ("fednl-pp, 3 of 6 clients", {"name": "fednl-pp", "compressor": TOPK}, "start", "fednl-pp-topk", ""),
    ("fednl-pp, 3 of 6 clients", {"name": "fednl-pp", "compressor": RANK}, "start", "fednl-pp-rank", ""),
]


def run(case: Case, scratch: Path, own: tuple[str, str] | None = None) -> mpifed.Result:
    """mpifed on the samples and selections of a folder, as its study says but for ``case.study`` and ``own``."""
    study = tomllib.loads(str(trajectories()[f"{case.folder}/study"])) | case.study
    study["data"]["path"] = saved(stored_case(case.folder, "fed"), scratch / "fed.npz")
    if "path" in study["selection"]:
        study["selection"]["path"] = saved(stored_case(case.folder, "sel"), scratch / "sel.npz")
    if own:
        study[own[0]]["name"] = f"{scratch / 'classes.py'}:{own[1]}"
    return mpifed.run(study, record={"models": 1})


def fednl(algorithm: dict[str, Any], begin: str, scratch: Path) -> mpifed.Result:
    """mpifed on the recorded samples, from a recorded model; ``fednl`` takes all clients, whoever is selected."""
    start = scratch / "start.npz"
    with np.load(RECORDED) as stored:
        data = mpifed.arrays(stored["fednl/X"], stored["fednl/y"], [20] * 6)
        np.savez(start, x=stored[f"fednl/{begin}"])
    study = {"algorithm": algorithm, "rounds": 10, "record": {"models": 1}, "start": str(start)}
    if algorithm["name"] == "fednl-pp":
        study["selection"] = {"name": "replay", "path": str(RECORDED), "key": "fednl/sel"}
    return mpifed.run(study, problem={"name": "logistic", "mu": 0.01, "regulariser": "whole"}, data=data)


def differences(result: mpifed.Result, key: str) -> tuple[float, float]:
    """In x and in f of all rounds. FLAME's and the deep FedADMM's programs compute no f of all clients."""
    with np.load(RECORDED) as stored:
        x, f = stored[f"{key}/x"], stored.get(f"{key}/f")
    return apart(result.models["x"], x), math.nan if f is None else apart(result.rounds["objective"], f)


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "classes.py").write_text(CLASSES, "utf-8")
    for case in CASES:
        row = Row(case.method, *case.program, case.compared, *differences(run(case, scratch), case.key))
        if case.reason:
            x, f = differences(run(case, scratch, OWN[case.reason]), case.key)
            row = row._replace(compared=f"{row.compared}, by a derived class", x=x, f=f).without(case.reason, row)
        yield row
    for method, algorithm, begin, key, reason in HESSIANS:
        compared = f"10 rounds, 6 clients, logistic, compressor {algorithm['compressor']['name']}"
        row = Row(method, *FEDNL, compared, *differences(fednl(algorithm, begin, scratch), key))
        if reason:
            own = algorithm | {"name": f"{scratch / 'classes.py'}:Spectral"}
            x, f = differences(fednl(own, begin, scratch), key)
            row = row._replace(compared=f"{row.compared}, by a derived class", x=x, f=f).without(reason, row)
        yield row
