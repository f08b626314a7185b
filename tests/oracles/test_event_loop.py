"""mpifed's asynchronous runs against a loop over events, which computes one upload after the other: to 1e-12."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.streams import stream
from tests.helpers import traits

from . import event_loop
from .cases import EXACT, LEAST_SQUARES, LOGISTIC, SOFTMAX, UNBIASED, WHOLE, step
from .study import SIZES, begun, clients_of, oracle

STEPS, RTOL = 25, 1e-12
SYSTEM = {"speed": 100.0, "passes": 4, "latency": 0.01, "bandwidth_up": 4e4, "jitter": 0.6}


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
        factor = np.exp(SYSTEM["jitter"] * stream(0, "system", i, count, 2).standard_normal())
        computing = SYSTEM["passes"] * SIZES[i] / SYSTEM["speed"] * factor
        return 2 * SYSTEM["latency"] + 8 * numbers / SYSTEM["bandwidth_up"] + computing

    return seconds


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_event_loop(case):
    clients = clients_of(case.problem)
    numbers = clients[0].n + (case.method == "fednova")  # of an upload; and ‖a_i‖₁
    method = oracle(case.method).Method(clients, **case.options)
    right, moved = [method.x], method.step

    def recording(uploads, ages):
        moved(uploads, ages)
        right.append(method.x)

    method.step = recording
    steps = event_loop.run(method, duration(numbers), STEPS, case.arrivals, case.staleness)
    table = {"arrivals": case.arrivals} | ({} if case.staleness is None else {"staleness": case.staleness})
    run = begun(case.problem, {"name": case.method, **case.options}, system=SYSTEM, asynchronous=table)
    models = [run.server.x]
    for one in steps:
        models.append(run.rounds(1)[0])
        assert run.fed.selected.tolist() == one.arrived
        row = run.fed.schedule.row()
        found = [row["simulated_seconds"], row["staleness"], row["staleness_max"]]
        np.testing.assert_allclose(found, [one.seconds, np.mean(one.ages), max(one.ages)], rtol=RTOL)
    np.testing.assert_allclose(models, right, rtol=0, atol=RTOL * np.abs(right).max())


def test_every_method_that_can_be_asynchronous_has_an_event_loop():
    able = {name for name in Algorithm.choices if traits.can_be_asynchronous(name)}
    classes = {name: getattr(oracle(name), "Method", None) for name in Algorithm.choices}
    assert able == {name for name, kind in classes.items() if kind is not None and kind.asynchronous}
    assert able == {case.method for case in CASES}
