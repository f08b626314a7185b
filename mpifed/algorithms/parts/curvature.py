"""A penalty that follows the curvature of f along the path of the server's model, by the rule of Y. Malitsky,
K. Mishchenko, "Adaptive gradient descent without descent", arXiv:1910.09529 (2020)."""

import math
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array


class Path(NamedTuple):
    """The state of a server whose step is x⁺ = x − s/σ, with s about ∇f(x)/m."""

    x: Array  # (n,) model
    sigma: float  # penalty: its first value times a power of two
    before: Array  # (n,) the model before; x itself at the start and after a step back
    slope: Array  # (n,) s at the model before
    error: float  # a quarter of the mean of the clients' distances from s to ∇f(x)/m there
    most: float  # max r_i/m, which no curvature of f/m exceeds

    def after(self, mean: tuple[Array, float]) -> "Path":
        """The state after a round whose uploads, models and distances, have these means."""
        return followed(self, *mean)


def begun(x: Array, sigma: float, most: float) -> Path:
    return Path(x, float(x.dtype.type(sigma)), x, np.zeros_like(x), 0.0, most)


def followed(path: Path, x: Array, error: float) -> Path:
    """The state after the step from path.x to x, or one step back; ``error`` is the mean of the clients' distances.

    c = ‖s − s⁻‖/‖x − x⁻‖ is the curvature along the last step, s = σ(x − x⁺), give or take e = (error + error⁻)/‖x −
    x⁻‖. Where c − e > 2σ that step was too long: the model goes back to x⁻, and σ doubles until it is at least c − e.
    Else the next σ is the one nearest to 2(c + e), at least σ/2.
    """
    sigma = path.sigma
    slope = path.sigma * (path.x - x)
    error = float(error) / 4
    length = norm(path.x - path.before)
    if length > 0:
        change, off = norm(slope - path.slope), error + path.error
        least, c = (min(max(v, 0.0) / length, path.most) for v in (change - off, change + off))
        # by powers of two alone, so that σ is the same number in single and in double precision
        if least > 2 * sigma:
            return path._replace(x=path.before, sigma=math.ldexp(sigma, math.ceil(math.log2(least / sigma))))
        sigma = math.ldexp(sigma, max(-1, round(math.log2(2 * c / sigma))) if c > 0 else -1)
    return Path(x, sigma, path.x, slope, error, path.most)


def norm(x: Array) -> float:
    # in double precision: near the end the last step is a few units of the last place of a single one
    return float(np.linalg.norm(x.astype(float)))
