"""Solvers of a client's f_i plus a linear or quadratic term: exact, inexact, and on mini-batches."""

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import LastBatch, count_gradients
from mpifed.algorithms.parts import optimizers
from mpifed.algorithms.parts.optimizers import Clip
from mpifed.algorithms.parts.step_sizes import Rate, rate_at
from mpifed.core.arrays import namespace
from mpifed.core.component import Component
from mpifed.core.promises import Supports
from mpifed.core.typing import Array, PositiveInt, PositiveNumber
from mpifed.federation.local import Local
from mpifed.federation.local_transform import Steps
from mpifed.federation.traits import Requirement
from mpifed.kernels.plan import MiniBatches
from mpifed.problems.gram import conjugate_gradients
from mpifed.problems.problem import RowMap

Accuracy = Annotated[float, Meta(gt=0, lt=1)]


class Solver(Component):
    """A solver of min f_i(w) − ⟨y_i, w⟩ for α-strongly convex, β-smooth f_i.

    >>> class OneStep(mpifed.algorithms.parts.Solver):
    ...     def minimise(self, f, Y, W, alpha, beta, share):
    ...         return W - (f.grad(W) - Y) / beta
    >>> mpifed.run(data="gaussian", algorithm=mpifed.algorithms.FedDCD(solver=OneStep()), rounds=2).cr
    2
    """

    choices: ClassVar[dict[str, str]] = {
        "newton": "mpifed.algorithms.parts.local_solvers:NewtonSolver",
        "gd": "mpifed.algorithms.parts.local_solvers:GradientDescent",
        "sgd": "mpifed.algorithms.parts.local_solvers:SGDSolver",
        "svrg": "mpifed.algorithms.parts.local_solvers:SVRG",
        "adam": "mpifed.algorithms.parts.local_solvers:AdamSolver",
    }
    default: ClassVar[str] = "newton"
    kind: ClassVar[str] = "solvers"
    checks: ClassVar[str] = "mpifed.algorithms.bases.method_guards"

    requires: ClassVar[tuple[Requirement, ...]] = ()  # the optional methods that a problem must define

    def sample_gradients(self, d: Array) -> Array | None:
        """Return the sample gradients that clients of d samples compute: (m,); None: not known in advance."""
        return None

    @abstractmethod
    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, fraction: float) -> Array:
        """Return approximate minimisers of f_i(w) − ⟨y_i, w⟩, from W: (c, n); ``share`` is (τ − 1)/(N − 1)."""


class NewtonSolver(Solver, tag="newton"):
    """Newton's method until ‖∇f_i(w) − y_i‖ <= tol·shrink^(k − 1) in round k; section 8.1 takes 10 steps."""

    # A client computes it for itself; its tolerances and ∇²f_i are in memory.
    supports = Supports.EVERYTHING & ~Supports.DEVICES

    tol: Annotated[float, Meta(gt=0, description="bound of the 2-norm of ∇f_i − y_i")] = 1e-10
    steps: Annotated[int, Meta(ge=1, description="largest number of Newton steps")] = 100
    economical: Annotated[
        bool, Meta(description="solve Newton systems no further than tol asks: a quarter less work where tol is loose")
    ] = False

    shrink: Annotated[float, Meta(gt=0, le=1, description="factor of tol a round, down to 1e-14 of it")] = 1.0

    requires = (Requirement("hessian"),)

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        tol = self.tol * np.maximum(self.shrink ** np.maximum(f.round - np.array(1.0), 0), 1e-14)
        return minimise_by_newton(f, Y, W, f.xp.asarray(tol), self.steps, self.economical)


class GradientDescent(Solver, tag="gd"):
    """Gradient steps of size 1/β: ``steps`` of them, or the least k with (1 − α/β)^(2k) <= delta.

    delta = "theorem" is (1 − κ)/4 with κ = (τ − 1)α/(32(N − 1)β) of Theorem 5.2 (use eta = ¼).
    Source: feddcd (Fan, Fang, Friedlander, arXiv:2201.11183, 2022), section 5.
    """

    # A client computes it for itself, from its own bounds; nothing of it is sent.
    supports = Supports.EVERYTHING

    steps: Annotated[PositiveInt | None, Meta(description="number of steps")] = None
    delta: Annotated[
        Accuracy | Literal["theorem"] | None, Meta(description="accuracy δ of the oracle, instead of steps")
    ] = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.delta is None):
            raise ValueError("the solver gd needs either steps or delta")

    def sample_gradients(self, d: Array) -> Array | None:
        return None if self.steps is None else self.steps * d

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        rate = 1 / beta
        count = self.count(alpha / beta, share)
        W = f.point(W, count, vectors=2)
        for _ in range(count):
            W = W - rate * (f.grad(W) - Y)
        return f.array(W)

    def count(self, ratio: float, share: float) -> int:
        """Return the number of steps for α/β = ``ratio``."""
        if self.steps is not None:
            return self.steps
        assert self.delta is not None
        delta = (1 - share * ratio / 32) / 4 if self.delta == "theorem" else float(self.delta)
        # the rounding of a ratio of logarithms must not ask for one step more than the theorem does
        return 1 if ratio >= 1 else max(1, math.ceil(math.log(delta) / (2 * math.log1p(-ratio)) - 1e-12))


