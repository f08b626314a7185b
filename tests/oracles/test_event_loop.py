"""mpifed's asynchronous runs against a loop over events, which computes one upload after the other: to 1e-12."""

from itertools import cycle

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.streams import stream
from tests.helpers import traits

from . import event_loop
from .cases import CASES, EXACT, LOGISTIC, UNBIASED, WHOLE, Case
from .study import SIZES, algorithm_of, begun, clients_of, oracle

STEPS, RTOL = 25, 1e-12
SYSTEM = {"speed": 100.0, "passes": 4, "latency": 0.01, "bandwidth_up": 4e4, "jitter": 0.6}
WAITING = cycle([(2, None), (1, 6), (1, 3), (3, 0), (3, 2), (2, 5), (3, 4), (1, None), (2, 1)])  # arrivals, staleness
ABLE = {name for name in Algorithm.choices if traits.can_be_asynchronous(name)}
MORE = [  # what is exact to 1e-12, and an option that is for old uploads only
    Case("ad-admm", WHOLE, {"gamma": 0.7, "solver": EXACT}),
    Case("ad-admm", UNBIASED, {"rho": 0.2, "gamma": 0.1, "solver": EXACT}),
    Case("fedbuff", LOGISTIC, {"k0": 3, "lr": 0.4, "server_lr": 1.2, "a": 1.5}),
    Case("malenia", LOGISTIC, {"gamma": 0.4, "stop": True}),
    Case("malenia", WHOLE, {"S": 13}),
    Case("ringleader", WHOLE, {"gamma": 0.2}),
    Case("ringleader", LOGISTIC, {"gamma": 0.3}),
    Case("ringmaster", LOGISTIC, {"gamma": 0.4, "R": 4}),
    Case("ringmaster", WHOLE, {"R": 3, "stop": True}),
    Case("rennala", LOGISTIC, {"gamma": 0.4, "B": 5}),
    Case("rennala", WHOLE, {"B": 12, "stop": True}),
]
TABLES = [(case, *next(WAITING)) for case in CASES if case.method in ABLE - {"ad-admm"}]
TABLES += [(case, *next(WAITING)) for case in MORE]
TABLES += [(Case("fedbuff", LOGISTIC, {"k0": 1, "lr": 0.4, "weight": "delay"}), 1, None)]  # some older than m steps


def duration(numbers):
    """Seconds from the model that is sent to client i until its upload of so many numbers is there, written out."""

    def seconds(i, count):
        factor = np.exp(SYSTEM["jitter"] * stream(0, "system", i, count, 2).standard_normal())
        computing = SYSTEM["passes"] * SIZES[i] / SYSTEM["speed"] * factor
        return 2 * SYSTEM["latency"] + 8 * numbers / SYSTEM["bandwidth_up"] + computing

    return seconds


@pytest.mark.parametrize(("case", "arrivals", "staleness"), TABLES, ids=str)
def test_equals_the_event_loop(case, arrivals, staleness):
    clients = clients_of(case.problem)
    numbers = clients[0].n + (case.method == "fednova")  # of an upload; and ‖a_i‖₁
    method = oracle(case.method)(clients, **case.options)
    right, moved = [method.x], method.step

    def recording(uploads, ages):
        done = moved(uploads, ages) is not False
        if done:
            right.append(method.x)
        return done

    method.step = recording
    steps = event_loop.run(method, duration(numbers), STEPS, arrivals, staleness)
    assert case.options.get("weight") != "delay" or max(max(one.ages) for one in steps) > len(SIZES)
    table = {"arrivals": arrivals} | ({} if staleness is None else {"staleness": staleness})
    run = begun(case.problem, algorithm_of(case), system=SYSTEM, asynchronous=table)
    models = [run.server.x]
    for one in steps:
        models.append(run.rounds(1)[0])
        assert run.fed.selected.tolist() == one.arrived
        row = run.fed.schedule.row()
        found = [row["simulated_seconds"], row["staleness"], row["staleness_max"]]
        np.testing.assert_allclose(found, [one.seconds, np.mean(one.ages), max(one.ages)], rtol=RTOL)
    np.testing.assert_allclose(models, right, rtol=0, atol=RTOL * np.abs(right).max())


def test_every_method_that_can_be_asynchronous_has_an_event_loop():
    found = {name: oracle(name) for name in Algorithm.choices}
    assert {name for name, one in found.items() if isinstance(one, type) and one.asynchronous} == ABLE
