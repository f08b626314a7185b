"""Noise on a grid, drawn exactly in integer arithmetic, because floating-point noise leaks.

The low bits of a number plus floating-point noise depend on the number: some outputs can be reached from one data set
and not from its neighbour (I. Mironov 2012, doi:10.1145/2382196.2382264). Here a number is first rounded to a grid of
steps 2^e. The noise is a whole number of steps, drawn without rounding by Algorithms 1 to 3 of C. Canonne, G. Kamath,
T. Steinke, "The discrete Gaussian for differential privacy", 2020, arXiv:2004.00010. The time of a draw is not hidden.
"""

import os
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array

WordSource = Callable[[int], Array]  # count -> that many independent uniform 64-bit words, uint64

MAX_WORD = np.uint64(2**64 - 1)
MAX_STEPS = 2.0**40  # steps from 0 to the last point of a grid; numbers beyond it are clipped
MAX_SCALE = 2.0**50  # the largest scale of noise, in steps, whose law is exact in 64 bits
ROUND_UP = 1.005  # factor on a bound, so that writing three digits of it does not make it smaller
MIN_STEPS = 1024  # the smallest number of steps of a sensitivity, or of a scale of noise
TABLE_TAIL = 14.0  # a table ends so many scales from 0: beyond is less than 2^-140
UNDECIDED = np.int16(-(2**15))  # entry of a table for 16 bits that leave several integers possible


def entropy_words(count: int) -> Array:
    """Draw words from the operating system's entropy, which no stored state can repeat."""
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def seeded_words(rng: np.random.Generator) -> WordSource:
    """Return the words of a random stream, for tests: whoever knows the seed can subtract the noise."""
    return rng.bit_generator.random_raw


def uniform_below(bounds: Array, words: WordSource) -> Array:
    """Draw integers uniformly from 0 <= u < bounds: (k,) uint64."""
    u = words(len(bounds))
    rest = u % bounds
    # Words beyond the last multiple of the bound would make small remainders more likely than others: with words 0 … 7
    # and the bound 3, the words 6 and 7 are drawn again.
    again = np.flatnonzero(u - rest > MAX_WORD - (bounds - np.uint64(1)))
    if len(again):
        rest[again] = uniform_below(bounds[again], words)
    return rest


def bernoulli_exp(numerator: Array, denominator: Array, words: WordSource) -> Array:
    """Draw True with probability exp(−numerator/denominator), uint64 up to 2^50: (k,) bool. Source: Algorithm 1."""
    result = np.ones(len(numerator), bool)
    quotient, remainder = np.divmod(numerator, denominator)
    # exp(−2.3) = exp(−1) · exp(−1) · exp(−0.3): one draw for each factor, as long as all are True.
    for k in range(int(quotient.max(initial=0))):
        rows = np.flatnonzero(result & (quotient > k))
        if not len(rows):
            break
        one = np.ones(len(rows), np.uint64)
        result[rows] = _exp_minus_part(one, one, words)
    rows = np.flatnonzero(result)
    result[rows] = _exp_minus_part(remainder[rows], denominator[rows], words)
    return result


def _exp_minus_part(numerator: Array, denominator: Array, words: WordSource) -> Array:
    """Draw as ``bernoulli_exp`` for n <= d: the first k with no success of probability (n/d)/k is odd."""
    odd = np.zeros(len(numerator), bool)
    rows = np.arange(len(numerator))
    k = 0
    while len(rows):
        k += 1
        success = uniform_below(denominator[rows] * np.uint64(k), words) < numerator[rows]
        odd[rows[~success]] = k % 2 == 1
        rows = rows[success]
    return odd


def draw_discrete_laplace(scale: Array, words: WordSource) -> Array:
    """Draw integers x with probability proportional to exp(−|x|/scale), integer 1 <= scale <= 2^50: (k,) int64.

    Source: Algorithm 2.
    """
    x = np.zeros(len(scale), np.int64)
    rows = np.arange(len(scale))
    scale = scale.astype(np.uint64)
    while len(rows):
        u = uniform_below(scale[rows], words)
        accepted = bernoulli_exp(u, scale[rows], words)
        u = u[accepted]
        tried = rows[accepted]
        size = (u + scale[tried] * _successes(len(u), words)).astype(np.int64)
        negative = (words(len(u)) & np.uint64(1)).astype(bool)
        # Else 0 would come with either sign, and so twice as often as it should.
        good = ~(negative & (size == 0))
        x[tried[good]] = np.where(negative, -size, size)[good]
        rows = np.concatenate([rows[~accepted], tried[~good]])
    return x


def _successes(count: int, words: WordSource) -> Array:
    """Count how often an event of probability exp(−1) happens in a row: (count,) uint64."""
    counts = np.zeros(count, np.uint64)
    rows = np.arange(count)
    while len(rows):
        one = np.ones(len(rows), np.uint64)
        rows = rows[_exp_minus_part(one, one, words)]
        counts[rows] += np.uint64(1)
    return counts


def draw_discrete_gaussian(scale: Array, words: WordSource) -> Array:
    """Draw integers x with probability proportional to exp(−x²/(2 scale²)), integer 1 <= scale <= 2^24: (k,) int64.

    Source: Algorithm 3, with Laplace draws of the same scale.
    """
    x = np.zeros(len(scale), np.int64)
    rows = np.arange(len(scale))
    scale = scale.astype(np.int64)
    while len(rows):
        scales = scale[rows]
        candidates = draw_discrete_laplace(scales, words)
        distance = np.abs(candidates) - scales
        accepted = bernoulli_exp(
            (distance * distance).astype(np.uint64), (2 * scales * scales).astype(np.uint64), words
        )
        x[rows[accepted]] = candidates[accepted]
        rows = rows[~accepted]
    return x


