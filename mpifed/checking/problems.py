"""Checks of a problem: derivatives against differences, rows against common points, clients alone and together."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from mpifed.checking.case import Case
from mpifed.checking.table import Check, Found, Open, place
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

STEPS = (1e-4, 1e-5, 1e-6)  # of differences; the one that agrees best counts, so that a kink is no mistake
ACCURACY = 1e-4  # relative error that differences may have
ROUNDING = 1e-9  # relative difference of numbers that were computed in another way
DIRECTIONS = 12  # random directions besides the first coordinates
FEW = 48  # most parameters for which whole Hessians are computed


class Points(NamedTuple):
    """A problem on a block of c clients with the numbers ``ids``, with a point for each, (c, n)."""

    problem: Problem
    block: Block
    X: Array
    ids: Array


@lru_cache(maxsize=1)
def points(case: Case) -> Points:
    """The largest block of the study, and random points near the first model."""
    host = case.host
    _, block, ids = max(host.whole, key=lambda one: len(one[1]))
    x = case.prepared.setup.start.astype(float)
    # not the first model itself: it is 0 for most problems, where many a mistake in a derivative is 0 too
    X = x + stream(case.config.seed, "check").standard_normal((len(block), len(x)))
    return Points(case.config.problem, block, X, ids)


def gradient(case: Case) -> str:
    """⟨∇f_i, v⟩ against differences of f_i, along coordinates and random directions."""
    problem, block, X, ids = points(case)
    G = problem.grad(block, X)
    worst = 0.0
    for name, V in directions(X, case.config.seed):
        right = np.vecdot(G, V)
        found = nearest(partial(problem.value, block), X, V, right)
        # relative to the mean size of the entries too: where an entry is 0, a difference has the rounding of f alone
        size = np.abs(found) + np.linalg.norm(G, axis=1) / np.sqrt(X.shape[1])
        error = np.abs(found - right) / np.maximum(size, 1e-8)
        worst = max(worst, float(error.max()))
        i = int(error.argmax())
        if not error[i] <= ACCURACY:
            raise Found(
                f"{name} of client {ids[i]} is {found[i]:.6g} by differences of value, and {right[i]:.6g} by the "
                "gradient",
                place(problem, "value_grad", "slope", "grad"),
            )
    return f"largest relative error {worst:.1g}"


def directions(X: Array, seed: int) -> list[tuple[str, Array]]:
    """Directions (c, n) with names: the first coordinates, and random ones of length 1."""
    n = X.shape[1]
    found = [(f"∂f/∂x_{j}", np.broadcast_to(np.eye(1, n, j), X.shape)) for j in range(min(n, FEW))]
    rng = stream(seed, "check", 1)
    for _ in range(DIRECTIONS):
        V = rng.standard_normal(X.shape)
        found.append(("the slope along a random direction", V / np.linalg.norm(V, axis=1, keepdims=True)))
    return found


def nearest(computed: Callable[[Array], Array], X: Array, V: Array, right: Array) -> Array:
    """Of the difference quotients along V with several steps, entry by entry the one nearest to ``right``."""
    every = np.stack([differences(computed, X, V, h) for h in STEPS])
    best = np.abs(every - right).argmin(axis=0, keepdims=True)
    return np.take_along_axis(every, best, axis=0)[0]


def differences(computed: Callable[[Array], Array], X: Array, V: Array, h: float) -> Array:
    """(computed(X + hV) − computed(X − hV))/2h."""
    return (computed(X + h * V) - computed(X - h * V)) / (2 * h)


def value_with_gradient(case: Case) -> str:
    problem, block, X, _ = points(case)
    value, G = problem.value_grad(block, X)
    for name, one, other in (("value", problem.value(block, X), value), ("grad", problem.grad(block, X), G)):
        if not alike(one, other):
            raise Found(f"{name} and value_grad differ by {apart(one, other):.2g}", place(problem, name))
    return "the same numbers"


def common(case: Case) -> str:
    """A common point (n,) gives what that point gives in every row."""
    problem, block, X, _ = points(case)
    x = X[0].copy()
    one, other = (computed(problem, block, point, X) for point in (x, np.tile(x, (len(block), 1))))
    for name, found in one.items():
        if not alike(found, other[name]):
            raise Found(
                f"for a common point (n,) and for the same point in each of {len(block)} rows it differs by "
                f"{apart(found, other[name]):.2g}",
                place(problem, name),
            )
    return ", ".join(one)


def alone(case: Case) -> str:
    """What a client gets alone and among others has the same bits."""
    problem, block, X, ids = points(case)
    if len(block) < 2:
        raise Open("a block of the study has one client")
    whole = computed(problem, block, X, X[::-1].copy())
    # one client, for sums over a batch; two in the other order, for what is taken from the first row
    for rows in ([len(block) - 1], [1, 0]):
        part = computed(problem, block.part(np.array(rows)), X[rows], X[::-1][rows].copy())
        for name, found in part.items():
            if found.tobytes() != whole[name][rows].tobytes():
                raise Found(
                    f"clients {ids[rows].tolist()} alone and in a block of {len(block)}: the rows differ by "
                    f"{apart(found, whole[name][rows]):.2g}, so that results depend on ranks and blocks",
                    place(problem, name),
                )
    return ", ".join(whole)


def computed(problem: Problem, block: Block, X: Array, V: Array) -> dict[str, Array]:
    """What a problem computes of each client at X (n,) or (c, n), by name; V (c, n) are the vectors of products."""
    value, G = problem.value_grad(block, X)
    found = {"value_grad": np.column_stack([value, G])}
    if problem.has("hessian"):
        found["hessian"] = problem.hessian(block, X)(V)
    if problem.has("hess") and V.shape[1] <= FEW:
        found["hess"] = problem.hess(block, X)
    if problem.has("majorizer_inverse"):
        found["majorizer_inverse"] = problem.majorizer_inverse(block, 0.5, 0.25)(V)
    if problem.has("clipped_grad"):
        found["clipped_grad"] = problem.clipped_grad(block, X, 0.5)
    return found | {name: getattr(problem, name)(block) for name in ("lipschitz", "convexity") if problem.has(name)}


def hessian(case: Case) -> str:
    problem, block, X, ids = points(case)
    names = [name for name in ("hessian", "hess") if problem.has(name)]
    if not names:
        raise Open("it has neither hessian nor hess")
    worst = 0.0
    for _, V in directions(X, case.config.seed)[-DIRECTIONS:]:
        for name in names:
            product = problem.hessian(block, X)(V) if name == "hessian" else np.matvec(problem.hess(block, X), V)
            found = nearest(partial(problem.grad, block), X, V, product)
            size = np.linalg.norm(found, axis=1) + 1e-8
            error = np.linalg.norm(found - product, axis=1) / size
            worst = max(worst, float(error.max()))
            i = int(error.argmax())
            if not error[i] <= ACCURACY:
                raise Found(
                    f"∇²f v of client {ids[i]} is off by {error[i]:.2g} of its length: differences of the gradient say "
                    f"{brief(found[i])}, and it says {brief(product[i])}",
                    place(problem, name),
                )
    return f"{' and '.join(names)}: largest relative error {worst:.1g}"


def clipped(case: Case) -> str:
    problem, block, X, _ = points(case)
    if not problem.has("clipped_grad"):
        raise Open("it has no clipped_grad")
    found = problem.clipped_grad(block, X, 1e12)
    right = problem.grad(block, X)
    if not alike(found, right):
        raise Found(
            f"with the bound 1e12 it differs from grad by {apart(found, right):.2g}", place(problem, "clipped_grad")
        )
    return "with the bound 1e12: the gradient"


def alike(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.allclose(one, other, ROUNDING, ROUNDING, equal_nan=True)


def apart(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else np.inf


def brief(row: Array) -> str:
    numbers = [f"{value:.4g}" for value in row[:3]]
    if len(row) > 3:
        numbers.append("…")
    return f"({', '.join(numbers)})"


CHECKS: list[Check] = [
    ("gradient", gradient),
    ("value and value_grad", value_with_gradient),
    ("common point and rows", common),
    ("a client alone", alone),
    ("Hessian", hessian),
    ("clipped gradients", clipped),
]
