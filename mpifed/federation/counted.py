"""The sample gradients that client methods ask f for, counted for each client."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.federation.host import ClientMethod
from mpifed.federation.local import Local
from mpifed.federation.request import SCORES

FIRST = ("value", "grad", "value_grad", "clipped_grad", "evaluate")  # each counts as one gradient
SECOND = ("hessian", "hess", "packed_hess")


class Tally:
    """The sample gradients of m clients since ``clear``: ``gradients`` (m,).

    ``second``: the second derivatives that were asked for, which have no such count.
    """

    def __init__(self, m: int) -> None:
        self.gradients = np.zeros(m, np.int64)
        self.second: dict[str, None] = {}

    def clear(self) -> Array:
        """The counts so far (m,), which begin anew."""
        found = self.gradients
        self.gradients = np.zeros_like(found)
        return found

    def wrap(self, name: str, method: ClientMethod) -> ClientMethod:
        """The client method with an f that is watched; scores of a selection have a time of their own."""
        if name in SCORES:
            return method
        return lambda f, *args: method(self.watched(f), *args)

    def watched(self, f: Local) -> Local:
        """Let f, and what is made of it, note here what it is asked for."""
        # on this object alone: f of a run has neither a class of its own nor a question whether somebody counts
        own: dict[str, Any] = {name: self.counted(f, getattr(f, name)) for name in FIRST}
        own |= {name: self.noted(name, getattr(f, name)) for name in SECOND}
        like = f.like
        own["like"] = lambda *args: self.watched(like(*args))
        vars(f).update(own)
        return f

    def counted(self, f: Local, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of f that counts a gradient of each sample, or of each in the mini-batch."""

        def call(*args: Any, **named: Any) -> Any:
            self.gradients[f.ids] += (to_numpy(f.block.w) > 0).sum(axis=1)
            return method(*args, **named)

        return call

    def noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of f that notes its name."""

        def call(*args: Any, **named: Any) -> Any:
            self.second[name] = None
            return method(*args, **named)

        return call
