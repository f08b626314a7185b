"""L-BFGS at the server: it ends where scipy's does, f never rises, and a round is one trial point."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mpifed

SIZES = (40, 25, 60, 31, 44)
D, N = sum(SIZES), 8
RNG = np.random.default_rng(5)
A = RNG.standard_normal((D, N)) * np.logspace(-1, 1, N)  # condition 1e4
B = (RNG.random(D) < 1 / (1 + np.exp(-A @ np.linspace(-1, 1, N)))).astype(float)
NETWORK = {"data": {"name": "synthetic", "clients": 6, "features": 5, "classes": 3, "least": 24, "most": 24, "test": 0}}


def network():
    from torch import nn

    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()


def run(rounds=200, weights="clients", **more):
    table = {"rounds": rounds, "stop": {"gradient": 1e-20}, "objective": {"weights": weights}, "algorithm": "lbfgs"}
    return mpifed.run(table | more, progress=None)


@pytest.mark.parametrize("weights", ["clients", "samples", (3.0, 1.0, 1.0, 7.0, 2.0)])
def test_it_ends_at_the_f_of_scipy(weights):
    given = {"clients": np.ones(len(SIZES)), "samples": np.array(SIZES)}
    p = given[weights] if isinstance(weights, str) else np.array(weights)
    w = np.repeat(p / p.sum() / SIZES, SIZES)  # of each sample in f

    def f(x):
        z = A @ x
        value = w @ (np.logaddexp(0, z) - B * z) + 0.005 * x @ x
        return value, A.T @ (w * (1 / (1 + np.exp(-z)) - B)) + 0.01 * x

    problem = {"name": "logistic", "mu": 0.01, "regulariser": "whole"}
    found = run(weights=weights, problem=problem, data=mpifed.arrays(A, B, SIZES))
    best = minimize(f, np.zeros(N), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-12})
    assert found.rounds["objective"][-1] == pytest.approx(best.fun, rel=1e-12)
    np.testing.assert_allclose(found.x, best.x, rtol=1e-5, atol=1e-6)


TORCH = {"name": "torch", "module": f"{__file__}:network"}


@pytest.mark.parametrize(
    "problem",
    [{"name": "mlp", "hidden": [6], "lam": 0.01}, pytest.param(TORCH, marks=[pytest.mark.torch, pytest.mark.slow])],
)
def test_on_networks_f_never_rises_and_the_gradient_vanishes(problem):
    row = run(60, problem=problem, **NETWORK).rounds
    assert (np.diff(row["objective"]) <= 1e-15).all()
    assert row["grad_norm_sq"][-1] < 1e-3 * row["grad_norm_sq"][0]


def test_a_round_is_one_exchange_whether_the_trial_point_is_accepted_or_not():
    found = run(30, problem={"name": "logistic", "mu": 0.01}, data=mpifed.arrays(A, B, SIZES)).rounds
    rejected = found["server_step"] == 0
    assert 0 < rejected[1:].sum() < 30
    assert (np.diff(found["exchanges"]) == 1).all()
    assert (np.diff(found["bytes_up"]) == len(SIZES) * 8 * (N + 1)).all()


EIGHT = {"name": "uniform", "b": 8}


def test_eight_bits_both_ways_take_about_as_many_rounds_and_a_quarter_of_the_bits():
    more = {"problem": {"name": "logistic", "mu": 0.01}, "data": mpifed.arrays(A, B, SIZES)}
    whole, short = run(60, **more).rounds, run(60, compress={"up": EIGHT, "down": EIGHT}, **more).rounds
    goal = whole["objective"][-1] + 1e-8
    first, second = (int(np.argmax(row["objective"] <= goal)) for row in (whole, short))
    assert 0 < second <= 1.5 * first
    for way, numbers in (("bits_up", N + 1), ("bits_down", N)):
        assert whole[way][1] / 2 == len(SIZES) * numbers * 64  # a round and the exchange before it cost the same
        assert short[way][1] / 2 == short[way][0] == len(SIZES) * (64 * (numbers - N + 1) + 8 * N)


def test_on_remembered_gradients_it_ends_at_the_minimiser_with_absent_clients_where_gradient_descent_is_far_off():
    more = {"problem": {"name": "logistic", "mu": 0.01}, "data": mpifed.arrays(A, B, SIZES)}
    best = run(**more).rounds["objective"][-1]
    table = more | {"rounds": 250, "selection": {"name": "uniform", "count": 3}, "system": {"dropout": 0.3}}
    gaps = {
        name: mpifed.run(table | {"algorithm": name}, progress=None).rounds["objective"][-1] - best
        for name in ("aggregated-lbfgs", "gd")
    }
    assert abs(gaps["aggregated-lbfgs"]) < 1e-9 < 1e-3 < gaps["gd"]
