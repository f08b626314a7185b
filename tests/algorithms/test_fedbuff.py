"""FedBuff: FedAvg where nothing is old, weights by age, and its bias towards fast clients."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedbuff import FedBuff
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import Run


def test_where_all_uploads_are_new_it_is_fedavg():
    own, fedavg = Run(FedBuff(k0=4, lr=0.02, a=3.0)), Run(FedAvg(k0=4, step=Constant(a=0.02)))
    assert np.allclose(own.rounds(6), fedavg.rounds(6), rtol=1e-12, atol=1e-14)


def two_clients(**options):
    """f_1 = ½(x − 1)² and f_2 = ½(x + 1)²; the second has 9 times as many samples, which is how long it takes."""
    X, y = np.ones((10, 1)), np.r_[1.0, -np.ones(9)]
    return mpifed.run(
        {
            "rounds": 400,
            "problem": "least-squares",
            "algorithm": {"name": "fedbuff", "k0": 1, "lr": 0.02, **options},
            "system": {"speed": 1.0},
            "asynchronous": {"arrivals": 1},
        },
        data=mpifed.arrays(X, y, [1, 9]),
        progress=False,
    )


def test_its_limit_weighs_clients_by_how_often_they_arrive():
    """Nine uploads of client 1 for one of client 2, with equal weights: the mean of 1 and −1 is 0.8, not 0."""
    assert np.mean(two_clients(a=0.0).x) == pytest.approx(0.8, abs=0.03)


def test_old_changes_count_less():
    """Client 2 is 9 rounds old: with 1/√10 its share falls from 1/10 to 1/29.5 or so."""
    assert np.mean(two_clients(a=0.5).x) == pytest.approx(1 - 2 / (1 + 9 * np.sqrt(10)), abs=0.02)


@pytest.mark.parametrize(("option", "value"), [("lr", 0.0), ("server_lr", -1.0), ("a", -0.5), ("k0", 0)])
def test_options_that_make_no_sense_are_refused_by_name(option, value):
    with pytest.raises(UserError, match=f"algorithm.{option}"):
        mpifed.run({"algorithm": {"name": "fedbuff", option: value}})
