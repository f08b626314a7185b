"""What FedGiA and FedADMM share: the first dual variables, and the augmented Lagrangian in the record."""

from typing import Annotated, Any, ClassVar, Literal, Protocol

from msgspec import Meta, field

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local
from mpifed.federation.method import ServerState
from mpifed.federation.traits import Recorded, Sum


class Penalty(ServerState, Protocol):
    """The state of a server that has a penalty."""

    @property
    def sigma(self) -> float: ...


class InexactADMM(Algorithm):
    """Methods whose model x minimises L(x, W, Π) = Σ f_i(w_i)/m + ⟨w_i − x, π_i⟩ + (σ_i/2)‖w_i − x‖².

    The field is ``first`` because ``start`` is a method; in experiment files it is ``start``.
    """

    first: Annotated[
        Literal["zero", "-gradient"], Meta(description="first dual variables π_i: 0, or −∇f_i/m at the first model")
    ] = field(default="zero", name="start")
    lagrangian: Annotated[
        bool, Meta(description="record the augmented Lagrangian: one more value of f_i at every evaluation")
    ] = False

    common: ClassVar[bool] = False  # whether the server's sigma is that of each client, not Σ σ_i

    def duals(self, f: Local) -> Array:
        """π_i before the first round: (c, n)."""
        return f.zeros() if self.first == "zero" else -f.grad(f.initial()) / f.m

    def joint(self, fed: Federation, sigma: float) -> Array:
        """The first model, x⁰ + Σ π_i/σ with σ = Σ σ_i: the mean of the first uploads, of which only π_i is sent."""
        # all know x⁰, so that only π_i has to travel, and nothing where it is 0
        return fed.initial() if self.first == "zero" else fed.initial() + fed.sum(self.first_dual) / sigma

    def first_dual(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, client.pi

    def penalty(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, self.local(f, client)[1]

    def local(self, f: Local, client: Any) -> tuple[Array, Array]:
        """w_i (c, n) and σ_i (c,), the latter 1 with ``common``."""
        return client.w, f.xp.ones(len(f))

    def record(self, f: Local, client: Any, x: Array) -> Recorded:
        """f_i(w_i)/m + ⟨w_i − x, π_i⟩ and (σ_i/2)‖w_i − x‖²."""
        if not self.lagrangian:
            return {}
        w, sigma = self.local(f, client)
        away = w - x
        lagrangian = f.value(w) / f.m + f.xp.vecdot(away, client.pi)
        return {"lagrangian": Sum(lagrangian), "squares": Sum(sigma / 2 * f.xp.vecdot(away, away))}

    def report(self, server: Penalty, row: dict[str, float], m: int) -> dict[str, float]:
        own = dict(row)
        if self.lagrangian:
            own["lagrangian"] += (server.sigma if self.common else 1) * own.pop("squares")
        return own
