"""pFedMe, Algorithm 1 of C. T. Dinh, N. H. Tran, T. D. Nguyen, "Personalized federated learning with Moreau envelopes",
arXiv:2006.08848 (2020)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import Personal, PlotStyle, Rate, rate_at
from mpifed.extend import Array, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    theta: Array  # (c, n) personal models
    z: Array  # (c, n) last upload


class PFedMe(Personal, tag="pfedme"):
    """Personal models by local epochs; local models step towards them, and the server averages all last uploads.

    θ_i ← H epochs on f_i(θ) + (λ/2)‖θ − w‖², from the client's own last θ_i and first from x⁰, or with
    begin = "server" from w, as the authors' program does: the paper leaves it open.
    w_i = w − eta lam (w − θ_i);  w⁺ = mean of w_i over all m.
    Source: Algorithm 1 with one step a round, as compared in flame, section V; errata.
    """

    title = "pFedMe"
    plot_style = PlotStyle("brown", 2, 1)
    # Personal models are state, and the inner problem is solved anew.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:2006.08848 asks for an accuracy of θ_i and bounds of variance that epochs do not give"
    )

    eta: Annotated[Rate, Meta(description="step size η of local models")] = 0.5
    begin: Annotated[
        Literal["own", "server"],
        Meta(description="where rounds begin: at the last θ_i or at w"),
    ] = "own"

    upload = Upload(last_upload="z", averaged=True)
    asynchronous = True

    def init_client(self, f: Local) -> Client:
        return Client(theta=f.initial(), z=f.initial())

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Train the personal model, then step the local model and upload it."""
        theta = self.train(f, client.theta if self.begin == "own" else f.xp.broadcast_to(w, client.theta.shape), w)
        z = w - rate_at(self.eta, f) * self.lam * (w - theta)
        return Client(theta, z), z
