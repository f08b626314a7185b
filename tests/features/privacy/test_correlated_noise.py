"""Correlated noise: its law, what a client moves, the ε, how much less noise sums have, and runs that go on."""

import math

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.features.privacy.accounting import GaussianRounds
from mpifed.features.privacy.correlated_noise import CorrelatedNoise, find_bands
from mpifed.features.privacy.mechanisms import Release, SumSizes
from mpifed.features.selection_laws.feature import Cyclic
from tests.features.privacy.test_private_means import statement

dp_accounting = pytest.importorskip("dp_accounting")

NAME = "correlated-gaussian"
F8 = np.dtype(np.float64)


def matrix(rounds, b):
    """Return the matrix of b bands."""
    c = find_bands(b)
    return sum(c[j] * np.eye(rounds, k=-j) for j in range(min(b, rounds)))


def norm(b):
    """Return how much further a client moves what shares noise."""
    return np.linalg.norm(find_bands(b))


def noise_of(rounds, b, numbers, seed=None, skipped=()):
    """Return the noise of sums of length 0, with z C = 1, of rounds from 1 on: (rounds, N)."""
    mechanism, memory = CorrelatedNoise(bands=b), {}
    noise = np.zeros((rounds, numbers))
    for t in (t for t in range(rounds) if t + 1 not in skipped):
        rng = None if seed is None else stream(seed, "noise", t)
        release = Release(1.0, 1.0, rng, 0, t + 1, memory)
        plan = mechanism.plan(release, SumSizes(numbers, 1, 1), F8)
        noise[t] = mechanism.add_noise(np.zeros(numbers), release, plan, numbers)
    return noise


# the noise


def test_all_bands_are_the_square_root_of_prefix_sums():
    C = matrix(64, 64)
    np.testing.assert_allclose(C @ C, np.tri(64), atol=1e-12)


@pytest.mark.parametrize("skipped", [(), (3, 9, 10, 11, 12)])
def test_the_noise_is_the_inverse_of_the_matrix_times_fresh_noise(skipped):
    b, T = 4, 20
    played = [t for t in range(T) if t + 1 not in skipped]
    fresh = np.array([stream(5, "noise", t).normal(0, norm(b), 3) for t in played])
    expected = np.linalg.solve(matrix(T, b)[np.ix_(played, played)], fresh)
    np.testing.assert_allclose(noise_of(T, b, 3, 5, skipped)[played], expected, atol=1e-12)


def test_sums_over_rounds_have_the_covariance_of_the_factorisation():
    """Of 100,000 draws, within five deviations; bands that are wrong by 5 % would be beyond ten."""
    b, T, N = 4, 12, 100_000

    def covariance(c):
        B = np.tri(T) @ np.linalg.inv(sum(c[j] * np.eye(T, k=-j) for j in range(b)))
        return norm(b) ** 2 * B @ B.T

    noise = noise_of(T, b, N)
    expected = covariance(find_bands(b))
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / N)
    prefix = np.cumsum(noise, axis=0)
    assert np.abs((prefix @ prefix.T / N - expected) / error).max() < 5
    wrong = covariance(find_bands(b) * np.append(1, np.full(b - 1, 0.95)))
    assert np.abs((wrong - expected) / error).max() > 10
    # on the grid on which sums are exact
    np.testing.assert_array_equal(noise * 1024, np.rint(noise * 1024))


@pytest.mark.parametrize(("b", "factor"), [(8, 4.395), (64, 6.537)])
def test_at_equal_epsilon_sums_over_64_rounds_have_less_noise(b, factor):
    # mean variance of prefix sums: independent z²C²(T + 1)/2, here z²C²‖c‖² ‖A M⁻¹‖²/T
    ours = norm(b) ** 2 * np.linalg.norm(np.tri(64) @ np.linalg.inv(matrix(64, b))) ** 2 / 64
    assert 65 / 2 / ours == pytest.approx(factor, abs=0.001)
    measured = (np.cumsum(noise_of(64, b, 3000, seed=1), axis=0) ** 2).mean()
    assert measured == pytest.approx(ours, rel=0.1)


# what it costs


def test_rounds_of_a_client_that_are_b_apart_move_numbers_of_their_own():
    b, C = 5, matrix(64, 5)
    for rounds in ([0, 5, 10, 33], [2, 9, 59]):
        moved = np.zeros((64, 3))
        moved[rounds] = [[0.0, 1.2, -1.6]]  # of length 2
        assert np.linalg.norm(C @ moved) == pytest.approx(2 * math.sqrt(len(rounds)) * norm(b))
    moved[[3, 4]] = [0.0, 1.2, -1.6]  # two that are next to each other
    assert np.linalg.norm(C @ moved) > 1.1 * 2 * math.sqrt(5) * norm(b)


