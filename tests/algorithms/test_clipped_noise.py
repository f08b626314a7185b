"""Noise with a guarantee: where it comes from, the grid that it lives on, and what an upload can tell."""

import numpy as np
import pytest

from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.parts.noise import NOISES
from mpifed.core.discrete_noise import laplace_steps, to_grid
from mpifed.data.pool import Pool
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import M, N, Run, build, local

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
    assert np.array_equal(z - zero, to_grid(w, step) * step)
    assert np.allclose(ratio, np.log10(np.linalg.norm(w, axis=1) / np.linalg.norm(z - w, axis=1)))


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"noise": "clipped"}, True),
        ({"noise": "clipped", "noise_seed": 0}, False),
        ({"noise": "released"}, False),
        ({"noise": "matched"}, False),
        ({"noise": "none"}, None),
    ],
    ids=str,
)
def test_what_is_guaranteed_is_said_by_the_algorithm(options, holds):
    privacy = build("fedepm", options).privacy()
    assert (None if privacy is None else privacy.holds) is holds
    if privacy is not None:
        assert str(privacy).startswith("guaranteed: " if holds else "none: ")


def test_rounds_that_are_run_again_count_only_where_the_noise_is_drawn_again():
    server = Run(FedEPM()).server
    for options, count in (({}, 3), ({"noise_seed": 1}, 0)):
        again = FedEPM(noise="clipped", **options).redrawn(server, 3)
        assert np.array_equal(again.uploads, np.full(M, count))
    assert FedEPM(noise="released").redrawn(server, 3) is server
