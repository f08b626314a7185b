"""FedDCD: what its paper proves, on functions whose dual is known."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from mpifed.core.streams import stream
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import Run, build, quadratics
from tests.helpers.dual_methods import Dual, Fixed, duals, every_dual, put, sharp, trajectory


@pytest.mark.parametrize(
    ("c", "alpha", "eta", "tau"),
    [
        (2.0, 2.0, 1.0, 4),
        pytest.param(2.0, 2.0, 0.4, 4, marks=pytest.mark.slow),
        pytest.param(2.0, 0.5, 1.0, 4, marks=pytest.mark.slow),
        (0.5, 0.2, 0.7, 2),
        pytest.param(3.0, 3.0, 1.0, 10, marks=pytest.mark.slow),
        pytest.param(1.0, 1.0, 1.8, 3, marks=pytest.mark.slow),
    ],
)
def test_the_expected_gap_ratio_is_exactly_the_formula_of_the_errata(c, alpha, eta, tau):
    """1 − (τ−1)/(N−1)·(2κ' − κ'²), κ' = ηα/c: the mean over 2,000 draws, within 1 %."""
    m, (problem, data) = 10, sharp(c, alpha)
    dual, k = Dual(data), eta * alpha / c
    run = Run(build("feddcd", {"eta": eta}), problem, data=data, selection=Uniform(count=tau))
    start, ratios = np.zeros((m, data.n)), []
    for _ in range(2000 if tau < m else 1):
        put(run, y=start, w=start)
        run.rounds(1)
        ratios.append(dual.gap(run.states().y) / dual.gap(start))
    assert np.isclose(np.mean(ratios), 1 - (tau - 1) / (m - 1) * (2 * k - k * k), rtol=0.01, atol=1e-12)


def test_and_over_all_sets_of_clients_it_is_exact_to_rounding():
    problem, data = sharp(2.0, 1.2, m=6, n=3)
    dual, y = Dual(data), np.random.default_rng(1).standard_normal((6, 3))
    y -= y.mean(axis=0)
    after = []
    for chosen in combinations(range(6), 3):
        run = Run(build("feddcd", {"eta": 0.8}), problem, data=data, selection=Fixed(first=chosen))
        put(run, y=y)
        run.rounds(1)
        after.append(dual.gap(run.states().y))
    k = 0.8 * 1.2 / 2.0
    assert np.isclose(np.mean(after) / dual.gap(y), 1 - 2 / 5 * (2 * k - k * k), rtol=1e-12)


@every_dual
@pytest.mark.parametrize("tau", [2, 3, 5])
def test_theorem_4_1_the_expected_dual_gap_falls_by_its_factor(place, tau):
    """(3) in every single step: E G(y⁺) − G* <= (1 − (τ−1)/(N−1)·α/β)(G(y) − G*)."""
    dual = duals()[place]
    rate = 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta
    sets = list(combinations(range(dual.m), tau))
    runs = [Run(build("feddcd"), "quadratic", data=dual.data, selection=Fixed(first=chosen)) for chosen in sets]
    for state in trajectory("feddcd", dual.data, 20):
        after = []
        for run in runs:
            put(run, y=state.y, w=state.w)
            run.rounds(1)
            after.append(dual.gap(run.states().y))
        assert np.mean(after) <= rate * dual.gap(state.y) * (1 + 1e-9) + 1e-14


@every_dual
def test_theorem_4_1_the_local_models_near_the_minimiser(place):
    """(4), the mean over all i and 60 runs: E‖w_i − w*‖² <= rate^T ‖y*‖²/(Nα²), and its source (38) in every run."""
    dual, tau, rounds, runs = duals()[place], 3, 8, 60
    rate = 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta
    distance = np.zeros((runs, rounds + 1))
    for seed in range(runs):
        run = Run(build("feddcd"), "quadratic", data=dual.data, selection=Uniform(count=tau), seed=seed)
        for k in range(rounds + 1):
            y = run.states().y
            W = np.matvec(dual.inverse, y + dual.b)  # all of them, also of those who do not train
            distance[seed, k] = np.mean(np.sum((W - dual.w) ** 2, axis=1))
            assert distance[seed, k] <= 2 / (dual.m * dual.alpha) * dual.gap(y) * (1 + 1e-9) + 1e-12
            run.rounds(1)
    bound = rate ** np.arange(rounds + 1) * np.sum(dual.y**2) / (dual.m * dual.alpha**2)
    error = distance.std(axis=0) / math.sqrt(runs)
    assert (distance.mean(axis=0) <= bound + 5 * error + 1e-12).all()


