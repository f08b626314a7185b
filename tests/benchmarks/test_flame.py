"""What Theorems 1 and 2 and Lemma 1 of FLAME say of runs, and the runs that record it."""

from functools import cache

import numpy as np
import pytest

import mpifed
from benchmarks.flame import theory
from mpifed.experiment.rounds import evaluate
from tests.helpers.algorithm_runs import M, Run, build, gradients, same

CHECKED = "benchmarks.flame.variants:Checked"
LAM, L, CLIENTS = 4.35, 1.0, 100


@cache
def run(rho, clients=CLIENTS, lam=LAM, largest=L, **options):
    """FLAME with Algorithm 1's centre and accurate personal models on quadratic functions; λ/m = 0.0435."""
    algorithm = {"name": CHECKED, "rho": rho, "lam": lam, "center": "local", "batch_size": 0, "epochs": 60, **options}
    algorithm = {"lr": 1 / (lam + largest)} | algorithm
    data = {"name": "quadratic", "clients": clients, "features": 5, "L": largest, "mu": largest / 2}
    table = {"data": data, "problem": "quadratic", "rounds": 20, "selection": {"name": "all"}, "algorithm": algorithm}
    return mpifed.run(table | {"stop": {"diverged": 0}})


def test_checking_changes_no_iterate_and_records_what_14_16_and_19_speak_of():
    options = {"lam": 2.0, "rho": 0.3, "batch_size": 0, "center": "local"}
    plain, checked = (Run(build(name, options)) for name in ("flame", CHECKED))
    assert same(plain.rounds(4), checked.rounds(4))
    lam, rho = 2.0, 0.3
    run = Run(build(CHECKED, {"lam": lam, "rho": rho, "batch_size": 0, "center": "local"}))
    moved, errors = np.zeros((3, M)), np.zeros(M)
    for _ in range(5):
        old = run.states()
        run.rounds(1)
        new, w, chosen = run.states(), run.server.x, run.fed.mask(run.fed.selected)
        slope = (gradients(run, new.theta) + lam * (new.theta - old.w)) / M
        now = np.array([((new.theta - old.theta) ** 2).sum(1), ((new.w - old.w) ** 2).sum(1), (slope**2).sum(1)])
        moved += np.where(chosen, now, 0)
        errors = np.maximum(errors, np.where(chosen, now[2], 0))
        row = evaluate(run.algorithm, run.fed, run.server)
        for name, values in zip(("moved_theta", "moved_w", "error"), moved, strict=True):
            assert np.isclose(row[name], values.sum(), rtol=1e-9)
        assert np.isclose(row["worst"], errors.max(), rtol=1e-9)
        theta = (gradients(run, new.theta) + lam * (new.theta - new.w)) / M
        own = lam / M * (new.w - new.theta) + new.pi + rho * (new.w - w)
        for name, part in (("slope_theta", theta), ("slope_w", own), ("slope_pi", new.w - w)):
            assert np.isclose(row[name], (part**2).sum(), rtol=1e-9)
        assert np.abs((new.pi + rho * (new.w - w)).sum(axis=0)).max() < 1e-13  # ∇_w L = 0 by (12)


def test_theorem_1_holds_for_accurate_personal_models_and_not_for_few_steps():
    below, above = theory.MEASURES["below_14"], theory.MEASURES["above_14"]
    assert all(0.1 < measure(run(2.0)) <= 1 for measure in (below, above))
    assert below(run(2.0, epochs=5, lr=0.01)) > 10


@pytest.mark.parametrize("rho", [0.15, 2.0])
def test_lemma_1_needs_the_divisor_of_38_and_holds_without_its_last_step(rho):
    result = run(rho)
    assert theory.condition(result) > 0
    assert rho >= LAM / CLIENTS
    enough = (1 / rho**2 - 1) * (LAM / CLIENTS) ** 2 - (L / CLIENTS + rho) / 2
    assert theory.divisor(result) == pytest.approx(enough)
    assert (enough > 0) == (rho == 0.15)
    assert (theory.printed(result) <= 1e-12) == (enough > 0)
    assert max(theory.mended(result), theory.floor(result)) <= 1e-12
    assert 0 < theory.ratio(result) < 1


def test_the_bound_of_theorem_2_turns_negative_with_c3():
    """m = 4, L = 100: c0 < 0 and a large c2, so that an error ε makes the right side of (19) negative."""
    accurate, few = (run(0.5, clients=4, lam=0.174, largest=100.0, **o) for o in ({}, {"epochs": 5, "lr": 1e-3}))
    assert theory.constants(few).c3 < 0
    assert theory.ratio(accurate) < 1
    assert theory.ratio(few) == np.inf


def test_the_bound_is_that_of_19():
    result = run(0.5)
    a, rho, m = LAM / CLIENTS, 0.5, CLIENTS
    c1 = (a + rho) / 2 - a**2 * (1 + rho) / rho**2
    c2 = 4 * a**2 * (1 + 1 / rho**2) + 2 / m**2 * (L**2 + 2 * LAM**2) + 2 * rho**2 + 2
    c0 = 1 / m**2 / ((1 / rho**2 - 1) * a**2 - (L / m + rho) / 2)
    values, slopes = result.rounds["lagrangian"], sum(result.rounds[f"slope_{v}"] for v in ("theta", "w", "pi"))
    T = 7
    right = c2 / c1 * (values[0] - values[T]) / (m * T) + (2 + c2 * c0 / c1) * result.rounds["worst"][-1]
    assert theory.bound(result)[T] == pytest.approx(right, rel=1e-12)
    assert theory.average(result)[T] == pytest.approx(slopes[:T].sum() / (m * T), rel=1e-12)
