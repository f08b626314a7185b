"""What a certificate asks of the clients of any algorithm, and which theorem its conditions belong to."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.theory.statements import Certificate, Known


class Certified(Component, kw_only=True):
    """Methods whose theorem can be certified; ``certificate`` is for an algorithm to define, the others are not.

    The client methods below are evaluations: ``method(f, client, *args)`` returns numbers of each client and is charged
    to no ledger.
    """

    certify: Annotated[
        bool, Meta(description="record which conditions of the method's theorem hold, in /certificate of the result")
    ] = False

    def certificate(self, known: Known) -> Certificate:
        """The conditions of the method's theorem for a study with the constants ``known``."""
        from mpifed.theory.theorems import certificate

        return certificate(self.label(), self, known)

    def certify_smoothness(self, f: Local, client: Any) -> Array:
        """r_i: (c,)."""
        return f.lipschitz()

    def certify_curvature(self, f: Local, client: Any) -> Array:
        """A lower bound of the eigenvalues of ∇²f_i: (c,)."""
        return f.problem.least_curvature(f.block)

    def certify_objective(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """f_i(x) (c,) and ∇f_i(x) (c, n)."""
        return f.value_grad(x)

    def certify_gradients(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """‖∇f_i(x)‖² and the largest |(∇f_i(x))_j|: (c,) each."""
        g = f.grad(x)
        return np.vecdot(g, g), np.abs(g).max(axis=1)

    def certify_hessian(self, f: Local, client: Any, x: Array, v: Array) -> Array:
        """∇²f_i(x) v: (c, n)."""
        return f.hessian(np.tile(x, (len(f), 1)))(np.tile(v, (len(f), 1)))
