"""The distributed discrete Gaussian: what clients send, what the server makes of the sum, and the ε of its bound."""

import math
from functools import partial

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.core.discrete_noise import DiscreteGaussianTable, seeded_words
from mpifed.core.errors import UserError
from mpifed.core.streams import streams
from mpifed.features.privacy import discrete_gaussian as ddg
from mpifed.features.privacy.accounting import GaussianRounds
from mpifed.features.privacy.mechanisms import Release, SumSizes

pytest.importorskip("dp_accounting")

RNG = np.random.default_rng(0)
SUMS = SumSizes(numbers=300, fewest=40, most=40, bits=16)
MECHANISM = ddg.DistributedDiscreteGaussian()
NAME = "distributed-discrete-gaussian"
F8 = np.dtype(np.float64)


class Clients:
    """The f of c clients, as far as a mechanism looks at it, with the streams of one round."""

    xp = np

    def __init__(self, ids):
        self.ids = np.asarray(ids)

    def streams(self, seed, purpose):
        return streams(seed, purpose, self.ids, 3, 0)


class Batch:
    def __init__(self, ids):
        self.f = Clients(ids)


def vectors(length=1.0):
    rows = RNG.standard_normal((SUMS.most, SUMS.numbers))
    return rows * (length / np.linalg.norm(rows, axis=1))[:, None]


def read_word(script, count):
    """Return the next of the random words that a test has written."""
    return np.array([next(script)], np.uint64)


def send(rows, plan, seed=None, mechanism=MECHANISM):
    """Return what clients send in one round."""
    return mechanism.protect(Batch(range(len(rows))), rows.copy(), np.ones((len(rows), 1)), plan, seed)


def sums_of(rows, release, seed=None, mechanism=MECHANISM, sums=SUMS):
    """Return the sum as the server has it, of integers that were added up modulo 2^bits."""
    plan = mechanism.plan(release, sums, F8)
    total = ddg.wrap(send(rows, plan, seed, mechanism).sum(axis=0)[None], sums.bits)[0]
    return mechanism.add_noise(total, release, plan, sums.numbers)


# what clients send


@pytest.mark.parametrize("n", [1, 2, 3, 64, 300])
def test_the_rotation_keeps_lengths_and_twice_is_the_identity(n):
    rows = RNG.standard_normal((5, n))
    d = ddg.round_up_to_power(n)
    turned = ddg.rotate(rows, d)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-12)
    np.testing.assert_allclose(ddg.rotate(turned, d)[:, :n], rows, atol=1e-12)
    assert n <= d < 2 * n or n == d


def test_the_rotation_is_that_of_the_hadamard_matrix():
    H = np.ones((1, 1))
    for _ in range(4):
        H = np.block([[H, H], [H, -H]])
    np.testing.assert_allclose(ddg.rotate(np.eye(16), 16), H / 4)


def test_a_vector_with_one_entry_is_flat_once_it_is_rotated():
    one = np.zeros((1, 1024))
    one[0, 5] = 1.0
    np.testing.assert_allclose(np.abs(ddg.rotate(one, 1024)), 1 / 32)


@pytest.mark.parametrize("beta", [0.0, 0.3, math.exp(-0.5), 0.99])
def test_rounded_vectors_are_never_longer_than_their_bound(beta):
    mechanism = ddg.DistributedDiscreteGaussian(rounding=beta)
    # 11 bits: short vectors of few steps, whose rounding errors are as long as they are
    sums = SUMS._replace(bits=11)
    grid = mechanism.find_grid(1.0, 0.0, sums)
    d, length = 512, 1 / grid.step
    slack = math.sqrt(2 * math.log(1 / beta)) * (length + math.sqrt(d) / 2) if beta else math.inf
    assert grid.longest**2 == pytest.approx(min(length**2 + d / 4 + slack, (length + math.sqrt(d)) ** 2))
    plan = mechanism.plan(Release(1.0, 0.0), sums, F8)
    sizes = [np.linalg.norm(send(vectors(), plan, mechanism=mechanism), axis=1) for _ in range(5)]
    assert np.max(sizes) <= grid.longest
    assert np.max(sizes) > length


def test_rounding_has_no_bias():
    row = np.full((1, 2048), 0.3) + np.arange(-1024, 1024)
    drawn = [
        ddg.round_at_random(row, math.inf, [rng]) - np.floor(row) for rng in streams(0, "rounding", np.arange(200))
    ]
    # of 409,600 draws of probability .3, within five deviations
    assert abs(np.mean(drawn) - 0.3) < 5 * math.sqrt(0.21 / 409600)
    assert set(np.unique(drawn)) == {0.0, 1.0}


