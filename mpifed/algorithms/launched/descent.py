"""Local steps of all clients of a block in one launch on a GPU, as client methods of this folder take them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mpifed.algorithms.parts.optimizers import SGD
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


def plain(method: Any) -> bool:
    """Whether every local iteration is a gradient step on all samples, by the method's optimiser and mini-batches."""
    found: bool = method.batch_size == 0 and method.optimizer == SGD()
    return found


def in_one_launch(given: Any, kinds: Mapping[type, Any]) -> Any | None:
    """A method or solver as the class among ``kinds`` that replaces its loop; None without one that suits its options.

    A class of a user's own that derives from one of these has none, for it may change any step.
    """
    kind = kinds.get(type(given))
    if kind is None:
        return None
    made = kind(**msgspec.structs.asdict(given))
    return made if made.suits() else None
