"""The ε of rounds with Gaussian noise: beside closed forms, where there are any, and what it must never do."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from mpifed.core.errors import UserError
from mpifed.features.privacy.accounting import (
    GaussianRounds,
    epsilon_of_rdp,
    solve_noise_multiplier,
    split_multiplier,
)

pytest.importorskip("dp_accounting")
DELTA = 1e-5


def gaussian_epsilon(deviation: float, delta: float) -> float:
    """Return the ε of one Gaussian mechanism, from δ(ε) of Balle and Wang (2018), Theorem 8."""

    def excess(epsilon: float) -> float:
        near, far = 1 / (2 * deviation) - epsilon * deviation, -1 / (2 * deviation) - epsilon * deviation
        return float(norm.cdf(near) - math.exp(epsilon) * norm.cdf(far) - delta)

    return float(brentq(excess, 0.0, 100.0, xtol=1e-12))


@pytest.mark.parametrize(("multiplier", "rounds"), [(2.0, 1), (8.0, 10), (60.0, 400)])
def test_rounds_without_sampling_are_one_gaussian_mechanism_of_sensitivity_2c(multiplier, rounds):
    found = GaussianRounds(multiplier).epsilon(rounds, DELTA)
    assert found == pytest.approx(gaussian_epsilon(multiplier / 2 / math.sqrt(rounds), DELTA), rel=1e-9)
    assert GaussianRounds(multiplier / 2, 1.0).epsilon(rounds, DELTA) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(("multiplier", "q"), [(0.7, 0.01), (1.0, 0.1), (2.0, 0.5)])
def test_one_sampled_round_has_its_closed_form(multiplier, q):
    # removing a client: δ(ε) = q δ_Gauss(ε'), with exp(ε') = 1 + (exp(ε) − 1)/q
    exact = math.log1p(q * math.expm1(gaussian_epsilon(multiplier, DELTA / q)))
    found = GaussianRounds(multiplier, q).epsilon(1, DELTA)
    assert exact <= found * (1 + 1e-9)
    assert found == pytest.approx(exact, rel=2e-4)


def test_renyi_accounting_of_gaussian_noise_is_the_best_order_of_a_line():
    orders = 1 + np.arange(1, 200) / 10
    curve = 30 * orders / (2 * 4.0**2)
    # Canonne, Kamath, Steinke (2020), Proposition 12
    best = (curve + np.log1p(-1 / orders) - np.log(DELTA * orders) / (orders - 1)).min()
    assert epsilon_of_rdp(orders, curve, DELTA) == pytest.approx(best, rel=1e-12)
    assert GaussianRounds(4.0, 1.0).epsilon(30, DELTA, "rdp") == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("q", [None, 1.0, 0.02])
def test_epsilon_rises_with_rounds_and_falls_with_noise_and_delta(q):
    rounds = [GaussianRounds(3.0, q).epsilon(t, DELTA) for t in (0, 1, 2, 3, 10, 100, 101)]
    noise = [GaussianRounds(z, q).epsilon(20, DELTA) for z in (0.0, 1.0, 1.1, 3.0, 9.0)]
    deltas = [GaussianRounds(3.0, q).epsilon(20, delta) for delta in (1e-9, 1e-7, 1e-5, 1e-3)]
    assert rounds[0] == 0
    assert noise[0] == math.inf
    assert all(np.diff(rounds) > 0)
    assert all(np.diff(noise[1:]) < 0)
    assert all(np.diff(deltas) < 0)


@pytest.mark.parametrize(("multiplier", "q", "rounds"), [(1.0, 0.01, 500), (2.0, 0.2, 40), (5.0, None, 90)])
def test_loss_distributions_find_less_than_renyi_divergences(multiplier, q, rounds):
    accountant = GaussianRounds(multiplier, q)
    assert 0.5 < accountant.epsilon(rounds, DELTA) / accountant.epsilon(rounds, DELTA, "rdp") < 1


def test_sampling_amplifies_and_names_its_neighbours():
    assert GaussianRounds(1.0, 0.01).epsilon(100, DELTA) < GaussianRounds(1.0, 1.0).epsilon(100, DELTA) / 20
    assert GaussianRounds(1.0, 0.01).relation == "add or remove"
    assert GaussianRounds(1.0).relation == "replace"
    # a client that is replaced moves a sum twice as far as one that is added
    assert GaussianRounds(1.0).epsilon(9, DELTA) == GaussianRounds(0.5, 1.0).epsilon(9, DELTA)
    assert GaussianRounds(1.0, 0.0).epsilon(100, DELTA) == 0


def test_the_bound_of_a_running_count_is_never_below_and_is_exact_up_to_32_rounds():
    accountant = GaussianRounds(1.0, 0.01)
    for rounds in (1, 17, 32):
        assert accountant.epsilon_bound(rounds, DELTA) == accountant.epsilon(rounds, DELTA)
    for rounds in (33, 1001, 5000):
        exact, bound = accountant.epsilon(rounds, DELTA), accountant.epsilon_bound(rounds, DELTA)
        assert exact * (1 - 1e-4) <= bound <= 1.064 * exact
        assert accountant.epsilon_bound(rounds, DELTA, "rdp") == accountant.epsilon(rounds, DELTA, "rdp")
    assert GaussianRounds(9.0).epsilon_bound(1001, DELTA) == GaussianRounds(9.0).epsilon(1001, DELTA)


def test_a_running_count_computes_one_distribution_for_many_rounds():
    accountant = GaussianRounds(4.0, 0.1)
    assert len({accountant.epsilon_bound(rounds, DELTA) for rounds in range(4097, 8193)}) == 16


@pytest.mark.parametrize(("epsilon", "q", "rounds"), [(1.0, 0.05, 10), (1.0, None, 10), (200.0, 1.0, 3)])
def test_the_noise_of_an_epsilon_costs_no_more_and_hardly_less(epsilon, q, rounds):
    found = solve_noise_multiplier(partial(GaussianRounds, probability=q), epsilon, DELTA, rounds)
    assert 0.999 * epsilon < GaussianRounds(found, q).epsilon(rounds, DELTA) <= epsilon
    assert GaussianRounds(found * 0.999, q).epsilon(rounds, DELTA) > epsilon


class Counted(GaussianRounds):
    """Rounds whose ε are counted."""

    asked = 0

    def epsilon(self, *words):
        Counted.asked += 1
        return super().epsilon(*words)


@pytest.mark.parametrize(
    ("epsilon", "q", "rounds"), [(1.0, 0.05, 10), (4.0, 0.2, 50), (2.0, 0.1, 1000), (8.0, 0.01, 1000), (1.0, None, 90)]
)
def test_the_noise_of_an_epsilon_is_found_by_few_of_them(epsilon, q, rounds):
    Counted.asked = 0
    solve_noise_multiplier(partial(Counted, probability=q), epsilon, DELTA, rounds)
    assert Counted.asked <= 6


def test_an_epsilon_that_no_noise_reaches_is_refused():
    with pytest.raises(UserError, match=r"^privacy\.epsilon = 1e-09 is wrong: .* take a larger epsilon or fewer"):
        solve_noise_multiplier(GaussianRounds, 1e-9, 1e-10, 100)


@pytest.mark.parametrize(("multiplier", "count_noise"), [(1.0, 0.6), (1.0, 1e9), (0.3, 5.0)])
def test_changes_and_the_count_cost_together_what_was_asked_for(multiplier, count_noise):
    found = split_multiplier(multiplier, count_noise)
    # both mechanisms in one round: squares of sensitivity over deviation add up
    assert found**-2 + (0.5 / count_noise) ** 2 == pytest.approx(multiplier**-2, rel=1e-12)
    assert split_multiplier(0.0, count_noise) == 0


def test_a_count_that_costs_more_than_all_is_refused():
    with pytest.raises(UserError, match=r"^privacy\.count_noise = 0\.5 is wrong .* more than half of that, 0\.5"):
        split_multiplier(1.0, 0.5)
