"""The repeated iterates are those of the run, and the theorems hold on them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mpifed
from benchmarks.fedgia import iterates, theory


def fedgia(**algorithm):
    return mpifed.run(
        {
            "rounds": 12,
            "data": {"name": "linreg-noniid", "clients": 8, "features": 6},
            "problem": "least-squares",
            "algorithm": {"name": "fedgia", "t": 6.0, "k0": 3, **algorithm},
            "selection": {"name": "uniform", "share": 0.5},
        }
    )


@pytest.mark.parametrize("H", ["diagonal", "gram", "zero"])
def test_gradients_are_those_of_the_run(H):
    result = fedgia(H=H)
    found = iterates.trace(result)
    assert np.allclose(found.gradient, result.rounds["grad_norm_sq"][:-1], rtol=1e-8)
    assert len(found.moved) == len(found.lagrangian) - 1 == 12 * 3


def test_theorem_3_and_its_lemma_hold():
    result = fedgia()
    assert 0 < theory.ratio(result) <= 1
    assert theory.descent_later(result) <= 1e-12
    assert theory.floor(result) <= 1e-12


def test_the_lemma_fails_at_the_start_from_zero_and_holds_from_the_negative_gradients():
    zero, gradient = fedgia(), fedgia(start="-gradient")
    assert theory.descent_first(zero) > 1e-4
    assert theory.descent_first(gradient) <= 1e-12
    assert theory.descent_later(gradient) <= 1e-12
    assert theory.start_gap(gradient) == pytest.approx(theory.start_gap(zero), rel=1e-12)  # both are f(x⁰)


def test_another_run_is_refused():
    result = fedgia()
    rounds = result.rounds | {"objective": result.rounds["objective"] + 1e-3}
    with pytest.raises(ValueError, match="round 1 differs from the run"):
        iterates.trace(dataclasses.replace(result, rounds=rounds))
