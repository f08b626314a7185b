"""Clipped gradients of local steps."""

from typing import Annotated

from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.typing import Array

EPS = 1e-6  # of torch.nn.utils.clip_grad_norm_, against division by zero
Clip = Annotated[float, Meta(ge=0, description="largest 2-norm of a client's gradient in a step; 0: not clipped")]


def clipped(g: Array, most: float) -> Array:
    """g_i · min(1, most/(‖g_i‖ + 10⁻⁶)) for the gradient g_i of each client: (c, n).

    Source: torch.nn.utils.clip_grad_norm_ with the 2-norm; R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of
    training recurrent neural networks", arXiv:1211.5063 (2013), Algorithm 1.
    """
    xp = namespace(g)
    norm = xp.sqrt(xp.vecdot(g, g))[:, None]
    return g * xp.minimum(most / (norm + EPS), 1.0)