def test_a_vector_is_rounded_as_often_as_it_takes():
    # one rounding in 4,096 is short enough
    rounded = ddg.round_at_random(np.full((3, 12), 0.5), 0.1, streams(0, "rounding", np.arange(3)))
    assert not rounded.any()


def test_what_clients_send_is_whole_and_within_the_modulus():
    plan = MECHANISM.plan(Release(1.0, 1.0), SUMS, F8)
    sent = send(vectors(), plan)
    assert sent.shape == (40, 512)
    assert (sent == np.rint(sent)).all()
    assert np.abs(sent).max() <= 2**15


def test_a_client_sends_the_same_whoever_else_is_in_its_block():
    plan = MECHANISM.plan(Release(1.0, 1.0), SUMS, F8)
    rows = vectors()
    some = MECHANISM.protect(Batch([7, 9]), rows[[7, 9]], np.ones((2, 1)), plan, 5)
    np.testing.assert_array_equal(some, send(rows, plan, 5)[[7, 9]])


@pytest.mark.parametrize("bits", [8, 16, 48])
def test_the_modulus_is_that_of_whole_numbers(bits):
    numbers = RNG.integers(-(2**50), 2**50, (3, 7)).astype(np.float64)
    half = 2 ** (bits - 1)
    expected = [[(int(x) + half) % 2**bits - half for x in row] for row in numbers]
    np.testing.assert_array_equal(ddg.wrap(numbers, bits), expected)


# noise


@pytest.mark.parametrize("scale", [0.5, 0.9, 7.3, 260.0])
def test_draws_of_the_table_have_the_law_of_the_discrete_gaussian(scale):
    words = seeded_words(np.random.default_rng(1))
    draws = DiscreteGaussianTable(scale).draw(400_000, words)
    x = np.arange(-int(14 * scale) - 1, int(14 * scale) + 2)
    law = np.exp(-(x**2) / (2 * scale**2))
    law /= law.sum()
    counts = np.array([(draws == value).sum() for value in x]) if scale < 10 else None
    variance = (law * x**2).sum()
    assert abs(draws.mean()) < 5 * math.sqrt(variance / len(draws))
    assert abs(draws.astype(float).var() / variance - 1) < 5 * math.sqrt(2 / len(draws))
    if counts is not None:
        common = law > 1e-4
        excess = (counts - len(draws) * law)[common] / np.sqrt(len(draws) * law[common])
        assert np.abs(excess).max() < 5


def test_the_table_has_probabilities_to_the_last_of_its_128_bits():
    table = DiscreteGaussianTable(2.0)
    weights = [math.exp(-(x**2) / 8) for x in range(-29, 30)]
    half = math.fsum(weights[:29]) / math.fsum(weights)  # P(X < 0)
    assert table.bounds[table.last - 1] / 2**128 == pytest.approx(half, rel=1e-14)
    # the law is symmetric: P(X < x) and P(X > −x) add up to 2^128, but for what is rounded off
    assert all(abs(a + b - 2**128) <= 64 for a, b in zip(table.bounds, reversed(table.bounds), strict=True))


def test_bits_beyond_the_first_sixteen_decide_where_these_leave_two_integers():
    table = DiscreteGaussianTable(3.0)
    bound = table.bounds[table.last + 1]  # between 1 and 2
    first, word, low = bound >> 112, bound >> 64, bound & (2**64 - 1)
    for last_bits, expected in ((low - 1, 1), (low, 2)):
        script = iter([first, (word & (2**48 - 1)) << 16, last_bits])
        drawn = table.draw(1, partial(read_word, script))
        assert drawn.tolist() == [expected]


def test_the_sum_has_the_noise_of_all_clients_together():
    rows = vectors(0.5)
    errors = np.array([sums_of(rows, Release(1.0, 1.5, shared=k), seed=k) - rows.sum(axis=0) for k in range(30)])
    step = MECHANISM.find_grid(1.0, 1.5, SUMS).step
    # rounding adds at most ¼ of a step squared for each of 40 clients
    assert 1.5**2 * 0.93 < errors.var() < (1.5**2 + 10 * step**2) * 1.07
    assert abs(errors.mean()) < 5 * 1.5 / math.sqrt(errors.size)


