"""What a client method sees of its clients: the ``f`` of the papers."""
from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mpifed.data.blocks import Block
from mpifed.data.clients import Array
from mpifed.problems.base import Problem, Solve
from mpifed.rng import stream


class Local:
    """f_i of c clients of one block. Arrays have the clients in front: X is (c, n), or (n,) for a common point.

    ``n`` parameters, ``m`` clients in all, ``ids`` (c,) their numbers, ``d`` (c,) their samples.
    """

    def __init__(self, block: Block, problem: Problem, n: int, m: int, ids: Array, seed: int, place: tuple[int, int]) -> None:
        self.block, self.problem, self.n, self.m, self.ids = block, problem, n, m, ids
        self.d = block.d
        self._seed, self._place = seed, place

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Array) -> Local:
        """Some of these clients, by position."""
        if len(rows) == len(self):
            return self
        return Local(self.block.take(rows), self.problem, self.n, self.m, self.ids[rows], self._seed, self._place)

    def value(self, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.problem.value(self.block, X)

    def grad(self, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        return self.problem.grad(self.block, X)

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i)."""
        return self.problem.value_grad(self.block, X)

    def lipschitz(self) -> Array:
        """r_i: (c,)."""
        return self._ask("lipschitz")(self.block)

    def majorizer_inverse(self, scale: float, shift: float) -> Solve:
        """v -> (scale·H_i + shift·I)⁻¹ v, with H_i from the problem."""
        return self._ask("majorizer_inverse")(self.block, scale, shift)

    def zeros(self, *shape: int) -> Array:
        """(c, n) zeros, or (c, *shape)."""
        return np.zeros((len(self), *(shape or (self.n,))), self.block.b.dtype)

    @cached_property
    def rng(self) -> list[np.random.Generator]:
        """One random stream a client, new in every round and call."""
        return [stream(self._seed, "clients", int(i), *self._place) for i in self.ids]

    def _ask(self, name: str) -> Any:
        return getattr(self.problem, name)
