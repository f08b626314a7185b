"""Proximal operators against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.algorithms.parts.prox import elastic_net_mean, soft

reals = st.floats(-100, 100)


@given(v=reals, lam=st.floats(0, 50), other=reals)
def test_the_soft_threshold_is_the_proximal_operator_of_the_absolute_value(v, lam, other):
    def objective(u):
        return lam * abs(u) + (u - v) ** 2 / 2

    u = float(soft(np.array([v]), lam)[0])
    assert objective(u) <= objective(other) + 1e-9
    assert u == np.sign(v) * max(abs(v) - lam, 0)


def net(x, Z, lam, eta):
    """Σ_i λ|x − z_i| + (η/2)(x − z_i)² for each column of Z (m, n) and each x (k, n): (k, n)."""
    distance = np.abs(x[:, None] - Z)
    return (lam * distance + eta / 2 * distance**2).sum(axis=1)


def brute_force(Z, lam, eta):
    """The best of all z_i and of all mean + (λ/η)(2s − m)/m, s = 0 … m, for each column."""
    m = len(Z)
    inner = Z.mean(axis=0) + lam / eta * (2 * np.arange(m + 1)[:, None] - m) / m
    candidates = np.concatenate([Z, inner])
    values = net(candidates, Z, lam, eta)
    return np.take_along_axis(candidates, values.argmin(axis=0)[None], 0)[0], values.min(axis=0)


@pytest.mark.parametrize("ties", [False, True], ids=["all different", "with ties"])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 9])
def test_the_elastic_net_mean_is_the_minimiser(m, lam, ties):
    rng, n = np.random.default_rng([m, int(1000 * lam), ties]), 200  # 50 cases of 200 columns
    if ties:
        Z = rng.integers(-2, 3, (m, n)).astype(float)
    else:
        Z = rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 10.0], n)
    eta = rng.choice([0.3, 1.0, 2.0])
    x, (best, value) = elastic_net_mean(Z, lam, eta), brute_force(Z, lam, eta)
    assert x.shape == (n,)
    assert (net(x[None], Z, lam, eta)[0] <= value * (1 + 1e-12) + 1e-12).all()
    assert np.allclose(x, best, rtol=1e-9, atol=1e-9 + 1e-12 * lam)
    around = x + np.linspace(-1, 1, 41)[:, None] ** 3
    assert (net(around, Z, lam, eta) >= net(x[None], Z, lam, eta) * (1 - 1e-12) - 1e-12).all()


@given(
    z=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 1e6]), min_size=1, max_size=12),
    ratio=st.sampled_from([0.25, 0.5, 1, 2.0]),
)
def test_the_elastic_net_mean_of_few_values_is_the_median_of_the_errata(z, ratio):
    """The median of {w_i} ∪ {mean + (λ/η)(2s − m)/m : s = 0 … m}."""
    Z, m = np.array(z)[:, None], len(z)
    candidates = [*z, *(np.mean(z) + ratio * (2 * s - m) / m for s in range(m + 1))]
    assert np.isclose(elastic_net_mean(Z, ratio * 0.1, 0.1)[0], np.median(candidates), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("wide", [1, 7])
def test_the_elastic_net_mean_has_its_limits(wide):
    Z = np.random.default_rng(0).standard_normal((9, wide))
    assert np.allclose(elastic_net_mean(Z, 1e-12, 1.0), Z.mean(axis=0))
    assert np.allclose(elastic_net_mean(Z, 1e6, 1.0), np.median(Z, axis=0))  # λ large: the median
    assert np.allclose(elastic_net_mean(Z + 5, 0.3, 1.0), elastic_net_mean(Z, 0.3, 1.0) + 5)
    assert np.allclose(elastic_net_mean(-Z, 0.3, 1.0), -elastic_net_mean(Z, 0.3, 1.0))
    assert np.array_equal(elastic_net_mean(Z[::-1], 0.3, 1.0), elastic_net_mean(Z, 0.3, 1.0))
    assert np.allclose(elastic_net_mean(np.full((5, wide), 3.25), 0.3, 1.0), 3.25)
