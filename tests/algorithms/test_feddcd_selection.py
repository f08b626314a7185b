"""FedDCD with other laws of selection: what docs/studies/selection.md proves, on functions whose dual is known."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.beyond import factors
from mpifed.core.streams import stream
from mpifed.federation.participation.importance import Importance
from mpifed.federation.participation.participants import UNIFORM
from mpifed.federation.participation.scored import Greedy
from mpifed.federation.participation.selection import nth_other
from mpifed.theory import feddcd as theory
from tests.helpers.algorithm_runs import Run, build, quadratics
from tests.helpers.dual_methods import Dual, after, begun, on_every_set


def uneven(m=5, n=3, own=False):
    """Quadratic functions whose largest eigenvalues, and with ``own`` also smallest ones, are far apart."""
    rng = np.random.default_rng(3)
    Q = np.empty((m, n, n))
    for i in range(m):
        U = np.linalg.qr(rng.standard_normal((n, n)))[0]
        low = 0.3 * (i + 1) if own else 0.5
        Q[i] = (U * np.linspace(low, low * (30.0 if i == 0 else 2.0), n)) @ U.T
    return quadratics((Q + Q.swapaxes(1, 2)) / 2, rng.standard_normal((m, n)))


def spectra(dual, scaling):
    """a_i of Λ = diag(1/a_i), and β_i."""
    eigenvalues = np.linalg.eigvalsh(dual.Q)
    least = eigenvalues[:, 0]
    return (least if scaling == "own" else np.full(dual.m, least.min())), eigenvalues[:, -1]


@pytest.mark.parametrize("scaling", ["common", "own"])
@pytest.mark.parametrize("tau", [2, 3])
def test_by_importance_the_expected_dual_gap_falls_by_its_factor(tau, scaling):
    """Over all sets with their probabilities ∝ Σ a_i Π β_i/a_i, from random y: never above the factor."""
    dual = Dual(uneven(own=scaling == "own"))
    a, beta = spectra(dual, scaling)
    sets, runs = on_every_set(dual, tau, scaling=scaling)
    weight = np.array([a[list(some)].sum() * np.prod((beta / a)[list(some)]) for some in sets])
    factor = factors.by_importance(a, beta, tau)
    uniform = theory.factor((tau - 1) / (dual.m - 1), a.min(), beta.max())
    assert 0 < 1 - uniform < 1 - factor < 1  # it promises more than (3)
    rng = np.random.default_rng(1)
    for _ in range(15):
        y = rng.standard_normal(dual.y.shape) * rng.uniform(0.1, 5, (dual.m, 1))
        y -= y.mean(axis=0)
        gaps = [dual.gap(after(run, y=y, w=0 * y).y) for run in runs]
        assert weight @ gaps / weight.sum() <= factor * dual.gap(y) * (1 + 1e-9)


@pytest.mark.parametrize("scaling", ["common", "own"])
def test_the_selection_draws_from_that_law(scaling):
    dual = Dual(uneven(own=scaling == "own"))
    a, beta = spectra(dual, scaling)
    run = begun(dual, Importance(count=2), scaling=scaling)
    run.rounds(1)
    select, times = run.fed.participants.selector.select, np.zeros((dual.m, dual.m))
    for round in range(1, 4001):
        times[tuple(select(round, 0))] += 1
    pairs = np.array([[(a[i] + a[j]) * beta[i] / a[i] * beta[j] / a[j] * (i < j) for j in range(5)] for i in range(5)])
    expected = 4000 * pairs / pairs.sum()
    assert (abs(times - expected) <= 5 * np.sqrt(expected)).all()


def test_with_equal_constants_the_factor_is_that_of_theorem_4_1():
    for tau in (2, 3, 6):
        found = factors.by_importance(np.full(6, 0.2), np.full(6, 3.0), tau)
        assert np.isclose(found, theory.factor((tau - 1) / 5, 0.2, 3.0), rtol=1e-13)


def test_of_two_clients_it_is_the_harmonic_sum_of_the_docs():
    """τ = 2: 1/Σ κ_i(1 − β_i/Σβ)."""
    a, beta = np.array([1.0, 2.0, 0.5, 1.0]), np.array([9.0, 4.0, 3.0, 1.5])
    kappa = beta / a
    assert np.isclose(1 - factors.by_importance(a, beta, 2), 1 / (kappa * (1 - beta / beta.sum())).sum(), rtol=1e-12)


@pytest.mark.parametrize("tau", [2, 3, 4])
def test_whoever_is_ahead_one_uniform_client_keeps_a_linear_rate(tau):
    """From random y and for every set T of τ − 1: the mean over the uniform one is below the factor."""
    dual = Dual(uneven())
    a, beta = spectra(dual, "common")
    factor = factors.by_steps(a.min(), beta.max(), dual.m, tau)
    rng = np.random.default_rng(2)
    y = rng.standard_normal(dual.y.shape)
    y -= y.mean(axis=0)
    sets, runs = on_every_set(dual, tau)
    gaps = {some: dual.gap(after(run, y=y, w=0 * y).y) for some, run in zip(sets, runs, strict=True)}
    for ahead in combinations(range(dual.m), tau - 1):
        mean = np.mean([gap for some, gap in gaps.items() if set(ahead) < set(some)])
        assert mean <= factor * dual.gap(y) * (1 + 1e-9)


@pytest.mark.parametrize("solver", [None, 3])
@pytest.mark.parametrize("scaling", ["common", "own"])
def test_greedy_feddcd_is_a_plain_loop(scaling, solver):
    """Candidates solve (1), keep w_i and reply with √a_i‖w_i − x‖; those ahead and one other solve again; (2)."""
    dual = Dual(uneven(6, own=True))
    table = {"name": "newton"} if solver is None else {"name": "gd", "steps": solver}
    algorithm = build("feddcd", {"scaling": scaling, "solver": table})
    run = Run(algorithm, "quadratic", data=dual.data, seed=4, selection=Greedy(count=3, candidates=5))
    a, beta = spectra(dual, scaling)
    y, w = np.zeros((2, 6, 3))
    x = np.zeros(3)

    def solve(i):
        if solver is None:
            return np.linalg.solve(dual.Q[i], dual.b[i] + y[i])
        found = w[i]
        for _ in range(solver):
            found = found - (dual.Q[i] @ found - dual.b[i] - y[i]) / beta.max()
        return found

    for round in range(1, 9):
        pool = np.sort(stream(4, "selection", round, 0).choice(6, 5, replace=False, shuffle=False))
        for i in pool:
            w[i] = solve(i)
        own = a if scaling == "own" else np.ones(6)
        score = [-np.sqrt(own[i]) * np.linalg.norm(w[i] - x) for i in pool]
        ahead = np.sort(pool[np.argsort(score, kind="stable")[:2]])
        place = stream(4, "selection", round, 0, UNIFORM).choice(4, 1, replace=False, shuffle=False)
        chosen = [*ahead.tolist(), *nth_other(ahead, place).tolist()]
        for i in chosen:
            w[i] = solve(i)
        x = sum(a[i] * w[i] for i in chosen) / sum(a[i] for i in chosen)
        for i in chosen:
            y[i] = y[i] - a[i] * (w[i] - x)
        run.rounds(1)
        assert set(run.fed.selected) == set(chosen)
        assert np.allclose(run.server.x, x, rtol=1e-12, atol=1e-13)
        assert np.allclose(run.states().y, y, rtol=1e-11, atol=1e-12)
