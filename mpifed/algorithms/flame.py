"""FLAME, Algorithm 1 of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated learning via ADMM with
Moreau envelope", arXiv:2311.06756 (2023)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import Personal, PlotStyle, RecordValues, Sum, Theorem, squared_norms
from mpifed.extend import Array, Local, Supports, Upload
from mpifed.theory.flame import c1


class Client(NamedTuple):
    theta: Array  # (c, n) personal models
    w: Array  # (c, n) local models
    pi: Array  # (c, n) dual variables
    z: Array  # (c, n) last upload


class MoreauADMM(Personal):
    """ADMM for the Moreau envelopes of the f_i, the base of FLAME and FLAME-DP."""

    rho: Annotated[float, Meta(gt=0, description="penalty ρ")] = 0.01
    center: Annotated[Literal["global", "local"], Meta(description="centre of personal models: w, or own w_i")] = (
        "global"
    )
    lagrangian: Annotated[bool, Meta(description="record the augmented Lagrangian")] = False

    upload = Upload(last_upload="z")

    def advice(self, m: int) -> str | None:
        pull, rho = self.lam / m, self.rho
        if rho >= pull and c1(self.lam, rho, 1 / m) > 0:
            return None
        return (
            f"{self.label()}: Theorem 2 requires rho >= lam/m = {pull:.3g} and (lam/m)^2 (1 + rho)/rho^2 < "
            f"(lam/m + rho)/2, but rho = {rho:.3g}; no published run satisfies it"
        )

    def init_client(self, f: Local) -> Client:
        return Client(theta=f.initial(), w=f.initial(), pi=f.zeros(), z=f.initial())

    def centre(self, client: Client, w: Array) -> Array:
        return w if self.center == "global" else client.w

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Apply the local update of Algorithm 1 to selected clients."""
        theta = self.train(f, client.theta, self.centre(client, w))  # (9)
        pull = self.lam / f.m
        wi = (pull * theta + self.rho * w - client.pi) / (pull + self.rho)  # (10)
        pi = client.pi + self.rho * (wi - w)  # (11)
        z = wi + pi / self.rho
        return Client(theta, wi, pi, z), z

    def record(self, f: Local, client: Client, x: Array) -> RecordValues:
        """Return (6) and (8): with α_i = 1/m, (f_i(θ_i) + (λ/2)‖θ_i − w_i‖²)/m + ⟨π_i, w_i − w⟩ + (ρ/2)‖w_i − w‖²."""
        envelope = super().record(f, client, x)
        if not self.lagrangian:
            return envelope
        gap = client.w - x
        value = (f.value(client.theta) + self.lam / 2 * squared_norms(client.theta - client.w)) / f.m
        return envelope | {"lagrangian": Sum(value + f.xp.vecdot(client.pi, gap) + self.rho / 2 * squared_norms(gap))}


class Flame(MoreauADMM, tag="flame"):
    """Personal models by local epochs, local models and duals in closed form; the server averages all last uploads.

    θ_i ← H epochs on f_i(θ) + (λ/2)‖θ − centre‖²;  w_i = (λθ_i/m + ρw − π_i)/(λ/m + ρ);  π_i ← π_i + ρ(w_i − w);
    z_i = w_i + π_i/ρ;  w = mean of z_i over all m. The centre is the broadcast model (released code) or the client's
    own w_i (as printed). After an update π_i = (λ/m)(θ_i − w_i).  Source: (9)–(11), Algorithm 1; errata.
    """

    title = "FLAME"
    plot_style = PlotStyle("brown", 1)
    # Personal models, duals and last uploads are state. Uploads are exact: no privacy, which flame-dp has.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.flame:certificate")

    asynchronous = True
