"""Elastic nets over neighbourhoods: the minimisers, by trying."""

import numpy as np
import pytest

from mpifed.algorithms.parts.elastic_nets import elastic_nets
from mpifed.algorithms.parts.prox import elastic_net_mean
from mpifed.federation.peers.neighbourhood import Near

LAM, ETA = 0.3, 0.7
COUNTS = np.array([0, 2, 3, 2, 5, 1, 3])


@pytest.fixture
def made():
    """Points on a grid, so that some are equal; a node without neighbours among them."""
    rng = np.random.default_rng(1)
    first = np.concatenate([[0], COUNTS.cumsum()])
    rows, own = (rng.integers(-6, 7, (k, 5)) / 2 for k in (first[-1], len(COUNTS)))
    near = Near(rows, first, 0.2 * rng.random(first[-1]))
    return near, own, rng.uniform(0.1, 2, (len(COUNTS), 1)), rng.standard_normal(own.shape)


@pytest.mark.parametrize("pulled", [False, True])
def test_moving_either_way_from_the_minimiser_raises_the_net(made, pulled):
    near, own, mu, V = made
    found = elastic_nets(near, own).minimiser(LAM, ETA, *((mu, V) if pulled else ()))
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
    nets = elastic_nets(Near(others, 5 * np.arange(7), np.full(30, 1 / 6)), Z)
    assert np.allclose(nets.minimiser(LAM, ETA), elastic_net_mean(Z, LAM, ETA), rtol=1e-14)
    assert np.allclose(nets.mean(), Z.mean(axis=0))
