"""Local steps in the space of a client's samples, for losses of linear scores.

∇f_i(w) = A_iᵀ φ'(A_i w) + ridge_i w, so a local model that starts from vectors u_l stays in w = Σ_l c_l u_l + A_iᵀ s.
It suffices to follow the c_l and s: A_i w = Σ_l c_l A_i u_l + K_i s with K_i = A_iA_iᵀ (d, d). A step costs d² in place
of 2dn, and the samples are read once for each u_l and once for A_iᵀ s.
"""

from __future__ import annotations

import math
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block

Coefficient = Any  # a number, or one for each client: (c, 1)
GAIN = 1.3  # plain steps must cost so many times what these cost, by numbers that are multiplied
GRAMS = "Gram matrices of samples"  # K_i, in Block.client_values
SMALL = 128  # numbers of a client's samples, up to which a run of few clients gains nothing by H_i
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

    def ridge(self, block: Block) -> Array | float | None:
        """Return the factor of w in the gradient (c, 1), or None if it is 0."""


def pays(D: int, n: int, steps: float, vectors: int, batches: bool = False) -> bool:
    """Return whether ``steps`` gradients of D samples cost less here, for models that start from ``vectors`` vectors.

    By numbers that are multiplied: 2Dn a gradient, against D² and (vectors + 1)Dn once. K_i, which is computed once for
    the whole run, takes at most half of the memory of the samples. With ``batches`` the gradients are those of passes
    in mini-batches, whose rows are copied first: that counts 1.5 times for A_i and, as measured, 3 times for K_i.
    """
    if batches:
        steps *= 1.5
        D *= 2
    return n >= 2 * D and LARGE * steps >= D and 2 * steps * n >= GAIN * ((vectors + 1) * n + steps * D)


def pays_by_hessian(D: int, n: int, steps: float) -> bool:
    """Return whether ``steps`` gradients of a quadratic cost less with H_i (n, n), by n² multiplications and not 2Dn.

    As with K_i, H_i takes at most half of the memory of the samples, and few rounds.
    """
    return 2 * n <= D and LARGE * steps >= n and D * n > SMALL


