"""Noise on a grid, drawn exactly and from whole numbers alone, because floating-point noise leaks.

The low bits of a number plus floating-point noise depend on the number: some outputs can be reached from one data set
and not from its neighbour (I. Mironov 2012, doi:10.1145/2382196.2382264). Here a number is first rounded to a grid of
steps 2^e. The noise is a whole number of steps, drawn without rounding by Algorithms 1 and 2 of C. Canonne, G. Kamath,
T. Steinke, "The discrete Gaussian for differential privacy", 2020, arXiv:2004.00010. How long a draw takes is not
hidden.
"""

import os
from collections.abc import Callable

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array

Words = Callable[[int], Array]  # count -> that many independent uniform words of 64 bits, uint64

TOP = np.uint64(2**64 - 1)
LARGEST = 2.0**40  # steps from 0 to the last point of a grid: numbers beyond are moved there
MOST = 2.0**50  # steps of the scale of noise, at most: in 64 bits its law is exact up to there
UP = 1.005  # so much larger, a bound is not made smaller by writing three digits of it
FINE = 1024  # steps that a sensitivity, or the scale of noise, has at least


def entropy(count: int) -> Array:
    """Words from the operating system's entropy: nothing that is stored can repeat them."""
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def seeded(rng: np.random.Generator) -> Words:
    """The words of a random stream, for tests: whoever knows the seed can subtract the noise."""
    return rng.bit_generator.random_raw


def below(bounds: Array, words: Words) -> Array:
    """Whole numbers u, 0 <= u < bounds, each with the same probability: (k,) uint64."""
    u = words(len(bounds))
    rest = u % bounds
    # Words beyond the last whole multiple of the bound would make small remainders more likely than others: with words
    # of 0 … 7 and the bound 3, 6 and 7 are drawn again.
    again = np.flatnonzero(u - rest > TOP - (bounds - np.uint64(1)))
    if len(again):
        rest[again] = below(bounds[again], words)
    return rest


def exp_minus(numerator: Array, denominator: Array, words: Words) -> Array:
    """True with probability exp(−numerator/denominator), uint64 of at most 2^50: (k,) bool.  Source: Algorithm 1."""
    found = np.ones(len(numerator), bool)
    whole, part = np.divmod(numerator, denominator)
    # exp(−2.3) = exp(−1) · exp(−1) · exp(−0.3): once for each whole one, as long as it holds.
    for k in range(int(whole.max(initial=0))):
        rows = np.flatnonzero(found & (whole > k))
        if not len(rows):
            break
        one = np.ones(len(rows), np.uint64)
        found[rows] = _exp_minus_part(one, one, words)
    rows = np.flatnonzero(found)
    found[rows] = _exp_minus_part(part[rows], denominator[rows], words)
    return found


def _exp_minus_part(numerator: Array, denominator: Array, words: Words) -> Array:
    """The same for numerator <= denominator: the first k with no success of probability (n/d)/k is odd."""
    odd = np.zeros(len(numerator), bool)
    rows = np.arange(len(numerator))
    k = 0
    while len(rows):
        k += 1
        more = below(denominator[rows] * np.uint64(k), words) < numerator[rows]
        odd[rows[~more]] = k % 2 == 1
        rows = rows[more]
    return odd


def discrete_laplace(scale: Array, words: Words) -> Array:
    """Whole numbers x with probability proportional to exp(−|x|/scale), 1 <= scale <= 2^50 whole: (k,) int64.

    Source: Algorithm 2.
    """
    x = np.zeros(len(scale), np.int64)
    rows = np.arange(len(scale))
    scale = scale.astype(np.uint64)
    while len(rows):
        u = below(scale[rows], words)
        kept = exp_minus(u, scale[rows], words)
        u = u[kept]
        tried = rows[kept]
        size = (u + scale[tried] * _successes(len(u), words)).astype(np.int64)
        negative = (words(len(u)) & np.uint64(1)).astype(bool)
        # Else 0 could come with either sign, and twice as often as it should.
        good = ~(negative & (size == 0))
        x[tried[good]] = np.where(negative, -size, size)[good]
        rows = np.concatenate([rows[~kept], tried[~good]])
    return x


def _successes(count: int, words: Words) -> Array:
    """How often an event of probability exp(−1) happens in a row: (count,) uint64."""
    found = np.zeros(count, np.uint64)
    rows = np.arange(count)
    while len(rows):
        one = np.ones(len(rows), np.uint64)
        rows = rows[_exp_minus_part(one, one, words)]
        found[rows] += np.uint64(1)
    return found


def discrete_gaussian(scale: Array, words: Words) -> Array:
    """Whole numbers x with probability proportional to exp(−x²/(2 scale²)), 1 <= scale <= 2^24 whole: (k,) int64.

    Source: Algorithm 3, with Laplace draws of the same scale.
    """
    x = np.zeros(len(scale), np.int64)
    rows = np.arange(len(scale))
    scale = scale.astype(np.int64)
    while len(rows):
        own = scale[rows]
        drawn = discrete_laplace(own, words)
        away = np.abs(drawn) - own
        kept = exp_minus((away * away).astype(np.uint64), (2 * own * own).astype(np.uint64), words)
        x[rows[kept]] = drawn[kept]
        rows = rows[~kept]
    return x


def power_of_two(most: Array) -> Array:
    return np.ldexp(1.0, np.frexp(most)[1] - 1)


def to_grid(W: Array, step: Array) -> Array:
    """The points of the grids with these steps that are nearest to W (c, n), counted in steps (c, 1): int64."""
    return np.rint(np.clip(W / step, -LARGEST, LARGEST)).astype(np.int64)


def laplace_steps(sensitivity: Array, n: int, epsilon: float) -> tuple[Array, Array]:
    """The step of the grid (c,) and the scale of discrete Laplace noise in steps (c,) that make rows of n ε-private.

    ``sensitivity`` (c,) bounds how far one sample moves a row, in the 1-norm. Rounded rows are then at most
    sensitivity/step + n steps apart, and n more where floating-point errors had moved every number by half a step. The
    scale is that distance over ε, rounded up. The step is so short that all of this adds at most 0.3 % to the noise.
    UserError where the scale is above 2^50 steps.
    """
    # A power of two: multiples of the step are then exact in floating point, and their low bits say nothing.
    step = power_of_two(np.minimum(sensitivity / n, sensitivity / epsilon) / FINE)
    distance = np.ceil(sensitivity / step * (1 + 1e-9)) + 2 * n
    scale = np.ceil(distance / epsilon * (1 + 1e-9))
    if not (scale <= MOST).all():
        raise UserError(
            f"noise with ε = {epsilon:g} for a sensitivity of {float(np.max(sensitivity)):g} has a scale of more than "
            "2^50 steps of its grid, with which its law is not exact, so ε must be larger, or the bound of gradients "
            "smaller"
        )
    return step, scale


def least_epsilon(n: int) -> float:
    """The ε from which on the scale of noise on rows of n numbers is at most 2^50 steps, whatever their sensitivity."""
    return (2 * FINE + 4) * n / MOST
