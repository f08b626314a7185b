"""Noise in the gradients of local steps: new in each, of the size asked for, a client's own, and not in evaluations."""

import numpy as np

import mpifed
from mpifed.features.gradient_noise import NoisyGradients
from mpifed.federation.local import Local
from mpifed.federation.setup import RunSpec
from mpifed.problems.least_squares import LeastSquares
from tests.federation.test_local import numbers_of

SIZES = [5, 6, 7, 8]


def clients(key=(3, 1), ids=range(4), sigma=0.5):
    whole = numbers_of(SIZES)
    rows = np.array(ids)
    study = RunSpec(LeastSquares(), None, 0, 4, np.zeros(2))
    return Local(whole.block.take(rows), study, rows, key, [NoisyGradients(7, sigma)])


def test_every_gradient_has_noise_of_its_own_and_a_client_the_same_in_any_company():
    x = np.ones(2)
    exact = clients().value_grad(x)[1]
    f = clients()
    found = [f.grad(x) - exact, f.grad(x) - exact, *(batch.grad(x) - exact for _, batch, _ in f.steps(2, 0, 0))]
    assert len(np.unique(np.round(found, 12))) == 4 * 4 * 2
    alone = clients(ids=[2])
    assert np.allclose(alone.grad(x) - exact[2:3], found[0][2:3], atol=1e-14)
    later = clients(key=(np.array([3, 4, 3, 4]), np.array([1, 1, 2, 1])))
    assert np.allclose((later.grad(x) - exact)[0], found[0][0], atol=1e-14)
    begun = clients()
    begun.grad(x)
    assert np.allclose(begun.take(np.array([1, 3])).grad(x) - exact[[1, 3]], found[1][[1, 3]], atol=1e-14)


def test_mini_batches_of_one_call_do_not_share_their_noise():
    f, x = clients(), np.ones(2)
    noises = []
    for _, batch, _ in f.steps(2, 0, 3):
        noises.append(batch.grad(x) - batch.value_grad(x)[1])
    assert not np.isclose(*noises).any()


def test_noise_has_the_size_asked_for_and_the_record_is_exact():
    study = {"data": "tridiagonal", "data.clients": 200, "data.features": 50, "rounds": 1, "seed": 3}
    study |= {"algorithm": "gd", "algorithm.gamma": 1.0, "selection": "all"}
    quiet, noisy = (mpifed.run(study, {"problem.noise": noise}) for noise in (0.0, 0.5))
    assert quiet.rounds["grad_norm_sq"][0] == noisy.rounds["grad_norm_sq"][0]
    away = noisy.x - quiet.x
    assert np.isclose(away.std() * 200**0.5, 0.5, rtol=0.25)
