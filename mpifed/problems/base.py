"""What a problem is: f = (1/m) Σ f_i, each f_i known through its value and gradient at many points at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block


class Problem(Component):
    """Stateless mathematics over a block of c clients; X is (n,), a common point, or (c, n), a row a client.

    An algorithm may ask for more than gradients; a problem that has it defines ``lipschitz(block) -> (c,)``, bounds r_i
    of ‖∇²f_i‖, ``convexity(block) -> (c,)``, their strong convexity, ``hessian(block, X)``, a product v -> ∇²f_i(x_i) v,
    or ``majorizer_inverse``. What is missing is refused before the first round. One that has ``predict(block, X)``,
    classes (c, D), is measured by its accuracy too.
    """

    sampled: ClassVar[bool] = True  # whether rows are samples, of which mini-batches can be drawn
    shared: ClassVar[bool] = True  # whether grad() and evaluate() give the same gradient
    choices: ClassVar[dict[str, str]] = {
        "least-squares": "mpifed.problems.least_squares:LeastSquares",
        "logistic": "mpifed.problems.logistic:Logistic",
        "nonconvex-logistic": "mpifed.problems.nonconvex_logistic:NonconvexLogistic",
        "softmax": "mpifed.problems.softmax:Softmax",
        "svm": "mpifed.problems.svm:SVM",
        "mlp": "mpifed.problems.mlp:MLP",
        "cnn": "mpifed.problems.cnn:CNN",
        "torch": "mpifed.problems.torch_module:TorchModule",
        "quadratic": "mpifed.problems.quadratic:Quadratic",
    }
    default: ClassVar[str] = "least-squares"
    kind: ClassVar[str] = "problems"

    def dim(self, data: Dataset) -> int:
        """The number of parameters n."""
        return data.n

    def initial(self, data: Dataset, seed: int) -> Array:
        """The model (n,) that a run starts from."""
        return np.zeros(self.dim(data))

    def labels(self, b: Array) -> Array:
        """The labels as this problem wants them; ValueError where they cannot be."""
        return b

    def checked_labels(self, b: Array) -> Array:
        """The same; UserError where they cannot be."""
        try:
            return self.labels(b)
        except ValueError as error:
            raise UserError(f"problem {self.label()!r} cannot use these data: {error}") from None

    def value(self, block: Block, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.value_grad(block, X)[0]

    def grad(self, block: Block, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        return self.value_grad(block, X)[1]

    @abstractmethod
    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i) from one pass over the samples."""
        raise NotImplementedError

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Rest]:
        """∇f_i(x_i), and a function of the rest: f_i(x_i) and, where there is such a thing, the classes (c, D) predicted."""
        predict = getattr(self, "predict", None)
        value, grad = self.value_grad(block, X)
        return grad, lambda: (value, None if predict is None else predict(block, X))


Rest = Callable[[], tuple[Array, Array | None]]
Solve = Callable[[Array], Array]  # right-hand sides (c, n) -> solutions (c, n)
