"""A gradient that measuring has found is not computed again by the next round, and the clocks say whose it is."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mpifed
from mpifed.problems.base import Problem
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import Run, build, same


def counted(monkeypatch):
    calls = []
    grad = LeastSquares.grad
    monkeypatch.setattr(LeastSquares, "grad", lambda self, block, X: calls.append(len(block)) or grad(self, block, X))
    return calls


@pytest.mark.parametrize(("name", "options"), [("fedgia", {}), ("fedepm", {"noise": "none", "mu0": 30.0})])
def test_after_measuring_a_round_computes_no_gradient_and_has_the_same_bits(name, options, monkeypatch):
    alone, measured = Run(build(name, options)), Run(build(name, options))
    calls = counted(monkeypatch)
    for _ in range(3):
        alone.rounds(1)
        assert calls
        measured.measure()
        calls.clear()
        measured.rounds(1)
        assert not calls
    assert same(alone.states(), measured.states())
    assert np.array_equal(alone.server.x, measured.server.x)


def test_at_another_point_it_is_computed(monkeypatch):
    run = Run(build("fedgia"))
    run.fed.measure(run.server.x + 1)
    calls = counted(monkeypatch)
    run.rounds(1)
    assert calls


def test_every_problem_that_says_so_measures_the_gradient_that_it_steps_along():
    shared = {name for name in Problem.choices if Problem.member(name, "problem").shared}
    assert shared == set(Problem.choices) - {"cnn", "torch"}  # these have dropout


@pytest.mark.parametrize("algorithm", ["fedgia", "fedepm"])
def test_no_second_is_counted_twice(algorithm):
    """What rounds, measuring and writing took, all together, is at most what the clock on the wall says."""
    begun = time.perf_counter()
    result = mpifed.run(
        {
            "algorithm": algorithm,
            "data": {"name": "gaussian", "clients": 200, "samples": 100, "features": 50},
            "problem": "logistic",
            "rounds": 20,
            "stop": {"gradient": 0.0},
        }
    )
    wall = time.perf_counter() - begun
    rounds = result.rounds
    assert rounds["elapsed_seconds"][-1] + rounds["evaluate_seconds"].sum() <= wall
    assert (rounds["evaluate_seconds"] >= 0).all()
    assert (rounds["compute_seconds"][1:] > 0).all()
