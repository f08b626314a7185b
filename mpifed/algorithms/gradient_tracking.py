"""Gradient tracking, the method of G. Qu, N. Li, "Harnessing smoothness to accelerate distributed optimization",
arXiv:1605.07112 (2016)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    s: Array  # (c, n) estimate of the mean gradient
    g: Array  # (c, n) gradient at x


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class GradientTracking(GraphAlgorithm, tag="gradient-tracking"):
    """Each node steps along an estimate of the mean gradient, which it mixes as it does its model; it is exact.

    x_i⁺ = Σ_j W_ij x_j − γs_i;  s_i⁺ = Σ_j W_ij s_j + ∇f_i(x_i⁺) − ∇f_i(x_i),  s_i = ∇f_i(x_i) at first. The mean of
    all s_i is that of all gradients in every round, also where W changes, so that nodes end at the minimiser. With
    order = "adapt-combine":  x_i⁺ = Σ_j W_ij (x_j − γs_j). Two vectors travel along each edge. By default
    γ = (1 + λ)²/(4L), L = max r_i, λ the least eigenvalue of W: half of the bound for quadratics of equal curvature.
    Source: public programs for the paper, of which only the abstract was at hand; with changing W: Algorithm 1 of
    A. Nedić, A. Olshevsky, W. Shi, arXiv:1607.03218 (DIGing); of the order P. Di Lorenzo, G. Scutari, arXiv:1602.00591.
    """

    title = "Gradient tracking"
    plot_style = PlotStyle("orange", 2, 4)
    # Gradients of the round before are kept, so that the estimate of their mean goes on.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:1605.07112 could not be read; that of 1607.03218 asks for γ ~ 1/(L√(mκ))")

    gamma: Annotated[Rate | None, to_tune("step size γ (default: (1 + λ)²/(4 max r_i))")] = None

    order: Annotated[
        Literal["combine-adapt", "adapt-combine"], Meta(description="mix first, or take the step first")
    ] = "combine-adapt"

    upload = Upload(vectors=2)
    requires = (Requirement("lipschitz", unless=("gamma",)),)

    def init_client(self, f: Local) -> Client:
        g = f.grad(f.initial())
        return Client(x=f.initial(), s=g, g=g)

    def init_server(self, net: GraphFederation) -> Server:
        gamma = self.gamma or (1 + net.min_eigenvalue) ** 2 / float(4 * net.max(self.smoothness))
        return Server(net.initial(), rate_at(gamma, net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.mix(("x", "s"), self.track, rate_at(self.gamma or server.gamma, net))
        return server

    def track(self, f: Local, client: Client, x: Array, s: Array, gamma: float) -> tuple[Client, None]:
        x = x - gamma * (client.s if self.order == "combine-adapt" else s)
        g = f.grad(x)
        return Client(x=x, s=s + g - client.g, g=g), None
