"""Personal models: where they end, and what FLAME keeps and records."""

import numpy as np
import pytest

from mpifed.algorithms import Flame
from mpifed.federation.participation.selection import All
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, minimiser, same


def moreau(run, lam):
    """w minimising (1/m) Σ min_θ f_i(θ) + (λ/2)‖θ − w‖² of least squares, and the θ_i (m, n) there."""
    H = np.array([A.T @ A / len(A) for A, _ in run.samples()])
    g = np.array([A.T @ b / len(A) for A, b in run.samples()])
    inverse = np.linalg.inv(H + lam * np.eye(N))
    w = np.linalg.solve(np.eye(N) - lam * inverse.mean(axis=0), np.matvec(inverse, g).mean(axis=0))
    return w, np.matvec(inverse, g + lam * w)


@pytest.mark.parametrize(
    ("name", "options", "rounds"),
    [
        ("flame", {"rho": 1.0}, 200),
        pytest.param("flame", {"rho": 1.0, "center": "local"}, 400, marks=pytest.mark.slow),
        pytest.param("flame", {"rho": 2.0}, 400, marks=pytest.mark.slow),
        ("pfedme", {"eta": 0.1}, 120),
    ],
    ids=str,
)
def test_both_end_where_the_moreau_envelope_is_least(name, options, rounds):
    """Problem (7) of flame: w* minimises the mean of the envelopes, θ_i* = prox of f_i at w*."""
    lam = 5.0
    run = Run(build(name, {"lam": lam, "lr": 0.04, "epochs": 30, "batch_size": 0, **options}), selection=All())
    w, theta = moreau(run, lam)
    assert np.abs(gradients(run, theta) + lam * (theta - w)).max() < 1e-12  # the test's own formula
    assert np.linalg.norm(w - minimiser(run)) > 1e-2  # another point than the minimiser of f
    run.rounds(rounds)
    assert np.allclose(run.server.x, w, rtol=1e-5, atol=1e-6)
    assert np.allclose(run.states().theta, theta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("problem", [Softmax(), Softmax(start="uniform")], ids=repr)
def test_everyone_starts_at_the_common_model(problem):
    run = Run(build("flame"), problem)
    state = run.states()
    assert all((field == run.server.x).all() for field in (state.theta, state.w, state.z))
    assert not state.pi.any()


@pytest.mark.parametrize(
    ("problem", "lam", "rho", "batch_size", "center"),
    [
        ("least-squares", 5.0, 0.01, 5, "global"),
        ("least-squares", 0.5, 3.0, 0, "local"),
        ("softmax", 100.0, 1.0, 5, "local"),
        ("softmax", 0.5, 3.0, 5, "global"),
    ],
)
def test_after_training_the_dual_of_flame_is_the_pull_to_the_personal_model(problem, lam, rho, batch_size, center):
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
    run = Run(build("flame", options), selection=All())
    for _ in range(4):
        run.rounds(1)
        row = run.row()
        state = run.states()
        w = run.server.x
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
    rows = [run.row() for run in (plain, watched)]
    assert rows[1].pop("envelope") > rows[0]["personal_objective"]
    assert rows[0] == rows[1]


def test_a_penalty_below_that_of_theorem_2_is_told_not_refused():
    assert "rho >= lam/m = 0.1" in Flame(rho=0.01, lam=5.0).advice(50)
    assert "rho = 0.2" in Flame(rho=0.2, lam=5.0).advice(50)  # 0.1² · 1.2/0.2² = 0.3 is not below (0.1 + 0.2)/2
    assert Flame(rho=0.4, lam=5.0).advice(50) is None  # 0.1² · 1.4/0.4² = 0.0875 is below (0.1 + 0.4)/2
