"""A problem of a user's own: the shapes of what it computes, which numpy would otherwise stretch to fit."""

from typing import Any

import numpy as np

from mpifed.core.arrays import is_real
from mpifed.core.guards import Guard, Wrong, shown
from mpifed.core.typing import Array
from mpifed.data.blocks import Block


def refuse(value: Any, shape: tuple[int, ...], what: str) -> None:
    """Wrong where ``value`` is no array of real numbers of this shape."""
    if not (is_real(value) or isinstance(value, np.floating)) or value.shape != shape:
        raise Wrong(f"returns {shown(value)} for {what}: it must be an array of shape {shape}")


def like_scores(problem: Any, result: Any, Z: Array, b: Array | None = None) -> Any:
    """ℓ, ℓ' or ℓ'' of every score."""
    refuse(result, Z.shape, f"scores Z of shape {Z.shape}")
    return result


def bends(problem: Any, result: Any, block: Block, Z: Array) -> Any:
    """ℓ'' of every score, weighted."""
    return like_scores(problem, result, Z)


def like_model(problem: Any, result: Any, X: Array) -> Any:
    """A part of the regulariser's gradient or Hessian for every parameter."""
    refuse(result, X.shape, f"X of shape {X.shape}")
    return result


def penalty(problem: Any, result: Any, X: Array) -> Any:
    """The regulariser of every row of X, or one number for a common point."""
    if np.shape(result) != X.shape[:-1]:
        raise Wrong(f"returns {shown(result)} for X of shape {X.shape}: it must have shape {X.shape[:-1]}")
    return result


def weight(problem: Any, result: Any, d: Array) -> Any:
    """The regulariser's factor of every client."""
    refuse(result, d.shape, f"clients with d of shape {d.shape}")
    return result


def each(problem: Any, result: Any, block: Block, *args: Any) -> Any:
    """A number of every client."""
    refuse(result, (len(block),), clients(block))
    return result


def gradients(problem: Any, result: Any, block: Block, X: Array, *args: Any) -> Any:
    """A vector of every client."""
    refuse(result, (len(block), X.shape[-1]), clients(block))
    return result


def value_grad(problem: Any, result: Any, block: Block, X: Array) -> Any:
    """f_i and ∇f_i of every client."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise Wrong(f"returns {shown(result)}: it must return f_i(x_i) (c,) and ∇f_i(x_i) (c, n)")
    each(problem, result[0], block)
    gradients(problem, result[1], block, X)
    return result


def hess(problem: Any, result: Any, block: Block, X: Array) -> Any:
    """A symmetric matrix of every client."""
    n = X.shape[-1]
    refuse(result, (len(block), n, n), clients(block))
    if not np.array_equal(result, result.swapaxes(1, 2)):
        raise Wrong("returns matrices that are not symmetric to the bit: take (H + Hᵀ)/2")
    return result


def solves(problem: Any, result: Any, block: Block, *args: Any) -> Any:
    """A function of rows V (c, n)."""
    if not callable(result):
        raise Wrong(f"returns {shown(result)}: it must return a function of rows V (c, n)")

    def product(V: Array) -> Array:
        found: Array = result(V)
        if np.shape(found) != V.shape:
            raise Wrong(f"returns a function that makes {shown(found)} of rows V of shape {V.shape}")
        return found

    return product


def predict(problem: Any, result: Any, block: Block, X: Array) -> Any:
    """The class of every sample."""
    refuse(result, block.b.shape, clients(block))
    return result


def measure(problem: Any, result: Any, block: Block, X: Array) -> Any:
    """The numbers ``measured`` of every client."""
    names = problem.measured()
    if not isinstance(result, tuple) or len(result) != len(names):
        raise Wrong(f"returns {shown(result)}: it must return a tuple with {', '.join(names)}, (c,) each")
    for part in result:
        each(problem, part, block)
    return result


def dim(problem: Any, result: Any, data: Any) -> Any:
    """The number of parameters."""
    if isinstance(result, bool) or not isinstance(result, int | np.integer) or result < 1:
        raise Wrong(f"returns {shown(result)}: the number of parameters n is a whole number, at least 1")
    return int(result)


def initial(problem: Any, result: Any, data: Any, seed: int) -> Any:
    """The first model."""
    refuse(result, (problem.dim(data),), "the first model")
    return result


def clients(block: Block) -> str:
    """Which block a shape is about, in words."""
    return f"c = {len(block)} clients"


GUARDS: dict[str, dict[str, Guard]] = {
    "problems": {
        **dict.fromkeys(("loss", "slope", "bend"), like_scores),
        **dict.fromkeys(("penalty_grad", "penalty_hessian"), like_model),
        **dict.fromkeys(("value", "lipschitz", "convexity", "least_curvature"), each),
        **dict.fromkeys(("grad", "clipped_grad"), gradients),
        **dict.fromkeys(("hessian", "majorizer_inverse"), solves),
        "bends": bends,
        "penalty": penalty,
        "weight": weight,
        "value_grad": value_grad,
        "hess": hess,
        "predict": predict,
        "measure": measure,
        "dim": dim,
        "initial": initial,
    }
}
