"""Local steps of all clients of a block in one launch on a GPU, as client methods of this folder take them."""

from collections.abc import Sequence
from typing import Any

from mpifed.core.typing import Array
from mpifed.data.cuda.forms import Pull as Pull
from mpifed.federation.local import Local
from mpifed.problems.launched import form_of


def descended(
    f: Local, w: Array, gammas: Sequence[Array | float], correction: Array | None = None, pull: Pull | None = None
) -> Array:
    """w (c, n) after a step w ← w − γ(∇f_i(w) + correction_i + μ(w − z_i)) on all samples for each γ of ``gammas``.

    w, ``correction`` and z of the ``pull``, (n,) or (c, n); γ a number or (c, 1). A client rests where it is 0.
    """
    block: Any = f.block
    return block.steps(form_of(f.problem), w, gammas, correction, pull)
