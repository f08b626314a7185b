"""FLAME: its box, its penalty, and what it minimises."""

import numpy as np
import pytest

from mpifed.algorithms.flame import Flame
from mpifed.experiment.rounds import evaluate
from tests.helpers.algorithm_runs import M, Run, build, gradients, same
from tests.helpers.personal_models import EVERYONE

CENTERS = ["global", "local"]


both = pytest.mark.parametrize("center", CENTERS)


@both
@pytest.mark.parametrize("batch_size", [0, 5])
@pytest.mark.parametrize(("lam", "rho"), [(5.0, 0.01), (0.5, 3.0), (100.0, 1.0)])
@pytest.mark.parametrize("problem", ["least-squares", "softmax"])
def test_after_training_the_dual_is_the_pull_to_the_personal_model(problem, lam, rho, batch_size, center):
    """π_i = (λ/m)(θ_i − w_i) for those who trained; the others keep π_i = 0."""
    options = {"lam": lam, "rho": rho, "lr": 0.005, "batch_size": batch_size, "center": center, "weight_decay": 0.01}
    run = Run(build("flame", options), problem)
    for _ in range(5):
        run.rounds(1)
        state, trained = run.states(), run.fed.times_selected > 0
        pull = lam / M * (state.theta - state.w)
        scale = np.maximum(np.abs(lam / M * state.theta).max(), np.abs(state.pi).max())
        assert np.abs(state.pi - pull)[trained].max() <= 1e-12 * max(scale, 1)
        assert not state.pi[~trained].any()
        assert np.allclose(state.z[trained], (state.w + state.pi / rho)[trained], rtol=1e-13, atol=1e-13)


def test_the_recorded_lagrangian_is_8_and_at_least_6_where_rho_is_at_least_lam_over_m():
    """Lemma 3: with π_i = (λ/m)(θ_i − w_i), (8) is (6) plus ((ρ − λ/m)/2) Σ ‖w_i − w‖²."""
    lam, rho = 2.0, 0.5
    options = {"lam": lam, "rho": rho, "batch_size": 0, "envelope": True, "lagrangian": True}
    run = Run(build("flame", options), selection=EVERYONE)
    for _ in range(4):
        run.rounds(1)
        row, state, w = evaluate(run.algorithm, run.fed, run.server), run.states(), run.server.x
        f = np.array([((A @ t - b) ** 2).mean() / 2 for (A, b), t in zip(run.samples(), state.theta, strict=True)])
        six = f.mean() + lam / 2 * np.square(state.theta - w).sum() / M
        eight = f.mean() + lam / 2 * np.square(state.theta - state.w).sum() / M
        eight += (state.pi * (state.w - w)).sum() + rho / 2 * np.square(state.w - w).sum()
        assert np.isclose(row["envelope"], six, rtol=1e-12)
        assert np.isclose(row["lagrangian"], eight, rtol=1e-12)
        assert np.isclose(eight, six + (rho - lam / M) / 2 * np.square(state.w - w).sum(), rtol=1e-12)
    assert row["lagrangian"] > row["envelope"]


@pytest.mark.parametrize("name", ["flame", "pfedme"])
def test_what_is_recorded_on_request_changes_nothing_else(name):
    plain, watched = (Run(build(name, options), "softmax") for options in ({}, {"envelope": True}))
    assert same(plain.rounds(3), watched.rounds(3))
    rows = [evaluate(run.algorithm, run.fed, run.server) for run in (plain, watched)]
    assert rows[1].pop("envelope") > rows[0]["personal_objective"]
    assert rows[0] == rows[1]


@both
def test_a_strong_pull_brings_personal_models_to_their_centre(center):
    """λ → ∞: θ_i − centre = −∇f_i(θ_i)/λ, the centre w or, as printed, the client's own last w_i."""
    for lam in (1e2, 1e4):
        run = Run(
            build(
                "flame", {"lam": lam, "lr": 0.5 / lam, "epochs": 60, "rho": lam / M, "batch_size": 0, "center": center}
            )
        )
        run.rounds(4)
        centre = run.states().w if center == "local" else np.tile(run.server.x, (M, 1))
        run.rounds(1)
        theta, chosen = run.states().theta, run.fed.selected
        assert np.allclose((theta - centre)[chosen], -gradients(run, theta)[chosen] / lam, rtol=1e-4, atol=1e-9)


def test_a_weak_pull_leaves_every_client_alone():
    """λ → 0: θ_i minimises f_i and does not know of the others."""
    run = Run(build("flame", {"lam": 1e-9, "lr": 0.01, "epochs": 20, "batch_size": 0}), selection=EVERYONE)
    alone = Run(build("flame", {"lam": 1e-9, "lr": 0.01, "epochs": 60, "batch_size": 0}), selection=EVERYONE)
    run.rounds(3)
    alone.rounds(1)
    assert np.allclose(run.states().theta, alone.states().theta, atol=1e-6)


def test_a_penalty_below_that_of_theorem_2_is_told_not_refused():
    assert "rho >= lam/m = 0.1" in Flame(rho=0.01, lam=5.0).advice(50)
    assert "rho = 0.2" in Flame(rho=0.2, lam=5.0).advice(50)  # 0.1² · 1.2/0.2² = 0.3 is not below (0.1 + 0.2)/2
    assert Flame(rho=0.4, lam=5.0).advice(50) is None  # 0.1² · 1.4/0.4² = 0.0875 is below (0.1 + 0.4)/2
