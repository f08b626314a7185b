"""Mechanisms of [privacy]: how the sum of clipped changes gets its noise, and what that guarantees."""

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from mpifed.core.component import Component
from mpifed.core.discrete_noise import (
    MIN_STEPS,
    ROUND_UP,
    draw_discrete_gaussian,
    entropy_words,
    make_discrete_gaussian,
)
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.features.privacy.accounting import GaussianRounds, PrivateRounds
from mpifed.federation.transform import ClientBatch

MAX_BITS = 48  # of the integers that clients send: double precision holds them, and sums of noise and signal


class Release(NamedTuple):
    """One noisy sum: vectors of length ``bound`` at most, and noise of standard ``deviation`` on each number.

    ``rng``: the stream of a noise_seed; None: noise comes from the entropy of the operating system. ``shared``: a
    seed below 2^53 of this sum, which clients know. ``round``: its round. ``memory``: arrays by name that a mechanism
    keeps for later rounds; checkpoints save them.
    """

    bound: float
    deviation: float
    rng: np.random.Generator | None = None
    shared: int = 0
    round: int = 0
    memory: dict[str, Array] | None = None


class SumSizes(NamedTuple):
    """Sizes of the sums of a run: ``numbers`` N of a vector, ``fewest`` and ``most`` clients, ``bits`` under masks."""

    numbers: int
    fewest: int
    most: int
    bits: int = 0


class Mechanism(Component):
    """A mechanism of [privacy]: noise of standard deviation noise_multiplier · clip on each number of a sum.

    ``protect`` is what clients do with their clipped vectors, ``add_noise`` what the server does with their sum.
    """

    choices: ClassVar[dict[str, str]] = {
        "gaussian": "mpifed.features.privacy.mechanisms:GaussianNoise",
        "correlated-gaussian": "mpifed.features.privacy.correlated_noise:CorrelatedNoise",
        "distributed-discrete-gaussian": "mpifed.features.privacy.discrete_gaussian:DistributedDiscreteGaussian",
    }
    default: ClassVar[str] = "gaussian"
    kind: ClassVar[str] = "mechanisms"

    observers: ClassVar[str]  # from whom the noise does not protect a client
    spent: ClassVar[str]  # which columns say what ε is spent
    under_masks: ClassVar[bool] = False  # whether clients send integers, which [masks] adds up modulo 2^bits

    @property
    def span(self) -> int:
        """The number of rounds that share noise, in at most one of which a client may take part."""
        return 1

    @abstractmethod
    def rounds(self, multiplier: float, probability: float | None, sums: SumSizes) -> PrivateRounds:
        """Return what the rounds of a run release, to account for; ``probability`` of Poisson sampling, or None."""

    @abstractmethod
    def plan(self, release: Release, sums: SumSizes, dtype: np.dtype[np.floating]) -> Array:
        """Return what clients need to know of a sum; the first number is the step of their grid, 0 for none."""

    @abstractmethod
    def protect(self, batch: ClientBatch, rows: Array, scale: Array, plan: Array, seed: int | None) -> Array:
        """Return what clients send for their vectors, the rows (c, N), of which ``scale`` makes clipped ones.

        It may write into ``rows``. ``seed`` is privacy.noise_seed.
        """

    @abstractmethod
    def add_noise(self, total: Array, release: Release, plan: Array, numbers: int) -> Array:
        """Return the noisy sum (N,) of N ``numbers`` of clipped vectors for the sum ``total`` that arrived."""

    def describe_noise(self, deviation: float) -> str:
        """Return what noise a sum has, for a statement; ``deviation`` is noise_multiplier · clip."""
        return f"noise of deviation {deviation:.4g} on each number of a round's sum"

    def describe_reach(self, moved: float) -> str:
        """Return what else a client moves that moves a sum by ``moved``; empty: nothing."""
        return ""


class GaussianNoise(Mechanism, tag="gaussian"):
    """Gaussian noise that the server adds to the sum, which it sees without noise.

    Vectors are counted in steps of 1/1024 of the noise's standard deviation, rounded towards 0, so that sums are exact,
    and the noise is a whole number of steps, drawn to 128 bits of its law: the low bits of a sum tell nothing.
    With privacy.noise_seed there is no grid, and the noise is that of numpy's generator.
    Source: arXiv:2004.00010 (2020), Algorithm 3 and Theorem 4; of the grid I. Mironov, doi:10.1145/2382196.2382264.
    """

    # The noise of a sum does not depend on what the clients are, nor on their number.
    supports = Supports.EVERYTHING

    observers = "the server, which sees sums (with [masks]) or uploads; whoever reads f, accuracy or the checkpoint"
    spent = "epsilon_pld is the ε spent so far, epsilon_rdp a larger bound of it"

    def rounds(self, multiplier: float, probability: float | None, sums: SumSizes) -> GaussianRounds:
        return GaussianRounds(multiplier, probability)

    def plan(self, release: Release, sums: SumSizes, dtype: np.dtype[np.floating]) -> Array:
        if not release.deviation or release.rng is not None:
            return np.zeros(1)
        step = find_step(release.deviation)
        exact = 2.0 ** (np.finfo(dtype).nmant + 1)  # whole numbers up to this one are exact
        if sums.most * release.bound / step > exact:
            needed = ROUND_UP * MIN_STEPS * sums.most / exact
            raise UserError(
                f"privacy.noise_multiplier = {release.deviation / release.bound:.3g} is wrong: sums in {dtype} cannot "
                f"hold the grid of so little noise, so it must be at least {needed:.3g}"
                + (', or dtype must be "float64"' if dtype == np.float32 else "")
            )
        return np.array([step])

    def protect(self, batch: ClientBatch, rows: Array, scale: Array, plan: Array, seed: int | None) -> Array:
        step = float(plan[0])
        rows *= scale / step if step else scale
        return np.trunc(rows, out=rows) if step else rows

    def add_noise(self, total: Array, release: Release, plan: Array, numbers: int) -> Array:
        return total * (float(plan[0]) or 1.0) + draw_noise(numbers, release.deviation, release.rng)


def find_step(deviation: float) -> float:
    """Return the step of the grid of noise of this standard deviation, which are always as many steps."""
    return deviation / MIN_STEPS


def draw_half_steps(deviation: float, rng: np.random.Generator | None) -> float:
    """Draw Gaussian noise for a multiple of ½, in steps that ½ is a multiple of, or as a generator has it."""
    if rng is not None or not deviation:
        return float(draw_noise(1, deviation, rng)[0])
    steps = 2 * math.ceil(MIN_STEPS / 2 / deviation)  # in 1
    return float(draw_discrete_gaussian(np.array([math.ceil(deviation * steps)]), entropy_words)[0]) / steps


def draw_noise(count: int, deviation: float, rng: np.random.Generator | None) -> Array:
    """Draw Gaussian noise (count,): on a grid, from the system's entropy, or as a generator has it."""
    if not deviation:
        return np.zeros(count)
    if rng is not None:
        return rng.normal(0.0, deviation, count)
    return make_discrete_gaussian(float(MIN_STEPS)).draw(count, entropy_words) * find_step(deviation)
