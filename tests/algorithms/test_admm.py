"""The first dual variables of FedGiA and FedADMM, and the augmented Lagrangian that they record."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedadmm import FedADMM
from mpifed.algorithms.fedgia import FedGiA
from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import M, N, Run, build, gradients

STUDY = {"data": {"clients": 8, "features": 5}, "rounds": 10, "stop": {"gradient": 0.0}}


def smoothness(run):
    return np.array([np.linalg.norm(A, 2) ** 2 / len(A) for A, _ in run.samples()])


def lagrangian(run, x, w, pi, sigma):
    """L(x, W, Π), client by client."""
    f = [np.sum((A @ wi - b) ** 2) / (2 * len(A)) for (A, b), wi in zip(run.samples(), w, strict=True)]
    return np.sum(f) / M + np.vecdot(w - x, pi).sum() + np.sum(sigma / 2 * np.sum((w - x) ** 2, axis=1))


def recorded(run):
    sums = run.fed.evaluate(run.server.x)
    return run.algorithm.report(run.server, {name: float(sums[name]) for name in run.algorithm.watches}, M)


@pytest.mark.parametrize("first", ["zero", "-gradient"])
def test_fedadmm_records_its_augmented_lagrangian(first):
    run = Run(FedADMM(k0=2, r0=0.7, first=first, lagrangian=True))
    for _ in range(4):
        run.rounds(1)
        states, sigma = run.states(), 0.7 * smoothness(run) / M
        w = (states.z - states.pi) / sigma[:, None]
        expected = lagrangian(run, run.server.x, w, states.pi, sigma)
        assert recorded(run)["lagrangian"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("first", ["zero", "-gradient"])
@pytest.mark.parametrize("H", ["diagonal", "gram"])
def test_fedgia_records_its_augmented_lagrangian(first, H):
    run = Run(FedGiA(k0=2, t=2.0, H=H, first=first, lagrangian=True))
    for _ in range(4):
        x = run.server.x
        run.rounds(1)
        states, sigma = run.states(), run.server.sigma
        resting = np.setdiff1d(np.arange(M), run.fed.selected)
        assert np.allclose(states.w[resting], x, rtol=1e-12, atol=1e-14)  # (15)
        assert np.allclose(run.server.x, np.mean(states.w + states.pi / sigma, axis=0), rtol=1e-10)  # (11)
        expected = lagrangian(run, run.server.x, states.w, states.pi, np.full(M, sigma))
        assert recorded(run)["lagrangian"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["fedadmm", "fedgia"])
def test_the_lagrangian_is_a_column_only_if_asked_for_and_changes_nothing_else(name):
    with_it = mpifed.run(STUDY | {"algorithm": {"name": name, "lagrangian": True}})
    without = mpifed.run(STUDY | {"algorithm": {"name": name}})
    assert set(with_it.rounds) - set(without.rounds) == {"lagrangian"}
    assert "squares" not in with_it.rounds
    assert with_it.x.tobytes() == without.x.tobytes()
    assert with_it.rounds["lagrangian"][0] == pytest.approx(
        with_it.rounds["objective"][0], rel=1e-14
    )  # all w_i are x⁰ and π_i = 0


@pytest.mark.parametrize("options", [{"name": "fedadmm", "r0": 0.5}, {"name": "fedgia", "t": 6.0}], ids=str)
def test_the_lagrangian_ends_at_the_objective(options):
    result = mpifed.run(STUDY | {"rounds": 400, "algorithm": {"k0": 3, "lagrangian": True, **options}})
    assert result.rounds["lagrangian"][-1] == pytest.approx(result.rounds["objective"][-1], rel=1e-9)


@pytest.mark.parametrize("name", ["fedadmm", "fedgia"])
def test_duals_that_begin_at_the_gradient_move_the_first_model(name):
    """x = x⁰ + Σ π_i/σ: the first aggregation, of z_i⁰ = σ_i x⁰ + π_i⁰."""
    run = Run(build(name, {"start": "-gradient"}))
    G = gradients(run, np.zeros(N)) / M
    total = run.server.sigma * (M if name == "fedgia" else 1)
    assert np.allclose(run.states().pi, -G, rtol=1e-12, atol=1e-15)
    assert np.allclose(run.server.x, -G.sum(axis=0) / total, rtol=1e-12)


def test_fedadmm_from_the_gradient_is_its_formulas():
    """(3.3)–(3.8) with exact inner solves, client by client."""
    r0, k0 = 3.0, 2
    run = Run(FedADMM(k0=k0, r0=r0, eps0=0.0, inner_max=200, first="-gradient"))
    sigma = r0 * smoothness(run) / M
    pi = -gradients(run, np.zeros(N)) / M
    z = pi.copy()
    w = z.sum(axis=0) / sigma.sum()
    for _ in range(4):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            for _ in range(k0):
                H = A.T @ A / len(A) / M + sigma[i] * np.eye(N)
                own = np.linalg.solve(H, A.T @ b / len(A) / M - pi[i] + sigma[i] * w)
                pi[i] += sigma[i] * (own - w)
            z[i] = sigma[i] * own + pi[i]
        w = z.sum(axis=0) / sigma.sum()
        assert np.allclose(model, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["fedadmm", "fedgia"])
def test_the_start_is_a_key_of_experiment_files(name):
    result = mpifed.run(STUDY | {"rounds": 2, "algorithm": {"name": name, "start": "-gradient"}})
    assert result.config["algorithm"]["start"] == "-gradient"
    again = mpifed.run(result.config)
    assert again.x.tobytes() == result.x.tobytes()
    with pytest.raises(UserError, match=r'algorithm.start = "gradient" is wrong: it must be "zero" or "-gradient"'):
        mpifed.run({"algorithm": {"name": name, "start": "gradient"}})
    component = {"fedadmm": FedADMM, "fedgia": FedGiA}[name](first="-gradient")
    from_objects = mpifed.run(STUDY | {"rounds": 2, "algorithm": component})
    assert from_objects.x.tobytes() == result.x.tobytes()
