"""Guards of a user's problem: they check the shapes of its results, which numpy would otherwise broadcast."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, InvalidReturn, describe_value, require, require_array
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

RIGHT = ": it must be an array of shape {shape}"
CLIENTS = " for c = {0} clients" + RIGHT
SCORES = " for scores Z of shape {shape}" + RIGHT
PARAMETERS = require_array(lambda problem, X: X.shape, " for X of shape {shape}" + RIGHT)
NUMBERS = require_array(lambda problem, block, *args: (len(block),), CLIENTS)
VECTORS = require_array(lambda problem, block, X, *args: (len(block), X.shape[-1]), CLIENTS)
MATRICES = require_array(lambda problem, block, X: (len(block), X.shape[-1], X.shape[-1]), CLIENTS)
PAIR = require(
    lambda result, *args: isinstance(result, tuple) and len(result) == 2,
    ": it must return f_i(x_i) (c,) and ∇f_i(x_i) (c, n)",
)


def check_value_grad(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """Check f_i and ∇f_i of every client."""
    f, G = PAIR(problem, result)
    NUMBERS(problem, f, block)
    VECTORS(problem, G, block, X)
    return result


def check_hess(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """Check that every client has a symmetric matrix."""
    MATRICES(problem, result, block, X)
    if not np.array_equal(result, result.swapaxes(1, 2)):
        raise InvalidReturn("returns matrices that are not symmetric to the bit: take (H + Hᵀ)/2")
    return result


def check_solver(problem: Problem, result: Any, *args: Any) -> Any:
    """Wrap a function of rows V (c, n) to check that it returns rows."""

    def product(V: Array) -> Array:
        rows: Array = result(V)
        if np.shape(rows) != V.shape:
            raise InvalidReturn(f"returns a function that makes {describe_value(rows)} of rows V of shape {V.shape}")
        return rows

    return product


def check_measure(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """Check the numbers ``measure_names`` of every client."""
    for _, part in zip(problem.measure_names(), result, strict=True):
        NUMBERS(problem, part, block)
    return result


GUARDS: dict[str, dict[str, Guard]] = {
    "problems": {
        **dict.fromkeys(("loss", "slope", "bend"), require_array(lambda problem, Z, *b: Z.shape, SCORES)),
        "bends": require_array(lambda problem, block, Z: Z.shape, SCORES),
        **dict.fromkeys(("penalty_grad", "penalty_hessian"), PARAMETERS),
        "penalty": require(lambda r, X: np.shape(r) == X.shape[:-1], ": it must have a number for each row of X"),
        "weight": require_array(lambda problem, d: d.shape, " for clients with d of shape {shape}" + RIGHT),
        **dict.fromkeys(("value", "lipschitz", "convexity", "least_curvature"), NUMBERS),
        **dict.fromkeys(("grad", "clipped_grad"), VECTORS),
        "value_grad": check_value_grad,
        "hess": check_hess,
        **dict.fromkeys(("hessian", "majorizer_inverse"), check_solver),
        "predict": require_array(lambda problem, block, X: block.b.shape, CLIENTS),
        "measure": check_measure,
        "dim": require(lambda n, *args: n >= 1, ": the number of parameters n is at least 1"),
        "initial": require_array(lambda problem, data, seed: (problem.dim(data),), " for the first model" + RIGHT),
    }
}
