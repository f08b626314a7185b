"""The time of a run's rounds on equal clients, from its selections."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from benchmarks.beyond import factors, measures
from benchmarks.beyond.variants import Balanced
from benchmarks.expressions import paper_measures, value
from mpifed.algorithms.fedgia import FedGiA
from mpifed.experiment import config as experiment
from mpifed.federation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, gradients, minimiser

STUDY = {
    "rounds": 5,
    "data": {"name": "gaussian", "clients": 8, "samples": 10, "features": 4},
    "problem": {"name": "logistic", "mu": 0.1, "regulariser": "whole"},
    "selection": {"name": "uniform", "share": 0.5},
}
DRAWN = {
    "speed": {"name": "lognormal", "median": 100.0, "sigma": 1.0},
    "bandwidth_up": {"name": "lognormal", "median": 64.0, "sigma": 0.5},
    "bandwidth_down": 32.0,
    "latency": 0.25,
}
PASSES = {"accfeddcd": 3.0, "newton": 6.0}  # of methods that cannot tell their own


@pytest.mark.parametrize("name", ["fedavg", "fedgia", "accfeddcd", "newton", {"name": "proxskip", "p": 0.3}], ids=str)
def test_it_is_what_a_run_on_equal_clients_records(name):
    drawn = DRAWN | ({"passes": PASSES[name]} if str(name) in PASSES else {})
    run = mpifed.run(STUDY | {"algorithm": name, "system": drawn}, progress=False)
    even = drawn | {"speed": 100.0, "bandwidth_up": 64.0}
    other = mpifed.run(STUDY | {"algorithm": name, "system": even}, progress=False)
    assert np.allclose(measures.seconds_without_stragglers(run), other.rounds["simulated_seconds"], rtol=1e-12)
    assert not np.allclose(run.rounds["simulated_seconds"], other.rounds["simulated_seconds"])


def test_by_hand_and_in_a_benchmark():
    """A round: 0.25 s + 32 bytes down at 32/s + 5·10 gradients at 100/s + 0.25 s + 32 bytes up at 64/s."""
    run = mpifed.run(STUDY | {"algorithm": "fedavg", "system": DRAWN}, progress=False)
    assert np.allclose(np.diff(measures.seconds_without_stragglers(run)), 0.25 + 1.0 + 0.5 + 0.25 + 0.5)
    assert value(run, "seconds_without_stragglers", paper_measures("beyond")) == pytest.approx(5 * 2.5)


QUADRATIC = {
    "rounds": 30,
    "data": {"name": "benchmarks.beyond.variants:HardQuadratic", "clients": 6, "features": 4, "mu": 1.0, "L": 2.0},
    "problem": "quadratic",
    "algorithm": {"name": "feddcd", "dual": True},
}


@pytest.mark.parametrize("name", ["uniform", "importance", "greedy", "cyclic"])
def test_factors_of_the_dual_gap(name):
    """What is measured and proven of a run with one client of L = 200; by turns nothing is proven."""
    overlap = {"overlap": 1} if name == "cyclic" else {}
    run = mpifed.run(QUADRATIC | {"selection": {"name": name, "count": 3, **overlap}}, progress=False)
    gaps = measures.dual_gap(run)
    count = int(np.isfinite(gaps).sum()) - 1
    assert measures.dual_factor(run) == pytest.approx((gaps[count] / gaps[0]) ** (1 / count))
    proven = measures.proven_factor(run)
    paper = 1 - 2 / 5 / 200
    assert measures.over_theorem(run) == pytest.approx((1 - measures.dual_factor(run)) * 200 * 5 / 2)
    if name == "cyclic":
        assert np.isnan(proven)
        return
    expected = {
        "uniform": paper,
        "importance": factors.by_importance(np.ones(6), np.array([200.0, 2, 2, 2, 2, 2]), 3),
        "greedy": 1 - 2 / (3 * 4) / 200,
    }
    assert proven == pytest.approx(expected[name], rel=1e-12)
    assert measures.over_proven(run) == pytest.approx((1 - proven) / (1 - measures.dual_factor(run)))


def test_without_a_dual_objective_there_is_no_factor():
    run = mpifed.run(STUDY | {"algorithm": "feddcd", "rounds": 2}, progress=False)
    assert np.isnan([measures.dual_factor(run), measures.proven_factor(run), measures.over_theorem(run)]).all()


def test_the_gap_over_its_goal_is_one_where_tuning_wanted_the_run_to_come():
    stop = {"objective_gap": 1e-4, "optimum": 0.0}
    run = mpifed.run(STUDY | {"algorithm": "fedavg", "stop": stop}, progress=False)
    assert np.allclose(measures.gap_over_goal(run), run.rounds["objective_gap"] / 1e-3)
    reached = value(run, "rounds at gap_over_goal <= 1", paper_measures("beyond"))
    assert reached == value(run, "rounds at objective_gap <= 1e-3", paper_measures("beyond"))


@pytest.mark.parametrize("name", ["uniform", "importance", "greedy"])
def test_factors_on_other_problems_use_bounds_of_curvature_and_the_optimum(name):
    study = STUDY | {"algorithm": {"name": "feddcd", "dual": True}, "selection": {"name": name, "count": 4}}
    longer = mpifed.run(study | {"rounds": 60}, progress=False)
    least = -longer.rounds["dual_objective"][-1] / 8
    run = mpifed.run(study | {"stop": {"optimum": float(least)}}, progress=False)
    known = measures.dual(run)
    X, _ = config(run).data.load(0, "float64").rows(0, 8)
    bounds = [np.linalg.norm(A, 2) ** 2 / 40 + 0.1 for A in X.reshape(8, 10, 4)]
    assert np.allclose(known.betas, bounds)
    assert (known.alpha, known.beta, known.tau) == pytest.approx((0.1, max(bounds), 4))
    gaps = run.rounds["dual_objective"] + 8 * least
    assert np.allclose(measures.dual_gap(run), gaps)
    assert measures.dual_factor(run) == pytest.approx((gaps[5] / gaps[0]) ** 0.2)
    seldom = mpifed.run(study | {"stop": {"optimum": float(least)}, "evaluate": {"every": 5}}, progress=False)
    assert np.isfinite(measures.dual_gap(seldom)).sum() == 2
    assert measures.dual_factor(seldom) == pytest.approx(measures.dual_factor(run))
    expected = {
        "uniform": 1 - 3 / 7 * 0.1 / max(bounds),
        "importance": factors.by_importance(np.full(8, 0.1), np.array(bounds), 4),
        "greedy": 1 - 3 / (4 * 5) * 0.1 / max(bounds),
    }
    assert measures.proven_factor(run) == pytest.approx(expected[name], rel=1e-9)
    assert measures.over_proven(run) < 1


def config(run):
    return experiment.experiment(run.config)


ADAPTIVE = FedGiA(k0=1, t=0.002, adaptive=True)


@pytest.mark.parametrize("unit", ["t", "beta"])
@pytest.mark.parametrize("t", [1e-3, 0.3, 3.0, 1e3])
def test_balanced_residuals_move_the_penalty(t, unit):
    """Round one from x = 0, π = 0: x_i = −ḡ_i/(r_i/m + σ), π_i = σ x_i of the selected, 0 and −ḡ_i of others."""
    run = Run(Balanced(k0=1, t=t, unit=unit, mu=2.0), selection=Uniform(share=0.5))
    sigma, g = run.server.sigma, gradients(run, np.zeros(N)) / M
    run.rounds(1)
    chosen = run.fed.mask(run.fed.selected)[:, None]
    r = np.array([[np.linalg.norm(A, 2) ** 2 / len(A)] for A, _ in run.samples()])
    own = np.where(chosen, -g / (r / M + sigma), 0)
    x = np.where(chosen, 2 * own, -g / sigma).mean(axis=0)
    d, p = np.linalg.norm(own), (t if unit == "t" else M * sigma) * M**0.5 * np.linalg.norm(x)
    assert run.server.sigma == (2.0 if 2 * p < d else 0.5 if 2 * d < p else 1.0) * sigma
    assert np.allclose(run.server.x, x)


@pytest.mark.parametrize("mu", [5.0, 1e30])
def test_balanced_residuals_come_to_the_minimiser(mu):
    run = Run(Balanced(k0=1, t=0.2, mu=mu), selection=Uniform(share=0.5))
    held = Run(FedGiA(k0=1, t=0.2), selection=Uniform(share=0.5))
    assert np.allclose(run.rounds(60)[-1], minimiser(run), atol=1e-4)
    assert (run.server.sigma == held.server.sigma) == (mu > 5)
    if mu > 5:
        assert np.allclose(held.rounds(60)[-1], run.server.x, rtol=1e-10, atol=1e-12)


def test_balanced_residuals_do_not_see_that_the_penalty_is_far_too_small():
    """On least squares both residuals grow by the same factor a round; the curvature along the path tells."""
    balanced, adaptive = (Run(kind, selection=Uniform(share=0.5)) for kind in (Balanced(k0=1, t=0.002), ADAPTIVE))
    away = [np.linalg.norm(run.rounds(40)[-1] - minimiser(run)) for run in (balanced, adaptive)]
    assert away[0] > 1e20
    assert away[1] < 0.1
    assert balanced.server.sigma < 0.02 * balanced.server.r / M
