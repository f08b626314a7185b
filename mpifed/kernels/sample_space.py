"""Local steps in the space of a client's samples, for losses of linear scores.

∇f_i(w) = A_iᵀ φ'(A_i w) + ridge_i w, so a local model that starts from vectors u_l stays in w = Σ_l c_l u_l + A_iᵀ s. It
suffices to follow the c_l and s: A_i w = Σ_l c_l A_i u_l + K_i s with K_i = A_iA_iᵀ (d, d). A step costs d² in place of
2dn, and the samples are read once for each u_l and once for A_iᵀ s.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block

Coefficient = Any  # a number, or one for each client: (c, 1)
GAIN = 1.3  # plain steps must cost so many times what these cost, by numbers that are multiplied
LARGE = 256  # samples per step, above which K_i takes too many rounds to pay


class LinearScores(Protocol):
    """The methods of a problem whose gradient is A_iᵀ s with s of the scores A_i w, plus ridge_i w."""

    def linear_scores(self, block: Block, X: Array) -> Array:
        """Return A_i x_i without offsets: (c, D), or (c, D, C) with C classes."""

    def sample_slopes(self, block: Block, Z: Array) -> Array:
        """Return s, the slopes at scores Z without offsets, times the weights of samples: like Z."""

    def pull_slopes(self, block: Block, S: Array) -> Array:
        """Return A_iᵀ s_i: (c, n)."""

    def sample_grams(self, block: Block) -> Array:
        """Return K_i, by which scores change with s: (c, D, D)."""

    def ridge(self, block: Block) -> Array | None:
        """Return the factor of w in the gradient (c, 1), or None if it is 0."""


def pays(D: int, n: int, steps: int, vectors: int) -> bool:
    """Return whether ``steps`` gradients of D samples cost less here, for models that start from ``vectors`` vectors.

    By numbers that are multiplied: 2Dn a gradient, against D² and (vectors + 1)Dn once. K_i, which is computed once for
    the whole run, takes at most half of the memory of the samples.
    """
    return 2 * D <= n and LARGE * steps >= D and 2 * steps * n >= GAIN * ((vectors + 1) * n + steps * D)


class SampleSpace:
    """The points of c clients of one block: ``vectors`` u_l, each with A_i u_l once it is needed."""

    def __init__(self, block: Block, problem: LinearScores, factors: Array | None) -> None:
        self.block = block
        self.problem = problem
        self.factors = factors  # (c,) by which the f_i are multiplied; None: 1
        self.vectors: dict[int, list[Any]] = {}  # id of u_l -> u_l itself, so that its id stays its own, and A_i u_l

    def point(self, u: Array) -> SamplePoint:
        """Return the point of vectors u, (n,) or (c, n)."""
        self.vectors.setdefault(id(u), [u, None])
        return SamplePoint(self, {id(u): 1.0}, None)

    def scores(self, point: SamplePoint) -> Array:
        """Compute A_i w_i without offsets: (c, D) or (c, D, C)."""
        total: Any = None
        if point.s is not None:
            K = self.block.client_values("K", self.problem.sample_grams)
            total = np.matmul(K, point.s) if point.s.ndim == 3 else np.matvec(K, point.s)
        for key, c in point.coefficients.items():
            entry = self.vectors[key]
            if entry[1] is None:
                entry[1] = self.problem.linear_scores(self.block, entry[0])
            part = scale(c, entry[1])
            total = part if total is None else total + part
        return total

    def gradient(self, point: SamplePoint) -> SamplePoint:
        """Compute ∇f_i at a point, as a point."""
        S = self.problem.sample_slopes(self.block, self.scores(point))
        if self.factors is not None:
            S = scale(self.factors[:, None], S)
        slope = SamplePoint(self, {}, S)
        ridge = self.problem.ridge(self.block)
        if ridge is None:
            return slope
        return slope + point * (ridge if self.factors is None else ridge * self.factors[:, None])

    def array(self, point: SamplePoint) -> Array:
        """Compute w_i = Σ_l c_l u_l + A_iᵀ s_i: (c, n)."""
        total: Any = None if point.s is None else self.problem.pull_slopes(self.block, point.s)
        for key, c in point.coefficients.items():
            u = self.vectors[key][0]
            part = u if isinstance(c, float) and c == 1 else c * u
            total = part if total is None else total + part
        return np.zeros(point.shape) if total is None else np.broadcast_to(total, point.shape)


class SamplePoint:
    """Models w_i = Σ_l c_l u_l + A_iᵀ s_i of the clients of a block, by c_l and s_i.

    Points and arrays can be added, and points multiplied by numbers or by (c, 1); what else is done to one needs
    ``f.array(point)``.
    """

    # so that numpy leaves array * point and array + point to the methods here
    __array_ufunc__ = None
    __slots__ = ("coefficients", "s", "space")

    def __init__(self, space: SampleSpace, coefficients: dict[int, Coefficient], s: Array | None) -> None:
        self.space = space
        self.coefficients = coefficients
        self.s = s

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return NAMESPACE

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that this point stands for."""
        return (len(self.space.block), self.space.vectors[next(iter(self.space.vectors))][0].shape[-1])

    @property
    def ndim(self) -> int:
        return 2

    def __add__(self, other: Any) -> SamplePoint:
        return self.add(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SamplePoint:
        return self.add(other, np.subtract)

    def __rsub__(self, other: Any) -> SamplePoint:
        return self.space.point(other).add(self, np.subtract)

    def __neg__(self) -> SamplePoint:
        return self * -1.0

    def __mul__(self, factor: Any) -> Any:
        if np.ndim(factor) and np.shape(factor)[-1] != 1:
            return self.space.array(self) * factor  # by coordinates: no point any more
        s = None if self.s is None else scale(factor, self.s)
        return SamplePoint(self.space, {key: factor * c for key, c in self.coefficients.items()}, s)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Any:
        return self * (1 / factor)

    def add(self, other: Any, operation: Callable[[Any, Any], Any]) -> SamplePoint:
        """Return the sum or difference with a point or an array, (n,) or (c, n)."""
        if not isinstance(other, SamplePoint):
            other = self.space.point(other)
        coefficients = self.coefficients
        if other.coefficients:
            coefficients = dict(coefficients)
            for key, c in other.coefficients.items():
                total = operation(coefficients.get(key, 0.0), c)
                if np.ndim(total) or total:
                    coefficients[key] = total if np.ndim(total) else float(total)
                else:
                    del coefficients[key]  # w − x without x
        if other.s is None:
            return SamplePoint(self.space, coefficients, self.s)
        return SamplePoint(self.space, coefficients, operation(0 if self.s is None else self.s, other.s))


def scale(factor: Coefficient, S: Array) -> Array:
    """Multiply S (c, D) or (c, D, C) by a number or by (c, 1)."""
    return factor[..., None] * S if np.ndim(factor) and S.ndim == 3 else factor * S


class PointNamespace(SimpleNamespace):
    """The functions of the array-API standard that points have; those of numpy for all else."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros_like(point: SamplePoint) -> SamplePoint:
        return SamplePoint(point.space, {}, None)


NAMESPACE = PointNamespace()
