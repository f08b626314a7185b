"""The optimum is the minimum, and survives a damaged cache."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.optimum import Optima
from mpifed.experiment import config


def test_an_optimum_is_computed_again_if_the_cache_is_damaged(tmp_path):
    setup = config.experiment({"data": {"clients": 6, "features": 5}, "stop": {"objective_gap": 1e-3, "optimum": 0.0}})
    optimum = Optima(tmp_path).given(setup).stop.optimum
    assert list(Optima(tmp_path).known.values()) == [optimum]
    (tmp_path / "optima.json").write_text('{"a": ')
    assert Optima(tmp_path).given(setup).stop.optimum == optimum
    assert list(tmp_path.iterdir()) == [tmp_path / "optima.json"]


def test_the_optimum_is_that_of_normal_equations(tmp_path):
    study = config.experiment({"data": {"clients": 7, "features": 4, "least": 5, "most": 9}, "seed": 3})
    data = study.data.load(3, "float64")
    a, b = data.rows(0, data.m)
    weights = np.repeat(1 / (data.m * data.sizes), data.sizes)
    x = np.linalg.solve(a.T @ (weights[:, None] * a), a.T @ (weights * b))
    least = 0.5 * float(weights @ (a @ x - b) ** 2)
    found = Optima(tmp_path).given(study).stop.optimum
    assert found == pytest.approx(least, abs=1e-14)
    assert Optima(tmp_path).given(study).stop.optimum == found
