"""The cost of a run, by which a sweep estimates the time that is left."""

import pytest

from mpifed.experiment.config import experiment
from mpifed.sweeps.cost import POINT, ROUND, cost
from mpifed.sweeps.overall import Overall


def computing(algorithm):
    """The seconds that are not those of a run or a round with nothing to compute, and evaluations."""
    rounds = 10_000
    table = {"data": {"clients": 8}, "rounds": rounds, "evaluate": {"every": rounds}}
    return cost(experiment(table | {"algorithm": algorithm})) - POINT - ROUND * rounds


def test_a_round_of_proxskip_takes_as_many_steps_as_its_coin_on_average():
    once, often = (computing({"name": "proxskip", "p": p}) for p in (1.0, 0.05))
    assert often / once == pytest.approx(20, rel=0.01)
    assert computing("proxskip") == once  # p follows from the data


def test_the_time_left_follows_from_costs_and_what_they_took():
    progress = Overall(None, [1.0, 1.0, 2.0])
    assert progress.head() == "0 of 3"
    progress.over(1.0, None)
    assert progress.head() == "1 of 3"
    progress.over(1.0, 30.0)
    assert progress.head() == "2 of 3, about 60 s left"
