"""Gaussian noise on clipped uploads: where it lies, how large it is, and what it spends."""

import math

import numpy as np
import pytest

from mpifed.algorithms.parts.gaussian import Gaussian
from mpifed.core.discrete_noise import FINE
from mpifed.problems.base import Problem
from tests.helpers.algorithm_runs import SOURCES, M, N, local

DATA = SOURCES["quadratic"].load(0, "float64")


def clients(place=(1, 0)):
    return local(DATA, Problem.build("quadratic", "problem"), place=place)


def uploads(seed=0, size=1.0):
    return size * np.random.default_rng(seed).standard_normal((M, N))


def test_rows_are_shortened_to_the_bound_and_no_more():
    U = uploads()
    U[0] /= 100
    clipped = Gaussian(2.0, 1.0).clipped(U)
    size = np.sqrt(np.vecdot(U, U))
    assert np.sqrt(np.vecdot(clipped, clipped)) == pytest.approx(np.minimum(size, 2.0), rel=1e-8)
    assert (np.vecdot(clipped, clipped) <= 4.0).all()
    assert np.array_equal(clipped[0], U[0])
    assert np.vecdot(clipped, U) == pytest.approx(np.minimum(size, 2.0) * size, rel=1e-8)  # the same direction


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_a_row_without_a_length_is_sent_as_noise_alone(bad):
    U = uploads()
    U[3, 2] = bad
    with np.errstate(over="ignore"):
        assert not Gaussian(1.0, 1.0).clipped(U)[3].any()


def grid(noise, parts=1):
    """The step of the grid of uploads."""
    deviation = noise.multiplier * noise.clip / math.sqrt(parts)
    return 2.0 ** math.floor(math.log2(deviation / FINE))


@pytest.mark.parametrize("parts", [1, M])
@pytest.mark.parametrize(("clip", "multiplier"), [(0.3, 2.0), (50.0, 0.1), (1e-6, 1.0)])
def test_uploads_lie_on_one_grid_no_farther_from_w_than_the_bound_but_for_the_noise(clip, multiplier, parts):
    """Two clients with other data, the same noise: their uploads are at most 2C apart, counted in whole steps."""
    noise, w = Gaussian(clip, multiplier, seed=5), np.linspace(-1, 2, N)
    step = grid(noise, parts)
    one, other = (noise.upload(clients(), w + uploads(seed, size), w, parts) for seed, size in ((0, 1.0), (1, 1e3)))
    steps = (one - other) / step
    assert np.array_equal(one / step, np.rint(one / step))
    assert (np.sqrt(np.vecdot(steps, steps)) * step <= 2 * clip).all()
    assert (one != other).any()


def test_the_sum_of_uploads_is_exact_in_any_order():
    sent = Gaussian(0.3, 1.0, seed=1).upload(clients(), uploads(), np.linspace(-1, 2, N), M)
    exact = [math.fsum(column) for column in sent.T]
    assert sent.sum(axis=0).tolist() == exact == sent[::-1].cumsum(axis=0)[-1].tolist()


@pytest.mark.parametrize("parts", [1, 16])
def test_the_noise_has_the_deviation_asked_for(parts):
    noise, w = Gaussian(2.0, 3.0), np.zeros(N)
    f = clients()
    drawn = np.array([noise.upload(f, np.zeros((M, N)), w, parts) for _ in range(60)])
    assert drawn.std() == pytest.approx(6.0 / math.sqrt(parts), rel=0.04)
    assert abs(drawn.mean()) < 5 * drawn.std() / math.sqrt(drawn.size)


def test_noise_is_new_in_every_draw_and_that_of_a_seed_in_every_round():
    w, f = np.zeros(N), clients()
    free, tied = Gaussian(1.0, 1.0), Gaussian(1.0, 1.0, seed=7)
    assert (free.upload(f, uploads(), w) != free.upload(f, uploads(), w)).any()
    assert np.array_equal(tied.upload(f, uploads(), w), tied.upload(f, uploads(), w))
    assert (tied.upload(f, uploads(), w) != tied.upload(clients((2, 0)), uploads(), w)).any()


def test_what_is_spent_is_that_of_zero_concentrated_privacy():
    """At most ρ + 2√(ρ ln(1/δ)), Bun and Steinke 2016, and not far below; it grows with releases and falls with δ."""
    pytest.importorskip("dp_accounting")
    for multiplier, releases, delta in ((1.0, 1, 1e-5), (4.0, 15, 1e-5), (0.5, 10, 1e-3), (30.0, 100, 1e-6)):
        noise = Gaussian(0.7, multiplier)
        rho = releases * 2 / multiplier**2
        spent = noise.spent(releases, delta)
        bound = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert noise.rho() == pytest.approx(2 / multiplier**2, rel=1e-15)
        assert 0.7 * bound < spent < 1.01 * bound
        assert noise.spent(releases + 1, delta) > spent > noise.spent(releases, 10 * delta)
    assert Gaussian(1.0, 1.0).spent(0, 1e-5) == 0.0
