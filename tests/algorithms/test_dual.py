"""Dual methods: sums that stay 0, steps, tolerances, laws of selection, and what they refuse."""

from itertools import combinations

import numpy as np
import pytest

import mpifed
from benchmarks.beyond import measures
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.features.selection_laws.feature import Greedy
from mpifed.federation.participation.selection import UniformSelection, find_untaken
from mpifed.federation.server import UNIFORM_PART
from mpifed.theory import feddcd as theory
from tests.helpers.algorithm_runs import Run, build, quadratics
from tests.helpers.dual_methods import Dual, after, begun, on_every_set

both = pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
GD = {"name": "gd"}


@pytest.mark.parametrize("options", [{}, {"eta": 0.3}, {"solver": GD | {"steps": 3}}, {"solver": GD | {"delta": 0.3}}])
@both
def test_dual_variables_add_up_to_zero(name, options):
    run = Run(build(name, options), "quadratic")
    for _ in range(15):
        run.rounds(1)
        state = run.states()
        for field in [state.y] if name == "feddcd" else [state.y, state.z, state.v]:
            assert np.abs(field.sum(axis=0)).max() <= 1e-12 * max(np.abs(field).max(), 1)


@both
@pytest.mark.parametrize("options", [{"lam": 0.1}, {"bias": False}, {"mu": 0.0}], ids=str)
def test_what_is_not_strongly_convex_is_refused_by_one_sentence(name, options):
    problem = "logistic" if "mu" in options else "softmax"
    data = {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9}
    with pytest.raises(UserError) as told:
        mpifed.run(data=data, problem={"name": problem, **options}, algorithm=name, rounds=2)
    sentence = str(told.value)
    assert sentence.startswith(f"{name} cannot run on {problem} as it stands: it needs strongly convex f_i")
    assert "\n" not in sentence
    assert ". " not in sentence


def four():
    """Quadratics of very different convexity, and what is known of them."""
    Q = np.array([np.diag([0.2, 2.0]), np.diag([1.5, 3.0]), np.diag([4.0, 5.0]), np.diag([0.6, 9.0])])
    return Dual(quadratics(Q, np.random.default_rng(3).standard_normal((4, 2)))), np.array([0.2, 1.5, 4.0, 0.6])


def projected(w, own):
    """(2), proj_C^Λ(Λ⁻¹w) with Λ = diag(1/own), as the projection is written: (I − W⁻¹uuᵀ/(uᵀW⁻¹u))Λ⁻¹w."""
    n = w.shape[1]
    inverse = np.kron(np.diag(own), np.eye(n))  # Λ⁻¹
    u = np.tile(np.eye(n), (len(w), 1))
    flat = inverse @ w.ravel()
    return (flat - inverse @ u @ np.linalg.solve(u.T @ inverse @ u, u.T @ flat)).reshape(w.shape)


@pytest.mark.parametrize("scaling", ["common", "own"])
def test_a_step_is_the_projection_of_the_paper(scaling):
    """(2) with Λ = I/α and with Λ = diag(1/α_i); the model is the mean that the projection subtracts."""
    dual, own = four()
    own = own if scaling == "own" else np.full(4, own.min())
    run, y = begun(dual, UniformSelection(count=3), scaling=scaling, eta=0.7), np.zeros_like(dual.b)
    for _ in range(5):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        w = np.matvec(dual.inverse, y + dual.b)[chosen]
        y[chosen] -= 0.7 * projected(w, own[chosen])
        assert np.allclose(run.states().y, y, rtol=1e-9, atol=1e-11)
        assert np.allclose(model, own[chosen] @ w / own[chosen].sum(), rtol=1e-9, atol=1e-11)


def test_with_own_constants_a_client_sends_one_number_more():
    run = begun(four()[0], UniformSelection(count=3), scaling="own")
    run.rounds(2)
    assert (run.fed.ledger.bytes_up, run.fed.ledger.bytes_down) == (2 * 3 * 3 * 8, 2 * 3 * 2 * 8)


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
    factor = measures.by_importance(a, beta, tau)
    uniform = theory.contraction_factor((tau - 1) / (dual.m - 1), a.min(), beta.max())
    assert 0 < 1 - uniform < 1 - factor < 1  # it promises more than (3)
    rng = np.random.default_rng(1)
    for _ in range(6):
        y = rng.standard_normal(dual.y.shape) * rng.uniform(0.1, 5, (dual.m, 1))
        y -= y.mean(axis=0)
        gaps = [dual.gap(after(run, y=y, w=0 * y).y) for run in runs]
        assert weight @ gaps / weight.sum() <= factor * dual.gap(y) * (1 + 1e-9)


@pytest.mark.parametrize("tau", [2, 3, 4])
def test_whoever_is_ahead_one_uniform_client_keeps_a_linear_rate(tau):
    """From random y and for every set T of τ − 1: the mean over the uniform one is below the factor."""
    dual = Dual(uneven())
    a, beta = spectra(dual, "common")
    factor = measures.by_steps(a.min(), beta.max(), dual.m, tau)
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
        place = stream(4, "selection", round, 0, UNIFORM_PART).choice(4, 1, replace=False, shuffle=False)
        chosen = [*ahead.tolist(), *find_untaken(ahead, place).tolist()]
        for i in chosen:
            w[i] = solve(i)
        x = sum(a[i] * w[i] for i in chosen) / sum(a[i] for i in chosen)
        for i in chosen:
            y[i] = y[i] - a[i] * (w[i] - x)
        run.rounds(1)
        assert set(run.fed.selected) == set(chosen)
        assert np.allclose(run.server.x, x, rtol=1e-12, atol=1e-13)
        assert np.allclose(run.states().y, y, rtol=1e-11, atol=1e-12)
