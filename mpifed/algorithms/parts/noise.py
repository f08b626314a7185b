"""Laplace noise on uploads."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Local, Privacy
from mpifed.algorithms.parts.budget import DRAWN_ANEW, Budget, Counting, accounting, recounted
from mpifed.core.arrays import namespace, to_numpy
from mpifed.core.discrete_noise import (
    UP,
    Words,
    discrete_laplace,
    entropy,
    laplace_steps,
    least_epsilon,
    seeded,
    to_grid,
)
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Max, Recorded

MEANING = "Laplace noise on uploads: released (the printed scale) and matched (times the step) guarantee no privacy"
Unproven = Annotated[Literal["released", "matched", "none"], Meta(description=MEANING)]
Guaranteed = Annotated[
    Literal["released", "matched", "clipped", "none"],
    Meta(description=f"{MEANING}, clipped does: docs/privacy.md"),
]
NoiseSeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
    Meta(description="seed of clipped noise, for tests: there is no guarantee then (default: the system's entropy)"),
]


class Noise(Struct, frozen=True):
    """Laplace noise on uploads of scale s_i/ε, drawn from each client's own stream. The family differs in s_i.

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
        """Refuse, before round one, a seed that does not belong here, and a library that is missing (UserError)."""
        if self.seed is not None:
            raise UserError(
                f'algorithm.noise_seed = {self.seed} is wrong: only noise = "clipped" has a seed of its own, '
                "other noise comes from the run's seed"
            )

    def verify_size(self, n: int) -> None:
        """Refuse, before round one, what cannot be on models of n numbers (UserError)."""

    def privacy(self) -> Privacy | None:
        """What the uploads guarantee about single samples; None where there is no noise."""
        return Privacy(
            False, "the noise does not cover what a sample changes, and whoever knows the seed can subtract it"
        )

    @property
    def keeps(self) -> Keeps:
        # It comes from streams of the seed: it falls alike again, and whoever knows the seed takes it off.
        return Keeps.REPEATED | Keeps.DEVICES

    def gradient(self, f: Local, x: Array) -> Array:
        """What clients step along: (c, n)."""
        return f.grad(x)

    def square(self, away: Array) -> Array:
        """‖w_i − x‖² as a factor of steps: (c,)."""
        return namespace(away).vecdot(away, away)

    def rate(self, printed: Array | float, taken: Array | float) -> Array | float:
        """The step that the stand-in 2‖∇f_i(x)‖₁ is multiplied by, in units of the method's choice."""
        return printed

    def sensitivity(self, stand_in: Array) -> Array:
        """s_i: (c,)."""
        return stand_in

    def grow(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        """The bound of s_i after a step w = x + soft(step (w − x) − g, λ)/(eta + step): (c,)."""
        return reach

    def first(self, f: Local) -> Array:
        """The noise of the first uploads: (c, n)."""
        return laplace(f, f.xp.full(len(f), 1 / self.mu0 / math.sqrt(2)))

    def upload(self, f: Local, w: Array, stand_in: Array, reach: Array | float = 0.0) -> tuple[Array, Array]:
        """z_i = w_i + noise (c, n) and log10(‖w_i‖/‖noise_i‖) (c,)."""
        noise = laplace(f, self.sensitivity(stand_in) / self.epsilon)
        return w + noise, log_ratio(w, noise)

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        """The record: the smallest ratio, and the named ε times the ``releases`` of the client with most."""
        return {"snr": snr, "epsilon": Budget(self.epsilon, releases).basic()}


class Matched(Noise, frozen=True):
    """The same with the last step that is taken in place of 1/μ_i; k0 steps move w_i farther. ε is a name only."""

    def rate(self, printed: Array | float, taken: Array | float) -> Array | float:
        return taken


class Clipped(Noise, frozen=True):
    """Samples' gradients are clipped to 1-norm ``clip``, and s_i bounds how far one sample can have moved w_i.

    w_i is rounded to a grid and the noise is discrete Laplace, exact, from the system's entropy: each upload is
    ε-private, whatever was uploaded before. With a ``seed`` the noise is that of a stream and guarantees nothing.
    """

    def privacy(self) -> Privacy:
        if self.seed is not None:
            return Privacy(False, f"whoever knows algorithm.noise_seed = {self.seed} can subtract the noise")
        named = f"each upload is ε-private with ε = {self.epsilon:g}"
        return Privacy(True, f"{named} (neighbours: one sample of one client replaced)", double=True)

    @property
    def keeps(self) -> Keeps:
        # The system's entropy gives other noise on other ranks and after a resumption, where draws count once more.
        return super().keeps if self.seed is not None else DRAWN_ANEW | Keeps.SAMPLES | Keeps.DOUBLE

    def verify(self) -> None:
        accounting()

    def verify_size(self, n: int) -> None:
        least = least_epsilon(n)
        if self.epsilon < least:
            raise UserError(
                f"algorithm.epsilon = {self.epsilon} is wrong: noise on {n} numbers would have a scale of more than "
                f"2^50 steps of its grid, with which its law is not exact, so it must be at least {least * UP:.3g}"
            )

    def gradient(self, f: Local, x: Array) -> Array:
        return f.clipped_grad(x, self.clip)

    def square(self, away: Array) -> Array:
        """0: steps must not depend on the data, or the bound of s_i, which is made of steps, would tell something."""
        return namespace(away).zeros(away.shape[0])

    def grow(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        return (step * reach + 2 * self.clip / d) / (eta + step)

    def upload(self, f: Local, w: Array, stand_in: Array, reach: Array | float = 0.0) -> tuple[Array, Array]:
        # on the CPU and in whole steps: the last bits of a float with noise can tell what the noise was added to
        step, scale = laplace_steps(np.asarray(to_numpy(reach), np.float64), f.n, self.epsilon)
        own = to_numpy(w)
        z = (to_grid(own, step[:, None]) + exact(discrete_laplace, f, scale, self.seed)) * step[:, None]
        return f.xp.asarray(z.astype(own.dtype)), f.xp.asarray(log_ratio(own, z - own))

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        accounted = Budget(self.epsilon, releases).accounted(self.delta)
        return super().columns(snr, releases) | {"epsilon_accounted": accounted}


class Silent(Noise, frozen=True):
    """No noise."""

    gradients: ClassVar[int] = 0

    def privacy(self) -> Privacy | None:
        return None

    def sensitivity(self, stand_in: Array) -> Array:
        return namespace(stand_in).zeros(stand_in.shape[0])

    def first(self, f: Local) -> Array:
        return f.zeros()

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        return {}


NOISES: dict[str, type[Noise]] = {"released": Noise, "matched": Matched, "clipped": Clipped, "none": Silent}


class Noisy(Algorithm):
    """Algorithms whose clients upload z_i = w_i + noise.

    The clients' state has ``w``, ``z`` and ``ratio``; the server's has ``uploads`` (m,), the noisy uploads so far.
    """

    @abstractmethod
    def mechanism(self) -> Noise:
        """The noise that the options name."""

    def verify(self, selected: int) -> None:
        self.mechanism().verify()

    def privacy(self) -> Privacy | None:
        return self.mechanism().privacy()

    def redrawn(self, server: Counting, rounds: int) -> Counting:
        return recounted(server, rounds, self.privacy())

    def first(self, f: Local, client: Any, *args: Any) -> tuple[Any, Array]:
        """z_i⁰ = w_i⁰ + noise."""
        z = client.w + self.mechanism().first(f)
        return client._replace(z=z), z

    def record(self, f: Local, client: Any, x: Array) -> Recorded:
        return {"snr": Max(-client.ratio)}

    def report(self, server: Counting, row: dict[str, float], m: int) -> dict[str, float]:
        return self.mechanism().columns(-row["snr"], int(server.uploads.max(initial=0)))


def exact(family: Callable[[Array, Words], Array], f: Local, scale: Array, seed: int | None) -> Array:
    """Discrete noise of ``scale`` (c,) steps: (c, n) whole numbers.

    They come from the system's entropy, or with a ``seed`` from a stream of each client.
    """
    # a stream that whoever knows the seed can repeat hides nothing: without a seed for tests, no stream at all
    if seed is None:
        return family(np.repeat(scale, f.n), entropy).reshape(len(f), f.n)
    rngs = f.streams(seed, "noise")
    return np.array([family(np.full(f.n, s), seeded(rng)) for s, rng in zip(scale, rngs, strict=True)])


def laplace(f: Local, scale: Array) -> Array:
    """Laplace noise (c, n) of scale (c,), each client's from its own stream."""
    noise = to_numpy(f.zeros())
    # row by row from the client's own stream, so that its noise does not depend on who else is in the block
    for row, rng, s in zip(noise, f.rng, to_numpy(scale).tolist(), strict=True):
        row[:] = rng.laplace(0.0, s, f.n)
    return f.xp.asarray(noise)


def log_ratio(W: Array, noise: Array) -> Array:
    """log10(‖w_i‖/‖noise_i‖): (c,), infinite where there is no noise (fedepm, the SNR of section VII.C)."""
    xp = namespace(W)
    w, e = xp.sqrt(xp.vecdot(W, W)), xp.sqrt(xp.vecdot(noise, noise))
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.where(e > 0, xp.log10(w / xp.where(e > 0, e, 1.0)), math.inf)
