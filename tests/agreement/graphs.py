"""Methods on graphs beside decent-bench and the programs of MoTEF: the models of all nodes, and f, in all rounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mpifed
from tests.agreement.row import Row, apart
from tests.agreement.stored import case, program, saved

# The models of all nodes after the start and after each round.
NODES = """
import numpy as np

from mpifed.extend import Callback, Plugin
from mpifed.extend import Plugin


class Nodes(Plugin, Callback):
    rows = {{}}

    def after_round(self, fed, server):
        self.rows[fed.round] = fed.inspect(fed.setup.algorithm.model)
        np.save({path!r}, np.array(list(self.rows.values())))
"""
# The compressors of that program with the draws that it made; messages of all nodes come in their order.
COMPRESSOR = """
import itertools

import numpy as np

from mpifed.extend import Compressor

Z = np.load({path!r})
KIND, A, M = str(Z["compressor"]), int(Z["param"]), len(Z["sizes"])
USES = itertools.count()


class Stored(Compressor):
    def message(self, rows, rngs, symmetric):
        if len(rows) != M or KIND == "None":  # other rows than those of all nodes are about delta
            return rows
        j = next(USES)
        if KIND == "gsgd":
            s, r = 2 ** (A - 1), np.linalg.norm(rows, axis=1, keepdims=True)
            with np.errstate(all="ignore"):
                return r / s * np.sign(rows) * np.floor(s / r * np.abs(rows) + Z["uniforms"][j].T)
        rows = rows.copy()
        for i, row in enumerate(rows):
            row[np.argsort(row, kind="stable")[A:] if KIND == "top" else Z["zeroed"][j * M + i]] = 0
        return rows

    def bits(self, N, itemsize, symmetric=False):
        return 8 * itemsize * N

    def delta(self, N, symmetric=False):
        return 1e-6  # some number, so that messages are not scaled
"""
# What two programs do otherwise.
METHODS = """
from mpifed import algorithms
from mpifed.algorithms.extra import Client


class MoTEF(algorithms.MoTEF):
    def init_client(self, f):
        return super().init_client(f)._replace(d=f.zeros())


class Extra(algorithms.Extra):
    a: float = 0.5  # W̃ = aW + (1 − a)I

    def correct(self, f, client, mixed, gamma):
        step = gamma * f.grad(client.x)
        return Client(client.x + mixed - step - client.u, self.a * mixed + (1 - self.a) * client.x - step), None
