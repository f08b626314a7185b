"""What FedDCD's benchmarks need beside mpifed."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.data.blocks import Block
from mpifed.data.clients import Array
from mpifed.data.images import IdxImages, Mnist
from mpifed.local import Local
from mpifed.problems.mlp import MLP
from mpifed.solvers import Solver


class MnistScale(IdxImages):
    """MNIST with pixels x/255, as in LIBSVM's mnist.scale (section 8.1)."""

    scale = (0.0, 1.0)

    def parts(self) -> list[str]:
        return Mnist(part=self.part).parts()

    def read(self, part: str) -> tuple[Path, Array, Array]:
        return Mnist(part=self.part).read(part)


class Network(MLP):
    """The MLP for the dual methods, which take its λ for the strong convexity that it has not (section 8)."""

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.lam)

    def lipschitz(self, block: Block) -> Array:
        return np.ones(len(block))


class Adam(Solver):
    """Adam steps on f_i(w) − ⟨y_i, w⟩ from the client's own last w_i, moments anew in every round (section 8.1)."""

    steps: Annotated[int, Meta(ge=1, description="number of steps")] = 20
    lr: Annotated[float, Meta(gt=0, description="step size")] = 1e-3

    def passes(self) -> int | None:
        return self.steps

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        m, v = np.zeros_like(W), np.zeros_like(W)
        for t in range(1, self.steps + 1):
            g = f.grad(W) - Y
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            W = W - self.lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return W


class Descent(Solver):
    """Epochs of SGD on f_i(w) − ⟨y_i, w⟩ from the client's own last w_i (section 8.1)."""

    epochs: Annotated[int, Meta(ge=1, description="passes over the samples")] = 5
    lr: Annotated[float, Meta(gt=0, description="step size")] = 0.1
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 20

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        for _, batch, has in f.steps(0, self.epochs, self.batch_size):
            W = W - has * self.lr * (batch.grad(W) - Y)
        return W
