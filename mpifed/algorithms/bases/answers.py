"""What the server may ask the clients of any method: constants, scores for selections, numbers for a certificate."""

from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.traits import Refused, Theorem
from mpifed.theory.statements import Certificate, Known


class Answers(Component, kw_only=True):
    """Client methods of every algorithm, and the certificate of its theorem.

    Those of the names ``certify_…`` are evaluations: ``method(f, client, *args)`` returns numbers of each client and is
    charged to no ledger.
    """

    certify: Annotated[
        bool, Meta(description="record which conditions of the method's theorem hold, in /certificate of the result")
    ] = False

    theorem: ClassVar[Theorem | Refused] = Refused("")  # whose conditions are checked, or why none are

    def smoothness(self, f: Local, client: Any) -> tuple[Any, Array]:
        """r_i, the bound of ‖∇²f_i‖, of each client, to be called by the server: (c,)."""
        return client, f.lipschitz()

    def score(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What biased selection ranks by: ‖∇f_i(x)‖ on one mini-batch of ``size`` samples, (c,)."""
        _, batch, _ = next(f.steps(1, 0, size))
        g = batch.grad(x)
        return client, np.sqrt(np.vecdot(g, g))

    def score_loss(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What power-of-choice ranks by: f_i(x) on one mini-batch of ``size`` samples, (c,)."""
        _, batch, _ = next(f.steps(1, 0, size))
        return client, batch.value(x)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Odds of clients for selection by importance, and the factor that a set has as their sum: (c,) each."""
        return f.lipschitz(), np.ones(len(f))

    def certificate(self, known: Known) -> Certificate:
        """The conditions of the method's theorem for a study with the constants ``known``."""
        from mpifed.theory.theorems import certificate

        return certificate(self, known)

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
