"""The base class of problems: f = (1/m) Σ f_i, with values and gradients of many clients' f_i at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import OptionPromises, PromisesByOption, Reasons, Supports, supporting
from mpifed.core.symmetric import pack
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import LabelKind, fit_labels
from mpifed.kernels.blocks import Block
from mpifed.kernels.sample_space import LinearScores

ON_DEVICES = {Supports.DEVICES: "{loss} does not compute with tensors on a device"}
IN_MEMORY = {Supports.DEVICES: "{name} needs {what}, which are computed in memory alone"}

# function -> its promises; one that is added later is refused until it is named here
FUNCTION_PROMISES: PromisesByOption = {
    # A client computes these from its own samples; whether it sends them is stated by the method.
    **supporting("lipschitz", "convexity", "majorizer_inverse", "clipped_grad"),
    # Matrices are made by numpy only, block by block.
    "hessian": OptionPromises(Supports.EVERYTHING & ~Supports.DEVICES, IN_MEMORY),
    "hess": OptionPromises(Supports.EVERYTHING & ~Supports.DEVICES, IN_MEMORY),
}


def unit_factors(block: Block) -> float:
    """Return the factor 1 for all clients."""
    return 1.0


class Problem(Component):
    """Stateless mathematics over a block of c clients; X is a common point (n,) or one row for each client (c, n).

    ``value_grad`` is required. A problem may also define ``lipschitz``, ``convexity``, ``hessian``, ``hess``,
    ``predict``, ``majorizer_inverse`` and ``clipped_grad``. Algorithms name those that they need, and a run is refused
    before its first round if one is missing. A problem with ``predict`` is also evaluated by its accuracy.

        >>> class Mean(mpifed.extend.Problem):
        ...     def value_grad(self, block, X):
        ...         mean = block.vecmat(block.w)
        ...         return np.vecdot(X, X) / 2 - np.vecdot(mean, X), X - mean
        >>> mpifed.run(problem=Mean(), algorithm="fedavg", rounds=2).cr
        2
    """

    sampled: ClassVar[bool] = True  # whether f_i is a mean over samples, of which mini-batches can be drawn
    logistic_loss: ClassVar[bool] = False  # whether f_i is a logistic loss of a linear score: FedGiA's t (Table III)
    # how f_i depends on the scores of samples, if x has weights of features: by "scores", or by their "differences"
    linear: ClassVar[str] = ""
    normal: ClassVar[bool] = False  # whether labels are normal: a fit has Student's tests and the variance ‖r‖²/d
    likelihood: ClassVar[str] = ""  # the name of a fit's likelihood, if it is not the full one
    sample_columns: ClassVar[bool] = False  # whether samples may have weights and offsets
    ratio: ClassVar[str] = ""  # the name of e^coefficient, if a fit prints that: "odds ratio"
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
    unsupported: ClassVar[Reasons] = ON_DEVICES
    choices: ClassVar[dict[str, str]] = {
        "least-squares": "mpifed.problems.least_squares:LeastSquares",
        "logistic": "mpifed.problems.logistic:Logistic",
        "nonconvex-logistic": "mpifed.problems.logistic:NonconvexLogistic",
        "softmax": "mpifed.problems.softmax:Softmax",
        "svm": "mpifed.problems.classifier:SVM",
        "mlp": "mpifed.networks.mlp:MLP",
        "cnn": "mpifed.networks.cnn:CNN",
        "torch": "mpifed.networks.torch_module:TorchModule",
        "quadratic": "mpifed.problems.quadratic:Quadratic",
        "poisson": "mpifed.statistics.log_link:Poisson",
        "gamma": "mpifed.statistics.log_link:Gamma",
        "huber": "mpifed.statistics.huber:Huber",
        "cox": "mpifed.statistics.cox:Cox",
    }
    default: ClassVar[str] = "least-squares"
    kind: ClassVar[str] = "problems"
    checks: ClassVar[str] = "mpifed.problems.problem_guards"

    def dim(self, data: Dataset) -> int:
        """Return the number of parameters n."""
        return data.n

    def initial(self, data: Dataset, seed: int) -> Array:
        """Return the model (n,) from which a run starts."""
        return np.zeros(self.dim(data))

    def settle(self, data: Dataset) -> tuple[Self, Dataset]:
        """Return the problem with values that follow from the samples, and the data with a note on them. Optional."""
        raise NotImplementedError

    def singularity_reason(self, data: Dataset, x: Array) -> str:
        """Return why the samples make ∇²f singular at x (n,), if this problem knows, and what helps; else ""."""
        return ""

    def decay_mask(self, data: Dataset) -> Array:
        """Return which parameters weight decay applies to, without biases and norms: (n,) bool. By default all."""
        return np.ones(self.dim(data), bool)

    def parameter_sizes(self, data: Dataset) -> dict[str, int]:
        """Return the names of parameters, in their order in x, and their numbers of entries; by default no names."""
        return {}

    def takes(self) -> LabelKind:
        """Return the labels of this problem: "numbers", "classes" 0, 1 … C−1, "binary", 0 and 1 or -1 and 1, or
        "survival", times with a minus where censored."""
        return "numbers"

    @classmethod
    def takes_column(cls, name: str) -> bool:
        """Return whether samples may have the column ``name``: "weight", "frequency", "offset" or "exposure"."""
        return False

    def fit_labels(self, data: Dataset) -> Dataset:
        """Convert the labels of a data set for this problem, with notes on the mapping. UserError if impossible."""
        labels = self.takes()
        # numbers stay as they are, and a classifier that takes numbers checks and maps its labels itself
        if labels == "numbers" and (not data.names or self.has("predict")):
            return data
        with self.raise_user_errors():
            return fit_labels(data, labels)

    def labels(self, b: Array) -> Array:
        """Convert labels (d,) to the form that this problem uses; ValueError if they do not fit."""
        wrong = b[(b < 0) | (b != np.floor(b))] if self.takes() == "classes" else b[:0]
        if len(wrong):
            raise ValueError(f"labels must be whole numbers 0, 1 … C−1, but there is {wrong[0]:.10g}")
        return b

    def check_labels(self, b: Array) -> Array:
        """Convert labels (d,) by ``labels``; UserError if they do not fit."""
        with self.raise_user_errors():
            return self.labels(b)

    @contextmanager
    def raise_user_errors(self) -> Iterator[None]:
        """Turn a ValueError about data that this problem cannot use into a UserError."""
        try:
            yield
        except ValueError as error:
            raise UserError(f"problem {self.label()!r} cannot use these data: {error}") from None

    def value(self, block: Block, X: Array) -> Array:
        """Compute f_i(x_i): (c,)."""
        return self.value_grad(block, X)[0]

    def in_scores(self) -> LinearScores | None:
        """Return the gradient by linear scores, on which local steps can be taken; None where it is no such one."""
        return None

    def grad(self, block: Block, X: Array) -> Array:
        """Compute ∇f_i(x_i): (c, n)."""
        return self.value_grad(block, X)[1]

    def seeded_grad(self, block: Block, X: Array, seeds: Array) -> Array:
        """Compute ∇f_i(x_i) of a local step (c, n), with random numbers that follow from ``seeds`` (c,). Optional."""
        raise NotImplementedError

    def seeded_descent(self, block: Block, X: Array, rate: Array | float, seeds: Array) -> Array:
        """Compute x_i − rate·∇f_i(x_i) with the gradient of ``seeded_grad``, for a rate or (c, 1) of them: (c, n)."""
        return X - rate * self.seeded_grad(block, X, seeds)

    @abstractmethod
    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        """Compute f_i(x_i) (c,) and ∇f_i(x_i) (c, n) in one pass over the samples."""

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array | None]:
        """Compute f_i(x_i) (c,), ∇f_i(x_i) (c, n) and, with ``predict``, the predicted classes (c, D)."""
        return *self.value_grad(block, X), self.predict(block, X) if self.classifies() else None

    def value_predict(self, block: Block, X: Array) -> tuple[Array, Array | None]:
        """Compute f_i(x_i) (c,) and, with ``predict``, the predicted classes (c, D)."""
        return self.value(block, X), self.predict(block, X) if self.classifies() else None

    def classifies(self) -> bool:
        """Return whether accuracies are recorded."""
        return self.has("predict")

    def augments(self) -> bool:
        """Return whether ``augment_samples`` changes the samples of mini-batches at random."""
        return False

    def augment_samples(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        """Augment samples A (c, B, n) of mini-batches, ``counts`` (c,) of them real, with the streams of clients."""
        return A

    def measure_names(self) -> tuple[str, ...]:
        """Return the names of the numbers of ``measure``, which become columns of the record."""
        return ()

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """Compute the numbers ``measure_names`` of each client on the samples of the block, (c,) each. Optional."""
        raise NotImplementedError

    def client_measures(self) -> dict[str, Callable[[Block, Array], Array]]:
        """Return further measures of clients, on request: name -> function of block and model, (c,), NaN for none."""
        return {}

    def group(self, n: int) -> int:
        """Return how many clients with n parameters to compute at once; blocks have multiples of it. 1: any number."""
        return 1

    def run_attributes(self, n: int, start: Array) -> dict[str, Any]:
        """Return attributes of the result file on how the problem is computed with n features, from the first model."""
        return {}

    def computer(self) -> Any:
        """Return the device on which PyTorch computes the problem from samples in memory; None if it does not."""
        return None

    def compiles(self) -> bool:
        """Return whether compiled kernels can compute this problem on dense samples."""
        return False

    def gpu(self) -> str:
        """Return the device for samples and clients' state if a study does not set ``kernels``.

        "cuda": a GPU; "auto": a GPU if every rank with clients has one; empty: the memory of the CPU.
        """
        return ""

    @classmethod
    def has(cls, name: str) -> bool:
        """Return whether this problem defines the optional method ``name``."""
        return getattr(cls, name, None) not in (None, getattr(Problem, name, None))

    def predict(self, block: Block, X: Array) -> Array:
        """Return the predicted class of every sample: (c, D). Optional."""
        raise NotImplementedError

    def lipschitz(self, block: Block) -> Array:
        """Compute r_i, an upper bound of ‖∇²f_i‖: (c,). Optional."""
        raise NotImplementedError

    def convexity(self, block: Block) -> Array:
        """Compute α_i, the strong convexity of f_i: (c,). Optional."""
        raise NotImplementedError

    def least_curvature(self, block: Block) -> Array:
        """Compute a lower bound of the eigenvalues of ∇²f_i at any x: (c,). Optional; by default ``convexity``."""
        return self.convexity(block)

    def hessian(self, block: Block, X: Array) -> RowMap:
        """Return the function V -> ∇²f_i(x_i) v_i for rows V (c, n). Optional."""
        raise NotImplementedError

    def hess(self, block: Block, X: Array) -> Array:
        """Compute ∇²f_i(x_i), symmetric to the bit: (c, n, n). Optional."""
        raise NotImplementedError

    def packed_hess(self, block: Block, X: Array) -> Array:
        """Compute the upper triangles of ``hess``, row by row, in a new array: (c, n(n+1)/2)."""
        return pack(self.hess(block, X))

    def majorizer_inverse(
        self, block: Block, scale: float, shift: float, factors: ClientFactors = unit_factors
    ) -> RowMap:
        """Return the function V -> (scale·s_i·H_i + shift·I)⁻¹ v_i for rows V (c, n).

        H_i is a majorizer of ∇²f_i, s_i a factor. Optional.
        """
        raise NotImplementedError

    def log_likelihood(self, block: Block, X: Array, dispersion: float) -> Array:
        """Compute the log-likelihood of the samples of each client, without a penalty: (c,). Optional."""
        raise NotImplementedError

    def pearson(self, block: Block, X: Array) -> Array:
        """Compute Σ_j (b_j − mean)²/variance over the samples of each client, for dispersion 1: (c,). Optional."""
        raise NotImplementedError

    def expected_hess(self, block: Block, X: Array) -> Array:
        """Compute the mean of ∇²f_i over the labels that the model expects at x_i: (c, n, n). Optional; problems for
        which it is ∇²f_i itself, as with the canonical link, do not define it."""
        raise NotImplementedError

    def clipped_grad(self, block: Block, X: Array, bound: float) -> Array:
        """Compute ∇f_i(x_i) with the gradient of every sample clipped to 1-norm ``bound``: (c, n). Optional."""
        raise NotImplementedError


RowMap = Callable[[Array], Array]  # rows (c, n) -> rows (c, n)
ClientFactors = Callable[[Block], "Array | float"]  # a number for each client of a block: (c,), or one for all
