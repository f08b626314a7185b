"""What local steps in one launch are told: the form of f_i, and a pull. No kernel is imported for it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class Form(NamedTuple):
    """f_i as kernels know it: residual and penalty are those of launch.Model.

    ``factors`` has the factors of the penalty for the clients of a block: (c,).
    """

    residual: Literal["linear", "logistic", "softmax"]
    penalty: Literal["ridge", "bounded"]
    bias: bool  # whether the last parameters are biases, one for each class
    factors: Callable[[Any], Any]


class Pull(NamedTuple):
    """The term μ(w − z_i) beside the gradient."""

    mu: float
    anchor: Any  # z, (n,) or (c, n)
