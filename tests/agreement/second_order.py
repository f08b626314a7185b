"""Second-order methods beside the program of J. Li (FedNS), which also has FedNew, Newton's method and others.

The program adds up losses of samples, with (λ/2)‖x‖² once for each client, and prints f with (λ/2)‖x‖² once: with s
samples each of m clients these are m s f − (m − 1)(λ/2)‖x‖² of the f here, and ρ, α and steps are those over s.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.agreement.row import Row, apart
from tests.agreement.stored import case, program, replayed

# Stored random numbers in the place of those of the clients' streams.
STORED = """
import numpy as np

from mpifed.engine.plugin import EnginePlugin
from mpifed.federation.method import wrap_methods
from mpifed.extend import Plugin

NUMBERS = np.load({path!r})  # (rounds, m, …)


class Given:
    def __init__(self, numbers):
        self.numbers = numbers

    def random(self, size):
        return self.numbers

    def standard_normal(self, shape):
        return self.numbers


class Stored(EnginePlugin):
    def extend_host(self, host, division):
        host.find_method = wrap_methods(host.find_method, given)


def given(name, method):
    def called(f, client, *args):
        vars(f)["rng"] = [Given(NUMBERS[f.round - 1, i]) for i in f.ids]
        return method(f, client, *args)

    return called if name in ("pull", "renew", "sketch") else method
"""
OUTSIDE = (
    'the program sketches λI with the rest of ∇²f_i, as mpifed does with regulariser = "inside"; by default mpifed '
    "adds it at the server, where it needs no sketch"
)


def rows(scratch: Path) -> Iterator[Row]:
    for name, period in (("fednew", 0), ("fednew_periodic", 10)):
        yield fednew("fednew", name, period, scratch)
    for name, period in (("qfednew", 0), ("qfednew_periodic", 10)):
        yield fednew("fednew-quantised", name, period, scratch)
    yield fedns("fedns", "inside", scratch).without(OUTSIDE, fedns("fedns", "outside", scratch))
    yield fedns("fedndes", "inside", scratch)
    yield deterministic("fednewton", "fednewton", {"name": "newton"}, "newton", scratch)
    zero = {"name": "fednl", "option": "A", "alpha": 1e-300, "compressor": "identity"}
    yield deterministic("newton-zero", "newton_zero", zero, "fednl, Hessians of the start (α = 1e-300)", scratch)
    yield deterministic("fedns-gd", "gd", {"name": "gd", "gamma": 1e-4 * 16}, "gd", scratch)


def fednew(folder: str, name: str, period: int, scratch: Path) -> Row:
    """Q-FedNew with the stored uniform numbers."""
    Z = case(folder, name)
    s = int(Z["sizes"][0])
    algorithm = {"name": "fednew", "rho": Z["rho"] / s, "alpha": Z["alpha"] / s, "period": period}
    plugins = []
    if "U" in Z:
        algorithm["compressor"] = {"name": "uniform", "b": Z["bits"]}
        plugins = [stored(name, Z["U"].reshape(Z["rounds"], len(Z["sizes"]), -1), scratch)]
    renewed = f"Hessians every {period} rounds" if period else "Hessians of the start"
    quantised = f", {Z['bits']} bits a number, stored draws" if plugins else ""
    return beside(folder, Z, algorithm, "fednew", f"{renewed}{quantised}", scratch, plugins=plugins)


def fedns(folder: str, regulariser: str, scratch: Path) -> Row:
    """FedNS with the stored sketches; FedNDES is FedNS, because the condition of its line search is never true."""
    Z = case(folder, folder)
    numbers = Z["normals"].reshape(Z["rounds"], len(Z["sizes"]), Z["X"].shape[1], Z["k"]).swapaxes(2, 3)
    algorithm = {"name": "fedns", "k": Z["k"], "mu": Z["mu"], "regulariser": regulariser}
    more = ", FedNDES, whose line search the program never enters" if folder == "fedndes" else ""
    compared = f"{Z['k']} rows, stored draws, λI {regulariser} of the sketch{more}"
    return beside(folder, Z, algorithm, "fedns", compared, scratch, plugins=[stored(folder, numbers, scratch)])


def deterministic(folder: str, name: str, algorithm: dict[str, Any], method: str, scratch: Path) -> Row:
    return beside(folder, case(folder, name), algorithm, method, "", scratch)


def stored(name: str, numbers: np.ndarray, scratch: Path) -> str:
    """The feature that gives clients the stored numbers (rounds, m, …)."""
    path, file = scratch / f"{name}.npy", scratch / f"stored_{name}.py"  # a file is read once by each process
    np.save(path, numbers)
    file.write_text(STORED.format(path=str(path)), "utf-8")
    return f"{file}:Stored"


def beside(
    folder: str, Z: dict[str, Any], algorithm: dict[str, Any], method: str, more: str, scratch: Path, **study: Any
) -> Row:
    problem = {"name": "logistic", "mu": Z["lam"]}
    found = replayed(Z, scratch, algorithm=algorithm, problem=problem, selection="all", **study)
    x, m = found.models["x"], len(Z["sizes"])
    f = len(Z["y"]) * found.rounds["objective"] - (m - 1) * Z["lam"] / 2 * (x**2).sum(axis=1)
    compared = f"{Z['rounds']} rounds, {m} clients{', ' if more else ''}{more}"
    return Row(method, *program(folder), compared, apart(x, Z["x"]), apart(f, Z["f"]))
