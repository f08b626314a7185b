"""The plan by which all methods are tuned: an equal budget, and settings in the units of a data set."""

import pytest

from benchmarks.beyond.tuning import plan
from mpifed import UserError
from mpifed.core.toml import flatten
from mpifed.experiment import config
from tests.helpers.algorithm_cases import SERVED

UNITS = plan.Units(L=4.0, kappa=0.01, n=20, D=50, mean=10.0, X=0.5, optimum=0.1)
TUNING = plan.read()
LEFT_OUT = {"flame-dp", "ditto", "apfl"}  # noise; the server's model is that of FedAvg
# not tuned yet
LEFT_OUT |= {"ef21-hb", "ef21-bc", "ef21-sgd", "ef21-page", "fednew", "fedns", "lbfgs", "nesterov", "q-fedavg"}
LEFT_OUT |= {"ringmaster", "rennala", "malenia", "ringleader"}  # asynchronous: in beyond/leasttime
LEFT_OUT |= {"ad-admm", "fedbuff", "fedgia-async"}  # asynchronous: in beyond/asynchronous


def test_values_are_multiples_of_units():
    texts = {"1..8 / L": "0.25..2", "0.5 * L": 2.0, "10 / LD": 0.05, "2 * kappa": 0.02, "0.1 * X": 0.05}
    texts |= {"0.01 * nXX": 0.05, "5e-4 * LX": 0.001, "constant": "constant", 1.5: 1.5}
    assert {text: UNITS.scaled(text) for text in texts} == texts


def test_no_method_is_forgotten_and_every_one_may_try_the_same_number_of_settings_on_the_same_devices():
    assert set(SERVED) - LEFT_OUT <= {table["name"] for table in TUNING.method}
    labels = [table["label"] for table in TUNING.method]
    assert len(set(labels)) == len(labels)
    for number, table in enumerate(TUNING.method):
        tries = plan.settings(table, TUNING.settings, number, UNITS).tries
        ranges = any(isinstance(value, str) and ".." in value for value in flatten(table).values())
        assert len(tries) == TUNING.settings if ranges else 1 < len(tries) < TUNING.settings, table["label"]
        for one in tries:
            config.experiment({"algorithm": one.algorithm})  # names and values are right
    with pytest.raises(UserError, match="no method on a9a is called 'nowhere': there are GD; "):
        plan.plans(TUNING, "a9a", ["nowhere"])
    # equal clients of 10 samples: 0.2 s for a pass, 0.2 s for a model one way, 0.1 s for a message one way
    system = plan.devices(UNITS)
    assert 10 / system["speed"] == pytest.approx(0.2)
    assert 8 * 20 / system["bandwidth_up"] == 8 * 20 / system["bandwidth_down"] == pytest.approx(0.2)
    assert system["latency"] == pytest.approx(0.1)
