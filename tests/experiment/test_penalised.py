"""Runs with a penalty: their optimum, certificates, fits, and what commands print of them."""

import math

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import RunError
from mpifed.experiment import optimum as certify
from mpifed.experiment.config import experiment
from mpifed.experiment.optimum import build_local_federation
from mpifed.features.certificate.minimum import find_minimum
from mpifed.features.penalty.proximal import find_penalty
from tests.experiment.conftest import chosen
from tests.federation.test_penalty import LASSO, LEARNT, LOGISTIC, NET, NUMBERS, OPEN, A, D, N, run
from tests.helpers.commands import mpifed as command

WIDE = {"data": mpifed.arrays(A[:6], NUMBERS[:6], (3, 2, 1))}  # fewer samples than coefficients
RIDGED = {"problem": {"name": "logistic", "mu": 5.0}}
CASES = {
    "net": (NET, {}),
    "open": (OPEN, {}),
    "ridge": ({"l2": 0.3}, {}),
    "logistic": (LASSO, LOGISTIC),
    "logistic, open": (OPEN, LOGISTIC),
    "logistic, strongly convex": (LASSO, LOGISTIC | RIDGED),
    "wide": ({"l1": 0.01}, WIDE),
    "wide, open": ({"l1": 0.01, "unpenalised": ["x7"]}, WIDE),
    "huber, net": (NET, {"problem": {"name": "huber", "bias": False}}),
}


@pytest.fixture(scope="module", params=chosen(CASES, "net", "logistic, open", "wide, open"))
def case(request):
    """The penalty and the study, and x* and F*."""
    objective, more = CASES[request.param]
    config = experiment(run("gd", objective, rounds=0, **more).config)
    fed, _ = build_local_federation(config)
    return objective, more, find_minimum(fed, config.algorithm, fed.initial())


def test_the_optimum_is_that_of_many_accelerated_steps(case):
    """FISTA with restarts, written here, from 0 to where it stays."""
    objective, more, best = case
    config = experiment(run("gd", objective, rounds=0, **more).config)
    fed, _ = build_local_federation(config)
    L = float(fed.inspect(config.algorithm.certify_smoothness, "max"))
    x = y = fed.initial()
    t = 1.0
    for _ in range(4000):
        _, total = fed.inspect(config.algorithm.certify_objective, "sum", (y,))
        new = find_penalty(fed).prox(y - total / fed.m / L, 1 / L)
        t = 1.0 if (y - new) @ (new - x) > 0 else t
        if (x == y).all() and (x == new).all():
            break
        step = (1 + math.sqrt(1 + 4 * t * t)) / 2
        x, y, t = new, new + (t - 1) / step * (new - x), step
    value, _ = fed.inspect(config.algorithm.certify_objective, "sum", (x,))
    assert float(value) / fed.m + find_penalty(fed).value(x) == pytest.approx(best.f, rel=1e-13)
    assert ((np.abs(x) > 1e-8) == (best.x != 0)).all()
    np.testing.assert_allclose(best.x, x, atol=1e-6)


def test_a_fit_bounds_how_far_f_is_from_its_least_value(case):
    objective, more, best = case
    for rounds in (20, 1500):
        result = run("gd", objective, rounds=rounds, **more)
        fit = result.fit()
        above = fit.f - best.f
        assert fit.f == pytest.approx(result.rounds["objective"][-1], rel=1e-13)
        assert above - 1e-15 <= fit.gap <= (1e-7 if fit.gradient < 1e-10 else 10)
        if not math.isnan(fit.distance):
            assert np.linalg.norm(result.x - best.x) <= fit.distance + 2e-8  # x* has some error of its own
        assert fit.gradient**2 == pytest.approx(result.rounds["grad_norm_sq"][-1], rel=1e-6, abs=1e-26)
        assert fit.zeros == np.sum(result.x == 0)
        assert np.isnan(fit.error).all()
        assert fit.notes[0].startswith("there are no standard errors: a penalty draws coefficients towards 0")


def test_the_gap_is_of_the_size_of_what_it_bounds():
    """For strongly convex f: at most L/μ times F − F*, L = 1/γ."""
    result = run("gd", NET, rounds=20)
    fit = result.fit()
    best = run("gd", NET)
    assert fit.gap <= 100 * (fit.f - best.rounds["objective"][-1])


