"""What every schedule does with uploads that are asked for after they were sent for."""

import numpy as np
import pytest

from mpifed.federation.participation.selection import All, Uniform
from tests.federation.timing.test_arrivals import refused
from tests.helpers.algorithm_runs import Run, build

AWAY = {"system": {"speed": {"name": "lognormal", "median": 30}}, "asynchronous": {"arrivals": 3}}
SETTINGS = {"all": {"selection": All()}, "some": {"selection": Uniform(count=4), "cuts": (0, 5, 12)}, "away": AWAY}


@pytest.fixture(params=SETTINGS)
def run(request):
    return Run(build("fednova", {"k0": 2, "step": {"name": "constant", "a": 0.1}}), **SETTINGS[request.param])


def test_uploads_are_rows_or_sums_may_have_weights_and_cost_what_they_always_do(run):
    fed, x, method = run.fed, run.server.x, run.algorithm.normalised
    fed.begin(1)
    fed.send(method, x, 0, to=fed.select(x))
    arrived = fed.arrivals()
    count = run.m if arrived is None else len(arrived)
    assert fed.staleness.tolist() == [0] * count
    weights = 1.0 + np.arange(count)
    mean, norm = fed.mean(of=arrived, weights=weights)
    assert (fed.ledger.uploads, fed.ledger.bytes_up) == (count, 8 * (run.n + 1) * count)
    assert fed.ledger.downloads == (run.m if fed.schedule.row() else count)
    rows, norms = fed.call(method, x, 0, to=arrived)
    np.testing.assert_allclose(mean, weights @ rows / count, rtol=1e-12)
    np.testing.assert_allclose(norm, weights @ norms / count, rtol=1e-12)
    fed.begin(2)
    fed.send(method, x, 0, to=arrived)
    again = fed.arrivals()
    found = fed.call(of=again)
    assert found[0].shape == (count, run.n)
    for one, other in zip(found, fed.call(method, x, 0, to=again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_uploads_are_asked_for_once_after_send_and_arrivals(run):
    fed, x = run.fed, run.server.x
    fed.begin(1)
    refused(fed.arrivals, "no upload can arrive: fed.send must be called before fed.arrivals")
    fed.send(run.algorithm.normalised, x, 0, to=fed.select(x))
    refused(fed.mean, "uploads are asked for without a client method: fed.send and fed.arrivals must come before")
    arrived = fed.arrivals()
    fed.mean(of=arrived)
    refused(lambda: fed.mean(of=arrived), "uploads are asked for without a client method")