def minimise_by_newton(
    f: Local, Y: Array, W: Array, tol: float | Array, max_steps: int = 100, economical: bool = False
) -> Array:
    """Return argmin f_i(w) − ⟨y_i, w⟩ by Newton's method from W (c, n), until ‖∇f_i(w) − y_i‖ <= tol, one or (c,).

    Newton systems are solved by conjugate gradients, to the relative residual min(0.1, ‖∇f_i(w) − y_i‖), or, where
    ``economical``, at least to half of what takes the gradient to tol; steps are halved until the gradient's norm falls
    (f_i is strongly convex). Converged clients leave the batch, so a client's result does not depend on the others.
    """
    # ``active`` are indices of clients; G and norm have rows of active clients only: they shrink together
    W = W.copy()
    active = np.arange(len(f))
    G = f.grad(W) - Y
    norm = np.sqrt(np.vecdot(G, G))
    bound = np.broadcast_to(np.asarray(tol, W.dtype), len(f))
    for _ in range(max_steps):
        unconverged = norm > bound[active]
        active = active[unconverged]
        G = G[unconverged]
        norm = norm[unconverged]
        if not len(active):
            break
        f_active = f.take(active)
        accuracy = np.clip(norm, 0.5 * bound[active] / norm if economical else None, 0.1)
        step = conjugate_gradients(f_active.hessian(W[active]), G, accuracy, 2 * f.n)
        W[active], G, norm, better = shorten_steps(f_active, Y[active], W[active], step, (G, norm))
        # a client that cannot improve has reached rounding: each further step would be halved thirty times
        active = active[better]
        G = G[better]
        norm = norm[better]
    return W


