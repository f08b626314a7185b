"""FedDCD: what its paper proves, on functions whose dual is known, and what happens where clients arrive one by one."""

import math

import numpy as np
import pytest

from mpifed.federation.participation.selection import UniformSelection
from tests.helpers.algorithm_runs import Run, build
from tests.helpers.dual_methods import after, begun, duals, every_dual, on_every_set, sharp, trajectory


@pytest.mark.parametrize(("c", "alpha", "eta"), [(2.0, 1.2, 0.8), (0.5, 0.2, 0.7), (1.0, 1.0, 1.8)])
def test_on_functions_of_one_curvature_the_mean_gap_over_all_sets_falls_by_its_factor_to_rounding(c, alpha, eta):
    dual, problem = sharp(c, alpha, m=6, n=3)
    y = np.random.default_rng(1).standard_normal((6, 3))
    y -= y.mean(axis=0)
    _, runs = on_every_set(dual, 3, problem=problem, eta=eta)
    k = eta * alpha / c
    ratio = np.mean([dual.gap(after(run, y=y).y) for run in runs]) / dual.gap(y)
    assert np.isclose(ratio, 1 - 2 / 5 * (2 * k - k * k), rtol=1e-12)


def factor(dual, tau):
    """1 − (τ−1)/(N−1)·α/β of Theorem 4.1."""
    return 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta


@every_dual
@pytest.mark.parametrize("tau", [2, 3, 5])
def test_theorem_4_1_the_expected_dual_gap_falls_by_its_factor(place, tau):
    """(3) in every single step: E G(y⁺) − G* <= (1 − (τ−1)/(N−1)·α/β)(G(y) − G*)."""
    dual = duals()[place]
    _, runs = on_every_set(dual, tau)
    for state in trajectory("feddcd", dual):
        gaps = [dual.gap(after(run, y=state.y, w=state.w).y) for run in runs]
        assert np.mean(gaps) <= factor(dual, tau) * dual.gap(state.y) * (1 + 1e-9) + 1e-14


@every_dual
def test_theorem_4_1_the_local_models_and_the_random_one_near_the_minimiser(place):
    """(4), the mean over 60 runs of all w_i, and of the random one, which is the model after round T + 1.

    E‖w_i − w*‖² <= rate^T ‖y*‖²/(Nα²), and its source (38) in every run.
    """
    dual = duals()[place]
    algorithm = build("feddcd", {"model": "random"})
    every, random = np.zeros((2, 60, 8))
    for seed in range(60):
        run = Run(algorithm, "quadratic", data=dual.data, selection=UniformSelection(count=3), seed=seed)
        for k in range(8):
            y = run.states().y
            W = np.matvec(dual.inverse, y + dual.b)  # all of them, also of those who do not train
            every[seed, k] = np.mean(np.sum((W - dual.w) ** 2, axis=1))
            assert every[seed, k] <= 2 / (dual.m * dual.alpha) * dual.gap(y) * (1 + 1e-9) + 1e-12
            random[seed, k] = np.sum((run.rounds(1)[-1] - dual.w) ** 2)
    bound = factor(dual, 3) ** np.arange(8) * np.sum(dual.y**2) / (dual.m * dual.alpha**2)
    for distance in (every, random):
        error = distance.std(axis=0) / math.sqrt(60)
        assert (distance.mean(axis=0) <= bound + 5 * error + 1e-12).all()


@every_dual
def test_theorem_5_2_inexact_gradients_still_contract(place):
    """(8) and (9), of duals and of the random model, with δ = (1 − κ)/4, η = ¼: the mean over 40 runs, never above the
    bound beyond sampling error."""
    dual = duals()[place]
    kappa = 2 * dual.alpha / (32 * (dual.m - 1) * dual.beta)
    algorithm = build("feddcd", {"eta": 0.25, "model": "random", "solver": {"name": "gd", "delta": "theorem"}})
    gaps, distances = np.zeros((2, 40, 16))
    for seed in range(40):
        run = Run(algorithm, "quadratic", data=dual.data, selection=UniformSelection(count=3), seed=seed)
        for k in range(16):
            gaps[seed, k] = dual.gap(run.states().y)
            distances[seed, k] = np.sum((run.rounds(1)[-1] - dual.w) ** 2)
    near = 20 / (3 * dual.m * dual.alpha**2) * np.sum(dual.y**2)
    for found, first in ((gaps, gaps[0, 0]), (distances, near)):
        bound = (1 - kappa) ** np.arange(16) * first
        assert (found.mean(axis=0) <= bound + 5 * found.std(axis=0) / math.sqrt(40) + 1e-12).all()


@pytest.mark.parametrize("name", ["feddcd", pytest.param("accfeddcd", marks=pytest.mark.slow)])
def test_the_random_model_is_that_of_a_selected_client(name):
    """Of any of them, equally often; duals and traffic are those of the mean."""
    dual = duals()[1]
    run, mean = (begun(dual, UniformSelection(count=3), name, model=model) for model in ("random", "mean"))
    places = []
    for _ in range(150):
        x = run.rounds(1)[-1]
        mean.rounds(1)
        found = np.flatnonzero((run.states().w == x).all(axis=1))
        assert len(found) == 1
        places.append(run.fed.selected.tolist().index(found[0]))
        assert np.array_equal(run.states().y, mean.states().y)
    assert vars(run.fed.ledger) == vars(mean.fed.ledger)
    assert np.abs(np.bincount(places, minlength=3) - 50).max() < 5 * np.sqrt(150 * 2 / 9)


def asynchronous(dual, arrivals, problem="quadratic", **table):
    speed = {"name": "lognormal", "median": 100, "sigma": 1.5}
    system = {"speed": speed, "passes": 5, "latency": 0.01, "jitter": 0.4}
    return Run(build("feddcd"), problem, data=dual.data, system=system, asynchronous={"arrivals": arrivals, **table})


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


def test_asynchronously_it_ends_at_the_minimiser_of_f():
    """Whichever clients come often: the arrivals decide how fast, and not where to."""
    dual, problem = sharp(2.0, 1.5, m=6, n=3)
    run = asynchronous(dual, 2, problem, staleness=6)
    models = run.rounds(150)
    assert np.linalg.norm(models[-1] - dual.w) <= 1e-6 * np.linalg.norm(dual.w)
    assert run.fed.times_selected.max() > 2 * run.fed.times_selected.min()