def test_without_noise_the_sum_is_that_of_the_vectors_up_to_rounding():
    rows = vectors()
    fine = SUMS._replace(bits=40)
    error = sums_of(rows, Release(1.0, 0.0), sums=fine) - rows.sum(axis=0)
    assert np.abs(error).max() < 1e-5
    coarse = np.mean([sums_of(rows, Release(1.0, 0.0, shared=k)) for k in range(50)], axis=0) - rows.sum(axis=0)
    step = MECHANISM.find_grid(1.0, 0.0, SUMS).step
    assert np.abs(coarse).max() < 5 * step * math.sqrt(40 / 4 / 50)


@pytest.mark.parametrize(("k", "rate"), [(1.0, (0.25, 0.4)), (4.0, (0.0, 0.002))])
def test_numbers_of_a_sum_wrap_around_as_seldom_as_the_deviations_say(k, rate):
    # all clients send the same vector, which is the worst case of the formula
    mechanism = ddg.DistributedDiscreteGaussian(deviations=k)
    rows = np.repeat(vectors()[:1], 40, axis=0)
    plan = mechanism.plan(Release(1.0, 1.0), SUMS._replace(bits=12), F8)
    rounded = np.array([send(rows[:1], np.array([*plan[:3], 40, plan[4]]), k, mechanism)[0] for k in range(40)])
    low, high = rate
    assert low <= np.mean(np.abs(rounded.sum(axis=0)) > 2**11) <= high


def test_the_step_is_that_with_which_k_deviations_fill_the_modulus():
    share = 1.0 / math.sqrt(40)
    step = MECHANISM.find_grid(1.0, 1.0, SUMS._replace(bits=12)).step
    assert 2**12 * step == pytest.approx(8 * math.sqrt(40**2 / 512 + 40 * (step**2 / 4 + share**2)))


# the ε


@pytest.mark.parametrize(("bits", "beta"), [(7, 0.0), (8, math.exp(-0.5)), (16, math.exp(-0.5))])
def test_divergences_are_those_of_proposition_14(bits, beta):
    sums = SumSizes(100, 20, 25, bits)
    mechanism = ddg.DistributedDiscreteGaussian(rounding=beta)
    rounds = mechanism.rounds(2.0, None, sums)
    step = rounds.grid.step
    sigma, d = 2.0 / math.sqrt(20), 128
    delta2 = (1 + step * math.sqrt(d)) ** 2
    if beta:
        more = math.sqrt(2 * math.log(1 / beta)) * step * (1 + step / 2 * math.sqrt(d))
        delta2 = min(delta2, 1 + step**2 * d / 4 + more)
    moved = 2 * math.sqrt(delta2)  # one client is replaced
    tau = 10 * sum(math.exp(-2 * math.pi**2 * sigma**2 / step**2 * k / (k + 1)) for k in range(1, 25))
    one = min(math.sqrt(d) * moved, moved * math.sqrt(delta2) / step)
    noise = math.sqrt(20) * sigma
    for alpha, found in zip((1.5, 2, 10, 64), rounds.renyi([1.5, 2, 10, 64]), strict=True):
        first = alpha / 2 * moved**2 / noise**2 + tau * d
        second = alpha / 2 * (moved**2 / noise**2 + 2 * one / noise * tau + tau**2 * d)
        third = alpha / 2 * (moved / noise + tau * math.sqrt(d)) ** 2
        assert found == pytest.approx(min(first, second, third), rel=1e-12)


def test_epsilon_is_that_of_the_same_noise_at_a_server_and_a_little_more():
    central = GaussianRounds(2.0).epsilon(10, 1e-5, "rdp")
    wide, narrow = (MECHANISM.rounds(2.0, None, SUMS._replace(bits=bits)).epsilon(10, 1e-5) for bits in (20, 9))
    assert central < wide < central * 1.001
    assert wide * 1.02 < narrow
    assert MECHANISM.rounds(2.0, None, SUMS).epsilon(0, 1e-5) == 0.0


def test_noise_is_for_the_fewest_clients_that_may_reply():
    half = SUMS._replace(fewest=20)
    assert MECHANISM.find_grid(1.0, 1.0, half).scale * MECHANISM.find_grid(1.0, 1.0, half).step == pytest.approx(
        1 / math.sqrt(20)
    )
    assert MECHANISM.rounds(1.0, None, half).epsilon(5, 1e-5) == pytest.approx(
        MECHANISM.rounds(1.0, None, SUMS).epsilon(5, 1e-5), rel=1e-3
    )


