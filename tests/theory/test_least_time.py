"""The least time there is: against loops over j, at limits that are known, and for numbers that are none."""

import math

import numpy as np
import pytest

from mpifed.theory.least_time import LeastTimeInputs, heterogeneous_bound, homogeneous_bound, lower_bound


def looped(tau, L, delta, variance, eps):
    found = []
    tau = sorted(tau)
    for j in range(1, len(tau) + 1):
        mean = j / sum(1 / t for t in tau[:j])
        found.append(mean * (L * delta / eps + variance * L * delta / (j * eps**2)))
    return min(found)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_for_one_f_is_the_least_over_the_number_of_clients(seed):
    rng = np.random.default_rng(seed)
    tau = rng.lognormal(sigma=2, size=rng.integers(1, 40))
    L, delta, variance, eps = rng.lognormal(size=4)
    assert homogeneous_bound(tau, L, delta, variance, eps) == pytest.approx(looped(tau, L, delta, variance, eps))
    assert homogeneous_bound(tau, L, delta, 0, eps) == pytest.approx(tau.min() * L * delta / eps)
    assert homogeneous_bound(tau, L, delta, variance, eps) <= heterogeneous_bound(tau, L, delta, variance, eps) * (
        1 + 1e-12
    )


def test_the_bound_for_f_i_that_differ_waits_for_the_slowest():
    assert heterogeneous_bound([1, 2, 6], 2.0, 3.0, 0.0, 0.5) == 6 * 2 * 3 / 0.5
    assert heterogeneous_bound([1, 2, 6], 2.0, 3.0, 7.0, 0.5) == pytest.approx(6 * 12 + 3 * 7 * 6 / (3 * 0.25))
    equal = np.full(8, 2.0)
    assert heterogeneous_bound(equal, 1.0, 1.0, 4.0, 0.1) == pytest.approx(homogeneous_bound(equal, 1.0, 1.0, 4.0, 0.1))


def test_what_is_not_known_stays_so_and_what_cannot_be_is_refused():
    setting = LeastTimeInputs(np.ones(3), math.nan, 1.0, 0.0, True, {})
    assert math.isnan(lower_bound(setting, 0.1))
    for eps in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"^ε = \S+ is wrong: it must be above 0$"):
            homogeneous_bound([1.0], 1.0, 1.0, 0.0, eps)
    with pytest.raises(ValueError, match=r"^Δ = -1 is wrong: it must not be below 0$"):
        heterogeneous_bound([1.0], 1.0, -1.0, 0.0, 1.0)
