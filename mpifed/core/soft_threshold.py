"""The soft threshold."""

from typing import Any

from mpifed.core.arrays import namespace
from mpifed.core.typing import Array


def soft(V: Array, lam: Any) -> Array:
    """Compute the soft threshold sign(v)·max(|v| − λ, 0), elementwise: argmin_u λ|u| + (u − v)²/2, for λ >= 0.

    It is the proximal operator of λ|·|; λ may be a number or an array like V.
    Source: section 1 of A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems", SIAM Journal on Imaging Sciences 2(1), 2009, doi:10.1137/080716542; there it is T_λ.
    """
    xp = namespace(V)
    return xp.sign(V) * xp.maximum(xp.abs(V) - lam, 0)
