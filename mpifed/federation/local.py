"""What a client method sees of its clients: the ``f`` of the papers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.blocks import Block
from mpifed.problems.base import Problem, Solve


class Local:
    """f_i of c clients of one block. Arrays have the clients in front: X is (c, n), or (n,), a common point.

    ``n`` parameters, ``start`` (n,) the model of the start, ``m`` clients in all, ``ids`` (c,) their numbers, ``d`` (c,) their
    samples, ``known`` a common point and the gradients (c, n) at it, if there are any.
    """

    def __init__(
        self,
        block: Block,
        problem: Problem,
        start: Array,
        m: int,
        ids: Array,
        seed: int,
        place: tuple[int, int],
        known: tuple[Array, Array] | None = None,
    ) -> None:
        self.block, self.problem, self.start, self.m, self.ids = block, problem, start, m, ids
        self.n = len(start)
        self.d = block.d
        self.known, self.graded = known, 0.0
        self._seed, self._place = seed, place

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Array) -> Local:
        """Some of these clients, by position."""
        if len(rows) == len(self):
            return self
        known = None if self.known is None else (self.known[0], self.known[1][rows])
        return Local(
            self.block.take(rows), self.problem, self.start, self.m, self.ids[rows], self._seed, self._place, known
        )

    def value(self, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.problem.value(self.block, X)

    def grad(self, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        if self.known is not None and X is self.known[0]:
            return self.known[1]
        return self.problem.grad(self.block, X)

    def clipped_grad(self, X: Array, bound: float) -> Array:
        """∇f_i(x_i) with every sample's gradient clipped to 1-norm ``bound``: (c, n)."""
        return self.problem.clipped_grad(self.block, X, bound)

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i)."""
        return self.problem.value_grad(self.block, X)

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        """f_i(x_i), ∇f_i(x_i) and, for a problem of classes, accuracy(X); ``graded``: seconds of the gradient."""
        begun = time.perf_counter()
        grad, rest = self.problem.evaluate(self.block, X)
        self.graded = time.perf_counter() - begun
        value, classes = rest()
        return (value, grad) if classes is None else (value, grad, *self.accuracy(X, classes))

    def accuracy(self, X: Array, classes: Array | None = None) -> tuple[Array, Array, Array]:
        """At X, a row a client or a common point (n,): the share classified rightly, how many that is, of how many: (c,).

        On each client's own test samples, on the training samples of those who have none; for whole blocks only.
        ``classes`` (c, D) are those predicted for the training samples, where they are known already.
        """
        right, count = np.zeros(len(self)), np.zeros(len(self))
        tested = list(self.block.tests)
        rest = np.arange(len(self))
        if tested:
            rest = np.setdiff1d(rest, np.concatenate([rows for rows, _ in tested]))
        if len(rest):
            tested.append((rest, self.block if len(rest) == len(self) else self.block.take(rest)))
        for rows, block in tested:
            known = classes if block is self.block else None
            hit = (self.problem.predict(block, X if X.ndim == 1 else X[rows]) if known is None else known) == block.b
            right[rows], count[rows] = np.vecdot(hit.astype(float), block.w > 0), block.d
        return right / count, right, count

    def lipschitz(self) -> Array:
        """r_i: (c,)."""
        return self.problem.lipschitz(self.block)

    def convexity(self) -> Array:
        """α_i, the strong convexity of f_i: (c,)."""
        return self.problem.convexity(self.block)

    def hessian(self, X: Array) -> Solve:
        """V -> ∇²f_i(x_i) v_i."""
        return self.problem.hessian(self.block, X)

    def majorizer_inverse(self, scale: float, shift: float) -> Solve:
        """v -> (scale·H_i + shift·I)⁻¹ v, with H_i from the problem."""
        return self.problem.majorizer_inverse(self.block, scale, shift)

    def zeros(self, *shape: int) -> Array:
        """(c, n) zeros, or (c, *shape)."""
        return np.zeros((len(self), *(shape or (self.n,))), self.block.b.dtype)

    def initial(self) -> Array:
        """The model a run starts from, a row a client: (c, n)."""
        return np.tile(self.start, (len(self), 1))

    @cached_property
    def samples(self) -> Array:
        """d_i as real numbers: (c, 1)."""
        return self.d[:, None].astype(self.block.b.dtype)

    @cached_property
    def rng(self) -> list[np.random.Generator]:
        """One random stream a client, new in every round and call."""
        return [stream(self._seed, "clients", int(i), *self._place) for i in self.ids]

    def steps(self, k0: int, epochs: int, size: int) -> Iterator[tuple[int, Local, Array | int]]:
        """Local iterations j = 0, 1 …, as (j, f on a mini-batch of ``size`` samples, who has one (c, 1), 1 or 0).

        With ``epochs`` that many passes over the samples in random order, otherwise ``k0`` mini-batches, each drawn anew;
        j counts epochs or iterations. ``size`` 0 is the full batch, an epoch of which is one step. Draws come from each
        client's own stream.
        """
        if size == 0:
            for j in range(epochs or k0):
                yield j, self, 1
            return
        width = min(size, self.block.b.shape[1])
        passes = -(-int(self.d.max()) // width) if epochs else 1
        for j in range(epochs or k0):
            order = np.zeros((len(self), passes * width), np.int64)
            for i, rng in enumerate(self.rng):
                picks = rng.permutation(self.d[i])[: order.shape[1]]
                order[i, : len(picks)] = picks
            for k in range(passes):
                counts = np.clip(self.d - k * width, 0, width)
                block = self.block.batch(order[:, k * width : (k + 1) * width], counts)
                part = Local(block, self.problem, self.start, self.m, self.ids, self._seed, self._place)
                yield j, part, 1 if (counts > 0).all() else (counts > 0)[:, None].astype(self.block.b.dtype)
