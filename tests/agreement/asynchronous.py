"""Asynchronous methods beside vectozavr/ringmaster-lmo, where each worker needs a fixed time for a gradient."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from tests.agreement.row import Row, apart
from tests.agreement.stored import case, program

RIDGE = """
from mpifed.extend import Array, LinearModel


class Ridge(LinearModel):
    lam: float = 0.0
    curvature = 1.0

    def loss(self, Z: Array, b: Array) -> Array:
        return (Z - b) ** 2 / 2

    def slope(self, Z: Array, b: Array) -> Array:
        return Z - b

    def weight(self, d: Array) -> Array:
        return self.lam + 0 * d
"""
FINISHED = (
    "the program stops all workers at every step, as mpifed does with stop = true; in the paper, and by mpifed's "
    "default, a worker finishes what it has begun, and the server ignores it"
)


class Case(NamedTuple):
    """``options`` of the method in the case of a folder, and why it differs there without them."""

    folder: str
    case: str
    method: str  # and options in words
    options: dict[str, Any]
    reason: str = ""


SGD = {"name": "fedbuff", "k0": 1, "a": 0.0}
STOP = {"stop": True}
CASES = [
    Case("async-sgd", "delays-plain", "fedbuff, one local step", SGD),
    Case("async-sgd", "ties-plain-zero", "fedbuff, one local step", SGD),
    Case("async-sgd", "delays-adaptive", "fedbuff, delay-adaptive", {"name": "fedbuff", "k0": 1, "weight": "delay"}),
    Case("ringmaster", "delays-5", "ringmaster, stop", STOP),
    Case("ringmaster", "ties-5", "ringmaster, stop", STOP),
    Case("rennala", "delays-10", "rennala, stop", STOP, FINISHED),
    Case("rennala", "ties-10", "rennala, stop", STOP, FINISHED),
    Case("malenia", "delays", "malenia, stop", STOP),
    Case("ringleader", "delays", "ringleader", {}),
    Case("minibatch-sgd", "delays", "gd", {}),
]


def rows(scratch: Path) -> Iterator[Row]:
    """A row for each case."""
    (scratch / "ridge.py").write_text(RIDGE, "utf-8")
    for one in CASES:
        theirs = case(one.folder, one.case)
        result = run(one, theirs, scratch)
        np.testing.assert_allclose(result.rounds["simulated_seconds"], theirs["time"], rtol=1e-12)
        arrived = theirs["arrivals"][: theirs["arrived_by_step"][-1]] if "arrivals" in theirs else np.zeros(0, int)
        if one.method != "gd":
            np.testing.assert_array_equal(result.clients["times_selected"], np.bincount(arrived, minlength=6))
        row = beside(one, theirs, result)
        if one.reason:
            row = row.without(one.reason, beside(one, theirs, run(one._replace(options={}), theirs, scratch)))
        yield row


def beside(one: Case, theirs: dict[str, Any], result: mpifed.Result) -> Row:
    x, f = apart(result.models["x"], theirs["x"]), apart(result.rounds["objective"], theirs["f"])
    times = f"fixed times {'with ties' if 'ties' in one.case else 'of 1 to 11.9 s'}"
    return Row(one.method, *program(one.folder), f"{theirs['rounds']} rounds, 6 clients, {times}", x, f)


def run(one: Case, theirs: dict[str, Any], scratch: Path) -> mpifed.Result:
    """The study of a case, with the model of every round."""
    np.savez(scratch / "data.npz", X=theirs["X"], y=theirs["y"], sizes=theirs["sizes"])
    np.savez(scratch / "start.npz", x=theirs["x0"])
    renamed = {"gamma": "lr" if one.folder == "async-sgd" else "gamma", "max_delay": "R", "batch_size": "B"}
    given = {ours: np.ravel(theirs[key])[0].item() for key, ours in renamed.items() if key in theirs}
    name = one.method.partition(",")[0]
    return mpifed.run(
        {
            "rounds": theirs["rounds"],
            "data": {"name": "file", "path": str(scratch / "data.npz")},
            "problem": {"name": f"{scratch / 'ridge.py'}:Ridge", "lam": theirs["lam"]},
            "start": str(scratch / "start.npz"),
            "algorithm": {"name": name} | given | one.options,
            "selection": "all",
            "system": {"latency": (theirs["delays"] / 2).tolist()},
            "stop": {"gradient": 0.0},
            "record": {"models": 1},
        }
        | ({} if name == "gd" else {"asynchronous": {"arrivals": 1}}),
        progress=None,
    )
