"""FedGiA, asynchronous, Algorithm 1 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated
learning", arXiv:2205.01438 (2022).

The paper's rounds are synchronous; this form of them is not in it."""

from typing import Any, NamedTuple

from mpifed import UserError
from mpifed.algorithms.fedgia import OneGradientADMM, Server
from mpifed.algorithms.parts import PlotStyle, invert_metric
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    w: Array  # (c, n) local models x_i where the Lagrangian is recorded, else (c, 0)
    z: Array  # (c, n) last upload x_i + π_i/σ


class AsynchronousFedGiA(OneGradientADMM, tag="fedgia-async"):
    """FedGiA in which unselected clients rest: their last upload stays in the mean.

    x_i ← x − (H_i/m + σI)⁻¹(ḡ_i + π_i), π_i ← π_i + σ(x_i − x), k0 times;  z_i = x_i + π_i/σ;  x⁺ = (1/m) Σ z_i over
    all m;  ḡ_i = ∇f_i(x)/m at the model x that the client was sent, σ = t·max r_i/m.  Source: (11)–(14); (15)–(17)
    need gradients of the others at the new model, which come too late. For many steps k0, or H_i/m = σI, z_i is
    x − ḡ_i/σ: once every client has uploaded, gradient descent with the last gradient of each, which no delay makes
    diverge where f_i is strongly convex and t >= ½(1 + α/r).
    """

    title = "FedGiA (async)"
    plot_style = PlotStyle("blue", 2, 1)
    # The last uploads that the server adds up are kept where clients live.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of FedGiA need a gradient of every client at the new model, which is not there in time"
    )

    upload = Upload(last_upload="z")
    asynchronous = True

    def verify(self, selected: int) -> None:
        if self.adaptive:
            raise UserError(
                "algorithm.adaptive = true is wrong: uploads of fedgia-async are from different rounds, and tell no "
                "curvature; fedgia has adaptive"
            )

    def init_client(self, f: Local) -> Client:  # type: ignore[override]
        pi, w = super().init_client(f)
        return Client(pi, w, z=f.initial())

    def init_server(self, fed: Federation) -> Any:
        server = super().init_server(fed)
        fed.call(self.first_upload, server.sigma)
        return server

    def first_upload(self, f: Local, client: Client, sigma: float) -> tuple[Client, None]:
        """Set z_i of k = 0, which the server knows."""
        return client._replace(z=client.z + client.pi / sigma), None

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.steps, server.x, server.sigma, to=fed.select(server.x))
        return server._replace(x=fed.mean(of=fed.arrivals(), last="z"))  # (11)

    def steps(self, f: Local, client: Client, x: Array, sigma: float) -> tuple[Client, Array]:
        """Apply (12)–(14): k0 steps with the gradient at x."""
        g = f.grad(x) / f.m
        pi = client.pi
        solve = invert_metric(f, self.H, sigma)
        for _ in range(self.k0):
            step = -solve(g + pi)  # (12): x_i − x
            pi = pi + sigma * step  # (13)
        w = x + step
        z = w + pi / sigma  # (14)
        return Client(pi, w if self.lagrangian else client.w, z), z
