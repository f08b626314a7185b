"""Checks of what a problem says of its curvature, against Hessians from differences of its gradient."""

from functools import partial

import numpy as np
from scipy.optimize import minimize

from mpifed.checking.case import Case
from mpifed.checking.problems import FEW, differences, points
from mpifed.checking.table import Check, Found, Open, place
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

STEP = 1e-5  # of differences
STEPS = 30  # of a descent to where f_i is small
SLACK = 1e-4  # relative error of the eigenvalues of Hessians from differences


def curvature(case: Case) -> str:
    """``lipschitz`` above the norm of Hessians that differences say, ``convexity`` and ``least_curvature`` below."""
    problem, block, X, ids = points(case)
    names = [name for name in ("lipschitz", "convexity", "least_curvature") if problem.has(name)]
    if not names:
        raise Open("it has neither lipschitz nor convexity")
    if X.shape[1] > FEW:
        raise Open(f"n = {X.shape[1]} is above {FEW}: choose data with fewer features")
    lowest, largest = np.inf, 0.0
    # losses that saturate are curved near 0, others far away, and fits only where the residuals are small
    for near in (0 * X, X, 3 * X, minimisers(problem, block, X)):
        eigenvalues = np.linalg.eigvalsh(matrices(problem, block, near))
        norms = np.abs(eigenvalues).max(axis=1)
        allowed = SLACK * (1 + norms)
        largest = max(largest, float(norms.max()))
        lowest = min(lowest, float(eigenvalues.min()))
        for name in names:
            says = getattr(problem, name)(block)
            wrong = ~(norms <= says + allowed) if name == "lipschitz" else ~(eigenvalues[:, 0] >= says - allowed)
            if wrong.any():
                i = int(wrong.argmax())
                value = norms[i] if name == "lipschitz" else eigenvalues[i, 0]
                what = "‖∇²f‖" if name == "lipschitz" else "the least eigenvalue of ∇²f"
                raise Found(
                    f"{name} of client {ids[i]} is {says[i]:.6g}, and {what} is {value:.6g} at a point",
                    place(problem, name),
                )
    return f"{', '.join(names)}: eigenvalues of ∇²f from {lowest:.3g}, ‖∇²f‖ up to {largest:.3g}"


def minimisers(problem: Problem, block: Block, X: Array) -> Array:
    """About where each f_i is least, from X (c, n): a loss may be curved there alone."""
    found = X.copy()
    for i in range(len(block)):
        own = block.part(np.array([i]))

        def f(x: Array, own: Block = own) -> tuple[float, Array]:
            value, gradient = problem.value_grad(own, x[None])
            return float(value[0]), gradient[0]

        found[i] = minimize(f, X[i], jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return found


def matrices(problem: Problem, block: Block, X: Array) -> Array:
    """∇²f_i at X (c, n), from differences of the gradient: (c, n, n)."""
    units = [np.broadcast_to(e, X.shape) for e in np.eye(X.shape[1])]
    H = np.stack([differences(partial(problem.grad, block), X, V, STEP) for V in units], axis=2)
    # differences are not symmetric to the bit, and eigvalsh would look at one half of them only
    return (H + H.mT) / 2


def majorizer(case: Case) -> str:
    problem, block, X, ids = points(case)
    if not problem.has("majorizer_inverse"):
        raise Open("it has no majorizer_inverse")
    n = X.shape[1]
    if n > FEW:
        raise Open(f"n = {n} is above {FEW}: choose data with fewer features")
    scale, shift = 0.5, 0.25
    solve = problem.majorizer_inverse(block, scale, shift)
    inverse = np.stack([solve(np.tile(e, (len(block), 1))) for e in np.eye(n)], axis=2)
    above = np.linalg.inv((inverse + inverse.mT) / 2) - shift * np.eye(n)
    least = np.linalg.eigvalsh(above - scale * matrices(problem, block, X))[:, 0]
    i = int(least.argmin())
    if least[i] < -SLACK * (1 + float(np.abs(above[i]).max())):
        raise Found(
            f"the quadratic of client {ids[i]} does not lie above f_i: an eigenvalue of H_i − ∇²f_i is "
            f"{least[i] / scale:.3g}",
            place(problem, "majorizer_inverse"),
        )
    return "H_i lies above ∇²f_i"


CHECKS: list[Check] = [("curvature", curvature), ("majorizer", majorizer)]
