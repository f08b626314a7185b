"""Random streams, and noise on a grid from them: its law, its source, what rounding costs, the leak that it closes."""

import itertools
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, kstest

from mpifed.core.discrete_noise import (
    MAX_STEPS,
    bernoulli_exp,
    draw_discrete_gaussian,
    draw_discrete_laplace,
    entropy_words,
    floor_power_of_two,
    laplace_steps,
    round_to_grid,
    seeded_words,
    uniform_below,
)
from mpifed.core.streams import PURPOSES, stream, streams

NUMBER = st.one_of(st.integers(0, 20), st.integers(0, 2**64 - 1))


def test_streams_of_different_keys_differ():
    keys = [(seed, purpose, *key) for seed in (0, 1) for purpose in PURPOSES for key in product(range(3), repeat=3)]
    drawn = [stream(*key).integers(2**63, size=2).tobytes() for key in keys]
    assert len(set(drawn)) == len(keys)
    assert stream(0, "weather").integers(2**63, size=2).tobytes() not in drawn


@given(seed=NUMBER, purpose=st.sampled_from(PURPOSES), key=st.lists(NUMBER, max_size=3))
def test_a_stream_is_philox_with_this_key_and_counter(seed, purpose, key):
    """As numpy defines it: results of earlier versions can be computed again."""
    counter = np.array([0, *key, *(0,) * (3 - len(key))], np.uint64)
    philox = np.random.Philox(key=np.array([seed, PURPOSES.index(purpose)], np.uint64), counter=counter)
    assert stream(seed, purpose, *key).bit_generator.random_raw(9).tobytes() == philox.random_raw(9).tobytes()


@given(seed=NUMBER, first=st.lists(NUMBER, max_size=5), rest=st.lists(NUMBER, max_size=2))
def test_the_streams_of_many_clients_are_those_of_each(seed, first, rest):
    many = streams(seed, "clients", np.array(first, np.uint64), *rest)
    assert [rng.bytes(40) for rng in many] == [stream(seed, "clients", i, *rest).bytes(40) for i in first]


def words(seed=0):
    return seeded_words(stream(seed, "noise", 1, 2, 3))


def whole(*values):
    return np.array(values, np.uint64)


def scripted(*values):
    """A source that gives these words, one after the other."""
    left = iter(values)
    return lambda count: whole(*itertools.islice(left, count))


def test_entropy_never_repeats_itself_and_a_stream_does():
    assert entropy_words(0).shape == (0,)
    assert entropy_words(5).dtype == words()(50).dtype == np.uint64
    assert len(np.unique([entropy_words(100), entropy_words(100)])) == 200
    assert words()(50).tobytes() == words()(50).tobytes() != words(1)(50).tobytes()


def test_words_beyond_the_last_multiple_are_drawn_again():
    """2^64 = 3·q + 1: the word 2^64 − 1 alone would give 0 once more than 1 and 2."""
    top = 2**64 - 1
    assert uniform_below(whole(3), scripted(top, top, 5)).tolist() == [2]
    assert uniform_below(whole(3), scripted(top - 1)).tolist() == [2]
    assert uniform_below(whole(4), scripted(top)).tolist() == [3]
    assert uniform_below(whole(3, 1, 3), scripted(7, top, top, 8)).tolist() == [1, 0, 2]


@pytest.mark.parametrize("bound", [1, 2, 7, 1000, 2**50 + 3])
def test_whole_numbers_below_a_bound_are_uniform(bound):
    u = uniform_below(np.full(20000, bound, np.uint64), words())
    assert u.max() < bound
    if 1 < bound <= 1000:
        assert chisquare(np.bincount(u.astype(int), minlength=bound)).pvalue > 0.01
    elif bound > 1000:
        assert kstest(u / bound, "uniform").pvalue > 0.01


@pytest.mark.parametrize("ratio", [(0, 5), (1, 3), (999, 1000), (1, 1), (3, 2), (7, 2), (2**40, 2**41 + 1)], ids=str)
def test_an_event_has_the_probability_of_an_exponential(ratio):
    count = 40000
    found = bernoulli_exp(np.full(count, ratio[0], np.uint64), np.full(count, ratio[1], np.uint64), words(2))
    assert binomtest(int(found.sum()), count, float(np.exp(-ratio[0] / ratio[1]))).pvalue > 0.01
    numerators = np.tile(whole(0, 1, 2, 5), 10000)  # of different probability, drawn together
    found = bernoulli_exp(numerators, np.full(40000, 2, np.uint64), words()).reshape(-1, 4).mean(axis=0)
    assert np.allclose(found, np.exp([0, -0.5, -1, -2.5]), atol=0.02)


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_noise_of_a_few_steps_is_discrete_laplace(scale):
    """P(x) = (e − 1)/(e + 1) e^−|x|/t with e = exp(1/t)."""
    x, values = draw_discrete_laplace(np.full(30000, scale), words()), np.arange(-4 * scale, 4 * scale + 1)
    assert x.dtype == np.int64
    e = np.exp(1 / scale)
    law = (e - 1) / (e + 1) * np.exp(-np.abs(values) / scale)
    counts = np.array([(x == value).sum() for value in values])
    assert chisquare([*counts, 30000 - counts.sum()], 30000 * np.array([*law, 1 - law.sum()])).pvalue > 0.01


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_noise_of_a_few_steps_is_discrete_gaussian(scale):
    drawn = draw_discrete_gaussian(np.full(40000, scale), words())
    most = 4 * scale
    law = np.exp(-(np.arange(-most, most + 1) ** 2) / (2 * scale**2))
    kept = drawn[np.abs(drawn) <= most]
    assert len(kept) > 0.999 * 40000
    assert chisquare(np.bincount(kept + most, minlength=2 * most + 1), law / law.sum() * len(kept)).pvalue > 1e-4


