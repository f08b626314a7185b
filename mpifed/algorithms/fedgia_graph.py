"""FedGiA whose nodes are servers of their neighbourhoods, Algorithm 1 of S. Zhou, G. Y. Li, "FedGiA: An efficient
hybrid algorithm for federated learning", arXiv:2205.01438 (2022)."""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import METRIC_REQUIRES, LocalIterations, MetricChoice, PlotStyle, invert_metric, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Participation, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) the node's copy of the server's model, and what travels
    pi: Array  # (c, n) dual variables
    z: Array  # (c, n) upload of FedGiA


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    sigma: float  # penalty


class FedGiAGraph(GraphAlgorithm, tag="fedgia-graph"):
    """Selected nodes take k0 steps of inexact ADMM with one gradient, the others one gradient step, without a server.

    x_i ← Σ_j (W²)_ij (x_j + z_j⁺ − z_j), where z_j⁺ is (14) or (17) of fedgia at x_j in place of the server's model.
    With the same W in all rounds it is ADMM for x_i = y_j, j a neighbour of i or i itself, with y = W(x + z⁺ − z) in
    place of the server's mean; so W is mixed with twice. Where edges are lost it is not, and nothing is claimed. On the
    complete graph it is fedgia. With H = "zero" and k0 > 1, or no node selected, it is exact diffusion with W² and the
    step 1/(t max r_i), stable for t > 1/2. Source: docs/studies/graph-methods.md.
    """

    title = "FedGiA, graph"
    plot_style = PlotStyle("blue", 1, 2)
    # Copies, duals and uploads of nodes are state; W follows from seed and round.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of FedGiA take all gradients at one model, and nodes have one each")

    k0: LocalIterations = 10
    H: MetricChoice = "diagonal"
    t: Annotated[float, to_tune("σ = t·max r_i/m", gt=0)] = 1.0
    mixes: Annotated[int, Meta(ge=1, description="mixes a round; an odd number needs eigenvalues of W above −1/3")] = 2
    average: Annotated[Literal["tracked", "plain"], Meta(description="exact, or W z as the mean")] = "tracked"

    requires = METRIC_REQUIRES
    participation = Participation.SELECTED_AND_ALL

    def message_size(self, n: int) -> tuple[float, float]:
        return self.mixes * n, self.mixes * n

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), pi=f.zeros(), z=f.initial())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(net.initial(), self.t * float(net.max(self.smoothness)) / net.m)

    def round(self, net: GraphFederation, server: Server) -> Server:
        selected = net.mask(net.select(server.x))
        net.local(self.iterate, server.sigma, to=np.flatnonzero(selected))
        net.local(self.descend, server.sigma, to=np.flatnonzero(~selected))
        for _ in range(self.mixes):
            net.mix("x")
        return server

    def iterate(self, f: Local, client: Client, sigma: float) -> tuple[Client, None]:
        """Apply (12)–(14) k0 times."""
        g = f.grad(client.x) / f.m
        pi = client.pi
        solve = invert_metric(f, self.H, sigma)
        for _ in range(self.k0):
            step = -solve(g + pi)  # (12)
            pi = pi + sigma * step  # (13)
        return self.next_state(client, pi, client.x + step + pi / sigma)  # (14)

    def descend(self, f: Local, client: Client, sigma: float) -> tuple[Client, None]:
        """Apply (15)–(17)."""
        g = f.grad(client.x) / f.m
        return self.next_state(client, -g, client.x - g / sigma)

    def next_state(self, client: Client, pi: Array, z: Array) -> tuple[Client, None]:
        return Client(z if self.average == "plain" else client.x + (z - client.z), pi, z), None
