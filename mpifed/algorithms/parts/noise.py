"""Noise on uploads: Laplace noise, and Gaussian noise on clipped uploads, which protects whole clients."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Local, Privacy
from mpifed.algorithms.parts.budget import (
    DRAWN_ANEW,
    Budget,
    UploadCounts,
    compute_renyi_epsilon,
    count_replayed_uploads,
    import_accounting,
)
from mpifed.core.arrays import namespace, to_numpy
from mpifed.core.discrete_noise import (
    MAX_SCALE,
    MIN_STEPS,
    ROUND_UP,
    WordSource,
    draw_discrete_gaussian,
    draw_discrete_laplace,
    entropy_words,
    floor_power_of_two,
    laplace_steps,
    minimum_epsilon,
    round_to_grid,
    seeded_words,
)
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.federation.traits import Max, RecordValues

MEANING = "Laplace noise on uploads: released (the printed scale) and matched (times the step) guarantee no privacy"
UnprovenNoise = Annotated[Literal["released", "matched", "none"], Meta(description=MEANING)]
NoiseChoice = Annotated[
    Literal["released", "matched", "clipped", "none"],
    Meta(description=f"{MEANING}, clipped does: docs/privacy.md"),
]
NoiseSeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
    Meta(description="seed of clipped noise, for tests: there is no guarantee then (default: the system's entropy)"),
]


class LaplaceNoise(Struct, frozen=True):
    """Laplace noise of scale s_i/ε on uploads, from each client's own stream; subclasses differ in s_i.

    s_i is how far a change of one sample moves the upload of client i in the 1-norm, or a stand-in for it: here, of
    "released" noise, the printed 2‖∇f_i(x)‖₁/μ_i, fedepm (39), which depends on the data and bounds nothing; ε is a
    name only, and Theorem V.1 leaves out how earlier uploads moved w_i: errata. The first uploads, which depend on no
    data, have noise of standard deviation 1/mu0. ``clip``, ``delta`` and ``seed`` are for ``Clipped`` alone.
    """

    epsilon: float
    mu0: float
    clip: float = 1.0
    delta: float = 1e-5
    seed: int | None = None

    gradients: ClassVar[int] = 1  # gradients that the stand-in takes, where a method has none to share

    def verify(self) -> None:
        """Raise UserError before round one for a seed that has no effect, or a missing library."""
        if self.seed is not None:
            raise UserError(
                f'algorithm.noise_seed = {self.seed} is wrong: only noise = "clipped" has a seed of its own, '
                "other noise comes from the run's seed"
            )

    def verify_size(self, n: int) -> None:
        """Raise UserError before round one where noise on models of n numbers is impossible."""

    def privacy(self) -> Privacy | None:
        """Return the privacy guarantee of uploads; None without noise."""
        return Privacy(
            False, "the noise does not cover what a sample changes, and whoever knows the seed can subtract it"
        )

    @property
    def supports(self) -> Supports:
        # Noise comes from streams of the seed: it repeats, and whoever knows the seed can subtract it.
        return Supports.REPEATED | Supports.DEVICES

    def gradient(self, f: Local, x: Array) -> Array:
        """Return the gradients that clients step along: (c, n)."""
        return f.grad(x)

    def squared_distance(self, difference: Array) -> Array:
        """Return ‖w_i − x‖², which scales steps: (c,)."""
        return namespace(difference).vecdot(difference, difference)

    def rate(self, printed_step: Array | float, last_step: Array | float) -> Array | float:
        """Return the step that multiplies the stand-in 2‖∇f_i(x)‖₁, in units of the method's choice."""
        return printed_step

    def sensitivity(self, stand_in: Array) -> Array:
        """Return s_i: (c,)."""
        return stand_in

    def grow_reach(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        """Return the bound of s_i after a step w = x + soft(step (w − x) − g, λ)/(eta + step): (c,)."""
        return reach

    def first_noise(self, f: Local) -> Array:
        """Return the noise of the first uploads: (c, n)."""
        return draw_laplace(f, f.xp.full(len(f), 1 / self.mu0 / math.sqrt(2)))

    def upload(self, f: Local, w: Array, stand_in: Array, reach: Array | float = 0.0) -> tuple[Array, Array]:
        """Return z_i = w_i + noise (c, n) and log10(‖w_i‖/‖noise_i‖) (c,)."""
        noise = draw_laplace(f, self.sensitivity(stand_in) / self.epsilon)
        return w + noise, log_signal_to_noise(w, noise)

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        """Return columns to record: the smallest ratio, and ε times the most ``releases`` of a client."""
        return {"snr": snr, "epsilon": Budget(self.epsilon, releases).basic_epsilon()}


class MatchedNoise(LaplaceNoise, frozen=True):
    """Laplace noise for the last step taken in place of 1/μ_i; k0 steps move w_i farther, so ε is a name only."""

    def rate(self, printed_step: Array | float, last_step: Array | float) -> Array | float:
        return last_step


class ClippedNoise(LaplaceNoise, frozen=True):
    """Laplace noise with clipped samples' gradients (1-norm ``clip``): s_i bounds how far one sample can move w_i.

    w_i is rounded to a grid and the noise is discrete Laplace, exact, from the system's entropy: each upload is
    ε-private, whatever was uploaded before. With a ``seed`` the noise is that of a stream and guarantees nothing.
    """

    def privacy(self) -> Privacy:
        if self.seed is not None:
            return Privacy(False, f"whoever knows algorithm.noise_seed = {self.seed} can subtract the noise")
        text = f"each upload is ε-private with ε = {self.epsilon:g}"
        return Privacy(True, f"{text} (neighbours: one sample of one client replaced)", double=True)

    @property
    def supports(self) -> Supports:
        # The system's entropy gives other noise on other ranks and after a resumption, where lost draws count again.
        return super().supports if self.seed is not None else DRAWN_ANEW | Supports.SAMPLES | Supports.DOUBLE

    def verify(self) -> None:
        import_accounting()

    def verify_size(self, n: int) -> None:
        smallest = minimum_epsilon(n)
        if self.epsilon < smallest:
            raise UserError(
                f"algorithm.epsilon = {self.epsilon} is wrong: noise on {n} numbers would have a scale of more than "
                "2^50 steps of its grid, with which its law is not exact, so it must be at least "
                f"{smallest * ROUND_UP:.3g}"
            )

    def gradient(self, f: Local, x: Array) -> Array:
        return f.clipped_grad(x, self.clip)

    def squared_distance(self, difference: Array) -> Array:
        """Return 0: steps must not depend on the data, or the bound of s_i, made of steps, would tell something."""
        return namespace(difference).zeros(difference.shape[0])

    def grow_reach(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        return (step * reach + 2 * self.clip / d) / (eta + step)

    def upload(self, f: Local, w: Array, stand_in: Array, reach: Array | float = 0.0) -> tuple[Array, Array]:
        # on the CPU and in whole steps: the last bits of a noisy float can reveal the number under the noise
        step, scale = laplace_steps(np.asarray(to_numpy(reach), np.float64), f.n, self.epsilon)
        w_cpu = to_numpy(w)
        z = (round_to_grid(w_cpu, step[:, None]) + draw_discrete(draw_discrete_laplace, f, scale, self.seed)) * step[
            :, None
        ]
        return f.xp.asarray(z.astype(w_cpu.dtype)), f.xp.asarray(log_signal_to_noise(w_cpu, z - w_cpu))

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        accounted = Budget(self.epsilon, releases).renyi_epsilon(self.delta)
        return super().columns(snr, releases) | {"epsilon_accounted": accounted}


class NoNoise(LaplaceNoise, frozen=True):
    """No noise."""

    gradients: ClassVar[int] = 0

    def privacy(self) -> Privacy | None:
        return None

    def sensitivity(self, stand_in: Array) -> Array:
        return namespace(stand_in).zeros(stand_in.shape[0])

    def first_noise(self, f: Local) -> Array:
        return f.zeros()

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        return {}


NOISES: dict[str, type[LaplaceNoise]] = {
    "released": LaplaceNoise,
    "matched": MatchedNoise,
    "clipped": ClippedNoise,
    "none": NoNoise,
}


class NoisyAlgorithm(Algorithm):
    """Base of algorithms whose clients upload z_i = w_i + noise.

    The clients' state has ``w``, ``z`` and ``ratio``; the server's has ``uploads`` (m,), the noisy uploads so far.
    """

    @abstractmethod
    def mechanism(self) -> LaplaceNoise:
        """Return the noise that the options name."""

    def verify(self, selected: int) -> None:
        self.mechanism().verify()

    def privacy(self) -> Privacy | None:
        return self.mechanism().privacy()

    def replayed_rounds(self, server: UploadCounts, rounds: int) -> UploadCounts:
        return count_replayed_uploads(server, rounds, self.privacy())

    def first(self, f: Local, client: Any, *args: Any) -> tuple[Any, Array]:
        """Return z_i⁰ = w_i⁰ + noise."""
        z = client.w + self.mechanism().first_noise(f)
        return client._replace(z=z), z

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        return {"snr": Max(-client.ratio)}

    def report(self, server: UploadCounts, row: dict[str, float], m: int) -> dict[str, float]:
        return self.mechanism().columns(-row["snr"], int(server.uploads.max(initial=0)))


def draw_discrete(sampler: Callable[[Array, WordSource], Array], f: Local, scale: Array, seed: int | None) -> Array:
    """Draw discrete noise of ``scale`` (c,) steps: (c, n) whole numbers.

    It comes from the system's entropy, or with a ``seed`` from a stream of each client.
    """
    # whoever knows the seed can repeat a stream, so it hides nothing: streams are for tests only
    if seed is None:
        return sampler(np.repeat(scale, f.n), entropy_words).reshape(len(f), f.n)
    rngs = f.streams(seed, "noise")
    return np.array([sampler(np.full(f.n, s), seeded_words(rng)) for s, rng in zip(scale, rngs, strict=True)])


def draw_laplace(f: Local, scale: Array) -> Array:
    """Draw Laplace noise (c, n) of scale (c,), each client's from its own stream."""
    noise = to_numpy(f.zeros())
    # row by row from the client's own stream, so that its noise does not depend on who else is in the block
    for row, rng, s in zip(noise, f.rng, to_numpy(scale).tolist(), strict=True):
        row[:] = rng.laplace(0.0, s, f.n)
    return f.xp.asarray(noise)


def log_signal_to_noise(W: Array, noise: Array) -> Array:
    """Return log10(‖w_i‖/‖noise_i‖): (c,), infinite without noise (fedepm, the SNR of section VII.C)."""
    xp = namespace(W)
    w, e = xp.sqrt(xp.vecdot(W, W)), xp.sqrt(xp.vecdot(noise, noise))
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.where(e > 0, xp.log10(w / xp.where(e > 0, e, 1.0)), math.inf)


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
