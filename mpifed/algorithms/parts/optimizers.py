"""Optimisers of local steps: rules for a client's direction, given the gradient."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace, subtract
from mpifed.core.component import Component
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.federation.local import Local

EPS = 1e-6  # of torch.nn.utils.clip_grad_norm_, against division by zero
Clip = Annotated[float, Meta(ge=0, description="largest 2-norm of a client's gradient in a step; 0: not clipped")]


def clip_gradients(g: Array, bound: float) -> Array:
    """Return g_i · min(1, bound/(‖g_i‖ + 10⁻⁶)) for the gradient g_i of each client: (c, n).

    Source: torch.nn.utils.clip_grad_norm_ with the 2-norm; R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of
    training recurrent neural networks", arXiv:1211.5063 (2013), Algorithm 1.
    """
    xp = namespace(g)
    norm = xp.sqrt(xp.vecdot(g, g))[:, None]
    return g * xp.minimum(bound / (norm + EPS), 1.0)


Decay = Annotated[float, Meta(ge=0, description="weight decay λ")]


class Optimizer(Component):
    """A rule for the direction d of a local step w ← w − γ d. The algorithm's step size (``step`` or ``lr``) is γ.

    ``direction`` returns d (c, n) and the new memory: a NamedTuple of arrays whose leading axis is clients. A client's
    memory starts anew in every round, so that nothing but models travels and a resumed run needs nothing more. With
    ``clip``, g is first scaled down to that length; g includes the corrections of FedProx, FedDyn and others.

        >>> class Sign(mpifed.algorithms.parts.Optimizer):
        ...     def direction(self, memory, g, w):
        ...         return np.sign(g), memory
        >>> mpifed.run(algorithm=mpifed.algorithms.FedAvg(optimizer=Sign()), rounds=2).cr
        2
    """

    clip: Clip = 0.0

    choices: ClassVar[dict[str, str]] = {
        "sgd": "mpifed.algorithms.parts.optimizers:SGD",
        "momentum": "mpifed.algorithms.parts.optimizers:Momentum",
        "adam": "mpifed.algorithms.parts.optimizers:Adam",
        "adamw": "mpifed.algorithms.parts.optimizers:AdamW",
    }
    default: ClassVar[str] = "sgd"
    kind: ClassVar[str] = "optimizers"
    checks: ClassVar[str] = "mpifed.algorithms.bases.method_guards"
    # whether d is made of g, w and earlier ones of these by sums and products with numbers: see f.point
    spans: ClassVar[bool] = False
    refused: ClassVar[dict[str, str]] = {
        "lr": "the step size is an option of the algorithm, algorithm.step or algorithm.lr",
        "betas": "write beta1 and beta2",
        "momentum": "write beta",
    }

    def linear(self) -> bool:
        """Return whether d is a weighted sum of past gradients with weights that do not depend on them."""
        return False

    def begin(self, g: Array) -> Any:
        """Return the memory before the first step, for gradients like ``g`` (c, n)."""
        return ()

    @abstractmethod
    def direction(self, memory: Any, g: Array, w: Array) -> tuple[Array, Any]:
        """Return d (c, n) for gradients g (c, n) at w, (c, n) or (n,), and the new memory."""

    def descend(self, f: Local, w: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """Return w − γ d (c, n) for the gradients of f at w, and the new memory; as ``step``."""
        return self.step(w, f.grad(w), gamma, memory)

    def step(self, w: Array, g: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """Return w − γ d (c, n) for gradients g (c, n) at w, and the new memory; ``memory`` is None at first.

        Clients with γ = 0 rest: w and their memory stay.
        """
        memory = self.begin(g) if memory is None else memory
        d, new = self.direction(memory, clip_gradients(g, self.clip) if self.clip else g, w)
        # with epochs, clients of few samples are through before the others: a step of 0 would still age their memory
        if new and np.ndim(gamma):
            xp = namespace(g)
            if not xp.all(gamma > 0):
                pairs = zip(memory, new, strict=True)
                new = type(new)(*(xp.where(gamma > 0, after, before) for before, after in pairs))
        return subtract(w, gamma * d), new


LocalOptimizer = Annotated[Optimizer, Meta(description="direction of the local steps; starts anew in every round")]


class SGD(Optimizer, tag="sgd"):
    """d = g: plain gradient steps."""

    # Without memory; only uploads are accounted for, whatever direction a client takes.
    supports = Supports.EVERYTHING
    spans: ClassVar[bool] = True

    def linear(self) -> bool:
        return not self.clip

    def descend(self, f: Local, w: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        # a class that derives from this one may have another direction
        if self.clip or type(self) is not SGD:
            return super().descend(f, w, gamma, memory)
        return f.descend(w, gamma), memory

    def direction(self, memory: Any, g: Array, w: Array) -> tuple[Array, Any]:
        return g, memory


class WeightDecayOptimizer(Optimizer):
    """An optimiser with weight decay λ of all parameters, or of the weights alone."""

    weight_decay: Decay = 0.0  # with decay = "weights" in a run: λ for each parameter (n,), see parts/decay.py
    decay: Annotated[
        Literal["all", "weights"],
        Meta(description="what decays; weights: no biases and norms, which have one dimension"),
    ] = "all"

    def shrink(self, w: Array) -> Array:
        """Return λw: (c, n)."""
        decay = self.weight_decay
        return namespace(w).asarray(decay) * w if np.ndim(decay) else decay * w

    def add_decay(self, g: Array, w: Array) -> Array:
        """Return g + λw: (c, n)."""
        # without decay g itself, as without this option: adding 0 · w would make another array, and NaN of infinities
        return g + self.shrink(w) if np.ndim(self.weight_decay) or self.weight_decay else g


class Buffer(NamedTuple):
    v: Array  # (c, n) velocity


class Momentum(WeightDecayOptimizer, tag="momentum"):
    """v ← beta v + g, from v = 0;  d = v, or g + beta v with ``nesterov``.  With weight decay, g is g + λw.

    Source: the heavy ball of B. T. Polyak, 1964, as torch.optim.SGD has it.
    """

    # Memory begins anew in every round, so that no checkpoint needs it.
    supports = Supports.EVERYTHING
    spans: ClassVar[bool] = True

    beta: Annotated[float, Meta(ge=0, lt=1, description="momentum β")] = 0.9
    nesterov: Annotated[bool, Meta(description="Nesterov's momentum")] = False

    def linear(self) -> bool:
        return not (self.clip or self.weight_decay)

    def begin(self, g: Array) -> Buffer:
        return Buffer(namespace(g).zeros_like(g))

    def direction(self, memory: Buffer, g: Array, w: Array) -> tuple[Array, Buffer]:
        g = self.add_decay(g, w)
        v = self.beta * memory.v + g
        return (g + self.beta * v if self.nesterov else v), Buffer(v)


class Moments(NamedTuple):
    m: Array  # (c, n) mean of the gradients
    v: Array  # (c, n) mean of their squares
    left: Array  # (c, 2) beta1^t and beta2^t after t steps, in double precision


class Adam(WeightDecayOptimizer, tag="adam"):
    """m ← beta1 m + (1 − beta1) g, v ← beta2 v + (1 − beta2) g², from 0;  d = m̂/(√v̂ + eps).

    m̂ = m/(1 − beta1^t) and v̂ = v/(1 − beta2^t) at step t of the round. With weight decay, g is g + λw.
    Source: D. P. Kingma, J. Ba, "Adam: A method for stochastic optimization", arXiv:1412.6980 (2015), Algorithm 1.
    """

    # Moments begin anew in every round, so that no checkpoint needs them.
    supports = Supports.EVERYTHING

    beta1: Annotated[float, Meta(ge=0, lt=1, description="β₁, memory of the mean")] = 0.9
    beta2: Annotated[float, Meta(ge=0, lt=1, description="β₂, memory of the squares")] = 0.999
    eps: Annotated[float, Meta(gt=0, description="ε, against division by zero")] = 1e-8

    def begin(self, g: Array) -> Moments:
        xp = namespace(g)
        return Moments(xp.zeros_like(g), xp.zeros_like(g), xp.ones((g.shape[0], 2)))

    def direction(self, memory: Moments, g: Array, w: Array) -> tuple[Array, Moments]:
        return self.adapt(memory, self.add_decay(g, w))

    def adapt(self, memory: Moments, g: Array) -> tuple[Array, Moments]:
        """Return m̂/(√v̂ + eps) without weight decay, and the new memory."""
        m = self.beta1 * memory.m + (1 - self.beta1) * g
        v = self.beta2 * memory.v + (1 - self.beta2) * (g * g)
        xp = namespace(g)
        # powers are multiplied up step by step, for each client: clients that rest do not count steps
        left = memory.left * xp.asarray((self.beta1, self.beta2))
        correction = xp.astype(1 - left, g.dtype)
        return m / correction[:, :1] / (xp.sqrt(v / correction[:, 1:]) + self.eps), Moments(m, v, left)


class AdamW(Adam, tag="adamw"):
    """Adam with decoupled weight decay: d = m̂/(√v̂ + eps) + λw.

    Source: I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", arXiv:1711.05101 (2019), Algorithm 2.
    """

    # As adam; decay follows from the model.
    supports = Supports.EVERYTHING

    weight_decay: Decay = 0.01

    def direction(self, memory: Moments, g: Array, w: Array) -> tuple[Array, Moments]:
        d, memory = self.adapt(memory, g)
        return d + self.shrink(w), memory