def shorten_steps(
    f: Local, Y: Array, W: Array, step: Array, gradients: tuple[Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """Halve each step until the norm of G = ∇f_i − y_i falls at W − step (c, n), at most 30 times; else keep W.

    ``gradients`` are G (c, n) and its norms (c,) at W. Returns the points, theirs, and where the norm has fallen (c,).
    """
    G, norm = gradients
    length = np.ones((len(W), 1), W.dtype)
    better = np.zeros(len(W), bool)
    points = W.copy()
    best = G.copy()
    norms = norm.copy()
    for _ in range(30):
        trial = W - length * step
        H = f.grad(trial) - Y
        size = np.sqrt(np.vecdot(H, H))
        falls = ~better & (size < norm)
        points[falls] = trial[falls]
        best[falls] = H[falls]
        norms[falls] = size[falls]
        # per client: a bad step must neither shorten those of other clients nor change their bits
        better |= falls
        if better.all():
            break
        length = np.where(better[:, None], length, length / 2)
    return points, best, norms, better


class RegularisedLocal(Local):
    """Functions f_i(x) + (ρ/2)‖x‖² of c clients, as solvers see them."""

    def __init__(self, f: Local, rho: float) -> None:
        # all that a Local knows but its derivatives: samples, streams and numbers of clients stay those of f
        vars(self).update(vars(f))
        self.f, self.rho = f, rho

    def take(self, rows: Array) -> Local:
        return RegularisedLocal(self.f.take(rows), self.rho)

    def _steps(self, batches: MiniBatches) -> Steps[Local]:
        for j, batch, has in self.f._steps(batches):
            yield j, self if batch is self.f else RegularisedLocal(batch, self.rho), has

    def grad(self, X: Array) -> Array:
        return self.f.grad(X) + self.rho * X

    def hessian(self, X: Array) -> RowMap:
        product = self.f.hessian(X)
        return lambda V: product(V) + self.rho * V


class AugmentedLagrangian(NamedTuple):
    """Functions L_i(v) = f_i(v)/m + ⟨π_i, v − w⟩ + (σ_i/2)‖v − w‖² of c clients, with their first points v_i.

    Numbers of a client fill a row, (c, n): products of arrays of one shape take half the time on small clients. With
    points of f.point they are columns (c, 1).
    """

    f: Local
    w: Array  # (n,) the server's model, or (c, n) those that clients were sent
    r: Array  # (c, n) curvature of f_i/m
    sigma: Array  # (c, n) σ_i
    g: Array  # (c, n) ∇f_i(v_i)/m
    total: Array  # (c, n) r_i v_i + σ_i w

    def descend(self, pi: Array, eps: Array, max_steps: int) -> tuple[Array, Array]:
        """Return points with ‖∇L_i‖² <= eps_i, or those after ``max_steps`` steps (c, n), and the steps taken (c,).

        A step minimises L_i with f_i replaced by its quadratic upper bound of curvature r_i. Converged clients stay
        where they are; once fewer than half of the clients go on, these go on alone.
        Source: fedadmm (Zhou, Li, arXiv:2204.10607, 2022), (3.5), (3.12); errata.
        """
        f, w, r, sigma, g, total = self
        xp = namespace(w)  # w may be a point of f.point
        running, steps = xp.ones(len(f), dtype=xp.bool), xp.ones(len(f), dtype=w.dtype)
        V = (total - (g + pi)) / (r + sigma)  # (3.12)
        for step in range(1, max_steps):
            g = f.grad(V) / f.m
            residual = g + pi + sigma * (V - w)
            running &= xp.vecdot(residual, residual) > eps
            if not xp.any(running):
                break
            total = r * V + sigma * w
            (a,) = xp.nonzero(running)
            # taking rows out costs a copy of their samples, which is worth it once most of them rest
            if 2 * a.shape[0] < len(f) and r.shape[1] > 1:
                sent = w if w.ndim == 1 else w[a]
                rest = AugmentedLagrangian(f.take(a), sent, r[a], sigma[a], g[a], total[a])
                V[a], more = rest.descend(pi[a], eps[a], max_steps - step)
                steps[a] += more
                break
            new = (total - (g + pi)) / (r + sigma)
            V = xp.where(running[:, None], new, V)
            steps += xp.astype(running, steps.dtype)
        return V, steps


SolverStepSize = Annotated[Rate, Meta(description="step size γ")]
Epochs = Annotated[PositiveNumber, Meta(description="passes over the client's samples, such as 2.5")]
SolverBatchSize = Annotated[
    int, Meta(ge=0, description="samples of a mini-batch; 0: all, so that an epoch is one step")
]


class SGDSolver(Solver, tag="sgd"):
    """w ← w − lr (∇f_B(w) − y_i) on mini-batches B: stochastic gradient descent, section 8.1."""

    # A client computes it for itself, mini-batches from f.rng.
    supports = Supports.EVERYTHING

    lr: SolverStepSize = 0.1
    epochs: Epochs = 5
    steps: Annotated[PositiveInt | None, Meta(description="number of mini-batches, drawn anew, instead of epochs")] = (
        None
    )
    batch_size: SolverBatchSize = 10
    last_batch: LastBatch = "keep"
    clip: Clip = 0.0

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, self.steps or 0, self.passes(), self.batch_size, self.last_batch)

    def passes(self) -> float:
        """Return the epochs, or 0 where there are ``steps`` instead."""
        return 0 if self.steps else self.epochs

    def rule(self) -> optimizers.Optimizer:
        """Return the rule for directions, given ∇f_B(w) − y_i; its memory begins at 0 in every call."""
        return optimizers.SGD(clip=self.clip)

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        rule = self.rule()
        memory = None
        W = f.point(W, rule.spans and (self.steps or 1), self.batch_size, 2, self.passes())
        for j, batch, has in f.steps(self.steps or 0, self.passes(), self.batch_size, None, self.last_batch):
            lr = rate_at(self.lr, f, j, self.steps or self.epochs)
            W, memory = rule.step(W, batch.grad(W) - Y, has * lr, memory)
        return f.array(W)


class AdamSolver(SGDSolver, tag="adam"):
    """ADAM on ∇f_B(w) − y_i, by default 20 steps on all samples as in section 8.1: w ← w − lr m̂/(√v̂ + eps).

    m ← beta1 m + (1 − beta1) g, v ← beta2 v + (1 − beta2) g², both from 0 in every call.
    Source: D. P. Kingma, J. Ba, "Adam: A method for stochastic optimization", arXiv:1412.6980 (2015), Algorithm 1.
    """

    # A client computes it for itself; moments begin anew in every round.
    supports = Supports.EVERYTHING

    lr: SolverStepSize = 1e-3
    epochs: Epochs = 20
    batch_size: SolverBatchSize = 0
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
    batch_size: SolverBatchSize = 10
    last_batch: LastBatch = "keep"

    def sample_gradients(self, d: Array) -> Array:
        # the full gradient of each epoch that is begun, and two gradients in a step
        return math.ceil(self.epochs) * d + 2 * count_gradients(d, 0, self.epochs, self.batch_size, self.last_batch)

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        epoch = -1
        W = f.point(W, 1, self.batch_size, 2, 2 * self.epochs)
        for j, batch, has in f.steps(0, self.epochs, self.batch_size, None, self.last_batch):
            if j > epoch:
                epoch = j
                V = W
                full = f.grad(W) - Y
            W = W - has * rate_at(self.lr, f, j, self.epochs) * (batch.grad(W) - batch.grad(V) + full)
        return f.array(W)
