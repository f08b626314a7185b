"""What the server may ask the clients of any method: constants, scores for selections, numbers for a certificate."""

import importlib
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.traits import Refused, Theorem
from mpifed.theory.statements import Certificate, Condition, Known, nothing


def minibatch(f: Local, size: int) -> Local:
    """f on one mini-batch of ``size`` samples of each client, drawn anew; 0: on all samples."""
    _, batch, _ = next(f.steps(1, 0, size))
    return batch


class Answers(Component, kw_only=True):
    """What the server may ask the clients of any method: constants, scores for selections, numbers for a certificate.

    ``certify_…`` are evaluations: method(f, client, *args) returns numbers of each client and is charged to no ledger.
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
        batch = minibatch(f, size)
        g = batch.grad(x)
        return client, f.xp.sqrt(f.xp.vecdot(g, g))

    def score_loss(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What power-of-choice ranks by: f_i(x) on one mini-batch of ``size`` samples, (c,)."""
        batch = minibatch(f, size)
        return client, batch.value(x)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Odds of clients for selection by importance, and the factor that a set has as their sum: (c,) each."""
        return f.lipschitz(), f.xp.ones(len(f))

    def certificate(self, known: Known) -> Certificate:
        """The conditions of the method's theorem for a study with the constants ``known``, or that there is none."""
        theorem = vars(type(self)).get("theorem")  # its own: a method that derives from another one may change anything
        if not theorem:
            return nothing(self.label().rpartition(":")[2], "" if theorem is None else theorem.why)
        module, _, function = theorem.function.partition(":")
        found: Certificate = getattr(importlib.import_module(module), function)(self, known)
        if known.selection == "arrivals" and not theorem.delayed:
            age = Condition.of("oldest upload in rounds = 0", known.oldest, "=", 0.0, "its rounds are synchronous")
            return found._replace(conditions=[*found.conditions, age])
        return found

    def certify_smoothness(self, f: Local, client: Any) -> Array:
        """r_i: (c,)."""
        return f.lipschitz()

    def certify_curvature(self, f: Local, client: Any) -> Array:
        """A lower bound of the eigenvalues of ∇²f_i: (c,)."""
        return f.least_curvature()

    def certify_objective(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """f_i(x) (c,) and ∇f_i(x) (c, n)."""
        return f.value_grad(x)

    def certify_gradients(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """‖∇f_i(x)‖² and the largest |(∇f_i(x))_j|: (c,) each."""
        # f itself: what is random in the gradients of local steps is not in value_grad
        _, g = f.value_grad(x)
        return f.xp.vecdot(g, g), f.xp.max(f.xp.abs(g), axis=1)

    def certify_variance(self, f: Local, client: Any, x: Array, size: int, count: int) -> Array:
        """The mean of ‖g − ∇f_i(x)‖² over ``count`` gradients g of mini-batches of ``size`` samples: (c,)."""
        _, exact = f.value_grad(x)
        found = f.zeros(1)[:, 0]
        for _, batch, _ in f.steps(count, 0, size):
            away = batch.grad(x) - exact
            found = found + f.xp.vecdot(away, away) / count
        return found

    def certify_hessian(self, f: Local, client: Any, x: Array, v: Array) -> Array:
        """∇²f_i(x) v: (c, n)."""
        return f.hessian(f.xp.tile(x, (len(f), 1)))(f.xp.tile(v, (len(f), 1)))
