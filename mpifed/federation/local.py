"""The ``f`` of client methods: the objective of each client of a block, as the papers write it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from mpifed.core.arrays import subtract, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.roles import TRAINING, Role
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.federation.local_transform import (
    Gradient,
    LocalTransform,
    Steps,
    StreamKey,
    changes_steps,
    find_neighbour_counts,
    multiply_block_factors,
    multiply_factors,
)
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import MiniBatches
from mpifed.kernels.sample_space import SamplePoint, SampleSpace, pays, pays_by_hessian
from mpifed.problems.problem import Problem, RowMap


class Study(Protocol):
    """The facts of a run that clients know: problem, seed, number of clients, first model, evaluation samples."""

    @property
    def problem(self) -> Problem: ...
    @property
    def seed(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def start(self) -> Array: ...
    @property
    def role(self) -> Role: ...
    @property
    def space(self) -> str: ...
    def initial(self, ids: Array) -> Array: ...
    @property
    def home(self) -> Array | None: ...


class Local:
    """The functions f_i of c clients of one block. Clients are the first axis: X is (c, n), or (n,), a common point.

    ``problem``; ``n`` parameters, ``m`` clients in all, ``ids`` (c,) the numbers of these, ``d`` (c,) their samples.
    ``xp`` has the functions of the array-API standard for arrays of these clients: numpy, or where the samples are on
    a device, those for its tensors. ``ids`` is always a numpy array. ``transforms`` are changes by
    plug-ins; without any, f_i is the problem's.

        >>> class Descent(mpifed.algorithms.GD):
        ...     def gradient(self, f: mpifed.extend.Local, client, x):
        ...         assert f.grad(x).shape == (len(f), f.n)
        ...         return client, f.grad(x)
        >>> mpifed.run(algorithm=Descent(), rounds=2).cr
        2
    """

    def __init__(
        self, block: Block, study: Study, ids: Array, key: StreamKey, transforms: Sequence[LocalTransform] = ()
    ) -> None:
        self.block, self.ids = block, ids
        self.problem, self.m = study.problem, study.m
        self.xp = block.xp
        self.n, self.d = len(study.start), block.d
        self._study, self.key = study, key
        # tested first, because one of these is made for every mini-batch, and most runs have no transforms
        self.transforms = [transform.of(self) for transform in transforms] if transforms else []

    hessians: tuple[Array, Array] | None = None  # ∇²f_i and ∇f_i(0) without factors, where local steps take them

    @property
    def round(self) -> int | Array:
        """Round of the call; in asynchronous runs the one in which each client was sent its model: (c,)."""
        return self.key[0]

    def __len__(self) -> int:
        return len(self.ids)

    def like(self, block: Block, ids: Array, key: StreamKey, transforms: Sequence[LocalTransform] = ()) -> Local:
        """Return the f_i with other samples, clients or random streams."""
        return Local(block, self._study, ids, key, transforms)

    def take(self, rows: Array) -> Local:
        """Return the f_i of some of these clients, by position or by a mask (c,)."""
        rows = rows if isinstance(rows, np.ndarray) else to_numpy(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if len(rows) == len(self):
            return self
        round, call = (part[rows] if isinstance(part, np.ndarray) else part for part in self.key)
        taken = self.like(self.block.take(rows), self.ids[rows], (round, call))
        # the call goes on for these clients, so transforms keep the numbers that they have drawn
        taken.transforms = [transform.of(taken, rows) for transform in self.transforms]
        if self.hessians is not None:
            taken.hessians = self.hessians[0][rows], self.hessians[1][rows]
        return taken

    def with_key(self, key: StreamKey) -> Local:
        """Return the f_i with the random streams of another round and call."""
        return self.like(self.block, self.ids, key, self.transforms)

    def with_transforms(self, transforms: Sequence[LocalTransform]) -> Local:
        """Return the f_i with further transforms."""
        return self.like(self.block, self.ids, self.key, [*self.transforms, *transforms])

    @cached_property
    def factors(self) -> Array | None:
        """Factors by which transforms multiply the problem's f_i: (c,); None: no factors."""
        return multiply_factors(self.transforms, self)

    def apply_factors(self, rows: Array) -> Array:
        """Multiply rows (c, …), which are linear in the problem's f_i, by the factors."""
        if not self.transforms or self.factors is None:
            return rows
        return self.factors.reshape(-1, *[1] * (rows.ndim - 1)) * rows

    def value(self, X: Array) -> Array:
        """Return f_i(x_i): (c,)."""
        return self.apply_factors(self.problem.value(self.block, X))

    def grad(self, X: Array) -> Array:
        """Return ∇f_i(x_i): (c, n)."""
        if isinstance(X, SamplePoint):
            return X.space.gradient(X, self.block)
        # all methods spend their time here, so a run without transforms calls its problem at once
        if self.hessians is not None:
            return self.apply_factors(np.matvec(self.hessians[0], X) + self.hessians[1])
        if not self.transforms:
            return self.problem.grad(self.block, X)
        return self.apply_factors(self._gradient()(self.block, X))

    def _gradient(self) -> Gradient:
        """Return the gradient of local steps after all transforms, but without their factors."""
        gradient: Gradient = self.problem.grad
        for transform in self.transforms:
            gradient = transform.gradient(self, gradient)
        return gradient

    def descend(self, X: Array, rate: Array | float) -> Array:
        """Return x_i − rate·∇f_i(x_i), for one rate or (c, 1) of them: (c, n)."""
        # a network takes the step parameter by parameter, without one vector of all gradients
        descend = getattr(self._gradient(), "descend", None) if self.transforms and self.factors is None else None
        return subtract(X, rate * self.grad(X)) if descend is None else descend(self.block, X, rate)

    def point(self, x: Array, steps: int, size: int = 0, vectors: int = 1, epochs: float = 0) -> Array:
        """Return models x, (n,) or (c, n), or their point in the space of samples if steps cost less there.

        grad, +, −, and products with numbers or (c, 1) work with both; ``array`` returns the models. The ``steps`` add
        multiples of gradients of ``size`` samples (0: all) and of ``vectors`` vectors, x among them. With ``epochs``
        they are that many passes over the samples.
        """
        block = self.block
        D = block.b.shape[1]
        auto = self._study.space == "auto"
        passes = steps and (epochs or steps * min(1, size / D or 1))
        if passes <= (not size) or self._study.space == "parameters":
            return x
        if auto and block.n < 2 * D:
            compute = getattr(self.problem, "quadratics", None)
            if compute is not None and not size and pays_by_hessian(D, block.n, passes) and self._plain_steps():
                self.hessians = block.note("quadratics", compute)
            return x
        if self._space is None or (auto and not self._pays(passes, size, vectors)):
            return x
        point: Any = self._space.point(x)
        return point

    def _pays(self, passes: float, size: int, vectors: int) -> bool:
        """Return whether gradients in the space of samples cost less, by work that follows from sizes."""
        block = self.block
        return block.products.every_number and pays(block.b.shape[1], block.n, passes, vectors, size > 0)

    @cached_property
    def _space(self) -> SampleSpace | None:
        """One space for all points of a call, which can be added to one another; None where there is none."""
        problem = self.problem.in_scores() if self._plain_steps() else None
        if problem is None:
            return None
        return SampleSpace(self.block, problem, self.factors if self.transforms else None)

    def _plain_steps(self) -> bool:
        """Return whether samples are in memory, and no transform changes steps."""
        return self.xp is np and not any(changes_steps(transform) for transform in self.transforms)

    def array(self, point: Array) -> Array:
        """Return the models of a point, (c, n); an array itself."""
        return point.space.array(point) if isinstance(point, SamplePoint) else point

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        """Return f_i(x_i) and ∇f_i(x_i)."""
        f, G = self.problem.value_grad(self.block, X)
        return self.apply_factors(f), self.apply_factors(G)

    def clipped_grad(self, X: Array, bound: float) -> Array:
        """Return ∇f_i(x_i) with every sample's gradient clipped to 1-norm ``bound``: (c, n)."""
        return self.apply_factors(self.problem.clipped_grad(self.block, X, bound))

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        """Return f_i(x_i), ∇f_i(x_i) and, for a problem with classes, accuracy(X)."""
        value, grad, classes = self.problem.evaluate(self.block, X)
        result = (self.apply_factors(value), self.apply_factors(grad)) if self.transforms else (value, grad)
        # accuracies have no factors; classes of the training samples are passed on so as not to predict them twice
        return result if classes is None else (*result, *self.accuracy(X, classes))

    def accuracy(self, X: Array, classes: Array | None = None, role: str | None = None) -> tuple[Array, Array, Array]:
        """Return the fraction of samples classified correctly at X, their number, and that of all samples: (c,) each.

        Of each client's samples in a role, 0 for clients without any; by default of test samples, or of the training
        samples if no client of the run has test samples. For full blocks only. ``classes`` (c, D) are predictions for
        the training samples, if they have been computed already.
        """

        def count_correct(block: Block, X: Array) -> tuple[Array, Array]:
            predicted = classes if classes is not None and block is self.block else self.problem.predict(block, X)
            return count_matches(block, predicted)

        return self._divide(*self.evaluate_samples(count_correct, 2, X, role))

    def assess(self, X: Array, role: str) -> tuple[Array, ...]:
        """Return f_i(x_i) of the samples in a role and, for a problem with classes, accuracy(X) of them, in one pass.

        (c,) each, 0 for clients without any. f_i has no factors: a mean over samples has no weights of clients.
        """

        def compute(block: Block, X: Array) -> tuple[Array, ...]:
            value, classes = self.problem.value_predict(block, X)
            return (value,) if classes is None else (value, *count_matches(block, classes))

        value, *counts = self.evaluate_samples(compute, 3 if self.problem.classifies() else 1, X, role)
        return (value, *self._divide(*counts)) if counts else (value,)

    def _divide(self, correct: Array, tested: Array) -> tuple[Array, Array, Array]:
        return correct / self.xp.where(tested > 0, tested, 1.0), correct, tested

    def measure(self, X: Array, role: str | None = None) -> tuple[Array, ...]:
        """Evaluate the problem's metrics on the samples in a role: (c,) each, 0 for clients without any."""
        return self.evaluate_samples(self.problem.measure, len(self.problem.measure_names()), X, role)

    def evaluate_samples(
        self, compute: Callable[[Block, Array], tuple[Array, ...]], count: int, X: Array, role: str | None = None
    ) -> tuple[Array, ...]:
        """Apply ``compute`` to each client's samples in a role; return ``count`` arrays (c,), 0 for clients without.

        By default the role of the samples on which models are evaluated.
        """
        columns = tuple(self.xp.zeros(len(self)) for _ in range(count))
        for rows, block in find_samples(self.block, role or self.role.name):
            for column, values in zip(columns, compute(block, X if X.ndim == 1 else X[rows]), strict=True):
                column[rows] = self.xp.astype(self.xp.asarray(values), column.dtype)  # torch casts nothing by itself
        return columns

    @property
    def role(self) -> Role:
        """Samples on which models are evaluated."""
        return self._study.role

    @cached_property
    def home(self) -> Array:
        """Mask of the parameters that stay with the clients: (n,) bool; none does without ``personal``."""
        home = np.zeros(self.n, bool) if self._study.home is None else self._study.home
        return self.xp.asarray(home)

    def lipschitz(self) -> Array:
        """Return r_i, a Lipschitz constant of ∇f_i: (c,)."""
        r = self.problem.lipschitz(self.block)
        return self.apply_factors(r) if self.transforms else r

    def convexity(self) -> Array:
        """Return α_i, the strong convexity of f_i: (c,)."""
        return self.apply_factors(self.problem.convexity(self.block))

    def least_curvature(self) -> Array:
        """Return a lower bound of the eigenvalues of every ∇²f_i(x): (c,)."""
        return self.apply_factors(self.problem.least_curvature(self.block))

    def hessian(self, X: Array) -> RowMap:
        """Return the function V -> ∇²f_i(x_i) v_i, rows (c, n)."""
        product = self.problem.hessian(self.block, X)
        return (lambda V: self.apply_factors(product(V))) if self.transforms else product

    def hess(self, X: Array) -> Array:
        """Return ∇²f_i(x_i), symmetric to the bit: (c, n, n)."""
        return self.apply_factors(self.problem.hess(self.block, X))

    def packed_hess(self, X: Array) -> Array:
        """Return the upper triangles of ∇²f_i(x_i), row by row, as a new array: (c, n(n+1)/2)."""
        return self.apply_factors(self.problem.packed_hess(self.block, X))

    def majorizer_inverse(self, scale: float, shift: float) -> RowMap:
        """Return the function v -> (scale·H_i + shift·I)⁻¹ v, with H_i from the problem."""
        factors = multiply_block_factors(self.transforms)
        if factors is None:  # a user's problem may take no factors
            return self.problem.majorizer_inverse(self.block, scale, shift)
        return self.problem.majorizer_inverse(self.block, scale, shift, factors)

    def zeros(self, *shape: int) -> Array:
        """Return zeros (c, n), or (c, *shape)."""
        return self.xp.zeros((len(self), *(shape or (self.n,))), dtype=self.block.b.dtype)

    def initial(self) -> Array:
        """Return the model that the run starts from, a row for each client: (c, n)."""
        return self.xp.asarray(self._study.initial(self.ids))

    @cached_property
    def samples(self) -> Array:
        """Sample counts d_i as real numbers: (c, 1)."""
        return self.block.real(self.d[:, None])

    @cached_property
    def neighbours(self) -> Array:
        """Number of neighbours of each node of a graph in this round, as real numbers: (c, 1)."""
        counts = find_neighbour_counts(self.transforms, self)
        if counts is None:
            raise UserError("clients have neighbours only with a table [graph]")
        return self.xp.asarray(counts.astype(self._study.start.dtype))

    @cached_property
    def rng(self) -> list[np.random.Generator]:
        """Random streams, one for each client, new in every round and call."""
        return streams(self._study.seed, "clients", self.ids, *self.key)

    def streams(self, seed: int, purpose: str) -> list[np.random.Generator]:
        """Return a random stream for each client, for another seed and purpose than those of the run."""
        return streams(seed, purpose, self.ids, *self.key)

    def steps(
        self, k0: int, epochs: float, size: int, max_steps: Array | None = None, last_batch: str = "keep"
    ) -> Steps[Local]:
        """Yield local iterations j = 0, 1 … as (j, f on a mini-batch of ``size`` samples, weight).

        ``weight`` is 1, or (c, 1) with 0 for clients without a sample in it. With ``epochs`` there are that many passes
        over the samples as MiniBatches describes them, else ``k0`` mini-batches, each drawn anew; j counts either.
        ``size`` 0 is the full batch; then an epoch is one step. Random numbers come from each client's own stream. A
        client takes at most ``max_steps`` (c,) steps and has weight 0 in the others (None: all steps).
        """
        steps = self._steps(MiniBatches.of_round(k0, epochs, size, last_batch))
        if max_steps is None:
            yield from steps
            return
        xp = self.xp
        left = xp.astype(max_steps[:, None], self.block.b.dtype)
        for j, batch, has in steps:
            if not xp.any(left > 0):
                return
            weight = has * xp.astype(left > 0, left.dtype)
            yield j, batch, 1 if xp.all(weight > 0) else weight
            left = left - weight

    def _steps(self, batches: MiniBatches) -> Steps[Local]:
        """Yield the local iterations of clients that take all of them, with the changes by transforms."""
        steps: Steps[Local] = zip(range(math.ceil(batches.passes)), repeat(self), repeat(1))
        if batches.size:
            blocks = batches.draw(self.block, self.rng, self._study.start.dtype)
            steps = ((j, self.like(block, self.ids, self.key, self.transforms), has) for j, block, has in blocks)
        for transform in self.transforms:
            steps = transform.steps(self, steps)
        return steps


def count_matches(block: Block, classes: Array) -> tuple[Array, Array]:
    """Return how many samples of each client have the class (c, D) predicted, and how many it has: (c,) each."""
    return block.xp.sum((classes == block.b) & (block.w > 0), axis=1), block.sizes


def find_samples(block: Block, role: str) -> list[tuple[Array | slice, Block]]:
    """Return (positions of clients, block of their samples in a role) for all clients that have such samples."""
    # the block itself, so that predictions for its samples can be reused
    return [(slice(None), block)] if role == TRAINING else [*block.held.get(role, [])]