def test_noise_of_many_steps_is_laplace_or_gaussian():
    for scale in (1 << 12, 10**6 + 3, 1 << 40):
        x = draw_discrete_laplace(np.full(20000, scale), words(1)) / scale
        assert kstest(x, "laplace").pvalue > 0.01
        assert kstest(1.1 * x, "laplace").pvalue < 0.01
    drawn = draw_discrete_gaussian(np.full(40000, 1500), words(1))
    assert kstest((drawn + words(2)(40000) / 2**64 - 0.5) / 1500, "norm").pvalue > 1e-4


def test_rows_of_different_scale_are_drawn_together():
    scale = np.repeat([3, 1000, 10**9], 10000)
    x = (draw_discrete_laplace(scale, words()) / scale).reshape(3, -1)
    assert min(kstest(x[1], "laplace").pvalue, kstest(x[2], "laplace").pvalue) > 0.01
    assert np.isclose(np.abs(x[0]).mean(), 1 / np.sinh(1 / 3) / 3, rtol=0.05)
    drawn = draw_discrete_gaussian(np.repeat([1, 3000, 2**24], 5000), words()).reshape(3, 5000)
    assert drawn.std(axis=1) == pytest.approx([1, 3000, 2**24], rel=0.05)
    assert drawn.dtype == np.int64


def test_numbers_go_to_the_nearest_point_of_a_grid_of_powers_of_two_and_far_ones_to_the_last():
    assert floor_power_of_two(np.array([1.0, 1.9, 2.0, 0.3, 1e-9])).tolist() == [1, 1, 2, 0.25, 2.0**-30]
    W = np.array([[0.3, -0.26, 1e300, -1e300], [7.0, 7.9, 8.1, 0.0]])
    assert round_to_grid(W, np.array([[0.25], [4.0]])).tolist() == [[1, -1, MAX_STEPS, -MAX_STEPS], [2, 2, 2, 0]]


@pytest.mark.parametrize("n", [1, 14, 1000])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 300.0])
def test_rounding_is_in_the_sensitivity_and_costs_little(n, epsilon):
    """Rows at distance s, rounded, are at most ε·scale steps apart, also where each number is half a step off."""
    rng, s = np.random.default_rng(n), np.array([1e-4, 0.7, 3e5])
    step, scale = laplace_steps(s, n, epsilon)
    assert not (np.log2(step) % 1).any()
    assert not (scale % 1).any()
    assert np.all((s / epsilon <= scale * step) & (scale * step <= 1.003 * s / epsilon))
    farthest = 0.0
    for _ in range(30):
        W = rng.standard_normal((3, n)) * s[:, None] * 10
        move = rng.standard_normal((3, n)) * (rng.random((3, n)) < rng.random())
        move *= s[:, None] / np.maximum(np.abs(move).sum(axis=1, keepdims=True), 1e-300)
        errors = rng.uniform(-0.5, 0.5, (2, 3, n)) * step[:, None]
        apart = np.abs(
            round_to_grid(W + errors[0], step[:, None]) - round_to_grid(W + move + errors[1], step[:, None])
        ).sum(axis=1)
        assert np.all(apart <= epsilon * scale)
        farthest = max(farthest, (apart / (epsilon * scale)).max())
    assert farthest > 0.99


def test_rows_that_errors_and_rounding_move_as_far_as_they_can_are_still_in_the_guarantee():
    """Every number is half a step off, away from the other row, and rounded further away: n + n steps."""
    n, epsilon, length = 1000, 1.0, 1500.02 * 2.0**-20  # by which one sample moves each number
    step, scale = laplace_steps(np.array([n * length]), n, epsilon)
    assert step[0] == 2.0**-20
    low = -0.01 * step - step / 2
    high = -0.01 * step + length + step / 2
    apart = n * (round_to_grid(high, step) - round_to_grid(low, step))
    assert apart[0] == 1502 * n
    assert apart <= epsilon * scale


def test_floating_point_noise_tells_neighbours_apart_and_noise_on_a_grid_does_not():
    """Mironov 2012. Releases of 0 and of 1 with ε = 1, those between −1/2 and 1/2.

    The sum of 1 and a number near −1 is a multiple of 2^−53; noise around 0 hardly ever is. Who sees another number
    knows for certain that it was 0, although ε = 1 allows no odds above e : 1.
    """
    rng, count = np.random.default_rng(0), 20000
    share = {}
    for w in (0.0, 1.0):
        z = w + rng.laplace(0.0, 1.0, count)
        z = z[np.abs(z) < 0.5] * 2.0**53
        share[w] = (z != np.rint(z)).mean()
    assert share[1.0] == 0  # some outputs cannot be reached from 1 …
    assert share[0.0] > 0.1  # … and many releases of 0 are such
    step, scale = (v[0] for v in laplace_steps(np.array([1.0]), 1, 1.0))
    edges = np.arange(-3, 5) * int(1 / step)
    counts = []
    for w in (0.0, 1.0):
        w_steps = round_to_grid(np.full((1, count), w), np.array([[step]]))[0]
        steps = w_steps + draw_discrete_laplace(np.full(count, scale), words())
        for bits in (2, 16, 256):  # all are points of one grid, and the low bits are the same for both
            assert chisquare(np.bincount(steps % bits, minlength=bits)).pvalue > 1e-3
        counts.append(np.histogram(steps, edges)[0])
    assert np.all(counts[0] <= np.e * counts[1] + 5 * np.sqrt(np.max(counts)))
