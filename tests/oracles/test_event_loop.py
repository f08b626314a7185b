"""mpifed's asynchronous runs against a loop over events, which computes one upload after the other: to 1e-12."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.base import Algorithm
from mpifed.core.streams import stream
from tests.helpers import traits

from . import event_loop
from .asynchronous import METHODS
from .cases import EXACT, LEAST_SQUARES, LOGISTIC, SOFTMAX, UNBIASED, WHOLE, step
from .study import SIZES, clients_of, samples

STEPS, RTOL = 25, 1e-12
SPEED, PASSES, LATENCY, BANDWIDTH, JITTER = 100.0, 4, 0.01, 4e4, 0.6


class Case(NamedTuple):
    method: str
    problem: dict[str, Any]
    options: dict[str, Any]
    arrivals: int = 2
    staleness: int | None = None

    def __str__(self):
        return f"{self.method}-{self.problem['name']}-{self.arrivals}-{self.staleness}"


CASES = [
    Case("fedavg", LEAST_SQUARES, {"k0": 3, "step": step("log2", 0.05)}),
    Case("fedavg", LOGISTIC, {"k0": 2, "step": step("log2", 2.0), "scale": "1/m", "aggregate": "all"}, 1, 6),
    Case("fedavg", LOGISTIC, {"k0": 2, "step": step("constant", 0.5)}, 1, 3),
    Case("fedavg", LEAST_SQUARES, {"k0": 3, "step": step("sqrt-samples", 0.02)}, 3, 0),
    Case("fedprox", LEAST_SQUARES, {"k0": 3, "mu": 0.3, "step": step("log2", 0.05)}, 3, 2),
    Case("fednova", LOGISTIC, {"k0": 4, "step": step("log2", 0.8)}, 2, 5),
    Case("feddcd", UNBIASED, {"eta": 0.9, "solver": EXACT}, 2),
    Case("feddcd", WHOLE, {"scaling": "own", "solver": EXACT}, 3, 4),
    Case("feddcd", UNBIASED, {"eta": 0.25, "solver": {"name": "gd", "steps": 7}}, 2, 1),
    Case("ditto", LOGISTIC, {"k0": 3, "step": step("log2", 0.8)}, 2, 4),
    Case("apfl", LOGISTIC, {"k0": 3, "step": step("log2", 0.8)}, 2, 4),
    Case("fedadmm", LOGISTIC, {"k0": 3, "nu": 0.5, "eps0": 1e-3, "inner_max": 6}, 3, 4),
    Case("fedadmm-deep", SOFTMAX, {"rho": 0.05, "lr": 0.1, "epochs": 4}, 2, 5),
    Case("flame", SOFTMAX, {"rho": 0.03, "lam": 1.5, "lr": 0.1, "epochs": 4}, 3, 4),
    Case("flame", SOFTMAX, {"rho": 0.1, "lam": 0.8, "lr": 0.2, "epochs": 3, "center": "local"}, 1),
    Case("pfedme", SOFTMAX, {"lam": 1.5, "eta": 0.3, "lr": 0.1, "epochs": 4}, 2, 3),
    Case("ad-admm", WHOLE, {"gamma": 0.7, "solver": EXACT}, 3, 4),
    Case("ad-admm", UNBIASED, {"rho": 0.2, "gamma": 0.1, "solver": EXACT}, 1),
    Case("fedgia-async", LOGISTIC, {"k0": 4}, 3, 4),
    Case("fedgia-async", LEAST_SQUARES, {"k0": 2, "H": "zero", "t": 1.1}, 1),
    Case("fedbuff", LEAST_SQUARES, {"k0": 2, "lr": 0.05}, 3, 4),
    Case("fedbuff", LOGISTIC, {"k0": 3, "lr": 0.4, "server_lr": 1.2, "a": 1.5}, 1),
]


def duration(numbers):
    """Seconds from the model that is sent to client i until its upload of so many numbers is there, written out."""

    def seconds(i, count):
        factor = np.exp(JITTER * stream(0, "system", i, count, 2).standard_normal())
        return LATENCY + 8 * numbers / BANDWIDTH + PASSES * SIZES[i] / SPEED * factor + LATENCY

    return seconds


def computed(case, folder):
    """The run of a case, with the model of every round."""
    np.savez(folder / "fed.npz", **samples(case.problem["name"])._asdict())
    table = {"arrivals": case.arrivals, **({} if case.staleness is None else {"staleness": case.staleness})}
    return mpifed.run(
        rounds=STEPS,
        data={"name": "file", "path": str(folder / "fed.npz")},
        problem=case.problem,
        algorithm={"name": case.method, **case.options},
        system={"speed": SPEED, "passes": PASSES, "latency": LATENCY, "bandwidth_up": BANDWIDTH, "jitter": JITTER},
        asynchronous=table,
        record={"models": 1},
        path=folder / "out.h5",
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_event_loop(case, tmp_path):
    clients, kind = clients_of(case.problem), METHODS[case.method]
    own = {"arrivals": case.arrivals} if "arrivals" in inspect.signature(kind).parameters else {}
    method = kind(clients, **case.options, **own)
    models, moved = [method.x], method.step

    def recording(uploads, ages):
        moved(uploads, ages)
        models.append(method.x)

    method.step = recording
    numbers = clients[0].n + (case.method == "fednova")  # and ‖a_i‖₁
    steps = event_loop.run(method, duration(numbers), STEPS, case.arrivals, case.staleness)
    result = computed(case, tmp_path)
    assert [result.selected(k).tolist() for k in range(1, STEPS + 1)] == [one.arrived for one in steps]
    np.testing.assert_allclose(result.rounds["simulated_seconds"][1:], [one.seconds for one in steps], rtol=RTOL)
    np.testing.assert_allclose(result.rounds["staleness"][1:], [np.mean(one.ages) for one in steps], rtol=RTOL)
    np.testing.assert_array_equal(result.rounds["staleness_max"][1:], [max(one.ages) for one in steps])
    scale = np.abs(np.array(models)).max()
    np.testing.assert_allclose(result.models["x"], models, rtol=0, atol=RTOL * scale)


def test_every_method_that_can_be_asynchronous_has_an_event_loop():
    able = {name for name in Algorithm.choices if traits.can_be_asynchronous(name)}
    assert able == METHODS.keys() == {case.method for case in CASES}
