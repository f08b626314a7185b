"""Accelerated gradient descent, the method of A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm
for linear inverse problems", doi:10.1137/080716542 (2009).

With strong convexity that of section 2.2.1 of Y. Nesterov's lectures, doi:10.1007/978-1-4419-8853-9 (2004)."""

import math
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed import UserError
from mpifed.algorithms.parts import Client, PlotStyle, StepSize, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, Participation, Requirement, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    before: Array  # (n,) model of the round before
    t: float  # t_k of FISTA, 0 at the start
    gamma: float  # step size γ of the last round
    beta: float  # constant momentum β, 0 where it follows from t_k


class Nesterov(Algorithm, tag="nesterov"):
    """A gradient step of all clients from a point ahead of the model.

    y = x + β(x − x_before);  x⁺ = y − γ mean ∇f_i(y).  By default γ = 1/L with L = max r_i.
    Without ``mu`` β = (t_{k−1} − 1)/t_k, t_1 = 1, t_{k+1} = (1 + √(1 + 4t_k²))/2; with it
    β = (1 − √(γμ))/(1 + √(γμ)), with the first γ of a schedule.  With
    ``objective.l1`` or ``l2``: x⁺ = prox_{γh}(y − γ mean ∇f_i(y)).
    Source: FISTA with constant step size; with ``mu`` the constant step scheme III of Nesterov (2004).
    """

    title = "Nesterov"
    plot_style = PlotStyle("black", 1, 6)
    # A round reads the last two models and t_k, and its mean runs along one tree.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "mpifed has not written out Theorem 4.4 of doi:10.1137/080716542, f − f* <= 2L‖x⁰ − x*‖²/(k + 1)²"
    )

    gamma: StepSize = None
    mu: Annotated[
        Annotated[float, Meta(ge=0)] | Literal["mean"],
        Meta(description='strong convexity μ of f for a constant momentum; "mean": that of the clients; 0: none'),
    ] = 0.0

    requires = (Requirement("lipschitz", unless=("gamma",)), Requirement("convexity", when={"mu": "mean"}))
    participation = Participation.ALL
    upload = Upload(content="gradient", one_mean={})

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        gamma = rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed)
        mu = float(fed.mean(self.curvature)) if self.mu == "mean" else self.mu
        root = math.sqrt(gamma * mu)
        if root > 1:
            raise UserError(f"algorithm.mu = {self.mu} is wrong: it must be at most 1/γ, which is {1 / gamma:.3g}")
        # beta = 0 means that it follows from t_k, so a constant momentum of 0 (γμ = 1) is kept above 0
        return Server(x, x, 0.0, gamma, max((1 - root) / (1 + root), 1e-300) if root else 0.0)

    def round(self, fed: Federation, server: Server) -> Server:
        t = (1 + math.sqrt(1 + 4 * server.t**2)) / 2
        beta = server.beta or (server.t - 1) / t
        y = server.x + beta * (server.x - server.before)
        g = fed.mean(self.gradient, y)
        gamma = rate_at(self.gamma or server.gamma, fed)
        return server._replace(x=y - gamma * g, before=server.x, t=t, gamma=gamma)

    def proximal_step(self, server: Server, m: int) -> float:
        """Return γ: with h the round is x⁺ = prox_{γh}(y − γ mean ∇f_i(y)), FISTA."""
        return server.gamma

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        return client, f.grad(x)

    def curvature(self, f: Local, client: Client) -> tuple[Client, Array]:
        """Return α_i: (c,)."""
        return client, f.convexity()
