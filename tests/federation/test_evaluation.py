"""What is evaluated of every client, by name."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.federation.evaluation import Evaluation
from tests.helpers.algorithm_runs import M, Run, build

ALWAYS = ("objective", "objective_samples", "gradient")
CLASSES = ("accuracy", "correct", "tested")


@pytest.mark.parametrize(
    ("name", "problem", "names"),
    [
        ("fedavg", "least-squares", ALWAYS),
        ("fedavg", "softmax", ALWAYS + CLASSES),
        ("flame", "least-squares", (*ALWAYS, "personal_objective")),
        ("flame", "softmax", (*ALWAYS, *CLASSES, "personal_objective", "personal_accuracy")),
        ("fedadmm", "least-squares", (*ALWAYS, "inner_steps")),
    ],
)
def test_quantities_have_names_in_the_order_in_which_they_travel(name, problem, names):
    run = Run(build(name), problem)
    assert Evaluation(run.hosts[0].setup).names == names
    assert tuple(run.fed.evaluate(run.server.x)) == names


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


def test_evaluation_is_charged_to_no_ledger():
    run = Run(build("fedgia"))
    run.rounds(1)
    before, computing = dict(vars(run.fed.ledger)), run.fed.computing.copy()
    run.fed.evaluate(run.server.x)
    assert vars(run.fed.ledger) == before
    assert np.array_equal(run.fed.computing, computing)
