"""Noise with a guarantee: where it comes from, its grid, what an upload can tell, and what is wrong with the proofs.

The claims are those of section V and the appendix of the FedEPM paper, arXiv:2208.11231.
"""

import numpy as np
import pytest

from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.parts.noise import NOISES
from mpifed.core.arrays import soft
from mpifed.core.discrete_noise import laplace_steps, round_to_grid
from mpifed.data.pool import Pool
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import N, Run, build, local

CLIPPED = {"noise": "clipped", "clip": 3.0, "k0": 3, "mu0": 30.0, "step_scale": "one", "lam": 1e-3, "eta": 2e-3}


def clients(seed=0, dtype="float64", place=(1, 0)):
    """Four clients of 5 samples with 30 features."""
    rng = np.random.default_rng(4)
    data = Pool(rng.standard_normal((20, 30)), rng.standard_normal(20), None, np.full(4, 5), dtype)
    return local(data, LeastSquares(), seed=seed, place=place)


def upload(f, w, noise_seed=None, epsilon=1.0):
    noise = NOISES["clipped"](epsilon, 0.05, 3.0, 1e-5, noise_seed)
    return noise.upload(f, w, np.zeros(4), np.array([0.1, 0.2, 3.0, 40.0]))


def test_every_upload_has_noise_of_its_own_whatever_the_seed_of_the_run():
    f, w = clients(), np.zeros((4, 30))
    drawn = [upload(f, w)[0] for _ in range(3)] + [upload(clients(seed=5), w)[0]]
    assert len(np.unique(drawn)) > 470  # of 480: few points of a grid twice


def test_two_runs_with_one_seed_differ_from_their_second_model_on():
    one, other = Run(build("fedepm", CLIPPED)), Run(build("fedepm", CLIPPED))
    assert one.server.x.tobytes() == other.server.x.tobytes()  # the first upload depends on no data
    assert not np.array_equal(one.rounds(1), other.rounds(1))


def test_a_noise_seed_repeats_the_noise_and_depends_on_client_round_and_call():
    w, first = np.zeros((4, 30)), upload(clients(), np.zeros((4, 30)), 7)[0]
    assert upload(clients(), w, 7)[0].tobytes() == first.tobytes()
    assert upload(clients(seed=5), w, 7)[0].tobytes() == first.tobytes()  # of the noise's seed alone
    for other in (upload(clients(), w, 8), upload(clients(place=(2, 0)), w, 7), upload(clients(place=(1, 1)), w, 7)):
        assert not np.array_equal(other[0], first)
    assert upload(clients(dtype="float32"), w.astype(np.float32), 7)[0].dtype == np.float32


def test_uploads_are_points_of_a_grid_that_tells_nothing_of_the_data():
    run = Run(build("fedepm", CLIPPED))
    run.rounds(6)
    state = run.states()
    trained = state.reach > 0
    step, scale = (v[trained, None] for v in laplace_steps(np.where(trained, state.reach, 1.0), N, 0.1))
    steps = state.z[trained] / step
    assert np.array_equal(steps, np.rint(steps))
    assert (np.frexp(step)[0] == 0.5).all()  # a power of two, so that its multiples are exact
    assert np.abs(steps).max() < 2**53
    assert np.all(scale * step * 0.1 >= state.reach[trained, None])


def test_the_noise_is_the_upload_less_the_rounded_model():
    f, rng = clients(), np.random.default_rng(0)
    w = rng.standard_normal((4, 30))
    (z, ratio), (zero, _) = upload(f, w, 3), upload(f, np.zeros((4, 30)), 3)
    step = laplace_steps(np.array([0.1, 0.2, 3.0, 40.0]), 30, 1.0)[0][:, None]
    assert np.array_equal(z - zero, round_to_grid(w, step) * step)
    assert np.allclose(ratio, np.log10(np.linalg.norm(w, axis=1) / np.linalg.norm(z - w, axis=1)))


M50 = (0.02 * 50 + 1) * 0.6e-5  # η of m = 50, ρ = 0.5


def true_over_named(k0, uploads, **options):
    """The privacy loss of one more upload over the ε that its noise names, after each of ``uploads``.

    Two clients with one sample, b = 0 and b = 1, have gradients that differ by Δ = 1 at every x: (26) is exact. Noise
    of (27), scale Δ/(ε μ), then has a loss of |w − w'| μ/Δ times ε.
    """
    algorithm = FedEPM(k0=k0, noise="none", **options)
    f = local(Pool(np.ones((2, 1)), np.array([0.0, 1.0]), None, np.array([1, 1])), LeastSquares())
    client = algorithm.init_client(f)
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
            reach = noise.grow_reach(reach, np.array([mu]), M50, np.array([1.0]))
        assert found[upload] <= reach[0] * mu * (1 + 1e-12)
        assert np.isclose(found[upload], reach[0] * mu, rtol=1e-4)  # the soft threshold takes off a little


def test_lemma_a1_is_loose():
    """|soft(t, a) − soft(t', a)| <= |t − t'|, without its factor 2; and no smaller factor will do."""
    rng = np.random.default_rng(0)
    t, other = rng.standard_normal((2, 100_000)) * 3
    ratio = np.abs(soft(t, 1.0) - soft(other, 1.0)) / np.abs(t - other)
    assert 0.999 < ratio.max() <= 1 + 1e-12
