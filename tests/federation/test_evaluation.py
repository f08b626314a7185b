"""What is evaluated of every client, by name."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.data.pool import Pool
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import M, Run, build

ALWAYS = ("objective", "objective_samples", "gradient")
CLASSES = ("accuracy", "correct", "tested")
PERSONAL = ("personal_objective", "personal_accuracy")


@pytest.mark.parametrize(
    ("name", "options", "problem", "names"),
    [
        ("fedavg", {}, "softmax", ALWAYS + CLASSES),
        ("flame", {}, "least-squares", (*ALWAYS, "personal_objective")),
        ("flame", {"lagrangian": True}, "least-squares", (*ALWAYS, "personal_objective", "lagrangian")),
        ("pfedme", {"envelope": True}, "softmax", (*ALWAYS, *CLASSES, *PERSONAL, "envelope")),
        ("fedgia", {}, "least-squares", ALWAYS),
        ("fedadmm", {}, "least-squares", (*ALWAYS, "inner_steps")),
        ("fedadmm", {"lagrangian": True}, "least-squares", (*ALWAYS, "inner_steps", "lagrangian", "squares")),
        ("feddcd", {"dual": True}, "quadratic", (*ALWAYS, "dual_objective")),
    ],
)
def test_quantities_travel_by_name_in_order_are_charged_to_nobody_and_what_is_not_recorded_does_not(
    name, options, problem, names
):
    run = Run(build(name, options), problem)
    run.rounds(1)
    before, computing = dict(vars(run.fed.ledger)), (run.fed.computing, run.fed.slowest)
    assert tuple(run.fed.evaluate(run.server.x)) == names
    assert vars(run.fed.ledger) == before
    assert (run.fed.computing, run.fed.slowest) == computing


def test_columns_are_means_over_clients_or_over_samples():
    run = Run(build("fedavg"), "softmax")
    x = np.random.default_rng(0).normal(size=run.n)
    sums = run.fed.evaluate(x)
    row = run.fed.evaluation.means(sums, run.m, run.fed.samples)
    block_values = [run.problem.value(block, x) for block in run.hosts[0].blocks]
    f = np.concatenate(block_values)[run.hosts[0].slot]
    assert row["objective"] == pytest.approx(f.mean(), rel=1e-12)
    assert row["objective_samples"] == pytest.approx(np.average(f, weights=run.data.sizes), rel=1e-12)
    assert row["accuracy_pooled"] == sums["correct"] / sums["tested"]
    assert row["grad_norm_sq"] == pytest.approx(np.sum(sums["gradient"] ** 2) / M**2, rel=1e-12)


class Measuring(LeastSquares, tag="measuring"):
    """Least squares that records how far its scores are off, on test samples."""

    def measured(self):
        return "off", "samples"

    def measure(self, block, X):
        r = np.abs(block.matvec(X) - block.b)
        return np.vecdot(block.w, r), block.d.astype(float)


def test_what_a_problem_measures_is_a_mean_over_clients_on_their_test_samples():
    """Client 1 has no test samples: it is measured on its training samples."""
    rng, sizes, tests = np.random.default_rng(0), np.array([5, 6, 7]), np.array([2, 0, 9])
    X, y = rng.standard_normal((34, 3)), rng.standard_normal(34)
    data = Pool(X[:18], y[:18], None, sizes, "float64", (X[18:29], y[18:29], None, tests))
    run, x = Run(FedAvg(k0=1), Measuring(), data=data), np.ones(3)
    sums = run.fed.evaluate(x)
    row = run.fed.evaluation.means(sums, run.m, 18)
    rows = np.split(np.abs(X @ x - y), [5, 11, 18, 20, 29])
    assert np.isclose(row["off"], np.mean([rows[3].mean(), rows[1].mean(), rows[4].mean()]), rtol=1e-12)
    assert row["samples"] == (2 + 6 + 9) / 3
    assert "accuracy" not in row
