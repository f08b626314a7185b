"""Optimisers of the server: rules for its step, given the clients' mean step."""

from abc import abstractmethod
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts.step_sizes import Rate, Step
from mpifed.core.component import Component
from mpifed.core.promises import Supports
from mpifed.core.typing import Array

ServerStepSize = Annotated[Rate, Meta(description="step size η of the server")]


class Memory(NamedTuple):
    """Memory of a server optimiser: of the steps before."""

    u: Array  # (n,) mean or sum of steps; (0,) where there is none
    v: Array  # (n,) mean or sum of their squares; (0,) where there is none


class ServerOptimizer(Component):
    """A rule for η and d of the server's step x⁺ = x + η d, given Δ = mean of w_i − x over the selected clients.

    >>> class Halfway(mpifed.algorithms.parts.ServerOptimizer):
    ...     def rate(self, delta, spread):
    ...         return 0.5
    ...     def direction(self, memory, delta):
    ...         return delta, memory
    >>> mpifed.run(algorithm=mpifed.algorithms.FedOpt(server=Halfway()), rounds=2).cr
    2
    """

    choices: ClassVar[dict[str, str]] = {
        "momentum": "mpifed.algorithms.parts.server_optimizers:ServerMomentum",
        "adagrad": "mpifed.algorithms.parts.server_optimizers:Adagrad",
        "adam": "mpifed.algorithms.parts.server_optimizers:ServerAdam",
        "yogi": "mpifed.algorithms.parts.server_optimizers:Yogi",
        "fedexp": "mpifed.algorithms.parts.server_optimizers:FedExP",
    }
    default: ClassVar[str] = "adam"
    kind: ClassVar[str] = "server_optimizers"
    checks: ClassVar[str] = "mpifed.algorithms.bases.method_guards"
    refused: ClassVar[dict[str, str]] = {"betas": "write beta1 and beta2", "eta": "write lr"}
    spread: ClassVar[bool] = False  # whether it needs the mean of ‖w_i − x‖², one number more from each client

    def begin(self, x: Array) -> Memory:
        """Return the memory before the first round, for a model like x (n,)."""
        return Memory(np.zeros_like(x), np.zeros_like(x[:0]))

    @abstractmethod
    def rate(self, delta: Array, spread: float) -> float | Step:
        """Return η, or its schedule, for Δ = ``delta`` (n,) and the mean ``spread`` of ‖w_i − x‖²."""

    @abstractmethod
    def direction(self, memory: Memory, delta: Array) -> tuple[Array, Memory]:
        """Return d (n,) for Δ = ``delta`` (n,), and the new memory."""


class ServerMomentum(ServerOptimizer, tag="momentum"):
    """u ← beta u + Δ, from u = 0;  x⁺ = x + lr u.  With beta = 0 and lr = 1 it is FedAvg.

    Source: T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data distribution for federated
    visual classification", arXiv:1909.06335 (2019), section 4 (FedAvgM).
    """

    # The server alone computes it, from replies; the method keeps its memory.
    supports = Supports.EVERYTHING

    lr: ServerStepSize = 1.0
    beta: Annotated[float, Meta(ge=0, lt=1, description="momentum β")] = 0.9

    def rate(self, delta: Array, spread: float) -> float | Step:
        return self.lr

    def direction(self, memory: Memory, delta: Array) -> tuple[Array, Memory]:
        u = self.beta * memory.u + delta
        return u, memory._replace(u=u)


class Adaptive(ServerOptimizer):
    """u ← beta1 u + (1 − beta1) Δ, from u = 0;  x⁺ = x + lr u/(√v + tau), without correction of the bias."""

    lr: ServerStepSize = 0.01
    beta1: Annotated[float, Meta(ge=0, lt=1, description="β₁, memory of the mean")] = 0.9
    beta2: Annotated[float, Meta(ge=0, lt=1, description="β₂, memory of the squares")] = 0.99
    tau: Annotated[float, Meta(gt=0, description="τ: v begins at τ², and τ is added to √v")] = 1e-3

    def begin(self, x: Array) -> Memory:
        return Memory(np.zeros_like(x), np.full_like(x, self.tau**2))

    def rate(self, delta: Array, spread: float) -> float | Step:
        return self.lr

    def direction(self, memory: Memory, delta: Array) -> tuple[Array, Memory]:
        u = self.beta1 * memory.u + (1 - self.beta1) * delta
        v = self.squares(memory.v, delta * delta)
        return u / (np.sqrt(v) + self.tau), Memory(u, v)

    @abstractmethod
    def squares(self, v: Array, new: Array) -> Array:
        """Return the new v (n,), given Δ² = ``new`` (n,)."""


class Adagrad(Adaptive, tag="adagrad"):
    """v ← v + Δ², from tau²;  u ← beta1 u + (1 − beta1) Δ, from 0;  x⁺ = x + lr u/(√v + tau).

    beta2 has no effect: v is a sum.  Source: FedAdagrad of S. J. Reddi et al., arXiv:2003.00295 (2021), Algorithm 2.
    """

    # As momentum: from replies, with a memory that the method keeps.
    supports = Supports.EVERYTHING

    def squares(self, v: Array, new: Array) -> Array:
        return v + new


class ServerAdam(Adaptive, tag="adam"):
    """v ← beta2 v + (1 − beta2) Δ², from tau²;  u ← beta1 u + (1 − beta1) Δ, from 0;  x⁺ = x + lr u/(√v + tau).

    Source: FedAdam of S. J. Reddi et al., arXiv:2003.00295 (2021), Algorithm 2, which does not correct the bias.
    """

    # As momentum: from replies, with a memory that the method keeps.
    supports = Supports.EVERYTHING

    def squares(self, v: Array, new: Array) -> Array:
        return self.beta2 * v + (1 - self.beta2) * new


class Yogi(Adaptive, tag="yogi"):
    """v ← v − (1 − beta2) Δ² sign(v − Δ²), from tau²;  u ← beta1 u + (1 − beta1) Δ, from 0;  x⁺ = x + lr u/(√v + tau).

    Source: FedYogi of S. J. Reddi et al., arXiv:2003.00295 (2021), Algorithm 2.
    """

    # As momentum: from replies, with a memory that the method keeps.
    supports = Supports.EVERYTHING

    def squares(self, v: Array, new: Array) -> Array:
        return v - (1 - self.beta2) * new * np.sign(v - new)


class FedExP(ServerOptimizer, tag="fedexp"):
    """x⁺ = x + η Δ,  η = max(1, mean of ‖w_i − x‖² / (2(‖Δ‖² + eps))).

    The model is x itself, where the paper suggests the mean of the last two, because x may oscillate.
    Source: D. Jhunjhunwala, S. Wang, G. Joshi, "FedExP: Speeding up federated averaging via extrapolation",
    arXiv:2301.09604 (2023), Algorithm 1.
    """

    # Its step follows from exact norms of uploads, which clients send beside these: no privacy.
    supports = Supports.REPEATED | Supports.DEVICES

    eps: Annotated[float, Meta(ge=0, description="ε, against steps that are too long")] = 1e-3

    spread: ClassVar[bool] = True

    def begin(self, x: Array) -> Memory:
        return Memory(np.zeros_like(x[:0]), np.zeros_like(x[:0]))

    def rate(self, delta: Array, spread: float) -> float:
        denominator = 2 * (float(np.vecdot(delta, delta)) + self.eps)
        return max(1.0, spread / denominator) if denominator else 1.0

    def direction(self, memory: Memory, delta: Array) -> tuple[Array, Memory]:
        return delta, memory
