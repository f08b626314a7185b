"""NIDS without its proximal step, Algorithm 1 of Z. Li, W. Shi, M. Yan, "A decentralized proximal-gradient method with
network independent step-sizes and separated convergence rates", arXiv:1704.07807 (2017)."""

from typing import NamedTuple

from mpifed.algorithms.parts import PlotStyle, StepSize, rate_at
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) model, and what travels
    y: Array  # (c, n) x − γ∇f(x) of the round before


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class NIDS(GraphAlgorithm, tag="nids"):
    """Exact diffusion whose first step does not mix; its step size does not depend on the graph.

    x¹ = x⁰ − γ∇f(x⁰);  x^(k+2) = W̃(2x^(k+1) − x^k − γ(∇f(x^(k+1)) − ∇f(x^k))),  W̃ = (I + W)/2.  A node keeps
    y = x − γ∇f(x) of the round before. For constant γ < 2/L, L = max r_i; by default 1/L. W must be the same in all
    rounds. With this recursion and a first step that mixes it is fedgia-graph with H = "zero", k0 = 2 and mixes = 1.
    Source: Algorithm 1 with one γ for all nodes, c = 1/(2γ) and no nonsmooth term.
    """

    title = "NIDS"
    plot_style = PlotStyle("blue", 4, 3)
    # The correction is a sum over rounds, which y has; W is the same in all.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:1704.07807 bound norms of the models and duals of all nodes, which no model of a run is"
    )

    gamma: StepSize = None

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    fixed_weights = "its correction takes the same weights in all rounds"

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), y=f.initial())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(net.initial(), rate_at(self.gamma or 1 / float(net.max(self.smoothness)), net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.correct, rate_at(self.gamma or server.gamma, net))
        if net.round > 1:
            net.mix("x", self.halve)
        return server

    def correct(self, f: Local, client: Client, gamma: float) -> tuple[Client, None]:
        y = client.x - gamma * f.grad(client.x)
        return Client(x=client.x + y - client.y, y=y), None

    def halve(self, f: Local, client: Client, mixed: Array) -> tuple[Client, None]:
        return client._replace(x=(client.x + mixed) / 2), None
