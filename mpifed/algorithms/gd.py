"""Distributed gradient descent, Algorithm 1 of A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of local GD on
heterogeneous data", arXiv:1909.04715 (2019)."""

from typing import NamedTuple

from mpifed.algorithms.parts import Client, PlotStyle, StepSize, Theorem, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, MeanEstimate, Requirement, Supports, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ of the last round


class GD(Algorithm, tag="gd"):
    """One gradient step with the mean gradient of the selected clients.

    x⁺ = x − γ mean ∇f_i(x).  By default γ = 1/L with L = max r_i, which bounds the curvature of every mean of f_i.
    With ``objective.l1`` or ``l2``: x⁺ = prox_{γh}(x − γ mean ∇f_i(x)), ISTA of Beck and Teboulle (2009).
    Source: Algorithm 1 with an average after every step.
    """

    title = "GD"
    plot_style = PlotStyle("black", 0, 3)
    # A round reads x alone, and its mean runs along one tree.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.gradient_descent:gd")

    gamma: StepSize = None

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    mean_estimate = MeanEstimate.UNBIASED
    upload = Upload(content="gradient", one_mean={})

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed))

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.gradient, server.x, to=fed.select(server.x))
        g = fed.estimate(0.0, of=fed.arrivals())
        gamma = rate_at(self.gamma or server.gamma, fed)
        return Server(x=server.x - gamma * g, gamma=gamma)

    def proximal_step(self, server: Server, m: int) -> float:
        """Return γ: with h the round is x⁺ = prox_{γh}(x − γ mean ∇f_i(x)), proximal gradient descent or ISTA."""
        return server.gamma

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        return client, f.grad(x)
