"""The repeated iterates are those of the run, and FedADMM's theorems hold on them where their conditions do."""

from __future__ import annotations

import dataclasses
import math

import pytest

import mpifed
from benchmarks.fedadmm import iterates, theory


def fedadmm(rounds=20, share=0.5, **algorithm):
    options = {"name": "fedadmm", "k0": 3, "r0": 3.0, "eps0": 1e-6, "inner_max": 100, "lagrangian": True}
    return mpifed.run(
        {
            "rounds": rounds,
            "data": {"name": "linreg-noniid", "clients": 8, "features": 6},
            "problem": "least-squares",
            "algorithm": options | algorithm,
            "selection": {"name": "cover", "share": share},
            "stop": {"gradient": 0.0},
        }
    )


@pytest.mark.parametrize("options", [{}, {"start": "-gradient"}, {"r0": 0.2, "inner_max": 3, "k0": 10}], ids=str)
def test_the_iterates_are_those_of_the_run(options):
    """The record has 𝓛 at the next model, so that the first descent (7.13), (σ/2)‖Δw‖², lies between."""
    result = fedadmm(**options)
    found, k0 = iterates.trace(result), result.config["algorithm"]["k0"]
    assert len(found.lagrangian) == 20 * k0 + 1
    assert found.objective[1::k0] == pytest.approx(result.rounds["objective"][:-1], rel=1e-10)
    before = found.lagrangian[:-1:k0]
    assert (result.rounds["lagrangian"][:-1] <= before + 1e-10).all()


def test_theorem_3_1_and_lemma_4_1_hold_from_the_negative_gradients():
    result = fedadmm(start="-gradient")
    assert theory.condition(result) == pytest.approx(3.0)
    assert theory.unmet(result) <= 1
    assert 0 < theory.inner(result) <= 1
    assert theory.lemma_first(result) <= 0
    assert theory.lemma(result) <= 1e-12
    assert theory.rises(result) <= 1e-12
    assert theory.below(result) <= 1e-12


def test_lemma_4_1_fails_at_the_start_from_zero_and_with_all_clients_holds_after():
    result = fedadmm(share=1.0)
    assert theory.lemma_first(result) > 1e-3
    assert theory.lemma(result) <= 1e-12


def test_lemma_4_1_fails_from_zero_when_a_client_is_first_selected():
    """With half of the clients a round, the second round selects those of which π_i is still 0."""
    found = theory.excess(fedadmm(share=0.5))
    assert found[3] > 1e-3
    assert found[6:].max() <= 1e-12


def test_theorem_4_1_holds_in_the_limit():
    result = fedadmm(rounds=160)
    assert theory.apart(result) <= 1e-9
    assert theory.gradients(result) <= 1e-4
    assert theory.optimality(result) <= 1e-4


def test_theorem_3_1_says_nothing_below_its_condition():
    assert math.isnan(theory.inner(fedadmm(r0=0.2, inner_max=1, eps0=1e-9)))
    assert theory.unmet(fedadmm(r0=0.2, inner_max=1, eps0=1e-9)) > 1


def test_another_run_is_refused():
    result = fedadmm(rounds=3)
    rounds = result.rounds | {"objective": result.rounds["objective"] + 1e-3}
    with pytest.raises(ValueError, match="round 1 differs from the run"):
        iterates.trace(dataclasses.replace(result, rounds=rounds))
