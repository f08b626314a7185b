"""The rates of FedDCD hold on a quadratic problem."""

from __future__ import annotations

import pytest

import mpifed
from benchmarks.feddcd import theory
from benchmarks.feddcd.constants import theory as constants


def dual(name):
    return mpifed.run(
        {
            "rounds": 40,
            "data": {"name": "quadratic", "clients": 8, "features": 5},
            "problem": "quadratic",
            "algorithm": {"name": name, "dual": True},
            "selection": {"name": "uniform", "count": 4},
        }
    )


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_gaps_are_positive_and_the_run_is_as_fast_as_guaranteed(name):
    result = dual(name)
    known = constants(result)
    assert (known.N, known.tau, known.accelerated) == (8, 4, name == "accfeddcd")
    assert (theory.gap(result)[:5] > 0).all()
    assert (theory.dual_gap(result)[:5] > 0).all()
    assert theory.guaranteed(result) <= 1
    assert theory.corrected_bound(result) <= 1