@every_dual
def test_theorem_5_2_inexact_gradients_still_contract(place):
    """(8) with δ = (1 − κ)/4, η = ¼: the mean over 40 runs, never above the bound beyond sampling error."""
    dual, tau, rounds, runs = duals()[place], 3, 15, 40
    kappa = (tau - 1) * dual.alpha / (32 * (dual.m - 1) * dual.beta)
    algorithm = build("feddcd", {"eta": 0.25, "solver": {"name": "gd", "delta": "theorem"}})
    gaps = np.zeros((runs, rounds + 1))
    for seed in range(runs):
        run = Run(algorithm, "quadratic", data=dual.data, selection=Uniform(count=tau), seed=seed)
        for k in range(rounds + 1):
            gaps[seed, k] = dual.gap(run.states().y)
            run.rounds(1)
    bound = (1 - kappa) ** np.arange(rounds + 1) * gaps[0, 0]
    assert (gaps.mean(axis=0) <= bound + 5 * gaps.std(axis=0) / math.sqrt(runs) + 1e-12).all()


def test_feddcd_is_its_box_client_by_client():
    """(1), (2) with Λ = I/α and Algorithm 1; the model is the mean of the round's w_i."""
    eta, dual = 0.7, duals()[1]
    run = Run(build("feddcd", {"eta": eta}), "quadratic", data=dual.data, selection=Uniform(count=3))
    y, w = np.zeros_like(dual.b), np.zeros_like(dual.b)
    for _ in range(6):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        w[chosen] = np.linalg.solve(dual.Q[chosen], (dual.b + y)[chosen][..., None])[..., 0]
        mean = w[chosen].mean(axis=0)
        y[chosen] -= eta * dual.alpha * (w[chosen] - mean)
        assert np.allclose(model, mean, rtol=1e-9, atol=1e-10)
        assert np.allclose(run.states().y, y, rtol=1e-9, atol=1e-10)
        assert np.allclose(run.states().w, w, rtol=1e-9, atol=1e-10)


def test_feddcd_takes_alpha_and_beta_from_all_clients():
    data = quadratics(np.array([np.diag([2.0, 5.0]), np.diag([0.5, 3.0]), np.diag([1.0, 9.0])]), np.ones((3, 2)))
    server = Run(build("feddcd"), "quadratic", data=data).server
    assert np.allclose([server.alpha, server.beta], [0.5, 9.0])


def test_draws_do_not_depend_on_the_algorithm():
    """The first draw of AccFedDCD is that of FedDCD."""
    selector = Uniform(count=3).selector(4, 9, 5)
    assert np.array_equal(
        selector.select(2, 0), np.sort(stream(4, "selection", 2, 0).choice(9, 3, replace=False, shuffle=False))
    )


AWAY = {"speed": {"name": "lognormal", "median": 100, "sigma": 1.5}, "passes": 5, "latency": 0.01, "jitter": 0.4}


def asynchronous(dual, arrivals, problem="quadratic", **table):
    table = {"arrivals": arrivals, **table}
    return Run(build("feddcd"), problem, data=dual.data, system=AWAY, asynchronous=table)


@every_dual
@pytest.mark.parametrize("table", [{}, {"staleness": 3}], ids=["no bound", "bound"])
def test_asynchronously_the_dual_objective_falls_in_every_round_and_the_sum_of_the_duals_stays_0(place, table):
    """w_i depends on y_i alone, which moves only when i arrives: nothing is stale, however late it comes."""
    dual = duals()[place]
    run = asynchronous(dual, 2, **table)
    gaps, oldest = [dual.gap(run.states().y)], 0
    for _ in range(80):
        run.rounds(1)
        y = run.states().y
        gaps.append(dual.gap(y))
        oldest = max(oldest, int(run.fed.staleness.max()))
        assert abs(y.sum(axis=0)).max() <= 1e-12 * (1 + abs(y).max())
    assert (np.diff(gaps) <= 1e-12 * gaps[0]).all()
    assert gaps[-1] < 0.9 * gaps[0]
    assert oldest >= 3


@every_dual
def test_asynchronously_it_is_exact_coordinate_descent_on_those_that_arrive(place):
    """The synchronous method with the arrivals for its selections makes the same models and duals, to rounding."""
    dual, rounds = duals()[place], 25
    run, came, models = asynchronous(dual, 3), [], []
    for _ in range(rounds):
        models.append(run.rounds(1)[0])
        came.append(tuple(run.fed.selected.tolist()))
    assert len(set(map(len, came))) == 1
    plain = Run(build("feddcd"), "quadratic", data=dual.data, selection=Fixed(first=came[0]))
    for chosen, model in zip(came, models, strict=True):
        plain.fed.participation.selector = Fixed(first=chosen).selector(0, dual.m, rounds)
        np.testing.assert_allclose(plain.rounds(1)[0], model, rtol=0, atol=1e-12 * (1 + abs(model).max()))
    np.testing.assert_allclose(plain.states().y, run.states().y, rtol=0, atol=1e-11 * (1 + abs(dual.y).max()))


def test_asynchronously_it_ends_at_the_minimiser_of_f():
    """Whichever clients come often: the arrivals decide how fast, and not where to."""
    problem, data = sharp(2.0, 1.5, m=6, n=3)
    dual = Dual(data)
    run = asynchronous(dual, 2, problem, staleness=6)
    models = run.rounds(150)
    assert np.linalg.norm(models[-1] - dual.w) <= 1e-6 * np.linalg.norm(dual.w)
    counts = run.fed.times_selected
    assert counts.max() > 2 * counts.min()
