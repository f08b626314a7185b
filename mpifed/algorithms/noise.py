"""Laplace noise on uploads."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.budget import Budget, accounting
from mpifed.core.typing import Array
from mpifed.federation.local import Local

MEANING = "Laplace noise on uploads: the printed scale or that of the step taken, neither of them a guarantee"
Unproven = Annotated[Literal["released", "matched", "none"], Meta(description=MEANING)]
Guaranteed = Annotated[
    Literal["released", "matched", "clipped", "none"],
    Meta(description=f"{MEANING}; clipped has one for the uploads, as long as the run's seed is secret"),
]


class Noise(Struct, frozen=True):
    """Laplace noise on uploads of scale s_i/ε, drawn from each client's own stream. The family differs in s_i.

    s_i is how far a change of one sample moves the upload of client i in the 1-norm, or a stand-in for it. The first
    uploads have noise of standard deviation 1/mu0. ``clip`` and ``delta`` are for ``Clipped`` alone.
    """

    epsilon: float
    mu0: float
    clip: float = 1.0
    delta: float = 1e-5

    gradients: ClassVar[int] = 1  # gradients that the stand-in takes, where a method has none to share

    def needs(self) -> tuple[str, ...]:
        """The optional methods that a problem must define."""
        return ()

    def verify(self) -> None:
        """Refuse, before round one, a library that is missing (UserError)."""

    def gradient(self, f: Local, x: Array) -> Array:
        """What clients step along: (c, n)."""
        return f.grad(x)

    def square(self, away: Array) -> Array:
        """‖w_i − x‖² as a factor of steps: (c,)."""
        return np.vecdot(away, away)

    def rate(self, printed: Array | float, taken: Array | float) -> Array | float:
        """The step that the stand-in 2‖∇f_i(x)‖₁ is multiplied by, in units of the method's choice."""
        return printed

    def sensitivity(self, stand_in: Array, reach: Array | float) -> Array:
        """s_i: (c,)."""
        return stand_in

    def grow(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        """The bound of s_i after a step w = x + soft(step (w − x) − g, λ)/(eta + step): (c,)."""
        return reach

    def first(self, f: Local) -> Array:
        """The noise of the first uploads: (c, n)."""
        return laplace(f, np.full(len(f), 1 / self.mu0 / np.sqrt(2)))

    def upload(self, f: Local, w: Array, stand_in: Array, reach: Array | float = 0.0) -> tuple[Array, Array]:
        """z_i = w_i + noise (c, n) and log10(‖w_i‖/‖noise_i‖) (c,)."""
        noise = laplace(f, self.sensitivity(stand_in, reach) / self.epsilon)
        return w + noise, log_ratio(w, noise)

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        """The record: the smallest ratio, and the ε spent by the client with the most ``releases``."""
        return {"snr": snr, "epsilon": Budget(self.epsilon, releases).basic()}


class Released(Noise, frozen=True):
    """The printed s_i = 2‖∇f_i(x)‖₁/μ_i, fedepm (39). It depends on the data and is no bound: ε is not guaranteed."""


class Matched(Noise, frozen=True):
    """The same with the step that is taken in place of 1/μ_i. ε is not guaranteed either."""

    def rate(self, printed: Array | float, taken: Array | float) -> Array | float:
        return taken


class Clipped(Noise, frozen=True):
    """Samples' gradients are clipped to 1-norm ``clip`` and s_i bounds how far a sample moves w_i.

    ε then holds for the uploads while the run's seed is secret: the noise is drawn from it, and the result file has it.
    """

    def needs(self) -> tuple[str, ...]:
        return ("clipped_grad",)

    def verify(self) -> None:
        accounting()

    def gradient(self, f: Local, x: Array) -> Array:
        return f.clipped_grad(x, self.clip)

    def square(self, away: Array) -> Array:
        """0: steps must not depend on the data."""
        return np.zeros(len(away))

    def sensitivity(self, stand_in: Array, reach: Array | float) -> Array:
        return np.asarray(reach)

    def grow(self, reach: Array, step: Array, eta: float, d: Array) -> Array:
        return (step * reach + 2 * self.clip / d) / (eta + step)

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        accounted = Budget(self.epsilon, releases).accounted(self.delta)
        return super().columns(snr, releases) | {"epsilon_accounted": accounted}


class Silent(Noise, frozen=True):
    """No noise."""

    gradients: ClassVar[int] = 0

    def sensitivity(self, stand_in: Array, reach: Array | float) -> Array:
        return np.zeros(len(stand_in))

    def first(self, f: Local) -> Array:
        return f.zeros()

    def columns(self, snr: float, releases: int) -> dict[str, float]:
        return {}


NOISES: dict[str, type[Noise]] = {"released": Released, "matched": Matched, "clipped": Clipped, "none": Silent}


class Noisy(Algorithm):
    """Algorithms whose clients upload z_i = w_i + noise.

    The clients' state has ``w``, ``z`` and ``ratio``; the server's has ``uploads`` (m,), the noisy uploads so far.
    """

    extremes: ClassVar[tuple[str, ...]] = ("snr",)

    @abstractmethod
    def mechanism(self) -> Noise:
        """The noise that the options name."""
        raise NotImplementedError

    def needs(self) -> tuple[str, ...]:
        return self.mechanism().needs()

    def verify(self, selected: int) -> None:
        self.mechanism().verify()

    def first(self, f: Local, client: Any, *args: Any) -> tuple[Any, Array]:
        """z_i⁰ = w_i⁰ + noise."""
        z = client.w + self.mechanism().first(f)
        return client._replace(z=z), z

    def extreme(self, f: Local, client: Any) -> tuple[Array, ...]:
        return (-client.ratio,)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return self.mechanism().columns(-watched["snr"], int(server.uploads.max(initial=0)))


def laplace(f: Local, scale: Array) -> Array:
    """Laplace noise (c, n) of scale (c,), each client's from its own stream."""
    noise = f.zeros()
    for row, rng, s in zip(noise, f.rng, scale.tolist(), strict=True):
        row[:] = rng.laplace(0.0, s, f.n)
    return noise


def log_ratio(W: Array, noise: Array) -> Array:
    """log10(‖w_i‖/‖noise_i‖): (c,), infinite where there is no noise (fedepm, the SNR of section VII.C)."""
    w, e = np.sqrt(np.vecdot(W, W)), np.sqrt(np.vecdot(noise, noise))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(e > 0, np.log10(w / np.where(e > 0, e, 1)), np.inf)
