"""A counter of the sample gradients that client methods compute, for each client."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import ClientMethod
from mpifed.federation.request import SCORES

FIRST = ("value", "grad", "value_grad", "clipped_grad", "evaluate")  # each counts as one gradient
SECOND = ("hessian", "hess", "packed_hess")


class GradientCounter:
    """A counter of the sample gradients of m clients since ``clear``: ``gradients`` (m,).

    ``second`` has the names of second derivatives that were computed, which are not counted.
    """

    def __init__(self, m: int) -> None:
        self.gradients = np.zeros(m, np.int64)
        self.second: dict[str, None] = {}

    def clear(self) -> Array:
        """Return the counts so far (m,), and start again from 0."""
        counts = self.gradients
        self.gradients = np.zeros_like(counts)
        return counts

    def wrap(self, name: str, method: ClientMethod) -> ClientMethod:
        """Return the client method with an f that counts; scores of a selection do not count."""
        if name in SCORES:
            return method
        return lambda f, *args: method(self.watch(f), *args)

    def watch(self, f: Local) -> Local:
        """Make f, and every object made from it, count here."""
        # on this object alone, so that an f that nobody counts pays nothing
        wrapped: dict[str, Any] = {name: self.count_calls(f, getattr(f, name)) for name in FIRST}
        wrapped |= {name: self.note_calls(name, getattr(f, name)) for name in SECOND}
        like = f.like
        wrapped["like"] = lambda *args: self.watch(like(*args))
        vars(f).update(wrapped)
        return f

    def count_calls(self, f: Local, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method of f so that it counts one gradient for each sample of f, or of its mini-batch."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.gradients[f.ids] += (to_numpy(f.block.w) > 0).sum(axis=1)
            return method(*args, **kwargs)

        return call

    def note_calls(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method of f so that it notes its name in ``second``."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.second[name] = None
            return method(*args, **kwargs)

        return call
