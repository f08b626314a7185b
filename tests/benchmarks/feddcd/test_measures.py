"""The gap after the first round, which the authors' trace has too."""

from __future__ import annotations

import math

import mpifed
from benchmarks.feddcd.measures import gap_after_round_1


def test_it_is_the_gap_of_the_second_row():
    table = {"data": {"name": "quadratic", "clients": 5, "features": 3}, "algorithm": "feddcd", "rounds": 3}
    result = mpifed.run({**table, "stop": {"optimum": -7.0, "objective_gap": 1e-9}})
    assert gap_after_round_1(result) == result.rounds["objective"][1] + 7.0
    assert math.isnan(gap_after_round_1(mpifed.run(table)))
    assert math.isnan(gap_after_round_1(mpifed.run({**table, "rounds": 0, "stop": {"optimum": -7.0}})))
