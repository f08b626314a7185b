"""A measure evaluates to the number that it names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mpifed
from benchmarks import expressions
from benchmarks.expressions import PaperMeasures
from mpifed import UserError


def test_measures_of_a_run():
    result = mpifed.run(
        {"rounds": 8, "data": {"clients": 6, "features": 5}, "stop": {"gradient": 1e-30, "optimum": 1.0}}
    )
    f, none = result.rounds["objective"], PaperMeasures({}, {"half": lambda result: result.rounds["objective"] / 2})
    assert np.array_equal(result.rounds["objective_gap"], f - 1.0)
    assert expressions.value(result, "objective", none) == f[-1]
    assert expressions.value(result, "max objective", none) == f.max()
    assert expressions.value(result, "half", none) == f[-1] / 2
    assert expressions.value(result, f"rounds at objective <= {f[3]}", none) == np.argmax(f <= f[3])
    assert (
        expressions.value(result, f"exchanges at objective <= {f[3]}", none)
        == result.rounds["exchanges"][np.argmax(f <= f[3])]
    )
    assert expressions.value(result, "rounds at objective <= -1", none) == math.inf
    assert math.isnan(expressions.value(result, "rounds at accuracy >= 0.5", none))
    assert expressions.censored(result, "rounds")
    assert np.array_equal(expressions.series(result, "iterations", none), 10 * np.arange(9))
    for wrong in ("rounds at objective", "max f g", "rounds at accuracy >= x", "rounds at accuracy > 0.5"):
        with pytest.raises(UserError, match="is not a measure"):
            expressions.parsed(wrong)