@pytest.mark.parametrize(("z", "k", "N"), [(0.8, 1, 10), (3.0, 8, 650), (20.0, 40, 10**6)])
def test_epsilon_is_that_of_one_gaussian_mechanism(z, k, N):
    rounds = CorrelatedNoise(bands=8).rounds(z, None, SumSizes(N, 1, 1))
    # with C = 1; noise has 1024 z‖c‖ steps of 1/z, and is rounded by one of 2^-16 steps in seven rounds
    distance = 2 * norm(8) + math.sqrt(7 * N) * z / 1024 / 2**16
    expected = dp_accounting.get_epsilon_gaussian(z * norm(8) / distance / math.sqrt(k), 1e-5)
    assert rounds.epsilon(k, 1e-5) == pytest.approx(expected, rel=1e-9)
    assert 1 <= rounds.epsilon(k, 1e-5) / GaussianRounds(z).epsilon(k, 1e-5) < 1.001


@pytest.mark.parametrize(("m", "share"), [(16, 0.125), (17, 0.2), (23, 0.3), (5, 1.0)])
def test_selection_by_turns_says_how_far_apart_the_rounds_of_a_client_are(m, share):
    selector = Cyclic(share=share, shuffled=True).selector(0, m, 60)
    rounds = [range(m) if selector.select(t, 0) is None else selector.select(t, 0) for t in range(1, 61)]
    gaps = [np.diff([t for t, clients in enumerate(rounds) if i in clients]).min() for i in range(m)]
    assert min(gaps) == selector.apart
    assert Cyclic(count=2, overlap=1).selector(0, m, 60).apart == 1


# runs

STUDY = {
    "data": {"name": "gaussian", "clients": 9, "samples": 4, "features": 3},
    "problem": "least-squares",
    "algorithm": {"name": "fedavg", "step": {"name": "constant", "a": 0.05}},
    "selection": {"name": "cyclic", "count": 2},
    "stop": {"gradient": 0.0, "diverged": 0},
    "privacy": {"clip": 0.1, "noise_multiplier": 2.0, "mechanism": {"name": NAME, "bands": 4}},
    "rounds": 9,
}
SEEDED = STUDY | {"privacy": STUDY["privacy"] | {"noise_seed": 3}}


def test_a_resumed_run_subtracts_the_noise_of_the_rounds_before(tmp_path):
    whole = mpifed.run(SEEDED, progress=None)
    mpifed.run(SEEDED, rounds=4, path=tmp_path / "out.h5", progress=None)
    np.testing.assert_array_equal(mpifed.resume(tmp_path / "out.h5", rounds=9, progress=None).x, whole.x)
    assert whole.rounds["epsilon_pld"][-1] == pytest.approx(GaussianRounds(2.0).epsilon(2, 1e-5), rel=1e-5)


class Claims(mpifed.extend.Selection):
    """A selection of client 0 in every third round that says that rounds of a client are far apart."""

    supports = mpifed.extend.Supports.EVERYTHING

    def selector(self, seed, m, rounds):
        return mpifed.extend.Selector(1, lambda r, again: np.array([0 if r % 3 == 0 else r % m]), apart=99)


def test_rounds_of_a_client_are_checked_whatever_its_selection_claims(tmp_path):
    words = {"selection": Claims(), "rounds": 9}
    sentence = r"it selects client 0 in rounds 3 and 6, and with .* these must be 4 apart$"
    with pytest.raises(UserError, match=sentence):
        mpifed.run(STUDY | words, progress=None)
    # a run that goes on remembers who took part before
    mpifed.run(STUDY | words | {"rounds": 4}, path=tmp_path / "out.h5", progress=None)
    with pytest.raises(UserError, match=sentence):
        mpifed.resume(tmp_path / "out.h5", rounds=9, progress=None)


def test_a_method_that_selects_twice_in_a_round_is_refused(monkeypatch):
    played = FedAvg.round
    monkeypatch.setattr(FedAvg, "round", lambda self, fed, server: (fed.select(server.x), played(self, fed, server))[1])
    with pytest.raises(UserError, match="asks others than the selected clients"):
        mpifed.run(STUDY, progress=None)


def test_the_statement_says_what_noise_is_shared_and_what_a_client_moves():
    text = statement(STUDY["privacy"], selection={"name": "cyclic", "count": 2})
    moved = 0.2 * math.sqrt(1 + 1 / 4 + 9 / 64 + 25 / 256)
    assert f"{NAME}: fresh noise of deviation {moved:.4g} on each number of a round's sum, less parts" in text
    assert f"4 apart or more, and each moves the sums that share noise by {moved:.4g} together" in text
    assert "composition  10 rounds with z = 2: ε = " in text
