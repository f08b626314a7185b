"""What the FedEPM paper proves of its noise, and what is wrong with it: section V and appendix, arXiv:2208.11231."""

import numpy as np
import pytest
from scipy.integrate import quad

from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.parts.prox import soft
from mpifed.data.pool import Pool
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import local

M50 = (0.02 * 50 + 1) * 0.6e-5  # η of m = 50, ρ = 0.5


def true_over_named(k0, uploads, **options):
    """The privacy loss of one more upload over the ε that its noise names, after each of ``uploads``.

    Two clients with one sample, b = 0 and b = 1, have gradients that differ by Δ = 1 at every x: (26) is exact. Noise
    of (27), scale Δ/(ε μ), then has a loss of |w − w'| μ/Δ times ε.
    """
    algorithm = FedEPM(k0=k0, noise="none", **options)
    f = local(Pool(np.ones((2, 1)), np.array([0.0, 1.0]), None, np.array([1, 1])), LeastSquares())
    client = algorithm.join(f)
    rng = np.random.default_rng(0)
    found = []
    for upload in range(uploads):
        client, _ = algorithm.update(f, client, rng.standard_normal(1), k0 * upload, M50, M50 / 2)
        mu = algorithm.mu0 * algorithm.alpha ** (k0 * (upload + 1))
        found.append(float(abs(client.w[0, 0] - client.w[1, 0])) * mu)
    return np.array(found)


@pytest.mark.parametrize(("k0", "expected"), [(1, [1, 2, 5, 15]), (12, [12, 24, 61, 193])])
def test_theorem_v1_holds_for_the_first_step_only(k0, expected):
    """(47), (48) vary the gradient and freeze w_i^k, which depends on the data; k0 steps use one gradient k0 times.

    So with the true sensitivity in place of 2‖g‖₁, and with the printed μ_i, the 1st, 2nd, 5th and 15th upload spend so
    many times the ε that their noise names.
    """
    found = true_over_named(k0, 15, c=0.0)
    assert np.rint(found[[0, 1, 4, 14]]).tolist() == expected


def test_the_recursion_of_clipped_noise_is_what_happens():
    """Δ = 2 clip/d: reach is the distance of the two clients, so its noise has the ε that it names."""
    found = true_over_named(12, 15, c=0.0)
    reach, noise = np.zeros(1), FedEPM(noise="clipped", clip=0.5).mechanism()
    for upload in range(15):
        for j in range(12):
            mu = 0.05 * 1.001 ** (12 * upload + j + 1)
            reach = noise.grow(reach, np.array([mu]), M50, np.array([1.0]))
        assert found[upload] <= reach[0] * mu * (1 + 1e-12)
        assert np.isclose(found[upload], reach[0] * mu, rtol=1e-4)  # the soft threshold takes off a little


def test_the_density_25_is_none():
    """It integrates to 2, for it has 2ν where ν belongs; so E|ε| = 4ν of (59) is 4 times that of Laplace noise."""
    nu = 0.7

    def printed(x):
        return np.exp(-abs(x) / (2 * nu)) / (2 * nu)

    def laplace(x):
        return np.exp(-abs(x) / nu) / (2 * nu)

    def total(density):
        return 2 * quad(density, 0, 60)[0], 2 * quad(lambda x: x * density(x), 0, 60)[0]

    assert np.allclose(total(printed), (2, 4 * nu))
    assert np.allclose(total(laplace), (1, nu))


def test_lemma_a1_is_loose():
    """|soft(t, a) − soft(t', a)| <= |t − t'|, without its factor 2; and no smaller factor will do."""
    rng = np.random.default_rng(0)
    t, other = rng.standard_normal((2, 100_000)) * 3
    ratio = np.abs(soft(t, 1.0) - soft(other, 1.0)) / np.abs(t - other)
    assert 0.999 < ratio.max() <= 1 + 1e-12
