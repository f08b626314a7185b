"""What a problem is: f = (1/m) Σ f_i, where each f_i gives its value and gradient at many points at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import Reasons
from mpifed.core.symmetric import pack
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import Kind, fitted
from mpifed.kernels.blocks import Block
from mpifed.problems.kept import ON_DEVICES


def ones(block: Block) -> float:
    """The factor 1 of all clients."""
    return 1.0


class Problem(Component):
    """Mathematics without state over a block of c clients; X is a common point (n,) or one row for each client (c, n).

    ``value_grad`` is required. A problem may also define ``lipschitz``, ``convexity``, ``hessian``, ``hess``,
    ``predict``, ``majorizer_inverse`` and ``clipped_grad``. Algorithms name those that they need, and a run is refused
    before its first round where one is missing. A problem with ``predict`` is evaluated by its accuracy too.

        >>> class Mean(mpifed.Problem):
        ...     def value_grad(self, block, X):
        ...         mean = block.vecmat(block.w)
        ...         return np.vecdot(X, X) / 2 - np.vecdot(mean, X), X - mean
        >>> mpifed.run(problem=Mean(), algorithm="fedavg", rounds=2).cr
        2
    """

    sampled: ClassVar[bool] = True  # whether f_i is a mean over samples, of which mini-batches can be drawn
    logistic_loss: ClassVar[bool] = False  # whether f_i is a logistic loss of a linear score: FedGiA's t (Table III)
    # what of the scores of samples f_i depends on, where x has weights of features: "scores", or their "differences"
    linear: ClassVar[str] = ""
    normal: ClassVar[bool] = False  # whether labels are normal: a fit has Student's tests and the variance ‖r‖²/d
    likelihood: ClassVar[str] = ""  # which likelihood that of a fit is, where it is not the whole one
    sample_columns: ClassVar[bool] = False  # whether samples may have weights and offsets
    ratio: ClassVar[str] = ""  # what e to the power of a coefficient is, where a fit prints that: "odds ratio"
    offers: ClassVar[dict[str, str]] = {  # optional methods that algorithms need, in words
        "lipschitz": "an upper bound of the curvature, the norm of ∇²f_i",
        "convexity": "the least curvature of f_i",
        "hessian": "products with ∇²f_i",
        "hess": "the matrices ∇²f_i",
        "majorizer_inverse": "solving with a quadratic that lies above f_i",
        "clipped_grad": "gradients of single samples, clipped",
        "log_likelihood": "the logarithm of the likelihood of the samples",
        "pearson": "Pearson's statistic, from which a dispersion is estimated",
        "expected_hess": "the means of ∇²f_i over the labels, from which standard errors of the model are taken",
    }
    unkept: ClassVar[Reasons] = ON_DEVICES
    choices: ClassVar[dict[str, str]] = {
        "least-squares": "mpifed.problems.least_squares:LeastSquares",
        "logistic": "mpifed.problems.logistic:Logistic",
        "nonconvex-logistic": "mpifed.problems.nonconvex_logistic:NonconvexLogistic",
        "softmax": "mpifed.problems.softmax:Softmax",
        "svm": "mpifed.problems.svm:SVM",
        "mlp": "mpifed.networks.mlp:MLP",
        "cnn": "mpifed.networks.cnn:CNN",
        "torch": "mpifed.networks.torch_module:TorchModule",
        "quadratic": "mpifed.problems.quadratic:Quadratic",
        "poisson": "mpifed.statistics.poisson:Poisson",
        "gamma": "mpifed.statistics.gamma:Gamma",
        "huber": "mpifed.statistics.huber:Huber",
        "cox": "mpifed.statistics.cox:Cox",
    }
    default: ClassVar[str] = "least-squares"
    kind: ClassVar[str] = "problems"
    checks: ClassVar[str] = "mpifed.problems.problem_guards"

    def dim(self, data: Dataset) -> int:
        """The number of parameters n."""
        return data.n

    def initial(self, data: Dataset, seed: int) -> Array:
        """The model (n,) that a run starts from."""
        return np.zeros(self.dim(data))

    def settled(self, data: Dataset) -> tuple[Self, Dataset]:
        """The problem with what only the samples of a run tell, and these with a note on it. Optional."""
        raise NotImplementedError

    def flat(self, data: Dataset, x: Array) -> str:
        """What in the samples makes ∇²f singular at x (n,) where that is of this problem, and what helps, or ""."""
        return ""

    def decays(self, data: Dataset) -> Array:
        """Which parameters decay where those of biases and norms do not: (n,) bool. By default all."""
        return np.ones(self.dim(data), bool)

    def takes(self) -> Kind:
        """Which labels this problem takes: "numbers", "classes" 0, 1 … C−1, "binary", 0 and 1 or -1 and 1, or
        "survival", times with a minus where censored."""
        return "numbers"

    @classmethod
    def takes_column(cls, name: str) -> bool:
        """Whether samples may have a "weight", "frequency", "offset" or "exposure"."""
        return False

    def fitted(self, data: Dataset) -> Dataset:
        """The data set with labels that this problem takes; its notes say what was mapped. UserError if impossible."""
        kind = self.takes()
        # numbers are taken as they are, and a classifier that takes these checks and maps its labels itself
        if kind == "numbers" and (not data.names or self.has("predict")):
            return data
        with self.refusing():
            return fitted(data, kind)

    def labels(self, b: Array) -> Array:
        """The labels in the form that this problem uses (d,); ValueError where they do not fit."""
        wrong = b[(b < 0) | (b != np.floor(b))] if self.takes() == "classes" else b[:0]
        if len(wrong):
            raise ValueError(f"labels must be whole numbers 0, 1 … C−1, but there is {wrong[0]:.10g}")
        return b

    def checked_labels(self, b: Array) -> Array:
        """The same; UserError where they do not fit."""
        with self.refusing():
            return self.labels(b)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn a ValueError about data that this problem cannot use into a UserError."""
        try:
            yield
        except ValueError as error:
            raise UserError(f"problem {self.label()!r} cannot use these data: {error}") from None

    def value(self, block: Block, X: Array) -> Array:
        """f_i(x_i): (c,)."""
        return self.value_grad(block, X)[0]

    def grad(self, block: Block, X: Array) -> Array:
        """∇f_i(x_i): (c, n)."""
        return self.value_grad(block, X)[1]

    def seeded_grad(self, block: Block, X: Array, seeds: Array) -> Array:
        """∇f_i(x_i) of a local step (c, n), with random numbers that follow from ``seeds`` (c,). Optional."""
        raise NotImplementedError

    @abstractmethod
    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        """f_i(x_i) and ∇f_i(x_i) from one pass over the samples."""

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array | None]:
        """f_i(x_i) (c,), ∇f_i(x_i) (c, n) and, with ``predict``, the predicted classes (c, D)."""
        return *self.value_grad(block, X), self.predict(block, X) if self.classifies() else None

    def classifies(self) -> bool:
        """Whether accuracies are recorded."""
        return self.has("predict")

    def augments(self) -> bool:
        """Whether the samples of mini-batches are changed at random, by ``augmented``."""
        return False

    def augmented(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        """Samples A (c, B, n) of mini-batches, of which ``counts`` (c,) are there, changed with their streams."""
        return A

    def measured(self) -> tuple[str, ...]:
        """Names of the numbers that ``measure`` returns: further columns of the record."""
        return ()

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """The numbers ``measured`` of each client on the samples of the block, (c,) each. Optional."""
        raise NotImplementedError

    def of_clients(self) -> dict[str, Callable[[Block, Array], Array]]:
        """Further numbers of each client, on request: functions of block and model, (c,), NaN where there is none."""
        return {}

    def group(self, n: int) -> int:
        """How many clients with n parameters are computed at once: blocks have multiples of them. 1: any number."""
        return 1

    def described(self, n: int, start: Array) -> dict[str, Any]:
        """Attributes of the result file: how the problem is computed with n features, from the first model."""
        return {}

    def computer(self) -> Any:
        """The device on which PyTorch computes the problem from samples in memory; None where it does not."""
        return None

    def compiles(self) -> bool:
        """Whether compiled kernels can compute this problem on dense samples."""
        return False

    def gpu(self) -> str:
        """The device on which samples and clients' state live where a study leaves ``kernels`` open.

        "cuda": a GPU; "auto": one where every rank with clients has one; empty: the memory of the CPU.
        """
        return ""

    @classmethod
    def has(cls, name: str) -> bool:
        """Whether this problem defines the optional method ``name``."""
        return getattr(cls, name, None) not in (None, getattr(Problem, name, None))

    def predict(self, block: Block, X: Array) -> Array:
        """The predicted class of every sample: (c, D). Optional."""
        raise NotImplementedError

    def lipschitz(self, block: Block) -> Array:
        """r_i, an upper bound of ‖∇²f_i‖: (c,). Optional."""
        raise NotImplementedError

    def convexity(self, block: Block) -> Array:
        """α_i, the strong convexity of f_i: (c,). Optional."""
        raise NotImplementedError

    def least_curvature(self, block: Block) -> Array:
        """A lower bound of the eigenvalues of every ∇²f_i(x): (c,). Optional; by default ``convexity``."""
        return self.convexity(block)

    def hessian(self, block: Block, X: Array) -> Solve:
        """V -> ∇²f_i(x_i) v_i for rows V (c, n). Optional."""
        raise NotImplementedError

    def hess(self, block: Block, X: Array) -> Array:
        """∇²f_i(x_i), symmetric to the bit: (c, n, n). Optional."""
        raise NotImplementedError

    def packed_hess(self, block: Block, X: Array) -> Array:
        """The upper triangles of ``hess``, row by row, in an array of their own: (c, n(n+1)/2)."""
        return pack(self.hess(block, X))

    def majorizer_inverse(self, block: Block, scale: float, shift: float, factors: Factors = ones) -> Solve:
        """V -> (scale·s_i·H_i + shift·I)⁻¹ v_i for rows V (c, n), where H_i is a majorizer of ∇²f_i and s_i a factor.

        Optional.
        """
        raise NotImplementedError

    def log_likelihood(self, block: Block, X: Array, dispersion: float) -> Array:
        """The log-likelihood of the samples of each client, without a penalty: (c,). Optional."""
        raise NotImplementedError

    def pearson(self, block: Block, X: Array) -> Array:
        """Σ_j (b_j − mean)²/variance over the samples of each client, for dispersion 1: (c,). Optional."""
        raise NotImplementedError

    def expected_hess(self, block: Block, X: Array) -> Array:
        """The mean of ∇²f_i over the labels that the model expects at x_i: (c, n, n). Optional; where it is ∇²f_i
        itself, as where the score has the canonical link, it is not defined."""
        raise NotImplementedError

    def clipped_grad(self, block: Block, X: Array, bound: float) -> Array:
        """∇f_i(x_i) with the gradient of every sample clipped to 1-norm ``bound``: (c, n). Optional."""
        raise NotImplementedError


Solve = Callable[[Array], Array]  # rows (c, n) -> rows (c, n)
Factors = Callable[[Block], "Array | float"]  # a number for each client of a block: (c,), or one for all
