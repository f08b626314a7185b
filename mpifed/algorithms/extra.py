"""EXTRA, Algorithm 1 of W. Shi, Q. Ling, G. Wu, W. Yin, "EXTRA: an exact first-order algorithm for decentralized
consensus optimization", arXiv:1404.6264 (2014)."""

from typing import NamedTuple

from mpifed.algorithms.parts import GraphStepSize, PlotStyle, rate_at
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) model
    u: Array  # (c, n) W̃x − γ∇f(x) of the round before


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class Extra(GraphAlgorithm, tag="extra"):
    """Decentralised gradient descent with a correction, so that nodes end at the minimiser itself with a constant step.

    x¹ = Wx⁰ − γ∇f(x⁰);  x^(k+2) = (I + W)x^(k+1) − W̃x^k − γ(∇f(x^(k+1)) − ∇f(x^k)),  W̃ = (I + W)/2.  A node keeps
    u = W̃x − γ∇f(x) of the round before, x⁰ at first. For convex f_i and γ < (1 + λ)/L, L = max r_i, λ the least
    eigenvalue of W; by default half of it. W, and γ by theory, must be the same in all rounds.
    Source: Algorithm 1, and Theorem 3.3 for γ. The mean of the squared residuals of the first k rounds falls like 1/k,
    Theorem 3.5; models converge linearly if f is strongly convex and γ small enough, Theorem 3.7.
    """

    title = "EXTRA"
    plot_style = PlotStyle("orange", 0, 3)
    # The correction is a sum over rounds, which u has; W is the same in all.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:1404.6264 bound norms of the models and duals of all nodes, which no model of a run is"
    )

    gamma: GraphStepSize = None

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    fixed_weights = "its correction takes the same weights in all rounds"

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), u=f.initial())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(
            net.initial(), rate_at(self.gamma or (1 + net.min_eigenvalue) / float(2 * net.max(self.smoothness)), net)
        )

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.mix("x", self.correct, rate_at(self.gamma or server.gamma, net))
        return server

    def correct(self, f: Local, client: Client, mixed: Array, gamma: float) -> tuple[Client, None]:
        step = gamma * f.grad(client.x)
        total = client.x + mixed
        return Client(x=total - step - client.u, u=total / 2 - step), None