"""
GT, ATC = "gradient-tracking", "adapt-combine"
STARTS = {"zero": "0", "two-hop-zero": "0"}
MOTEF = "the program starts the momentum from 0, the paper from gradients"
NDA = (
    "the program's second matrix aW + (1 − a)I, a = 0.9/(1 − min W_ii), breaks EXTRA's condition, and nodes drift apart"
)
OTHERWISE = {
    ("motef", "gsgd"): (MOTEF, "MoTEF", ", by a derived class"),
    ("extra-nda", "random-start"): (NDA, "Extra", ", its W̃ by a derived class"),
}
Options = dict[str, Any]


def options(Z: Options) -> Iterator[tuple[str, list[str], Options]]:
    """Folder, cases and the options of mpifed with the numbers of a case."""
    eta, step, tau, second = (Z.get(key) for key in ("eta", "step_size", "num_local_steps", "aux_step_size"))
    yield "dgd-nda", ["random-start"], {"name": "dgd", "gamma": eta}
    yield "tracking-nda", ["random-start"], {"name": GT, "gamma": eta}
    yield "atc-tracking-decent", ["random"], {"name": GT, "gamma": step, "order": ATC}
    yield "extra-decent", ["random"], {"name": "extra", "gamma": step}
    yield "extra-nda", ["random-start"], {"name": "extra", "gamma": eta}
    yield "nids-decent", ["zero", "two-hop-random"], {"name": "nids", "gamma": step}
    yield "nids-nda", ["random-start"], {"name": "nids", "gamma": eta}
    yield "d2-nda", ["random-start"], {"name": "nids", "gamma": eta}
    yield "led-decent", ["random"], {"name": "led", "tau": tau, "alpha": step, "beta": second}
    yield "kgt-decent", ["random"], {"name": "k-gt", "k0": tau, "gamma": step, "eta": second}
    yield "aug-dgm-decent", ["random"], {"name": "aug-dgm", "gamma": step}
    yield "ed-decent", ["random", "two-hop-zero"], {"name": "fedgia-graph", "H": "zero", "k0": 2, "mixes": 1}
    both = {"eta": eta, "gamma": Z.get("gamma")}
    yield "choco", ["identity", "top"], {"name": "choco", **both}
    yield "beer", ["gsgd", "random", "top"], {"name": "beer", **both}
    yield "motef", ["paper-start-gsgd", "paper-start-top", "gsgd"], {"name": "motef", "lam": Z.get("lmbd"), **both}


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "methods.py").write_text(METHODS, "utf-8")
    for k, (folder, names, _) in enumerate(options({})):
        for name in names:
            Z = case(folder, name)
            algorithm = [*options(Z)][k][2]
            where = (said(algorithm), *program(folder), compared(folder, Z, name))
            row = Row(*where, *beside(folder, name, Z, algorithm, scratch))
            if (folder, name) in OTHERWISE:
                reason, title, how = OTHERWISE[folder, name]
                own = {"name": f"{scratch / 'methods.py'}:{title}"}
                own |= {"a": 0.9 / (1 - Z["W"].diagonal().min())} if title == "Extra" else {}
                x, f = beside(folder, f"own-{name}", Z, algorithm | own, scratch)
                row = row._replace(compared=row.compared + how, x=x, f=f).without(reason, row)
            yield row


def said(algorithm: Options) -> str:
    more = {"order": f', order = "{ATC}"', "H": ', H = "zero", one mix with (I + W)/2'}
    return algorithm["name"] + "".join(more.get(key, "") for key in algorithm)


def compared(folder: str, Z: Options, name: str) -> str:
    """What is compared of a case, in words."""
    start = STARTS.get(name, "an x of its own for each node")
    hops = ", edges of two hops" if name.startswith("two-hop") else ""
    kinds = {"gsgd": "rounding with stored draws", "top": "its top-k", "random": "stored places", "None": "none"}
    how = f", compressor: {kinds[Z['compressor']]}" if Z.get("compressor", "None") != "None" else ""
    how += ", the program's start" if folder == "motef" and not Z["paper_start"] else ""
    how += ", its D²" if folder == "d2-nda" else ""
    return f"{Z['rounds']} rounds, {len(Z['W'])} nodes{hops}, start from {start}{how}"


def beside(folder: str, name: str, Z: Options, algorithm: Options, scratch: Path) -> tuple[float, float]:
    """How far mpifed is apart from a stored case in the models of all nodes, and in f."""
    W = Z["W"]
    files = {name: str(scratch / f"{folder}-{name}") for name in ("start.npz", "edges.txt", "nodes.npy")}
    label = f"{folder}_{name}".replace("-", "_")  # of its own for each case: a file is loaded once
    nodes, stored = scratch / f"{label}_nodes.py", scratch / f"{label}_stored.py"
    if folder == "ed-decent":
        W = (np.eye(len(W)) + W) / 2
        algorithm = algorithm | {"t": 1 / (Z["step_size"] * smoothness(Z))}
    if "gamma" in Z:
        stored.write_text(COMPRESSOR.format(path=saved(Z, scratch / f"{label}.npz")), "utf-8")
        algorithm = algorithm | {"compressor": f"{stored}:Stored"}
    nodes.write_text(NODES.format(path=files["nodes.npy"]), "utf-8")
    np.savez(files["start.npz"], x=Z["x0"])
    ends = np.argwhere(np.triu(W != 0))
    np.savetxt(files["edges.txt"], np.column_stack([ends, W[*ends.T]]), "%d %d %.17g")
    study = {
        "problem": {"name": "logistic", "mu": Z["lam"], "regulariser": "whole"},
        "algorithm": algorithm,
        "graph": {"name": "file", "path": files["edges.txt"]},
        "start": files["start.npz"],
        "rounds": Z["rounds"],
        "stop": {"gradient": 0.0},
        "plugins": [f"{nodes}:Nodes"],
    }
    result = mpifed.run(study, data=mpifed.arrays(Z["X"], Z["y"], Z["sizes"]))
    assert result is not None
    return apart(np.load(files["nodes.npy"]), Z["x"]), apart(result.rounds["objective"], Z["f"])


def smoothness(Z: Options) -> float:
    """max r_i of the nodes."""
    parts = np.split(Z["X"], np.cumsum(Z["sizes"])[:-1])
    return max(float(np.linalg.eigvalsh(A.T @ A)[-1]) / (4 * len(A)) + Z["lam"] for A in parts)
