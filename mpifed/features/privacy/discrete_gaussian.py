"""Noise that clients add before their vectors are summed under masks: the distributed discrete Gaussian mechanism.

P. Kairouz, Z. Liu, T. Steinke, "The distributed discrete Gaussian mechanism for federated learning with secure
aggregation", arXiv:2102.06387 (2021).
"""

import math
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import import_accounting
from mpifed.core.discrete_noise import MIN_STEPS, entropy_words, make_discrete_gaussian, seeded_words
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array, PositiveFloat
from mpifed.features.privacy.accounting import Accountant, epsilon_of_rdp
from mpifed.features.privacy.mechanisms import MAX_BITS, Mechanism, Release, SumSizes
from mpifed.federation.transform import ClientBatch

CHUNK = 1 << 15  # numbers that are rotated, rounded and get their noise at a time: they fit into a processor's cache
SHORTEST_SCALE = 0.5  # steps of a client's noise from which on the bounds of ε hold
LONGEST = 2.0**50  # steps of a vector at most, so that double precision counts them


class Grid(NamedTuple):
    """The grid of a sum: its step γ, and in steps the deviation of a client's noise, and the longest rounded vector."""

    step: float
    scale: float
    longest: float


class DiscreteGaussianRounds(NamedTuple):
    """Rounds whose sums have the noise of ``fewest`` to ``most`` clients each, on vectors of ``dimension`` numbers.

    A client is replaced, which moves the sum by at most twice the longest rounded vector. Source: arXiv:2102.06387,
    Theorem 1 and Proposition 14, with D_α of the sum of noises bounded by the least of

        α Δ₂²/2 + τ d,   α (Δ₂² + 2 Δ₁ τ + τ² d)/2,   α (Δ₂ + τ √d)²/2,   τ = 10 Σ_{k<most} exp(−2π² s² k/(k + 1)),

    with s the scale of one client's noise, and Δ₁, Δ₂ in deviations of that of ``fewest``. τ is there because a sum of
    discrete Gaussians is none; from s = 1.5 on it is below 1e-8 for each client.
    """

    noise_multiplier: float
    grid: Grid
    dimension: int
    fewest: int
    most: int

    @property
    def probability(self) -> None:
        """Return that of being selected: None, because nothing is amplified."""

    @property
    def accountants(self) -> tuple[Accountant, ...]:
        """Return by what ε is computed: the source bounds Rényi divergences."""
        return ("rdp",)

    def renyi(self, orders: Any) -> Array:
        """Return the Rényi divergences of one round at these orders."""
        d = self.dimension
        k = np.arange(1, self.most)
        tau = 10 * float(np.exp(-2 * (math.pi * self.grid.scale) ** 2 * k / (k + 1)).sum())
        deviation = math.sqrt(self.fewest) * self.grid.scale
        two = 2 * self.grid.longest / deviation
        # a vector of integers has a 1-norm of at most the square of its 2-norm
        one = two * min(math.sqrt(d), self.grid.longest)
        alpha = np.asarray(orders, np.float64)
        bounds = np.minimum(two**2 + 2 * one * tau + tau**2 * d, (two + tau * math.sqrt(d)) ** 2)
        return np.minimum(alpha * two**2 / 2 + tau * d, alpha * bounds / 2)

    def epsilon(self, rounds: int, delta: float, by: Accountant = "rdp") -> float:
        """Return the ε of ``rounds`` at ``delta``, infinite without enough noise; UserError without dp-accounting."""
        if not rounds:
            return 0.0
        if self.grid.scale < SHORTEST_SCALE:
            return math.inf
        orders = import_accounting().rdp.RdpAccountant().orders
        return epsilon_of_rdp(orders, rounds * self.renyi(orders), delta)

    def epsilon_bound(self, rounds: int, delta: float, by: Accountant = "rdp") -> float:
        """Return ``epsilon``, which costs little."""
        return self.epsilon(rounds, delta, by)


