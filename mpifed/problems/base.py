"""What a problem is: f = (1/m) Σ f_i, each f_i known through its value and gradient at many points at once."""
from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from mpifed.component import Component
from mpifed.data.blocks import Block
from mpifed.data.clients import Array, Dataset


class Problem(Component):
    """Stateless mathematics over a block of c clients; X is (n,), a common point, or (c, n), a row a client.

    An algorithm may ask for more than gradients; a problem that has it defines ``lipschitz(block) -> (c,)``, bounds r_i
    of ‖∇²f_i‖, or ``majorizer_inverse``. What is missing is refused before the first round.
    """

    choices: ClassVar[dict[str, str]] = {
        "least-squares": "mpifed.problems.least_squares:LeastSquares",
        "logistic": "mpifed.problems.logistic:Logistic",
        "nonconvex-logistic": "mpifed.problems.nonconvex_logistic:NonconvexLogistic",
        "quadratic": "mpifed.problems.quadratic:Quadratic",
    }
    default: ClassVar[str] = "least-squares"

    def dim(self, data: Dataset) -> int:
        """The number of parameters n."""
        return data.n

    def labels(self, b: Array) -> Array:
        """The labels as this problem wants them; ValueError where they cannot be."""
        return b

    def value(self, block: Block, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.value_grad(block, X)[0]

    def grad(self, block: Block, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        return self.value_grad(block, X)[1]

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i) from one pass over the samples."""
        raise NotImplementedError


Solve = Callable[[Array], Array]  # right-hand sides (c, n) -> solutions (c, n)
