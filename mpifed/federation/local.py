"""What a client method sees of its clients: the ``f`` of the papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.errors import UserError
from mpifed.core.roles import Role
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.federation.samples import mini_batches, samples_of
from mpifed.federation.view import Gradient, Key, Steps, View, by_block_of, factors_of, neighbours_of
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem, Solve


class Study(Protocol):
    """What clients know of a run: its problem, its seed, how many they are, the first model, what evaluates models."""

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
    def initial(self, ids: Array) -> Array: ...


class Local:
    """f_i of c clients of one block. Arrays have the clients in front: X is (c, n), or (n,), a common point.

    ``problem``; ``n`` parameters, ``m`` clients in all, ``ids`` (c,) the numbers of these, ``d`` (c,) their samples.
    ``xp`` has the functions of the array-API standard for the arrays of these clients: numpy itself, or where the
    samples live on a device those for its tensors. ``ids`` are numpy's everywhere. ``views`` are what features change;
    without any, f_i is the problem's.

        >>> class Descent(mpifed.algorithms.GD):
        ...     def gradient(self, f: mpifed.Local, client, x):
        ...         assert f.grad(x).shape == (len(f), f.n)
        ...         return client, f.grad(x)
        >>> mpifed.run(algorithm=Descent(), rounds=2).cr
        2
    """

    def __init__(self, block: Block, study: Study, ids: Array, key: Key, views: Sequence[View] = ()) -> None:
        self.block, self.ids = block, ids
        self.problem, self.m = study.problem, study.m
        self.xp = block.xp
        self.n, self.d = len(study.start), block.d
        self._study, self.key = study, key
        # asked first: one of these is made for every mini-batch, and most runs have no views
        self.views = [view.of(self) for view in views] if views else []

    @property
    def round(self) -> int | Array:
        """The round in which the clients were called; in asynchronous runs of each, counted by its uploads: (c,)."""
        return self.key[0]

    def __len__(self) -> int:
        return len(self.ids)

    def like(self, block: Block, ids: Array, key: Key, views: Sequence[View] = ()) -> Local:
        """The same f_i with other samples, clients or random streams."""
        return Local(block, self._study, ids, key, views)

    def take(self, rows: Array) -> Local:
        """Some of these clients, by position."""
        rows = rows if isinstance(rows, np.ndarray) else to_numpy(rows)
        if len(rows) == len(self):
            return self
        round, call = (part[rows] if isinstance(part, np.ndarray) else part for part in self.key)
        found = self.like(self.block.take(rows), self.ids[rows], (round, call))
        # they are in the midst of a call: what was drawn for them stays, and is not drawn anew
        found.views = [view.of(found, rows) for view in self.views]
        return found

    def keyed(self, key: Key) -> Local:
        """The same clients with the random streams of other rounds and calls."""
        return self.like(self.block, self.ids, key, self.views)

    def beside(self, views: Sequence[View]) -> Local:
        """The same clients with further views."""
        return self.like(self.block, self.ids, self.key, [*self.views, *views])

    @cached_property
    def factors(self) -> Array | None:
        """What views multiply the problem's f_i with: (c,), None: nothing."""
        return factors_of(self.views, self)

    def scaled(self, rows: Array) -> Array:
        """Rows (c, …) of the problem, which are linear in f_i, as they are with the factors."""
        if not self.views or self.factors is None:
            return rows
        return self.factors.reshape(-1, *[1] * (rows.ndim - 1)) * rows

    def value(self, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.scaled(self.problem.value(self.block, X))

    def grad(self, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        # all methods spend their time here: a plain run goes on to its problem at once
        if not self.views:
            return self.problem.grad(self.block, X)
        gradient: Gradient = self.problem.grad
        for view in self.views:
            gradient = view.gradient(self, gradient)
        return self.scaled(gradient(self.block, X))

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i)."""
        f, G = self.problem.value_grad(self.block, X)
        return self.scaled(f), self.scaled(G)

    def clipped_grad(self, X: Array, bound: float) -> Array:
        """∇f_i(x_i) with every sample's gradient clipped to 1-norm ``bound``: (c, n)."""
        return self.scaled(self.problem.clipped_grad(self.block, X, bound))

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        """f_i(x_i), ∇f_i(x_i) and, for a problem with classes, accuracy(X)."""
        value, grad, classes = self.problem.evaluate(self.block, X)
        found = (self.scaled(value), self.scaled(grad)) if self.views else (value, grad)
        # shares of samples have no factors, and classes that are predicted already are not predicted again
        return found if classes is None else (*found, *self.accuracy(X, classes))

    def accuracy(self, X: Array, classes: Array | None = None) -> tuple[Array, Array, Array]:
        """The share of samples classified correctly at X, how many these are, and how many there are: (c,) each.

        On each client's own test samples, 0 for clients without any; on the training samples where no client of the run
        has test samples. For whole blocks only. ``classes`` (c, D) are those predicted for the training samples, where
        they have been computed already.
        """
        xp = self.xp

        def counted(block: Block, X: Array) -> tuple[Array, Array]:
            known = classes is not None and block is self.block
            predicted = classes if known else self.problem.predict(block, X)
            return xp.sum((predicted == block.b) & (block.w > 0), axis=1), block.sizes

        correct, tested = self.tested(counted, 2, X)
        return correct / xp.where(tested > 0, tested, 1.0), correct, tested

    def measure(self, X: Array) -> tuple[Array, ...]:
        """The numbers that the problem measures, on the same samples: (c,) each, 0 for clients without any."""
        return self.tested(self.problem.measure, len(self.problem.measured()), X)

    def tested(self, compute: Callable[[Block, Array], tuple[Array, ...]], count: int, X: Array) -> tuple[Array, ...]:
        """Apply ``compute`` to the same samples at X: ``count`` arrays (c,), 0 for clients without any."""
        found = tuple(self.xp.zeros(len(self)) for _ in range(count))
        for rows, block in samples_of(self.block, self.role.name):
            for column, values in zip(found, compute(block, X if X.ndim == 1 else X[rows]), strict=True):
                column[rows] = self.xp.astype(self.xp.asarray(values), column.dtype)  # torch casts nothing by itself
        return found

    @property
    def role(self) -> Role:
        """The samples on which models are evaluated."""
        return self._study.role

    def lipschitz(self) -> Array:
        """r_i, a Lipschitz constant of ∇f_i: (c,)."""
        r = self.problem.lipschitz(self.block)
        return self.scaled(r) if self.views else r

    def convexity(self) -> Array:
        """α_i, the strong convexity of f_i: (c,)."""
        return self.scaled(self.problem.convexity(self.block))

    def least_curvature(self) -> Array:
        """A lower bound of the eigenvalues of every ∇²f_i(x): (c,)."""
        return self.scaled(self.problem.least_curvature(self.block))

    def hessian(self, X: Array) -> Solve:
        """V -> ∇²f_i(x_i) v_i."""
        product = self.problem.hessian(self.block, X)
        return (lambda V: self.scaled(product(V))) if self.views else product

    def hess(self, X: Array) -> Array:
        """∇²f_i(x_i), symmetric to the bit: (c, n, n)."""
        return self.scaled(self.problem.hess(self.block, X))

    def packed_hess(self, X: Array) -> Array:
        """The same as upper triangles, row by row, in an array of their own: (c, n(n+1)/2)."""
        return self.scaled(self.problem.packed_hess(self.block, X))

    def majorizer_inverse(self, scale: float, shift: float) -> Solve:
        """v -> (scale·H_i + shift·I)⁻¹ v, with H_i from the problem."""
        own = by_block_of(self.views)
        if own is None:  # a problem that knows of no factors may be a user's own
            return self.problem.majorizer_inverse(self.block, scale, shift)
        return self.problem.majorizer_inverse(self.block, scale, shift, own)

    def zeros(self, *shape: int) -> Array:
        """(c, n) zeros, or (c, *shape)."""
        return self.xp.zeros((len(self), *(shape or (self.n,))), dtype=self.block.b.dtype)

    def initial(self) -> Array:
        """The model a run starts from, a row a client: (c, n)."""
        return self.xp.asarray(self._study.initial(self.ids))

    @cached_property
    def samples(self) -> Array:
        """d_i as real numbers: (c, 1)."""
        return self.block.real(self.d[:, None])

    @cached_property
    def neighbours(self) -> Array:
        """How many neighbours each node of a graph has in this round, as real numbers: (c, 1)."""
        found = neighbours_of(self.views, self)
        if found is None:
            raise UserError("clients have neighbours only with a table [graph]")
        return self.xp.asarray(found.astype(self._study.start.dtype))

    @cached_property
    def rng(self) -> list[np.random.Generator]:
        """One random stream a client, a new one in every round and call."""
        return streams(self._study.seed, "clients", self.ids, *self.key)

    def streams(self, seed: int, purpose: str) -> list[np.random.Generator]:
        """The same for another seed and purpose than those of the run."""
        return streams(seed, purpose, self.ids, *self.key)

    def steps(self, k0: int, epochs: int, size: int, most: Array | None = None) -> Steps[Local]:
        """Local iterations j = 0, 1 …, as (j, f on a mini-batch of ``size`` samples, weight).

        ``weight`` is 1, or (c, 1) with 0 for the clients that have no sample left in this mini-batch. With ``epochs``
        that many passes over the samples in random order, otherwise ``k0`` mini-batches, each drawn anew; j counts
        epochs or iterations. ``size`` 0 is the full batch; then an epoch is one step. Random numbers come from each
        client's own stream, those of several passes in advance. A client takes at most ``most`` (c,) of its steps and
        has weight 0 in the others (None: all of them).
        """
        if most is None:
            yield from self._steps(k0, epochs, size)
            return
        xp = self.xp
        left = xp.astype(most[:, None], self.block.b.dtype)
        for j, batch, has in self._steps(k0, epochs, size):
            if not xp.any(left > 0):
                return
            weight = has * xp.astype(left > 0, left.dtype)
            yield j, batch, 1 if xp.all(weight > 0) else weight
            left = left - weight

    def _steps(self, k0: int, epochs: int, size: int) -> Steps[Local]:
        """The local iterations of clients that take all of them."""
        steps = self._batches(k0, epochs, size)
        for view in self.views:
            steps = view.steps(self, steps)
        return steps

    def _batches(self, k0: int, epochs: int, size: int) -> Steps[Local]:
        """The same without what views change of them."""
        if size == 0:
            for j in range(epochs or k0):
                yield j, self, 1
            return
        dtype = self._study.start.dtype
        # an order of all samples for each epoch, or for each iteration one of which the first samples alone are taken
        for j, block, has in mini_batches(self.block, size, epochs or k0, not epochs, self.rng, dtype):
            yield j, self.like(block, self.ids, self.key, self.views), has
