"""Solvers that approach the minimiser of f_i(w) − ⟨y_i, w⟩ on mini-batches, section 8.1 of Z. Fan, H. Fang, M. P.
Friedlander, "A dual approach for federated learning", arXiv:2201.11183 (2022)."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Local, count_gradients
from mpifed.algorithms.parts import optimizers
from mpifed.algorithms.parts.local_solvers import Solver
from mpifed.algorithms.parts.optimizers import Clip
from mpifed.core.promises import Supports
from mpifed.core.typing import PositiveInt

SolverStepSize = Annotated[float, Meta(gt=0, description="step size γ")]
Epochs = Annotated[int, Meta(ge=1, description="passes over the client's samples")]
BatchSize = Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all, so that an epoch is one step")]


class SGDSolver(Solver, tag="sgd"):
    """w ← w − lr (∇f_B(w) − y_i) on mini-batches B: stochastic gradient descent, section 8.1."""

    # A client computes it for itself, mini-batches from f.rng.
    supports = Supports.EVERYTHING

    lr: SolverStepSize = 0.1
    epochs: Epochs = 5
    steps: Annotated[PositiveInt | None, Meta(description="number of mini-batches, drawn anew, instead of epochs")] = (
        None
    )
    batch_size: BatchSize = 10
    clip: Clip = 0.0

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, self.steps or 0, 0 if self.steps else self.epochs, self.batch_size)

    def rule(self) -> optimizers.Optimizer:
        """Return the rule for directions, given ∇f_B(w) − y_i; its memory begins at 0 in every call."""
        return optimizers.SGD(clip=self.clip)

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        rule = self.rule()
        memory = None
        for _, batch, has in f.steps(self.steps or 0, 0 if self.steps else self.epochs, self.batch_size):
            W, memory = rule.step(W, batch.grad(W) - Y, has * self.lr, memory)
        return W


class AdamSolver(SGDSolver, tag="adam"):
    """ADAM on ∇f_B(w) − y_i, by default 20 steps on all samples as in section 8.1: w ← w − lr m̂/(√v̂ + eps).

    m ← beta1 m + (1 − beta1) g, v ← beta2 v + (1 − beta2) g², both from 0 in every call.
    Source: D. P. Kingma, J. Ba, "Adam: A method for stochastic optimization", arXiv:1412.6980 (2015), Algorithm 1.
    """

    # A client computes it for itself; moments begin anew in every round.
    supports = Supports.EVERYTHING

    lr: SolverStepSize = 1e-3
    epochs: Epochs = 20
    batch_size: BatchSize = 0
    beta1: Annotated[float, Meta(ge=0, lt=1, description="β₁, memory of the mean")] = 0.9
    beta2: Annotated[float, Meta(ge=0, lt=1, description="β₂, memory of the squares")] = 0.999
    eps: Annotated[float, Meta(gt=0, description="ε, against division by zero")] = 1e-8

    def rule(self) -> optimizers.Optimizer:
        return optimizers.Adam(beta1=self.beta1, beta2=self.beta2, eps=self.eps, clip=self.clip)


class SVRG(Solver, tag="svrg"):
    """w ← w − lr (∇f_B(w) − ∇f_B(v) + ∇f_i(v) − y_i), where v is w at the beginning of the epoch: section 5.

    An epoch is one pass over the samples in random order. Source: R. Johnson, T. Zhang, "Accelerating stochastic
    gradient descent using predictive variance reduction", NeurIPS (2013).
    """

    # A client computes it for itself; the full gradient is taken anew in every round.
    supports = Supports.EVERYTHING

    lr: SolverStepSize = 0.1
    epochs: Epochs = 5
    batch_size: BatchSize = 10

    def sample_gradients(self, d: Array) -> Array:
        return 3 * self.epochs * d

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        epoch = -1
        for j, batch, has in f.steps(0, self.epochs, self.batch_size):
            if j > epoch:
                epoch = j
                V = W
                full = f.grad(W) - Y
            W = W - has * self.lr * (batch.grad(W) - batch.grad(V) + full)
        return W
