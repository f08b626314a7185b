"""What section 8.1 of FedDCD and its released program use: LIBSVM's MNIST, networks under dual methods, two solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed import Array, Federation, Local, Solver
from mpifed.algorithms import accfeddcd, feddcd
from mpifed.data.blocks import Block
from mpifed.data.sources.public_images import IdxImages, Mnist
from mpifed.problems.mlp import MLP
from mpifed.problems.quadratic import Quadratic


class MnistScale(IdxImages):
    """MNIST with pixels x/255, as in LIBSVM's mnist.scale, the data of section 8.1."""

    scale = (0.0, 1.0)

    def parts(self) -> list[str]:
        return Mnist(part=self.part).parts()

    def read(self, part: str) -> tuple[Path, Array, Array]:
        return Mnist(part=self.part).read(part)


class Network(MLP):
    """An MLP that dual methods accept: it claims strong convexity α = lam, although its f_i are not convex.

    No Lipschitz constant of ∇f_i is known; β = 1 is a placeholder, which no option used here needs.
    Source: section 8.1; the released program does the same.
    """

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.lam)

    def lipschitz(self, block: Block) -> Array:
        return np.ones(len(block))


class Adam(Solver):
    """Full-batch ADAM on f_i(w) − ⟨y_i, w⟩; moments start at 0 in every call.

    m ← 0.9 m + 0.1 g, v ← 0.999 v + 0.001 g², w ← w − lr·m̂/(√v̂ + 1e-8).  Source: section 8.1, "20 steps of ADAM".
    """

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


class Sgd(Solver):
    """Epochs of SGD on f_i(w) − ⟨y_i, w⟩.  Source: section 8.1, "5 epochs SGD when the data is non-i.i.d."."""

    epochs: Annotated[int, Meta(ge=1, description="passes over the samples")] = 5
    lr: Annotated[float, Meta(gt=0, description="step size")] = 0.1
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 10

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        for _, batch, has in f.steps(0, self.epochs, self.batch_size):
            W = W - has * self.lr * (batch.grad(W) - Y)
        return W


class FedDCD(feddcd.FedDCD):
    """FedDCD whose clients solve (1) starting from the server's model instead of their own last w_i.

    Source: the released program does so for networks (src/training.jl, synchronize!); (7) says w_i^(t−1).
    """

    def round(self, fed: Federation, server: feddcd.Server) -> feddcd.Server:
        selected = fed.select(server.x)
        fed.call(self.restart, server.x, to=selected)
        x = fed.mean(self.solve, *server[1:], to=selected)
        fed.call(self.ascend, x, server.alpha, to=selected)
        return server._replace(x=x)

    def restart(self, f: Local, client: feddcd.Client, x: Array) -> tuple[feddcd.Client, None]:
        """Set w_i = x."""
        return client._replace(w=np.tile(x, (len(f), 1))), None


class AccFedDCD(accfeddcd.AccFedDCD):
    """AccFedDCD whose clients solve (1) starting from the server's model, in each of the two exchanges of a round."""

    def round(self, fed: Federation, server: accfeddcd.Server) -> accfeddcd.Server:
        x, alpha, beta, share, a, b, r = server
        fed.call(self.extrapolate, a, b)
        for step, scale in ((self.step_y, alpha), (self.step_z, alpha * a * r / (a * a + b))):
            selected = fed.select(x)
            fed.call(self.restart, x, to=selected)
            x = fed.mean(self.solve, alpha, beta, share, to=selected)
            fed.call(step, x, scale, to=selected)
        return server._replace(x=x)

    def restart(self, f: Local, client: accfeddcd.Client, x: Array) -> tuple[accfeddcd.Client, None]:
        """Set w_i = x."""
        return client._replace(w=np.tile(x, (len(f), 1))), None


class QuadraticWithBound(Quadratic):
    """Quadratic functions of which the algorithm knows only a lower bound α of their strong convexity."""

    alpha: Annotated[float, Meta(gt=0, description="α, at most the least eigenvalue of any Q_i")] = 1.0

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.alpha)
