"""Proximal operators and elastic nets over neighbourhoods: the minimisers, by trying."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.algorithms.parts.elastic_nets import build_elastic_nets, elastic_net_mean
from mpifed.core.arrays import soft
from mpifed.federation.peers.neighbourhood import Neighbours

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


def median(Z, lam, eta):
    """That of all z_i and of all mean + (λ/η)(2s − m)/m, s = 0 … m, for each column: the minimiser, by the errata."""
    m = len(Z)
    return np.median([*Z, *(Z.mean(axis=0) + lam / eta * (2 * s - m) / m for s in range(m + 1))], axis=0)


@pytest.mark.parametrize("ties", [False, True], ids=["all different", "with ties"])
@pytest.mark.parametrize("lam", [1e-12, 1e-3, 0.1, 1.0, 5.0, 1e3, 1e6])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 9])
def test_the_elastic_net_mean_is_the_minimiser(m, lam, ties):
    rng, n = np.random.default_rng([m, int(1000 * lam), ties]), 200  # 70 cases of 200 columns
    if ties:
        Z = rng.integers(-2, 3, (m, n)).astype(float)
    else:
        Z = rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 10.0, 1e3], n)
    eta = rng.choice([0.3, 1.0, 2.0])
    x = elastic_net_mean(Z, lam, eta)
    assert x.shape == (n,)
    assert np.allclose(x, median(Z, lam, eta), rtol=1e-9, atol=1e-9 + 1e-12 * lam)
    assert np.array_equal(elastic_net_mean(Z[::-1], lam, eta), x)
    around = x + np.linspace(-1, 1, 41)[:, None] ** 3
    assert (net(around, Z, lam, eta) >= net(x[None], Z, lam, eta) * (1 - 1e-12) - 1e-12).all()


LAM, ETA = 0.3, 0.7
COUNTS = np.array([0, 2, 3, 2, 5, 1, 3])


@pytest.fixture
def made():
    """Points on a grid, so that some are equal; a node without neighbours among them."""
    rng = np.random.default_rng(1)
    first = np.concatenate([[0], COUNTS.cumsum()])
    rows, own = (rng.integers(-6, 7, (k, 5)) / 2 for k in (first[-1], len(COUNTS)))
    near = Neighbours(rows, first, 0.2 * rng.random(first[-1]))
    return near, own, rng.uniform(0.1, 2, (len(COUNTS), 1)), rng.standard_normal(own.shape)


@pytest.mark.parametrize("pulled", [False, True])
def test_moving_either_way_from_the_minimiser_raises_the_net(made, pulled):
    near, own, mu, V = made
    found = build_elastic_nets(near, own).minimise(LAM, ETA, *((mu, V) if pulled else ()))
    for i, w in enumerate(found):
        inside = slice(near.first[i], near.first[i + 1])
        points = np.vstack([own[i], near.rows[inside]])
        a = np.append(1 - near.weights[inside].sum(), near.weights[inside])[:, None]

        def net(u, a=a, points=points, i=i):
            pull = mu[i] / 2 * (u - V[i]) ** 2 if pulled else 0
            return np.sum(a * (LAM * np.abs(u - points) + ETA / 2 * (u - points) ** 2), axis=0) + pull

        for step in (1e-4, -1e-4, 0.5, -0.5):
            assert (net(w + step) > net(w)).all()


def test_with_equal_weights_it_is_the_elastic_net_mean():
    Z = np.random.default_rng(2).standard_normal((6, 4))
    others = np.vstack([np.delete(Z, i, axis=0) for i in range(6)])
    nets = build_elastic_nets(Neighbours(others, 5 * np.arange(7), np.full(30, 1 / 6)), Z)
    assert np.allclose(nets.minimise(LAM, ETA), elastic_net_mean(Z, LAM, ETA), rtol=1e-14)
    assert np.allclose(nets.mean(), Z.mean(axis=0))
