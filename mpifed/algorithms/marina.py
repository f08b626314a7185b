"""MARINA, Algorithms 1 and 4 of E. Gorbunov, K. Burlachenko, Z. Li, P. Richtárik, "MARINA: Faster non-convex
distributed learning with compression", arXiv:2102.07845 (2021)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import COMPRESSED_UPLOAD, Client, CompressedGradients, PlotStyle, UnitFraction, rate_at
from mpifed.extend import Array, Federation, Local, Participation, Supports, Unsupported


class Server(NamedTuple):
    x: Array  # (n,) model
    g: Array  # (n,) estimate of ∇f(x)
    gamma: float  # step size γ


class Marina(CompressedGradients, tag="marina"):
    """Selected clients upload compressed changes of their gradient; now and then all clients upload all of it.

    x⁺ = x − γ g;  with probability p  g = mean ∇f_i(x⁺) over all clients, otherwise, over the selected ones,
    g ← g + mean C(∇f_i(x⁺) − ∇f_i(x)).  The coin is the server's. Clients keep nothing and get x⁺ and x. By default
    p = 1/(1 + ω), γ = 1/(L̃(1 + √((1 − p)ω/(pm)))) with L̃² the mean of r_i²; where |S| < m clients are selected, in γ
    (1 + ω)m/|S| − 1 is in place of ω (mpifed's choice).  Source: Algorithms 1 and 4, Theorem 2.1.
    """

    title = "MARINA"
    plot_style = PlotStyle("purple", 2, 3)
    # Its coin comes from fed.rng; gradients of the last model are computed again, not kept.
    supports = Supports.REPEATED | Supports.DEVICES
    upload = COMPRESSED_UPLOAD
    theorem = Unsupported("that of arXiv:2102.07845 bounds an expectation at a random one of all iterates")

    p: Annotated[UnitFraction | None, Meta(description="probability p of whole gradients (default: 1/(1 + ω))")] = None

    participation = Participation.SELECTED_OR_ALL

    def repeats(self) -> float:
        """Return the mean gradients of a round, if p is an option: full rounds count 1, others 2."""
        return 2 - (self.p or 0.0)

    def message_size(self, n: int) -> tuple[float, float]:
        """Return (down, up), the mean over the coin: x and ∇f_i, or x⁺, x and the compressed change."""
        p, (_, up) = self.full_probability(n), super().message_size(n)
        return (2 - p) * n, p * n + (1 - p) * up

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x, g=fed.mean(self.whole, x), gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - rate_at(self.gamma or server.gamma, fed) * server.g
        full = fed.rng.random() < self.full_probability(fed.n)
        selected = fed.select(x, repeats=1 if full else 2)
        if full:
            return server._replace(x=x, g=fed.mean(self.whole, x))
        fed.send(self.change, x, server.x, to=selected, bits=self.bits(fed))
        change = fed.estimate(0.0, of=fed.arrivals())
        return server._replace(x=x, g=server.g + change)

    def whole(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        return client, f.grad(x)

    def change(self, f: Local, client: Client, x: Array, before: Array) -> tuple[Client, Array]:
        """Upload C(∇f_i(x⁺) − ∇f_i(x))."""
        return client, self.compress(f, f.grad(x) - f.grad(before))

    def full_probability(self, n: int) -> float:
        """Return p."""
        return self.p or 1 / (1 + (self.compressor.omega(n) or 0))

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        p = self.full_probability(fed.n)
        return float(1 / (np.sqrt(np.mean(r * r)) * (1 + np.sqrt((1 - p) / p * self.total_omega(fed) / fed.m))))
