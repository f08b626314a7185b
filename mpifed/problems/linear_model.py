"""Losses of a linear score: f_i(x) = (1/d_i) Σ_j ℓ(⟨a_j, x⟩, b_j) + regulariser."""

from abc import abstractmethod
from functools import partial
from inspect import unwrap
from typing import ClassVar, Literal

import numpy as np

from mpifed.core.arrays import namespace
from mpifed.core.symmetric import add_diagonal, row_starts
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.sample_space import LinearScores
from mpifed.problems.gram import gram_inverse, largest_eigenvalue
from mpifed.problems.problem import ClientFactors, Problem, RowMap, unit_factors

READING = (  # methods that read scores, weights or rows of samples
    *("value", "grad", "value_grad", "evaluate", "measure", "predict", "_value", "_pass"),
    *("lipschitz", "least_curvature", "majorizer_inverse", "log_likelihood", "pearson"),
)
TERMS = {"log_likelihood": "log_density", "pearson": "squares"}  # sum over samples -> the method that returns its terms


class LinearModel(Problem):
    """A loss ℓ of the score z = ⟨a, x⟩ and a regulariser weight(d_i)·penalty(x).

    A subclass defines ``curvature``, ``loss`` and ``slope``; ``bend`` for Hessians; ``weight`` for a regulariser,
    which is ‖x‖²/2 unless it defines the ``penalty`` methods too. With ``mean`` compiled kernels can compute it.

        >>> class LogCosh(mpifed.extend.LinearModel):
        ...     curvature = 1.0
        ...     def loss(self, Z, b):
        ...         return np.logaddexp(Z - b, b - Z) - np.log(2)
        ...     def slope(self, Z, b):
        ...         return np.tanh(Z - b)
        >>> mpifed.run(problem=LogCosh(), algorithm="fedavg", rounds=2).cr
        2
    """

    curvature: ClassVar[float]  # the largest ∂²ℓ/∂z²
    offers: ClassVar[dict[str, str]] = Problem.offers | {
        "lipschitz": f"{Problem.offers['lipschitz']}; a LinearModel has it where it sets curvature",
        "hessian": f"{Problem.offers['hessian']}; a LinearModel has them where it defines bends",
        "hess": f"{Problem.offers['hess']}; a LinearModel has them where it defines bends",
    }
    linear: ClassVar[str] = "scores"
    sample_columns: ClassVar[bool] = True  # weights and offsets of samples; see ``takes_column``
    log_link: ClassVar[bool] = False  # whether the mean of a label is e^z, so that there may be exposures
    mean: ClassVar[Literal["identity", "logistic"] | None] = None  # μ, where ∂ℓ/∂z = μ(z) − b: z or 1/(1 + e^−z)

    @abstractmethod
    def loss(self, Z: Array, b: Array) -> Array:
        """Compute ℓ(z, b), elementwise."""

    @abstractmethod
    def slope(self, Z: Array, b: Array) -> Array:
        """Compute ∂ℓ/∂z, elementwise."""

    def residual(self, block: Block, Z: Array) -> Array:
        """Compute ∂ℓ/∂z divided by d_i, 0 on the padding: (c, D)."""
        return self.slope(Z, block.b) * block.w

    def bend(self, Z: Array) -> Array:
        """Compute ∂²ℓ/∂z², elementwise."""
        raise NotImplementedError

    def bends(self, block: Block, Z: Array) -> Array:
        """Compute ∂²ℓ/∂z² divided by d_i, 0 on the padding: (c, D). A loss where it depends on b defines only this."""
        return self.bend(Z) * block.w

    def log_density(self, Z: Array, b: Array, dispersion: Array | float) -> Array:
        """Compute the log-probability or log-density of labels, elementwise. Optional: problems with a likelihood."""
        raise NotImplementedError

    def squares(self, Z: Array, b: Array) -> Array:
        """Compute the terms of Pearson's statistic, which estimates the dispersion, elementwise. Optional."""
        raise NotImplementedError

    def log_likelihood(self, block: Block, X: Array, dispersion: float) -> Array:
        """Sum ``log_density`` over the samples of each client: (c,).

        A sample of frequency v counts v times; one of weight v has the dispersion φ/v. If φ = 1 both are Σ v_j ln p_j.
        """
        is_sample = block.w > 0
        v = 1.0 if block.offset is None else np.where(is_sample, block.w * block.d[:, None], 1)  # v_j
        Z = block.scores(X)
        if block.frequencies or not self.has("pearson"):
            logs = v * self.log_density(Z, self._labels(block), dispersion)
        else:
            logs = self.log_density(Z, self._labels(block), dispersion / v)
        return np.where(is_sample, logs, 0).sum(axis=1)

    def pearson(self, block: Block, X: Array) -> Array:
        """Sum ``squares`` over the samples of each client, with their weights: (c,)."""
        squares = self.squares(block.scores(X), self._labels(block))
        return block.d * np.vecdot(block.w, np.where(block.w > 0, squares, 0))

    def deviance(self, Z: Array, b: Array) -> Array:
        """Compute 2(ℓ(z, b) − min_z ℓ(z, b)), elementwise. Optional: problems that record it."""
        raise NotImplementedError

    def mean_deviance(self, block: Block, X: Array) -> Array:
        """Compute the mean deviance of each client's samples, with their weights: (c,)."""
        return block.xp.vecdot(block.w, self.deviance(self.scores(block, X), block.b))

    def scores(self, block: Block, X: Array) -> Array:
        """Compute the score z_j = ⟨a_j, x_i⟩ plus offset of each sample: (c, D)."""
        return block.scores(X)

    @classmethod
    def has(cls, name: str) -> bool:
        """Return whether this problem defines the optional method ``name``, or the functions that it needs."""
        if name in ("lipschitz", "majorizer_inverse") and getattr(cls, name) is getattr(LinearModel, name):
            return hasattr(cls, "curvature")
        if name == "hess" and cls.hessian is not LinearModel.hessian and cls.hess is LinearModel.hess:
            return False  # hessian is of another matrix
        if name in TERMS and getattr(cls, name) is getattr(LinearModel, name):
            return getattr(cls, TERMS[name]) is not getattr(LinearModel, TERMS[name])
        bends = cls.bend is not LinearModel.bend or cls.bends is not LinearModel.bends
        return super().has(name) and (name not in ("hessian", "hess") or bends)

    @classmethod
    def takes_column(cls, name: str) -> bool:
        """Return whether samples may have this column: the class states ``sample_columns``, and none derived from it
        overrides a method that reads scores. One that does states it again once it reads block.scores(X), .w and .d.
        """
        return cls._uses_methods_of("sample_columns", *READING) and (name != "exposure" or cls.log_link)

    def compiles(self) -> bool:
        """Return whether the slope is that of the class that states ``mean``, which compiled kernels compute."""
        return self.mean is not None and self._uses_methods_of("mean", "slope", "residual")

    @classmethod
    def _uses_methods_of(cls, trait: str, *methods: str) -> bool:
        """Return whether these methods are those of the class that states ``trait``, which does not cover overrides."""
        states = next(base for base in cls.__mro__ if trait in vars(base))
        return all(unwrap(getattr(cls, name)) is getattr(states, name) for name in methods)

    def weight(self, d: Array) -> Array:
        """Return the factor (c,) of the regulariser of clients with d samples."""
        return 0.0 * d

    def penalty(self, X: Array) -> Array:
        """Compute the regulariser without its factor: (c,), or a number for a common point."""
        return namespace(X).vecdot(X, X) / 2

    def penalty_grad(self, X: Array) -> Array:
        return X

    def penalty_hessian(self, X: Array) -> Array:
        """Compute the diagonal of the regulariser's Hessian, without its factor."""
        return namespace(X).ones_like(X)

    def value(self, block: Block, X: Array) -> Array:
        return self._value(block, X, block.scores(X))

    def grad(self, block: Block, X: Array) -> Array:
        return self._pass(block, X)[1]

    def clipped_grad(self, block: Block, X: Array, bound: float) -> Array:
        """Compute ∇f_i with the gradient ℓ' a of every sample clipped to 1-norm ``bound``: (c, n).

        Replacing one sample of client i moves it by at most 2·bound/d_i in the 1-norm.
        """
        xp = block.xp
        R = self.slope(block.scores(X), block.b)
        size = xp.abs(R) * block.once("1-norms of samples", lambda block: block.norms1())
        R = R * (xp.minimum(bound / xp.maximum(size, bound), 1) * block.w)  # a slope may return the labels
        # Gradients that are not finite become 0: they cannot be shortened, and would tell that there is such a sample.
        R = xp.where(xp.isfinite(size), R, xp.zeros_like(R))
        factor = self._factor(block)
        return block.vecmat(R) if factor is None else block.vecmat(R) + factor * self.penalty_grad(X)

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        Z, G = self._pass(block, X)
        return self._value(block, X, Z), G

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array | None]:
        Z, G = self._pass(block, X)
        return self._value(block, X, Z), G, self.classes(Z)

    def value_predict(self, block: Block, X: Array) -> tuple[Array, Array | None]:
        Z = block.scores(X)
        return self._value(block, X, Z), self.classes(Z)

    def classes(self, Z: Array) -> Array | None:
        """Return the predicted classes at scores Z (c, D); None for a problem without classes."""
        return None

    def lipschitz(self, block: Block) -> Array:
        """Compute r_i = curvature · λ_max(A_iᵀA_i)/d_i + regulariser's factor: (c,)."""
        top = block.once("largest eigenvalue", largest_eigenvalue)
        return self.curvature * top / block.d + self.weight(block.d)

    def hessian(self, block: Block, X: Array) -> RowMap:
        """Return V -> ∇²f_i(x_i) v_i for rows V (c, n): A_iᵀ diag(ℓ'') A_i v/d_i + the regulariser's part."""
        bend, diagonal = self._curvature(block, X)
        return lambda V: block.gram_product(bend, V) + diagonal * V

    def hess(self, block: Block, X: Array) -> Array:
        """Compute ∇²f_i(x_i) = A_iᵀ diag(ℓ'') A_i/d_i + the regulariser's part: (c, n, n)."""
        bend, diagonal = self._curvature(block, X)
        H = block.gram(bend)
        add_diagonal(H, diagonal)
        return H

    def packed_hess(self, block: Block, X: Array) -> Array:
        """Compute the upper triangles of ``hess``, row by row: (c, n(n+1)/2)."""
        if type(self).hess is not LinearModel.hess:
            return super().packed_hess(block, X)
        bend, diagonal = self._curvature(block, X)
        H = block.packed_gram(bend)
        H[:, row_starts(block.n)[:-1]] += diagonal
        return H

    def majorizer_inverse(
        self, block: Block, scale: float, shift: float, factors: ClientFactors = unit_factors
    ) -> RowMap:
        """Return v -> (scale·s_i·H_i + shift·I)⁻¹ v, H_i = curvature · A_iᵀA_i/d_i + factor·I (fedgia, Table III)."""

        def coefficients(block: Block) -> tuple[Array, Array]:
            factor = scale * factors(block)
            return factor * self.curvature / block.d, factor * self.weight(block.d) + shift

        return gram_inverse(block, f"gram inverse {scale!r} {shift!r}", coefficients)

    def in_scores(self) -> LinearScores | None:
        cls = type(self)
        reading = ("grad", "_pass", "penalty_grad", "scores")
        return self if all(unwrap(getattr(cls, name)) is getattr(LinearModel, name) for name in reading) else None

    def linear_scores(self, block: Block, X: Array) -> Array:
        return block.matvec(X)

    def sample_slopes(self, block: Block, Z: Array) -> Array:
        return self.residual(block, Z if block.offset is None else Z + block.offset)

    def pull_slopes(self, block: Block, S: Array) -> Array:
        return block.vecmat(S)

    def sample_grams(self, block: Block) -> Array:
        return block.products.sample_gram(block)

    def ridge(self, block: Block) -> Array | None:
        return self._factor(block)

    def _curvature(self, block: Block, X: Array) -> tuple[Array, Array]:
        """Compute ℓ''/d_i (c, D), 0 on the padding, and the diagonal of the regulariser's Hessian (c, n)."""
        factor = block.real(self.weight(block.d))[:, None]
        return self.bends(block, block.scores(X)), factor * self.penalty_hessian(X)

    def _value(self, block: Block, X: Array, Z: Array) -> Array:
        f = block.xp.vecdot(block.w, self.loss(Z, block.b))
        factor = self._factor(block)
        return f if factor is None else f + factor[:, 0] * self.penalty(X)

    def _pass(self, block: Block, X: Array) -> tuple[Array, Array]:
        """Compute scores (c, D) and gradients (c, n) in one pass over the samples."""
        factor = self._factor(block)
        ridge = factor if type(self).penalty_grad is LinearModel.penalty_grad else None
        # by the products themselves, because this is called in every local step of every block
        residual = partial(self.residual, block)
        Z, G = block.products.one_pass(block, X, residual, self.mean == "logistic", ridge)
        if factor is not None and ridge is None:
            G += factor * self.penalty_grad(X)
        return Z, G

    def _labels(self, block: Block) -> Array:
        """Return the labels, with 1 on the padding, which every density accepts: (c, D)."""
        return np.where(block.w > 0, block.b, 1)

    def _factor(self, block: Block) -> Array | None:
        """Return the factor (c, 1) of the regulariser, or None if it is 0."""
        return block.note("factor", self._weights)

    def _weights(self, block: Block) -> Array | None:
        factor = block.real(self.weight(block.d))[:, None]
        return factor if factor.any() else None
