"""Checks of a problem: derivatives against differences, rows against common points, clients alone, and curvature."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from mpifed.checking.case import Case
from mpifed.checking.table import Check, CheckFailure, Inconclusive
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

STEPS = (1e-4, 1e-5, 1e-6)  # of differences; the best counts, so that a kink is no mistake
ACCURACY = 1e-4  # allowed relative error of differences
ROUNDING = 1e-9  # allowed relative difference of numbers computed in two ways
DIRECTIONS = 12  # random directions besides the first coordinates
FEW = 48  # maximum number of parameters for which Hessians are computed
HESSIAN_STEP = 1e-5  # of differences of gradients
DESCENT_STEPS = 30  # of a descent to where f_i is small
SLACK = 1e-4  # relative error of the eigenvalues of Hessians from differences


class BlockPoints(NamedTuple):
    """A problem on a block of c clients with the numbers ``ids``, and a point for each, (c, n)."""

    problem: Problem
    block: Block
    X: Array
    ids: Array


@lru_cache(maxsize=1)
def block_points(case: Case) -> BlockPoints:
    """Return the largest block of the study, with random points near the first model."""
    host = case.host
    _, block, ids = max(host.full_blocks, key=lambda one: len(one[1]))
    x = case.spec.setup.start.astype(float)
    # not the first model itself: it is often 0, where many mistakes in derivatives are 0 too
    X = x + stream(case.config.seed, "check").standard_normal((len(block), len(x)))
    return BlockPoints(case.config.problem, block, X, ids)


def check_gradient(case: Case) -> str:
    """Compare ⟨∇f_i, v⟩ with differences of f_i, along coordinates and random directions."""
    problem, block, X, ids = block_points(case)
    G = problem.grad(block, X)
    worst = 0.0
    for name, V in directions(X, case.config.seed):
        slopes = np.vecdot(G, V)
        quotients = nearest_quotients(partial(problem.value, block), X, V, slopes)
        # relative to the mean size of entries too: where an entry is 0, a difference is only the rounding of f
        size = np.abs(quotients) + np.linalg.norm(G, axis=1) / np.sqrt(X.shape[1])
        error = np.abs(quotients - slopes) / np.maximum(size, 1e-8)
        worst = max(worst, float(error.max()))
        i = int(error.argmax())
        if not error[i] <= ACCURACY:
            raise CheckFailure(
                f"{name} of client {ids[i]} is {quotients[i]:.6g} by differences of value, and {slopes[i]:.6g} by the "
                "gradient",
                "value_grad",
                "slope",
                "grad",
            )
    return f"largest relative error {worst:.1g}"


def directions(X: Array, seed: int) -> list[tuple[str, Array]]:
    """Return named directions (c, n): the first coordinates, and random ones of length 1."""
    n = X.shape[1]
    result = [(f"∂f/∂x_{j}", np.broadcast_to(np.eye(1, n, j), X.shape)) for j in range(min(n, FEW))]
    rng = stream(seed, "check", 1)
    for _ in range(DIRECTIONS):
        V = rng.standard_normal(X.shape)
        result.append(("the slope along a random direction", V / np.linalg.norm(V, axis=1, keepdims=True)))
    return result


def nearest_quotients(function: Callable[[Array], Array], X: Array, V: Array, expected: Array) -> Array:
    """Return, entry by entry, the difference quotient along V, of several steps, that is nearest to ``expected``."""
    quotients = np.stack([central_difference(function, X, V, h) for h in STEPS])
    best = np.abs(quotients - expected).argmin(axis=0, keepdims=True)
    return np.take_along_axis(quotients, best, axis=0)[0]


def central_difference(function: Callable[[Array], Array], X: Array, V: Array, h: float) -> Array:
    """Return (function(X + hV) − function(X − hV))/2h."""
    return (function(X + h * V) - function(X - h * V)) / (2 * h)


def check_value_and_gradient(case: Case) -> str:
    """Test that ``value`` and ``grad`` agree with ``value_grad``."""
    problem, block, X, _ = block_points(case)
    value, G = problem.value_grad(block, X)
    for name, one, other in (("value", problem.value(block, X), value), ("grad", problem.grad(block, X), G)):
        if not agree(one, other):
            raise CheckFailure(f"{name} and value_grad differ by {max_difference(one, other):.2g}", name)
    return "the same numbers"


def check_common_point(case: Case) -> str:
    """Test that a common point (n,) gives the same as that point in every row."""
    problem, block, X, _ = block_points(case)
    x = X[0].copy()
    one, other = (compute_all(problem, block, point, X) for point in (x, np.tile(x, (len(block), 1))))
    for name, rows in one.items():
        if not agree(rows, other[name]):
            raise CheckFailure(
                f"for a common point (n,) and for the same point in each of {len(block)} rows it differs by "
                f"{max_difference(rows, other[name]):.2g}",
                name,
            )
    return ", ".join(one)


def check_client_alone(case: Case) -> str:
    """Test that a client alone gets the same bits as among others."""
    problem, block, X, ids = block_points(case)
    if len(block) < 2:
        raise Inconclusive("a block of the study has one client")
    full = compute_all(problem, block, X, X[::-1].copy())
    # one client tests sums over a batch; two in reverse order test values taken from the first row
    for rows in ([len(block) - 1], [1, 0]):
        part = compute_all(problem, block.part(np.array(rows)), X[rows], X[::-1][rows].copy())
        for name, values in part.items():
            if values.tobytes() != full[name][rows].tobytes():
                raise CheckFailure(
                    f"clients {ids[rows].tolist()} alone and in a block of {len(block)}: the rows differ by "
                    f"{max_difference(values, full[name][rows]):.2g}, so that results depend on ranks and blocks",
                    name,
                )
    return ", ".join(full)


def compute_all(problem: Problem, block: Block, X: Array, V: Array) -> dict[str, Array]:
    """Compute all that a problem offers for each client at X (n,) or (c, n), by name; V (c, n): vectors of products."""
    value, G = problem.value_grad(block, X)
    result = {"value_grad": np.column_stack([value, G])}
    if problem.has("hessian"):
        result["hessian"] = problem.hessian(block, X)(V)
    if problem.has("hess") and V.shape[1] <= FEW:
        result["hess"] = problem.hess(block, X)
    if problem.has("majorizer_inverse"):
        result["majorizer_inverse"] = problem.majorizer_inverse(block, 0.5, 0.25)(V)
    if problem.has("clipped_grad"):
        result["clipped_grad"] = problem.clipped_grad(block, X, 0.5)
    return result | {name: getattr(problem, name)(block) for name in ("lipschitz", "convexity") if problem.has(name)}


def check_hessian(case: Case) -> str:
    """Compare ∇²f_i v with differences of the gradient along random directions."""
    problem, block, X, ids = block_points(case)
    names = [name for name in ("hessian", "hess") if problem.has(name)]
    if not names:
        raise Inconclusive("it has neither hessian nor hess")
    worst = 0.0
    for _, V in directions(X, case.config.seed)[-DIRECTIONS:]:
        for name in names:
            product = problem.hessian(block, X)(V) if name == "hessian" else np.matvec(problem.hess(block, X), V)
            quotients = nearest_quotients(partial(problem.grad, block), X, V, product)
            size = np.linalg.norm(quotients, axis=1) + 1e-8
            error = np.linalg.norm(quotients - product, axis=1) / size
            worst = max(worst, float(error.max()))
            i = int(error.argmax())
            if not error[i] <= ACCURACY:
                raise CheckFailure(
                    f"∇²f v of client {ids[i]} is off by {error[i]:.2g} of its length: differences of the gradient say "
                    f"{format_row(quotients[i])}, and it says {format_row(product[i])}",
                    name,
                )
    return f"{' and '.join(names)}: largest relative error {worst:.1g}"


def check_clipped_gradient(case: Case) -> str:
    """Test that clipping with a huge bound gives the gradient."""
    problem, block, X, _ = block_points(case)
    if not problem.has("clipped_grad"):
        raise Inconclusive("it has no clipped_grad")
    clipped = problem.clipped_grad(block, X, 1e12)
    G = problem.grad(block, X)
    if not agree(clipped, G):
        raise CheckFailure(
            f"with the bound 1e12 it differs from grad by {max_difference(clipped, G):.2g}", "clipped_grad"
        )
    return "with the bound 1e12: the gradient"


def check_curvature(case: Case) -> str:
    """Compare ``lipschitz``, ``convexity`` and ``least_curvature`` with ‖∇²f‖ and eigenvalues by differences."""
    problem, block, X, ids = block_points(case)
    names = [name for name in ("lipschitz", "convexity", "least_curvature") if problem.has(name)]
    if not names:
        raise Inconclusive("it has neither lipschitz nor convexity")
    if X.shape[1] > FEW:
        raise Inconclusive(f"n = {X.shape[1]} is above {FEW}: choose data with fewer features")
    lowest, largest = np.inf, 0.0
    # losses that saturate are curved near 0, others far away, and fits only where the residuals are small
    for point in (0 * X, X, 3 * X, minimisers(problem, block, X)):
        eigenvalues = np.linalg.eigvalsh(difference_hessians(problem, block, point))
        norms = np.abs(eigenvalues).max(axis=1)
        allowed = SLACK * (1 + norms)
        largest = max(largest, float(norms.max()))
        lowest = min(lowest, float(eigenvalues.min()))
        for name in names:
            bounds = getattr(problem, name)(block)
            wrong = ~(norms <= bounds + allowed) if name == "lipschitz" else ~(eigenvalues[:, 0] >= bounds - allowed)
            if wrong.any():
                i = int(wrong.argmax())
                value = norms[i] if name == "lipschitz" else eigenvalues[i, 0]
                quantity = "‖∇²f‖" if name == "lipschitz" else "the least eigenvalue of ∇²f"
                raise CheckFailure(
                    f"{name} of client {ids[i]} is {bounds[i]:.6g}, and {quantity} is {value:.6g} at a point", name
                )
    return f"{', '.join(names)}: eigenvalues of ∇²f from {lowest:.3g}, ‖∇²f‖ up to {largest:.3g}"


def minimisers(problem: Problem, block: Block, X: Array) -> Array:
    """Return about where each f_i is smallest, starting at X (c, n): a loss may be curved only there."""
    minima = X.copy()
    for i in range(len(block)):
        client = block.part(np.array([i]))

        def f(x: Array, client: Block = client) -> tuple[float, Array]:
            value, gradient = problem.value_grad(client, x[None])
            return float(value[0]), gradient[0]

        minima[i] = minimize(f, X[i], jac=True, method="L-BFGS-B", options={"maxiter": DESCENT_STEPS}).x
    return minima


def difference_hessians(problem: Problem, block: Block, X: Array) -> Array:
    """Return ∇²f_i at X (c, n), from differences of the gradient: (c, n, n)."""
    units = [np.broadcast_to(e, X.shape) for e in np.eye(X.shape[1])]
    H = np.stack([central_difference(partial(problem.grad, block), X, V, HESSIAN_STEP) for V in units], axis=2)
    # differences are not symmetric to the bit, and eigvalsh would look at one half of them only
    return (H + H.mT) / 2


def check_majorizer(case: Case) -> str:
    """Test that the quadratic of ``majorizer_inverse`` lies above f_i."""
    problem, block, X, ids = block_points(case)
    if not problem.has("majorizer_inverse"):
        raise Inconclusive("it has no majorizer_inverse")
    n = X.shape[1]
    if n > FEW:
        raise Inconclusive(f"n = {n} is above {FEW}: choose data with fewer features")
    scale, shift = 0.5, 0.25
    solve = problem.majorizer_inverse(block, scale, shift)
    inverse = np.stack([solve(np.tile(e, (len(block), 1))) for e in np.eye(n)], axis=2)
    above = np.linalg.inv((inverse + inverse.mT) / 2) - shift * np.eye(n)
    smallest = np.linalg.eigvalsh(above - scale * difference_hessians(problem, block, X))[:, 0]
    i = int(smallest.argmin())
    if smallest[i] < -SLACK * (1 + float(np.abs(above[i]).max())):
        raise CheckFailure(
            f"the quadratic of client {ids[i]} does not lie above f_i: an eigenvalue of H_i − ∇²f_i is "
            f"{smallest[i] / scale:.3g}",
            "majorizer_inverse",
        )
    return "H_i lies above ∇²f_i"


def agree(one: Array, other: Array) -> bool:
    """Return True if two arrays agree up to rounding."""
    return one.shape == other.shape and np.allclose(one, other, ROUNDING, ROUNDING, equal_nan=True)


def max_difference(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else np.inf


def format_row(row: Array) -> str:
    numbers = [f"{value:.4g}" for value in row[:3]]
    if len(row) > 3:
        numbers.append("…")
    return f"({', '.join(numbers)})"


CHECKS: list[Check] = [
    ("gradient", check_gradient),
    ("value and value_grad", check_value_and_gradient),
    ("common point and rows", check_common_point),
    ("a client alone", check_client_alone),
    ("Hessian", check_hessian),
    ("clipped gradients", check_clipped_gradient),
    ("curvature", check_curvature),
    ("majorizer", check_majorizer),
]