def test_too_few_bits_for_the_noise_are_refused_with_the_number_that_is_enough():
    with pytest.raises(UserError, match=r"masks.bits = 8 is wrong .* it must be at least 9$"):
        MECHANISM.plan(Release(1.0, 0.1), SUMS._replace(bits=8), F8)
    assert len(MECHANISM.plan(Release(1.0, 0.1), SUMS._replace(bits=9), F8)) == 5
    assert MECHANISM.rounds(0.1, None, SUMS._replace(bits=8)).epsilon(1, 1e-5) == math.inf


# runs

WORDS = {
    "data": {"name": "gaussian", "clients": 30, "samples": 6, "features": 5},
    "problem": "logistic",
    "algorithm": "fedavg",
    "selection": "all",
    "progress": None,
    "rounds": 4,
}
MASKS = {"sums": "fixed-point", "bits": 16}


def run(privacy=None, masks=MASKS, **words):
    private = {"clip": 0.5, "noise_multiplier": 0.1, "noise_seed": 3, "mechanism": NAME} | (privacy or {})
    return mpifed.run(privacy=private, masks=masks, **WORDS | words)


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "feddyn"])
def test_models_are_those_of_plain_means_up_to_the_noise(algorithm):
    plain = mpifed.run(privacy={"clip": 0.5, "noise_multiplier": 0}, **WORDS | {"algorithm": algorithm})
    noisy = run({"noise_multiplier": 0, "noise_seed": None}, MASKS | {"bits": 40}, algorithm=algorithm)
    np.testing.assert_allclose(noisy.x, plain.x, atol=1e-5)


def test_masks_change_no_bit_and_neither_does_another_run():
    first = run()
    np.testing.assert_array_equal(run(masks=MASKS | {"sums": "masked"}).x, first.x)
    np.testing.assert_array_equal(run().x, first.x)
    assert (run({"noise_seed": None}).x != first.x).any()


def test_the_ledger_counts_the_padded_integers():
    result = run()
    # 8 numbers of 16 bits, two keys and 29 secret shares of two kinds
    assert result.rounds["bytes_up"][1] == 30 * (8 * 16 // 8 + 2 * 32 + 2 * 29 * 32 + 30 * 32)


def test_the_column_of_epsilon_is_the_bound_of_the_rounds_so_far(tmp_path):
    result = run({"noise_multiplier": 1.0, "noise_seed": None})
    rounds = MECHANISM.rounds(1.0, None, SumSizes(5, 30, 30, 16))
    expected = [rounds.epsilon(k, 1e-5) for k in range(5)]
    np.testing.assert_allclose(result.rounds["epsilon_rdp"], expected)
    assert "epsilon_pld" not in result.rounds
    planned = run({"noise_multiplier": None, "epsilon": 4.0, "noise_seed": None}, path=tmp_path / "out.h5")
    assert 3.99 < planned.rounds["epsilon_rdp"][-1] <= 4.0
    with h5py.File(tmp_path / "out.h5") as file:
        assert "epsilon_rdp is a bound" in file.attrs["privacy"]


def test_clients_that_drop_out_leave_noise_enough():
    system = {"dropout": 0.3, "least": 21}
    masks = MASKS | {"threshold": 0.7}
    result = run({"noise_multiplier": 1.0}, masks, system=system, rounds=3)
    rounds = MECHANISM.rounds(1.0, None, SumSizes(5, 21, 30, 16))
    assert result.rounds["epsilon_rdp"][-1] == pytest.approx(rounds.epsilon(3, 1e-5))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"masks": None}, "clients send integers, which need masks that add them up"),
        ({"masks": {"bits": 16}}, "clients send integers, which need masks that add them up"),
        ({"masks": {"sums": "masked"}}, "masks.bits = 64 is wrong .* at most 48 bits"),
        ({"masks": MASKS | {"bits": 32}, "dtype": "float32"}, "masks.bits = 32 is wrong .* at most 24 bits"),
        ({"privacy": {"quantile": 0.5}}, "privacy.quantile = 0.5 is wrong with privacy.mechanism"),
        ({"selection": "poisson"}, "masks hide no single upload, which a round may have"),
        ({"masks": MASKS | {"bits": 8}, "privacy": {"noise_multiplier": 0.01}}, "masks.bits = 8 is wrong"),
        ({"privacy": {"mechanism": {"name": NAME, "rounding": 1.0}}}, "privacy.mechanism.rounding"),
        ({"privacy": {"mechanism": {"name": NAME, "deviations": 0.0}}}, "privacy.mechanism.deviations"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_sentence(words, sentence):
    with pytest.raises(UserError, match=sentence):
        run(**words)