class SampleSpace:
    """The points of c clients of one block: ``vectors`` u_l, each with A_i u_l once it is needed."""

    def __init__(self, block: Block, problem: LinearScores, factors: Array | None) -> None:
        self.block = block
        self.problem = problem
        self.factors = factors  # (c,) by which the f_i are multiplied; None: 1
        self.vectors: dict[int, list[Any]] = {}  # id of u_l -> u_l itself, so that its id stays its own, and A_i u_l
        # a number of the samples' type: clients with numbers of their own have the bits of others with one for all
        self.one = block.b.dtype.type(1)
        ridge = problem.ridge(block)
        self.ridge = ridge if factors is None or ridge is None else ridge * factors[:, None]

    @cached_property
    def K(self) -> Array:
        """A_iA_iᵀ, or what else takes s to its scores: (c, D, D)."""
        return self.block.client_values(GRAMS, self.problem.sample_grams)

    def point(self, u: Array) -> SamplePoint:
        """Return the point of vectors u, (n,) or (c, n)."""
        key = id(u)
        if key not in self.vectors:
            self.vectors[key] = [u, None]
        return SamplePoint(self, {key: self.one}, None)

    def scores(self, point: SamplePoint, rows: Array | None = None) -> Array:
        """Compute A_i w_i without offsets, (c, D) or (c, D, C); with ``rows`` (c, B) of all clients' only of these."""
        total: Any = None
        if point.s is not None:
            K = self.K if rows is None else take(self.K, rows)
            total = np.matvec(K, point.s) if point.s.ndim == 2 else np.matmul(K, point.s)
        for key, c in point.coefficients.items():
            entry = self.vectors[key]
            if entry[1] is None:
                entry[1] = self.problem.linear_scores(self.block, entry[0])
            part = scale(c, entry[1] if rows is None else take(entry[1], rows))
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            total = self.problem.linear_scores(self.block, np.zeros(point.shape[1:]))
            total = total if rows is None else take(total, rows)
        return total

    def gradient(self, point: SamplePoint, block: Block) -> SamplePoint:
        """Compute ∇f_i at a point, as a point: of all samples, or of a mini-batch ``block`` of them."""
        rows = None if block.drawn is None else block.drawn[1]
        S = self.problem.sample_slopes(block, self.scores(point, rows))
        if rows is not None:
            S = put(S, rows, block)
        if self.factors is not None:
            S = scale(self.factors[:, None], S)
        ridge = self.ridge
        if ridge is None:
            return SamplePoint(self, {}, S)
        if point.s is not None:
            S = S + scale(ridge, point.s)
        return SamplePoint(self, {key: ridge * c for key, c in point.coefficients.items()}, S)

    def array(self, point: SamplePoint) -> Array:
        """Compute w_i = Σ_l c_l u_l + A_iᵀ s_i, a new array: (c, n)."""
        s = point.s
        total = np.zeros(point.shape, point.dtype) if s is None else self.problem.pull_slopes(self.block, s)
        for key, c in point.coefficients.items():
            total += c * self.vectors[key][0]
        return total

    def squared_norms(self, point: SamplePoint) -> Array:
        """Compute ‖w_i‖² as sᵀ(A w + A v) + ‖v‖², v = Σ_l c_l u_l: (c,)."""
        fixed = SamplePoint(self, point.coefficients, None)
        v = self.array(fixed)
        length = np.vecdot(v, v)
        if point.s is None:
            return length
        s = point.s.reshape(len(v), -1)
        both = self.scores(point).reshape(s.shape)
        if point.coefficients:
            both = both + self.scores(fixed).reshape(s.shape)
        squares = np.vecdot(s, both) + length
        # where the terms cancel, as in the gradient of a local solution, the vector itself tells
        cancel = ~(squares > math.sqrt(np.finfo(squares.dtype).eps) * length)
        if cancel.any():
            w = self.array(point)
            squares = np.where(cancel, np.vecdot(w, w), squares)
        return squares


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
        space = self.space
        return (len(space.block), next(iter(space.vectors.values()))[0].shape[-1])

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.space.one.dtype

    def __add__(self, other: Any) -> SamplePoint:
        return self.combine(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SamplePoint:
        return self.combine(other, np.subtract)

    def __rsub__(self, other: Any) -> SamplePoint:
        return self.space.point(other).combine(self, np.subtract)

    def __mul__(self, factor: Any) -> Any:
        if getattr(factor, "ndim", 0) and factor.shape[-1] != 1:
            return self.space.array(self) * factor  # by coordinates: no point any more
        s = None if self.s is None else scale(factor, self.s)
        return SamplePoint(self.space, {key: factor * c for key, c in self.coefficients.items()}, s)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Any:
        return self * (1 / factor)

    def combine(self, other: Any, operation: Any) -> SamplePoint:
        """Return the sum or difference with a point or an array, (n,) or (c, n)."""
        if not isinstance(other, SamplePoint):
            other = self.space.point(other)
        coefficients = self.coefficients
        if other.coefficients:
            zero = 0 * self.space.one
            coefficients = coefficients | {
                key: operation(coefficients.get(key, zero), c) for key, c in other.coefficients.items()
            }
        if other.s is None:
            return SamplePoint(self.space, coefficients, self.s)
        return SamplePoint(self.space, coefficients, operation(0 if self.s is None else self.s, other.s))


def scale(factor: Coefficient, S: Array) -> Array:
    """Multiply S (c, D) or (c, D, C) by a number or by (c, 1)."""
    return factor[..., None] * S if S.ndim == 3 and np.ndim(factor) else factor * S


def take(values: Array, rows: Array) -> Array:
    """Return ``rows`` (c, B), which count over all clients, of values (c, D, …)."""
    return values.reshape(-1, *values.shape[2:]).take(rows, axis=0)


def put(S: Array, rows: Array, batch: Block) -> Array:
    """Return the slopes of all samples (c, D, …) from those S of a mini-batch, 0 where they are not in it."""
    # a rest is filled up with samples of weight 0: these write once more what is written at the client's first one
    there = batch.w > 0
    if not there.all():
        rows = np.where(there, rows, rows[:, :1])
        S = np.where(there if S.ndim == 2 else there[..., None], S, S[:, :1])
    assert batch.drawn is not None
    b = batch.drawn[0].b
    full = np.zeros((b.size, *S.shape[2:]), S.dtype)
    full[rows] = S
    return full.reshape(*b.shape, *S.shape[2:])


def zeros_like(point: SamplePoint) -> SamplePoint:
    """Return the point of zeros."""
    return SamplePoint(point.space, {}, None)


def vecdot(point: SamplePoint, other: SamplePoint) -> Array:
    """Return ‖w_i‖² of a point, which is given twice: (c,)."""
    return point.space.squared_norms(point)


def where(condition: Array, point: SamplePoint, other: SamplePoint) -> Any:
    """Return the point of clients for which a condition (c, 1) holds, and the other one of the rest."""
    return point * condition + other * ~condition


# the functions of the array-API standard that points have, and those of numpy for what is made of their numbers
NAMESPACE = SimpleNamespace(**vars(np) | {"zeros_like": zeros_like, "vecdot": vecdot, "where": where})
