"""Base of FedGiA and FedADMM: the first dual variables, and the augmented Lagrangian to record."""

from typing import Annotated, Any, ClassVar, Literal, Protocol

from msgspec import Meta, field

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local
from mpifed.federation.method import ServerState
from mpifed.federation.traits import RecordValues, Sum


class PenaltyState(ServerState, Protocol):
    """Server state with a penalty σ."""

    @property
    def sigma(self) -> float: ...


class InexactADMM(Algorithm):
    """Base of methods whose model x minimises L(x, W, Π) = Σ f_i(w_i)/m + ⟨w_i − x, π_i⟩ + (σ_i/2)‖w_i − x‖².

    The field is ``first`` because ``start`` is a method; in experiment files it is ``start``.
    """

    first: Annotated[
        Literal["zero", "-gradient"], Meta(description="first dual variables π_i: 0, or −∇f_i/m at the first model")
    ] = field(default="zero", name="start")
    lagrangian: Annotated[
        bool, Meta(description="record the augmented Lagrangian: one more value of f_i at every evaluation")
    ] = False

    common: ClassVar[bool] = False  # whether the server's sigma is that of each client, not Σ σ_i

    @property
    def records_penalty(self) -> bool:
        """True where σ changes from round to round and is a column of the result."""
        return False

    def first_duals(self, f: Local) -> Array:
        """Return π_i before the first round: (c, n)."""
        return f.zeros() if self.first == "zero" else -f.grad(f.initial()) / f.m

    def first_model(self, fed: Federation, sigma: float) -> Array:
        """Return the first model x⁰ + Σ π_i/σ, σ = Σ σ_i; all know x⁰, so only π_i travel, or nothing where 0."""
        return fed.initial() if self.first == "zero" else fed.initial() + fed.sum(self.first_dual) / sigma

    def first_dual(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, client.pi

    def penalty(self, f: Local, client: Any) -> tuple[Any, Array]:
        return client, self.local_variables(f, client)[1]

    def local_variables(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Return w_i (c, n) and σ_i (c,); σ_i counts as 1 with ``common``."""
        return client.w, f.xp.ones(len(f))

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        """Return f_i(w_i)/m + ⟨w_i − x, π_i⟩ and (σ_i/2)‖w_i − x‖²."""
        if not self.lagrangian:
            return {}
        w, sigma = self.local_variables(f, client)
        difference = w - x
        lagrangian = f.value(w) / f.m + f.xp.vecdot(difference, client.pi)
        return {"lagrangian": Sum(lagrangian), "squares": Sum(sigma / 2 * f.xp.vecdot(difference, difference))}

    def report(self, server: PenaltyState, row: dict[str, float], m: int) -> dict[str, float]:
        columns = dict(row)
        if self.lagrangian:
            columns["lagrangian"] += (server.sigma if self.common else 1) * columns.pop("squares")
        return columns | ({"penalty": server.sigma} if self.records_penalty else {})
