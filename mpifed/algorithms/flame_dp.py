"""FLAME with differential privacy, Algorithm 1 of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated
learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023).

Differential privacy is future work in its conclusion."""

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed import UserError
from mpifed.algorithms.flame import Client, MoreauADMM
from mpifed.algorithms.parts import (
    DRAWN_ANEW,
    GaussianMechanism,
    NoiseSeed,
    PlotStyle,
    Privacy,
    count_replayed_uploads,
    import_accounting,
)
from mpifed.extend import Array, Federation, Local, Supports, Unsupported


class Server(NamedTuple):
    x: Array  # (n,) model w
    uploads: Array  # (m,) noisy uploads so far


class FlameDP(MoreauADMM, tag="flame-dp"):
    """FLAME with clipped and noisy uploads, so that its models are differentially private for whole clients.

    θ_i, w_i, π_i and z_i as in flame, exact and never sent;  u_i = z_i − w, shortened to 2-norm C(1 − 1e-9), C =
    ``clip``, where it is longer;  z̃_i = w + u_i + N(0, s²);  w = mean of the last z̃_i over all m.  s =
    noise_multiplier·C, or that over √m where only sums are seen.  Neighbours differ in all data of one client: each
    release is ρ-zCDP with ρ = 2/noise_multiplier²; to k = ``colluding`` clients, who subtract their own uploads from a
    sum, with ρ m/(m − k). A client's own noise never enters its π_i. Where u_i stays longer than C the limit is the
    Huber mean of the z_i.
    """

    title = "FLAME-DP"
    plot_style = PlotStyle("brown", 5, 2)
    theorem = Unsupported("its uploads are clipped and have noise, of which the theorems of FLAME say nothing")

    clip: Annotated[float, Meta(gt=0, description="bound C of ‖z_i − w‖₂")] = 1.0
    noise_multiplier: Annotated[
        float, Meta(ge=0, le=1e100, description="standard deviation of the noise over C; 0: none")
    ] = 1.0
    seen: Annotated[
        Literal["uploads", "sum"],
        Meta(description="what others see: every upload, or only sums ([masks], or a trusted server)"),
    ] = "uploads"
    colluding: Annotated[
        int,
        Meta(ge=0, description="other clients k that subtract their own uploads, for the spent budget (seen = sum)"),
    ] = 1
    delta: Annotated[float, Meta(gt=0, lt=1, description="δ at which the spent budget is reported")] = 1e-5
    noise_seed: NoiseSeed = None

    asynchronous = Unsupported("its budget counts the clients that a round selects")

    def mechanism(self) -> GaussianMechanism:
        return GaussianMechanism(self.clip, self.noise_multiplier, self.noise_seed)

    def privacy(self) -> Privacy:
        if not self.noise_multiplier or self.noise_seed is not None:
            return Privacy(False, "there is no noise, or whoever knows algorithm.noise_seed can subtract it")
        released = {"uploads": "each upload", "sum": "each model, but no upload by itself,"}[self.seen]
        text = f"{released} is ρ-zCDP with {self.describe_rho()} (neighbours: all data of a client replaced)"
        if self.seen == "uploads":
            return Privacy(True, text, clients=True)
        return Privacy(True, text, double=True, sums=True, clients=True, grid=self.mechanism().step)

    @property
    def supports(self) -> Supports:
        # θ_i, w_i and π_i are exact and never sent; uploads are clipped and noisy, whatever these are.
        private = DRAWN_ANEW | Supports.CLIENTS | Supports.SUMS | Supports.DOUBLE
        return private if self.privacy().holds else Supports.REPEATED | Supports.DEVICES

    def describe_rho(self) -> str:
        """Return ρ of one release as a text, and whom it holds against."""
        rho = f"ρ = {self.mechanism().rho():.3g}"
        if self.seen == "uploads":
            return rho
        outside = f"{rho} to those who are no clients"
        if not self.colluding:
            return outside
        colluders = "any other client" if self.colluding == 1 else f"any {self.colluding} other clients together"
        return f"{rho}·m/(m − {self.colluding}) to {colluders}, and {outside}"

    def verify(self, selected: int) -> None:
        if not self.noise_multiplier:
            return
        import_accounting()
        only_sums = self.seen == "sum"
        if only_sums and self.colluding >= selected:
            raise UserError(
                f"algorithm.colluding = {self.colluding} is wrong: it must be less than the number of clients, "
                f"{selected}, for another one is left to protect"
            )
        self.mechanism().verify(selected if only_sums else 1)

    def init_server(self, fed: Federation) -> Any:
        return Server(fed.initial(), np.zeros(fed.m))

    # the state is this class's own, with more fields than that of its base
    def round(self, fed: Federation, server: Server) -> Server:  # type: ignore[override]
        selected = fed.select(server.x)
        x = fed.mean(self.update, server.x, to=selected, last="z")
        return Server(x, server.uploads + fed.mask(selected))

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        client, z = super().update(f, client, w)
        z = self.mechanism().upload(f, z, w, summands=f.m if self.seen == "sum" else 1)
        z = f.xp.astype(z, w.dtype)
        return client._replace(z=z), z

    def replayed_rounds(self, server: Server, rounds: int) -> Server:
        return count_replayed_uploads(server, rounds, self.privacy())

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:  # type: ignore[override]
        left = (m - self.colluding) / m if self.seen == "sum" else 1.0  # noise that others cannot subtract
        spent = self.mechanism().spent_epsilon(int(server.uploads.max()), self.delta, left)
        return super().report(server, row, m) | ({"epsilon_accounted": spent} if self.noise_multiplier else {})
