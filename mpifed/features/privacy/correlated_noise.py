"""Noise of which later rounds subtract a part: matrix factorisation with the banded square root of prefix sums.

N. Kalinin, C. Lampert, "Banded square root matrix factorization for differentially private model training",
arXiv:2405.13763 (2024).
"""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.discrete_noise import MIN_STEPS, entropy_words, make_discrete_gaussian
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.features.privacy.accounting import GaussianRounds
from mpifed.features.privacy.mechanisms import GaussianNoise, Release, SumSizes

FINER = 2.0**-8  # steps of one draw of noise in those of the draw before
DRAWS = 3  # which add up to one of a grid that is FINER^(DRAWS − 1) times the step
EARLIER = "noise"  # names in the server's state: of the noise of the last rounds (b − 1, N), the last first
ROUND = "noise_round"  # and of the last round


class CorrelatedNoise(GaussianNoise, tag="correlated-gaussian"):
    """Gaussian noise of which later rounds subtract a part, so that sums over rounds have less of it.

    The noise of round t is fresh noise Z_t less parts of the noise of the b − 1 rounds before,

        Y_t = Z_t − Σ_{0<j<b} c_j Y_{t−j},   Z_t ~ N(0, z² C² ‖c‖² I),   c_0 = 1, c_j = c_{j−1} (2j − 1)/(2j).

    So Y = M⁻¹Z, where M has the first b bands of the square root of the matrix of prefix sums. What is released, the
    sums x with noise, is x + M⁻¹Z = M⁻¹(M x + Z). A replaced client moves x by 2C in a round in which it takes part,
    and M x by 2C‖c‖ in the b rounds from there on. Selection must keep its rounds b apart: then it moves other numbers
    in each, and its k rounds cost what they cost with independent noise and the same z. Nothing is amplified.

    The grid is that of "gaussian". Z_t is drawn on a grid 2^16 times as fine, and Y_t is rounded to that of the sums,
    which is the same as rounding what is released. That costs one fine step a number, which ε counts. With
    privacy.noise_seed there is no grid. Checkpoints keep the noise of the last b − 1 rounds.
    Sources: arXiv:2405.13763 (2024); of clients that come back C. Choquette-Choo et al., arXiv:2306.08153 (2023); of
    sums that depend on earlier ones S. Denisov et al., arXiv:2202.08312 (2022).
    """

    # As "gaussian": the noise does not depend on the clients, and that of earlier rounds is in checkpoints.
    supports = Supports.EVERYTHING

    bands: Annotated[
        int, Meta(ge=2, le=1024, description="b: rounds that share noise; a client takes part in one of any b")
    ] = 8

    observers = f"{GaussianNoise.observers}, which has the noise of the last rounds"

    @property
    def span(self) -> int:
        return self.bands

    def rounds(self, multiplier: float, probability: float | None, sums: SumSizes) -> GaussianRounds:
        """Return rounds of independent noise that cost as much: those of z, or a little less for rounding.

        In each of its rounds a replaced client moves M x by 2/z deviations of Z at most. In the b − 1 rounds that
        follow, the rounding of noise may differ by one fine step in each of N numbers.
        """
        if not multiplier:
            return GaussianRounds(0.0, probability)
        fine = FINER ** (DRAWS - 1) / (MIN_STEPS * self.norm)
        rounding = math.sqrt((self.bands - 1) * sums.numbers) * fine
        return GaussianRounds(1 / (1 / multiplier + rounding / 2), probability)

    def add_noise(self, total: Array, release: Release, plan: Array, numbers: int) -> Array:
        if not release.deviation:
            return total
        assert release.memory is not None
        step = float(plan[0])
        earlier = recall_noise(release, self.bands - 1, numbers)
        if release.rng is not None:
            noise = release.rng.normal(0.0, self.norm * release.deviation, numbers)
        else:
            noise = draw_fine_noise(numbers, MIN_STEPS * self.norm)
        # number by number, so that the bits are not those of a library's blocks
        for factor, row in zip(find_bands(self.bands)[1:].tolist(), earlier, strict=True):
            noise -= factor * row
        if step:
            noise = np.rint(noise)
        release.memory[EARLIER] = np.concatenate([noise[None], earlier[:-1]])
        release.memory[ROUND] = np.asarray(release.round)
        return (total + noise) * (step or 1.0)

    @property
    def norm(self) -> float:
        """The 2-norm ‖c‖ of a column of the matrix: how much further a client moves what shares noise."""
        return float(np.linalg.norm(find_bands(self.bands)))

    def describe_noise(self, deviation: float) -> str:
        fresh = f"fresh noise of deviation {self.norm * deviation:.4g} on each number of a round's sum"
        return f"{fresh}, less parts of the noise of {self.bands - 1} rounds before"

    def describe_reach(self, moved: float) -> str:
        together = f"each moves the sums that share noise by {self.norm * moved:.4g} together"
        return f"; its rounds are {self.bands} apart or more, and {together}"


def find_bands(b: int) -> Array:
    """Return the bands c (b,): the first coefficients of (1 − x)^(−½), whose square is 1 + x + x² + …"""
    j = np.arange(1, b)
    return np.cumprod(np.append(1.0, (2 * j - 1) / (2 * j)))


def recall_noise(release: Release, count: int, numbers: int) -> Array:
    """Return the noise (count, N) of the rounds before, the last first; 0 in rounds without a sum."""
    earlier = np.zeros((count, numbers))
    assert release.memory is not None
    if EARLIER in release.memory:
        skipped = min(release.round - int(release.memory[ROUND]) - 1, count)
        earlier[skipped:] = release.memory[EARLIER][: count - skipped]
    return earlier


def draw_fine_noise(count: int, scale: float) -> Array:
    """Draw discrete Gaussian noise (count,) of the deviation ``scale`` from the system's entropy, on a fine grid.

    It is a sum of discrete Gaussians on finer and finer grids. The deviation of each is at least four steps of the grid
    before, so that the law of the sum is that of a discrete Gaussian to a factor of 1 ± 2 exp(−300).
    """
    table = make_discrete_gaussian(scale)
    return np.sum([table.draw(count, entropy_words) * FINER**k for k in range(DRAWS)], axis=0)
