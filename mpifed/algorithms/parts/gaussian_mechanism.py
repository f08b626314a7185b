"""Gaussian noise on clipped uploads, which protects whole clients, and the privacy that it spends."""

import math

import numpy as np
from msgspec import Struct

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.parts.budget import compute_renyi_epsilon
from mpifed.algorithms.parts.noise import draw_discrete
from mpifed.core.arrays import to_numpy
from mpifed.core.discrete_noise import MAX_SCALE, MIN_STEPS, ROUND_UP, draw_discrete_gaussian, floor_power_of_two
from mpifed.core.errors import UserError

SMALLEST = 1e-280  # standard deviation of noise whose grid double precision holds


class GaussianMechanism(Struct, frozen=True):
    """Gaussian mechanism: vectors clipped to 2-norm ``clip`` C, with discrete noise of deviation multiplier·C.

    Whatever data a client has, and whatever it sent before, its clipped vector lies in a ball of radius C. Replacing
    all of its data moves the vector by at most 2C, so a vector with noise is ρ-zCDP with ρ = (2C)²/(2 multiplier² C²) =
    2/multiplier². Vectors are rounded towards 0 to a grid, which makes none longer, and the noise is a whole number of
    grid steps from the system's entropy; with a ``seed``, for tests, that of a stream. No noise: multiplier 0.

    They are clipped to C(1 − 1e-9), so that rounding errors of the norm make none longer than C.

    Source: C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", arXiv:2004.00010
    (2020), Theorem 4. Where the sum of ``parts`` vectors is protected, each has multiplier·C/√parts. Such a sum is as
    private as one discrete Gaussian but for terms of e^(−2π²s²/2), with s >= FINE steps: none that a number can hold
    (P. Kairouz, Z. Liu, T. Steinke, arXiv:2102.06387 (2021), Theorem 1).
    """

    clip: float
    multiplier: float
    seed: int | None = None

    def verify(self, parts: int = 1) -> None:
        """Raise UserError for noise whose grid would exceed 2^50 steps over a clipped vector, or double precision."""
        smallest = 2 * MIN_STEPS * math.sqrt(parts) / MAX_SCALE
        deviation = self.multiplier * self.clip / math.sqrt(parts)
        if self.multiplier < smallest:
            raise UserError(
                f"algorithm.noise_multiplier = {self.multiplier} is wrong: a clipped vector would be more than 2^50 "
                f"steps of the grid of its noise long, so it must be at least {smallest * ROUND_UP:.3g}, or 0 for no "
                "noise"
            )
        if not SMALLEST <= deviation <= 1 / SMALLEST:
            raise UserError(
                f"algorithm.noise_multiplier = {self.multiplier} is wrong with algorithm.clip = {self.clip}: the "
                f"standard deviation of the noise must be between {SMALLEST} and {1 / SMALLEST}"
            )

    def clip_rows(self, U: Array) -> Array:
        """Clip the rows of U (c, n) to length C(1 − 1e-9), in double precision; a row that is not finite becomes 0."""
        U = U.astype(np.float64)
        size = np.sqrt(np.vecdot(U, U))
        # a row that is not finite cannot be shortened, and sent as it is would reveal that this client diverged
        not_finite = ~np.isfinite(size)
        U[not_finite] = size[not_finite] = 0.0
        longest = self.clip * (1 - 1e-9)  # covers rounding errors of the norm
        return U * (longest / np.maximum(size, longest))[:, None]

    def upload(self, f: Local, Z: Array, w: Array, summands: int = 1) -> Array:
        """Return the uploads for Z (c, n): the public w (n,) plus Z − w, clipped and with noise.

        All numbers are on one grid, so that sums of uploads are exact.
        """
        return f.xp.asarray(self.add_noise(f, to_numpy(Z), to_numpy(w), summands))

    def add_noise(self, f: Local, Z: Array, w: Array, parts: int) -> Array:
        """Compute ``upload`` for numpy arrays, in which noise is drawn."""
        if not self.multiplier:
            return w + self.clip_rows(Z - w)
        deviation = self.multiplier * self.clip / math.sqrt(parts)
        step = self.step(parts)
        steps = np.full(len(Z), math.ceil(deviation / step * (1 + 1e-9)))
        # w is public, so rounding it gives nothing away, and then the uploads of all clients are on one grid
        origin = np.rint(w.astype(np.float64) / step) * step
        noisy = np.trunc(self.clip_rows(Z - origin) / step) + draw_discrete(draw_discrete_gaussian, f, steps, self.seed)
        return origin + noisy * step

    def step(self, parts: int) -> float:
        """Return the grid step of uploads, a power of two."""
        # a power of two, so that multiples of the step are exact in floating point, and so are their sums
        return float(floor_power_of_two(np.asarray(self.multiplier * self.clip / math.sqrt(parts) / MIN_STEPS)))

    def rho(self) -> float:
        """Return ρ of zero-concentrated privacy of one release."""
        return 2 / self.multiplier / self.multiplier  # not over the square, which may be 0 or too large

    def spent_epsilon(self, releases: int, delta: float, left: float = 1.0) -> float:
        """Return the ε at ``delta`` after ``releases``, by Rényi accounting; raise UserError without dp-accounting.

        ``left`` is the fraction of the variance that an observer cannot subtract.
        """
        if not releases or not self.multiplier:
            return 0.0 if not releases else math.inf
        return compute_renyi_epsilon("GaussianDpEvent", self.multiplier / 2 * math.sqrt(left), releases, delta)
