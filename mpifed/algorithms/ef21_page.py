"""EF21-PAGE, Algorithm 3 of I. Fatkhullin, I. Sokolov, E. Gorbunov, Z. Li, P. Richtárik, "EF21 with bells & whistles:
Six algorithmic extensions of modern error feedback", arXiv:2110.03294 (2021)."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.ef21 import Server
from mpifed.algorithms.ef21_sgd import EF21SGD
from mpifed.algorithms.parts import PlotStyle, UnitFraction, rate_at
from mpifed.extend import Array, Federation, Local, Supports, Unsupported


class Client(NamedTuple):
    g: Array  # (c, n) server's estimate of v_i
    v: Array  # (c, n) estimates of ∇f_i at x_i
    x: Array  # (c, n) models at which v_i was renewed last


class EF21Page(EF21SGD, tag="ef21-page"):
    """EF21 with gradient estimates that mini-batches update from model to model, renewed now and then in full.

    x⁺ = x − γ mean g_i;  with probability p  v_i = ∇f_i(x⁺), otherwise v_i ← v_i + ∇f_B(x⁺) − ∇f_B(x), B being random
    samples of client i;  g_i ← g_i + C(v_i − g_i), of the selected clients, x the model that each received last. The
    coin is the server's, one for all clients, where the paper has one for each. At the start, v_i = ∇f_i(x).
    By default p = B/(B + d/m), d/m samples being the mean of the d_i, and
    γ = 1/(L + √(4A L̃² + 2(3A + 1/p)(1 − p)K)), L and L̃ as in ef21, A = β/θ = (1 − δ)/(1 − √(1 − δ))² and K the mean of
    r_i² d_i (d_i − B)/(B(d_i − 1)), which bounds the noise of mini-batches of convex losses; derived as the theorem of
    EF21 is (mpifed's choice). The authors' program has the γ of ef21, which is longer.  Source: Algorithm 3.
    """

    title = "EF21-PAGE"
    plot_style = PlotStyle("orange", 5, 5)
    # As ef21-sgd; coins come from fed.rng, and the models of clients are in their state.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2110.03294 bounds an expectation at a random one of all iterates")

    p: Annotated[UnitFraction | None, Meta(description="probability p of whole gradients (default: B/(B + d/m))")] = (
        None
    )

    def sample_gradients(self, d: Array) -> Array:
        """Return the mean over the coin: all samples once, or those of the mini-batch twice."""
        p = self.full_probability(float(np.mean(d)))
        return p * d + (1 - p) * 2 * super().sample_gradients(d)

    def init_client(self, f: Local) -> Any:
        return Client(f.zeros(), f.zeros(), f.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x - rate_at(self.gamma or server.gamma, fed) * server.g
        c = fed.sum(self.carry, x, self.coin(fed), to=fed.select(x), bits=self.bits(fed))
        return server._replace(x=x, g=server.g + c / fed.m)

    def first(self, f: Local, client: Any, x: Array) -> tuple[Any, Array]:
        v = f.grad(x)
        c = v if self.begin == "full" else self.contract(f, v)
        return client._replace(g=client.g + c, v=v), c

    def carry(self, f: Local, client: Client, x: Array, full: bool) -> tuple[Client, Array]:
        """Update v_i, add C(v_i − g_i) to g_i, and upload it."""
        v = f.grad(x) if full else client.v + self.change(self.batch(f), x, client.x)
        c = self.contract(f, v - client.g)
        return Client(client.g + c, v, f.xp.tile(x, (len(f), 1))), c

    def change(self, f: Local, x: Array, before: Array) -> Array:
        return f.grad(x) - f.grad(before)

    def coin(self, fed: Federation) -> bool:
        """Return whether this round uses full gradients."""
        return bool(fed.rng.random() < self.full_probability(fed.samples / fed.m))

    def full_probability(self, d: float) -> float:
        """Return p for d samples a client."""
        B = self.batch_size or d
        return self.p or B / (B + d)

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        p, left = self.full_probability(fed.samples / fed.m), self.error_factor(fed)
        A = (left / (1 - left)) ** 2
        noise = (1 - p) * float(fed.mean(self.noise))
        return float(1 / (np.mean(r) + np.sqrt(4 * A * np.mean(r * r) + 2 * (3 * A + 1 / p) * noise)))

    def noise(self, f: Local, client: Client) -> tuple[Client, Array]:
        """Return the bound of E‖∇f_B(x) − ∇f_B(y) − (∇f_i(x) − ∇f_i(y))‖² over ‖x − y‖²: (c,)."""
        d = f.samples[:, 0]
        B = f.xp.clip(d, None, self.batch_size or None)
        return client, f.lipschitz() ** 2 * d * (d - B) / (B * f.xp.clip(d - 1, 1, None))