class DistributedDiscreteGaussian(Mechanism, tag="distributed-discrete-gaussian"):
    """Discrete Gaussian noise in each client, under [masks]: the server never sees a sum without noise.

    A client's vector, clipped to C, is rotated by a Hadamard matrix and signs that all share, padded with zeros to
    d = 2^j numbers, counted in steps γ, rounded up or down at random, anew until no longer than

        Δ² = min(C²/γ² + d/4 + √(2 log 1/β) (C/γ + √d/2), (C/γ + √d)²),

    gets noise N_Z(0, z²C²/(u γ²)) and travels modulo 2^b, b = masks.bits; the server rotates the sum back. u is the
    least number of clients that reply: all that are selected, or system.least where clients may be absent, so that the
    noise suffices whoever drops out. For sums of s clients γ is the step with which k standard deviations fit into b,

        2^b γ = 2k √(C² s²/d + s (γ²/4 + z²C²/u)),

    but at least 1/1024 of the deviation of a client's noise; masks.fraction has no effect. Each client knows its own
    noise, which is 1/u of all.
    Source: arXiv:2102.06387 (2021), Algorithms 1 and 2, Theorem 1, and section 4 for γ.
    """

    # Noise is drawn where a client is: from the system's entropy, or from the client's stream with a seed.
    supports = Supports.EVERYTHING

    rounding: Annotated[
        float,
        Meta(ge=0, le=0.99, description="β: rounding is repeated with at most this probability, for a shorter vector"),
    ] = math.exp(-0.5)
    deviations: Annotated[
        PositiveFloat, Meta(description="k: standard deviations of a number of the sum that masks.bits hold")
    ] = 4.0

    observers = "clients that pool what they know of their noise; whoever reads f, accuracy or the checkpoint"
    spent = "epsilon_rdp is a bound of the ε spent so far"
    under_masks = True

    def find_grid(self, bound: float, deviation: float, sums: SumSizes) -> Grid:
        """Return the grid of sums of vectors of this length, and of noise of this deviation with the fewest clients."""
        d = round_up_to_power(sums.numbers)
        share = deviation / math.sqrt(sums.fewest)
        room = 4.0**sums.bits - self.deviations**2 * sums.most
        step = math.inf
        if room > 0:
            variance = (bound * sums.most) ** 2 / d + sums.most * share**2
            step = 2 * self.deviations * math.sqrt(variance / room)
        step = max(step, share / MIN_STEPS, bound / LONGEST)
        length = bound / step
        longest = length + math.sqrt(d)
        if self.rounding:
            slack = math.sqrt(-2 * math.log(self.rounding)) * (length + math.sqrt(d) / 2)
            longest = min(longest, math.sqrt(length**2 + d / 4 + slack))
        return Grid(step, share / step, longest)

    def rounds(self, multiplier: float, probability: float | None, sums: SumSizes) -> DiscreteGaussianRounds:
        grid = self.find_grid(1.0, multiplier, sums)
        d = round_up_to_power(sums.numbers)
        return DiscreteGaussianRounds(multiplier, grid, d, sums.fewest, sums.most)

    def plan(self, release: Release, sums: SumSizes, dtype: np.dtype[np.floating]) -> Array:
        """Return the step of the grid, the scale of noise, the longest rounded vector, and a seed that all know."""
        grid = self.find_grid(release.bound, release.deviation, sums)
        if release.deviation and grid.scale < SHORTEST_SCALE:
            self.refuse_bits(release, sums)
        return np.array([*grid, sums.bits, release.shared], np.float64)

    def refuse_bits(self, release: Release, sums: SumSizes) -> None:
        """Raise UserError for a modulus so small that a client's noise is less than half a step."""
        enough = range(sums.bits + 1, MAX_BITS + 1)
        scales = (self.find_grid(release.bound, release.deviation, sums._replace(bits=b)).scale for b in enough)
        needed = next((b for b, scale in zip(enough, scales, strict=True) if scale >= SHORTEST_SCALE), None)
        cure = f"it must be at least {needed}" if needed else "and privacy.noise_multiplier must be larger"
        raise UserError(
            f'masks.bits = {sums.bits} is wrong with privacy.mechanism = "{self.label()}": for the sum of {sums.most} '
            f"clients the noise of one would be less than half a step of the grid, so {cure}"
        )

    def protect(self, batch: ClientBatch, rows: Array, scale: Array, plan: Array, seed: int | None) -> Array:
        """Return the integers (c, d) that clients send."""
        step, noise, longest, bits, shared = plan.tolist()
        f = batch.f
        rows *= scale / step
        d = round_up_to_power(rows.shape[1])
        result = np.empty((len(rows), d))
        signs = draw_signs(int(shared), rows.shape[1])
        words = None if seed is None else [seeded_words(rng) for rng in f.streams(seed, "noise")]
        rngs = f.streams(int(shared), "rounding")
        size = max(CHUNK // d, 1)
        for first in range(0, len(rows), size):
            some = slice(first, first + size)
            # half the time of double precision; rounding to whole steps hides far more than its rounding errors
            rotated = rotate((rows[some] * signs).astype(np.float32), d)
            rounded = round_at_random(rotated, longest, rngs[some])
            if noise:
                rounded += draw_rows(noise, rounded.shape, None if words is None else words[some])
            result[some] = wrap(rounded, int(bits))
        return result

    def add_noise(self, total: Array, release: Release, plan: Array, numbers: int) -> Array:
        """Return the sum (N,) for the integers (d,) that clients sent together: their noise is in it."""
        signs = draw_signs(int(plan[-1]), numbers)
        return rotate(total[None] * plan[0], len(total))[0, :numbers] * signs


def round_up_to_power(n: int) -> int:
    """Return the least power of two that is n or more."""
    return 1 << max(n - 1, 0).bit_length()


@lru_cache(maxsize=1)
def draw_signs(seed: int, n: int) -> Array:
    """Draw n signs ±1 that all who know the seed have in common; those of a round are kept for its next clients."""
    return 1.0 - 2.0 * stream(seed, "rotation").integers(0, 2, n)


def rotate(rows: Array, d: int) -> Array:
    """Return the rows (c, n), padded with zeros to length d = 2^j, times the Hadamard matrix over √d: (c, d).

    Twice is the identity. Sums and differences of halves, j times: d log d additions.
    """
    a = np.zeros((len(rows), d), rows.dtype)
    np.multiply(rows, 1 / math.sqrt(d), out=a[:, : rows.shape[1]])
    b = np.empty_like(a)
    for _ in range(d.bit_length() - 1):
        halves = a.reshape(-1, 2, d // 2)
        pairs = b.reshape(-1, d // 2, 2)
        np.add(halves[:, 0], halves[:, 1], out=pairs[:, :, 0])
        np.subtract(halves[:, 0], halves[:, 1], out=pairs[:, :, 1])
        a, b = b, a
    return a


def round_at_random(rows: Array, longest: float, rngs: list[np.random.Generator]) -> Array:
    """Round numbers of rows (c, d) up or down, without bias, anew until no row is longer than ``longest``.

    For rows of length C in steps the bound of ``DistributedDiscreteGaussian`` holds with probability 1 − β at least.
    """
    result = np.empty(rows.shape)
    left = np.arange(len(rows))
    while len(left):
        for k in left.tolist():
            row = result[k]
            raw: Any = rngs[k].bit_generator.random_raw(-(-len(row) // 2))
            np.multiply(raw.view(np.uint32)[: len(row)], 2.0**-32, out=row)
            row += rows[k]
            np.floor(row, out=row)
        left = left[np.vecdot(result, result)[left] > longest**2]
    return result


def draw_rows(scale: float, shape: tuple[int, ...], words: list[Any] | None) -> Array:
    """Draw discrete Gaussian noise (c, d): from the system's entropy, or each row from its own ``words``."""
    table = make_discrete_gaussian(scale)
    if words is None:
        return table.draw(math.prod(shape), entropy_words).reshape(shape)
    return np.array([table.draw(shape[1], source) for source in words])


def wrap(rows: Array, bits: int) -> Array:
    """Return integers modulo 2^bits, between −2^(bits − 1) and 2^(bits − 1) − 1."""
    half = 1 << (bits - 1)
    if max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0))) < half:
        return rows
    integers = rows.astype(np.int64) + half
    return ((integers & ((1 << bits) - 1)) - half).astype(np.float64)
