"""Clients whose f_i have weights p_i: f = Σ p_i f_i in place of (1/m) Σ f_i.

Most methods are given f_i' = m p_i f_i, whose plain mean is f, so that all they compute is exact for f. Methods that
average models (``Upload.averaged``) keep f_i in their local steps; the server's means have the weights (``averages``).
"""

from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.view import Clients, View


class Factors(View):
    """f_i' = m p_i f_i in place of f_i; ``every`` (m,) are the m p_i of all clients, ``per_sample`` is m/d where these
    are by samples, else 0.
    """

    def __init__(self, every: Array, per_sample: float) -> None:
        self.every = every
        # m p_i = m d_i/d: an inverse that a block keeps for all its clients needs these without their numbers
        self.by_block = lambda block: per_sample * block.d

    def factors(self, f: Clients) -> Array:
        found: Array = f.xp.asarray(self.every[f.ids])
        return found


def shares(weights: Any, sizes: Array) -> Array:
    """m p_i (m,) for the weights "samples" or given numbers."""
    if isinstance(weights, str):
        return len(sizes) * sizes / sizes.sum()
    given = np.asarray(weights, float)
    return len(given) * given / given.sum()