class DiscreteGaussianTable:
    """Table of integers x with probability proportional to exp(−x²/(2 scale²)), 0 < scale <= 2048; draws are quick.

    ``bounds`` are the probabilities P(X <= x) in units of 2^-128, correct to a few of them, so that in total variation
    the law is less than 2^-110 from that above. A draw is the number of bounds that 128 random bits reach. The
    first 16 decide most draws by ``lookup``, 64 the others, and all 128 are needed by less than one in 2^45.
    """

    def __init__(self, scale: float) -> None:
        self.last = int(TABLE_TAIL * scale) + 1
        self.bounds = tabulate_distribution(scale, self.last)
        self.high = np.array([bound >> 64 for bound in self.bounds], np.uint64)
        inside = np.bincount((self.high >> np.uint64(48)).astype(np.int64), minlength=2**16)
        below = np.cumsum(inside) - self.last
        self.lookup = np.where(inside == 0, below, UNDECIDED).astype(np.int16)
        # of 16 bits that leave two integers possible the lower one; where more are left, it is searched for
        self.lower = np.where(inside == 1, below - 1, UNDECIDED).astype(np.int16)

    def draw(self, count: int, words: WordSource) -> Array:
        """Draw (count,) int16."""
        first = words(-(-count // 4)).view(np.uint16)[:count]
        x = self.lookup.take(first)
        rows = np.flatnonzero(x == UNDECIDED)
        word = (first[rows].astype(np.uint64) << np.uint64(48)) | (words(len(rows)) >> np.uint64(16))
        lower = self.lower.take(first[rows])
        more = np.flatnonzero(lower == UNDECIDED)
        reached = lower.astype(np.int64) + self.last
        reached[more] = 0
        reached += self.high.take(reached) < word
        reached[more] = self.high.searchsorted(word[more])
        x[rows] = reached - self.last
        equal = self.high[np.minimum(reached, len(self.high) - 1)] == word
        for k in np.flatnonzero(equal).tolist():
            x[rows[k]] = bisect_right(self.bounds, (int(word[k]) << 64) + int(words(1)[0])) - self.last
        return x


@lru_cache(maxsize=16)
def make_discrete_gaussian(scale: float) -> DiscreteGaussianTable:
    """Return the table of a discrete Gaussian; the last ones are kept."""
    return DiscreteGaussianTable(scale)


def tabulate_distribution(scale: float, last: int) -> list[int]:
    """Return P(X <= x) of a discrete Gaussian for −last <= x < last, in units of 2^-128."""
    with localcontext(prec=60):
        e = (Decimal(-1) / (2 * Decimal(scale) ** 2)).exp()
        # exp(−(x+1)²/(2 scale²)) is that of x times e^(2x + 1), with e = exp(−1/(2 scale²))
        weight = Decimal(1)
        ratio = e
        half = []
        for _ in range(last):
            weight *= ratio
            ratio *= e * e
            half.append(weight)
        sums = list(accumulate([*reversed(half), Decimal(1), *half]))
        unit = Decimal(2**128) / sums[-1]
        return [int(total * unit) for total in sums[:-1]]


def floor_power_of_two(maximum: Array) -> Array:
    """Return the largest power of two that is at most ``maximum``, elementwise."""
    return np.ldexp(1.0, np.frexp(maximum)[1] - 1)


def round_to_grid(W: Array, step: Array) -> Array:
    """Round W (c, n) to the nearest points of grids with the steps ``step`` (c, 1), counted in steps: int64."""
    return np.rint(np.clip(W / step, -MAX_STEPS, MAX_STEPS)).astype(np.int64)


def laplace_steps(sensitivity: Array, n: int, epsilon: float) -> tuple[Array, Array]:
    """Return the step of the grid (c,) and the scale of Laplace noise in steps (c,) that make rows of n ε-private.

    ``sensitivity`` (c,) bounds how far one sample moves a row, in the 1-norm. Rounded rows are then at most
    sensitivity/step + n steps apart, and n more if floating-point errors moved every number by half a step. The scale
    is that distance over ε, rounded up. The step is so short that all of this adds at most 0.3 % to the noise.
    UserError if the scale is above 2^50 steps.
    """
    # A power of two: multiples of the step are then exact in floating point, and their low bits say nothing.
    step = floor_power_of_two(np.minimum(sensitivity / n, sensitivity / epsilon) / MIN_STEPS)
    distance = np.ceil(sensitivity / step * (1 + 1e-9)) + 2 * n
    scale = np.ceil(distance / epsilon * (1 + 1e-9))
    if not (scale <= MAX_SCALE).all():
        raise UserError(
            f"noise with ε = {epsilon:g} for a sensitivity of {float(np.max(sensitivity)):g} has a scale of more than "
            "2^50 steps of its grid, with which its law is not exact, so ε must be larger, or the bound of gradients "
            "smaller"
        )
    return step, scale


def minimum_epsilon(n: int) -> float:
    """Return the least ε for which the scale of noise on rows of n is at most 2^50 steps, whatever the sensitivity."""
    return (2 * MIN_STEPS + 4) * n / MAX_SCALE
