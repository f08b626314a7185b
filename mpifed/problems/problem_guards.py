"""A problem of a user's own: the shapes of what it computes, which numpy would otherwise stretch to fit."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, Wrong, array, returns, shown, whole
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

RIGHT = ": it must be an array of shape {shape}"
CLIENTS = " for c = {0} clients" + RIGHT
SCORES = " for scores Z of shape {shape}" + RIGHT
PARAMETERS = array(lambda problem, X: X.shape, " for X of shape {shape}" + RIGHT)
NUMBERS = array(lambda problem, block, *args: (len(block),), CLIENTS)
VECTORS = array(lambda problem, block, X, *args: (len(block), X.shape[-1]), CLIENTS)
MATRICES = array(lambda problem, block, X: (len(block), X.shape[-1], X.shape[-1]), CLIENTS)
FUNCTION = returns(lambda result, *args: callable(result), ": it must return a function of rows V (c, n)")
PAIR = returns(
    lambda result, *args: isinstance(result, tuple) and len(result) == 2,
    ": it must return f_i(x_i) (c,) and ∇f_i(x_i) (c, n)",
)


def penalty(problem: Problem, result: Any, X: Array) -> Any:
    """The regulariser of every row of X, or one number for a common point."""
    if np.shape(result) != X.shape[:-1]:
        raise Wrong(f"returns {shown(result)} for X of shape {X.shape}: it must have shape {X.shape[:-1]}")
    return result


def value_grad(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """f_i and ∇f_i of every client."""
    f, G = PAIR(problem, result)
    NUMBERS(problem, f, block)
    VECTORS(problem, G, block, X)
    return result


def hess(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """A symmetric matrix of every client."""
    MATRICES(problem, result, block, X)
    if not np.array_equal(result, result.swapaxes(1, 2)):
        raise Wrong("returns matrices that are not symmetric to the bit: take (H + Hᵀ)/2")
    return result


def solves(problem: Problem, result: Any, *args: Any) -> Any:
    """A function of rows V (c, n)."""
    FUNCTION(problem, result)

    def product(V: Array) -> Array:
        found: Array = result(V)
        if np.shape(found) != V.shape:
            raise Wrong(f"returns a function that makes {shown(found)} of rows V of shape {V.shape}")
        return found

    return product


def measure(problem: Problem, result: Any, block: Block, X: Array) -> Any:
    """The numbers ``measured`` of every client."""
    names = problem.measured()
    if not isinstance(result, tuple) or len(result) != len(names):
        raise Wrong(f"returns {shown(result)}: it must return a tuple with {', '.join(names)}, (c,) each")
    for part in result:
        NUMBERS(problem, part, block)
    return result


GUARDS: dict[str, dict[str, Guard]] = {
    "problems": {
        **dict.fromkeys(("loss", "slope", "bend"), array(lambda problem, Z, *b: Z.shape, SCORES)),
        "bends": array(lambda problem, block, Z: Z.shape, SCORES),
        **dict.fromkeys(("penalty_grad", "penalty_hessian"), PARAMETERS),
        "penalty": penalty,
        "weight": array(lambda problem, d: d.shape, " for clients with d of shape {shape}" + RIGHT),
        **dict.fromkeys(("value", "lipschitz", "convexity", "least_curvature"), NUMBERS),
        **dict.fromkeys(("grad", "clipped_grad"), VECTORS),
        "value_grad": value_grad,
        "hess": hess,
        **dict.fromkeys(("hessian", "majorizer_inverse"), solves),
        "predict": array(lambda problem, block, X: block.b.shape, CLIENTS),
        "measure": measure,
        "dim": whole(1, ": the number of parameters n is a whole number, at least 1"),
        "initial": array(lambda problem, data, seed: (problem.dim(data),), " for the first model" + RIGHT),
    }
}