def test_without_curvature_or_a_dual_point_there_is_no_bound():
    data = {"name": "synthetic", "clients": 4, "features": 3, "classes": 3, "least": 6, "most": 9}
    fit = run("gd", {"l1": 0.01, "unpenalised": []}, problem="softmax", data=data, rounds=3).fit()
    assert math.isnan(fit.gap)
    assert len(fit.x) == 12


def test_a_run_stops_at_a_gap_to_the_optimum():
    least = run("gd", LASSO).rounds["objective"][-1]
    found = run("gd", LASSO, stop={"objective_gap": 1e-6, "optimum": least})
    assert found.stop_reason.startswith("objective_gap")
    assert 0 < found.rounds["objective_gap"][-1] <= 1e-6 < found.rounds["objective_gap"][-2]
    with pytest.raises(RunError, match="is not the least f: the run has come to"):
        run("gd", LASSO, stop={"objective_gap": 1e-6, "optimum": least + 0.1})


def test_proximal_gradient_descent_keeps_the_bounds_of_its_certificate():
    gamma = 0.3
    algorithm = {"name": "gd", "gamma": gamma, "certify": True}
    result = run(algorithm, LASSO, rounds=30, stop={})
    found = result.certificate
    assert found.holds
    assert found.theorem.startswith("proximal gradient descent")
    assert found.constants.f == pytest.approx(run("gd", LASSO).rounds["objective"][-1], rel=1e-12)
    assert found.constants.grad_norm_sq < 1e-14
    gap = result.rounds["objective"] - found.constants.f
    bound, factor = (one.value for one in found.bounds)
    distance = np.sum(np.square(LEARNT["least-squares", "lasso"]))
    assert bound == pytest.approx(distance / (2 * gamma * 30), rel=1e-6)
    assert gap[-1] <= bound
    assert 0 < factor < 1
    assert (gap[1:] <= factor * gap[:-1] + 1e-14).all()
    long = certify.compute_certificate(experiment(run({"name": "gd", "gamma": 9.0}, LASSO, rounds=0).config))
    assert long.holds is False


def test_theorems_without_a_penalty_are_not_certified_with_one():
    found = run({"name": "fedadmm", "r0": 3.0, "certify": True}, LASSO, rounds=1).certificate
    assert "its theorems are about f" in found.remarks[0]
    assert not found.conditions
    proof = run({"name": "ad-admm", "certify": True}, LASSO, rounds=1).certificate
    plain = run({"name": "ad-admm", "certify": True}, {}, rounds=1).certificate
    assert [one.holds for one in proof.conditions] == [one.holds for one in plain.conditions]


def test_runs_with_other_penalties_are_not_compared_by_the_least_objective():
    from mpifed.report.curves import error_columns

    one, two = run("gd", {}, rounds=50), run("gd", LASSO, rounds=50)
    assert [float(values.min()) for values in error_columns([one, two])[1]] == [0.0, 0.0]


def test_commands_tell_what_was_minimised(tmp_path):
    words = ["algorithm=gd", "rounds=400", "objective.weights=samples", "objective.l1=0.05", "data.clients=6"]
    words += ["data.features=6", "selection=all", "-q", "-o", "out.h5"]
    assert command("run", *words, cwd=tmp_path).code == 0
    fit = command("fit", "out.h5", cwd=tmp_path).out
    assert "of 6 coefficients are 0" in fit
    assert "from the optimum: ‖x − prox(x − ∇f(x))‖" in fit
    assert "duality gap" in fit
    assert "note: there are no standard errors" in fit
    assert "std error" not in fit
    shown = command("show", "out.h5", cwd=tmp_path).out
    assert "objective.l1" in shown
    assert "objective is f with its penalty" in shown
    certified = command("certify", "out.h5", cwd=tmp_path)
    assert "Beck and Teboulle" in certified.out
    assert "‖x‖₁" in command("describe", "objective", cwd=tmp_path).out
    assert "prox" in command("describe", "gd", cwd=tmp_path).out


def test_a_certificate_counts_samples_only_once():
    """F does not depend on how the same samples are divided, with weights by samples."""
    halves = mpifed.arrays(A, NUMBERS, (D // 2, D - D // 2))
    one, two = (run("gd", NET, **more) for more in ({}, {"data": halves}))
    assert one.rounds["objective"][-1] == pytest.approx(two.rounds["objective"][-1], rel=1e-13)
    assert one.fit().f == pytest.approx(two.fit().f, rel=1e-13)
    assert len(one.x) == N
