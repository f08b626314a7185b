"""Decentralised gradient descent, the method of A. Nedić, A. Ozdaglar, "Distributed subgradient methods for
multi-agent optimization", doi:10.1109/TAC.2008.2009515 (2009)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import GraphStepSize, PlotStyle, rate_at
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) model


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class DGD(GraphAlgorithm, tag="dgd"):
    """Each node mixes the models of its neighbours with its own, and takes a gradient step on its own objective.

    x_i⁺ = Σ_j W_ij x_j − γ∇f_i(x_i).  With order = "adapt-combine":  x_i⁺ = Σ_j W_ij (x_j − γ∇f_j(x_j)), with k0 steps
    in place of one where k0 > 1. Nodes end within O(γ) of each other and of the minimiser, not at it; the smaller γ,
    the closer and the slower. On the complete graph "adapt-combine" is local-gd: gradient descent where k0 = 1.
    By default γ = (1 + λ)/(2L) with L = max r_i and λ the least eigenvalue of W; for γ < (1 + λ)/L nodes stay bounded.
    Source: the method with a constant step, (4) of K. Yuan, Q. Ling, W. Yin, arXiv:1310.7063, whose Theorem 1 has the
    bound; of the order A. H. Sayed, arXiv:1205.4220 (diffusion).
    """

    title = "DGD"
    plot_style = PlotStyle("orange", 4, 2)
    # Nodes keep models alone, and W follows from seed and round.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:1310.7063 lead to a distance of order γ, and need the least value of every f_i"
    )

    gamma: GraphStepSize = None
    order: Annotated[
        Literal["combine-adapt", "adapt-combine"], Meta(description="mix first, or take the gradient step first")
    ] = "combine-adapt"
    k0: Annotated[int, Meta(ge=1, description='gradient steps before mixing, with order = "adapt-combine"')] = 1

    requires = (Requirement("lipschitz", unless=("gamma",)),)

    def __post_init__(self) -> None:
        if self.k0 > 1 and self.order == "combine-adapt":
            raise ValueError(f'k0 = {self.k0} needs order = "adapt-combine"')

    def sample_gradients(self, d: Array) -> Array:
        return self.k0 * d

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(
            net.initial(), rate_at(self.gamma or (1 + net.min_eigenvalue) / float(2 * net.max(self.smoothness)), net)
        )

    def round(self, net: GraphFederation, server: Server) -> Server:
        if self.order == "combine-adapt":
            net.mix("x", self.combine, rate_at(self.gamma or server.gamma, net))
        else:
            net.local(self.adapt, server.gamma)
            net.mix("x")
        return server

    def combine(self, f: Local, client: Client, mixed: Array, gamma: float) -> tuple[Client, None]:
        return Client(x=mixed - gamma * f.grad(client.x)), None

    def adapt(self, f: Local, client: Client, gamma: float) -> tuple[Client, None]:
        x = client.x
        for j in range(self.k0):
            x = x - rate_at(self.gamma or gamma, f, j, self.k0) * f.grad(x)
        return Client(x=x), None
