"""Aug-DGM, the method of J. Xu, S. Zhu, Y. C. Soh, L. Xie, "Augmented distributed gradient methods for multi-agent
optimization under uncoordinated constant stepsizes", doi:10.1109/CDC.2015.7402509 (2015)."""

from typing import Annotated, NamedTuple

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    s: Array  # (c, n) estimate of the mean gradient
    g: Array  # (c, n) gradient at x


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class AugDGM(GraphAlgorithm, tag="aug-dgm"):
    """Gradient tracking that mixes new models and, in a second message, the estimates of the mean gradient.

    x_i⁺ = Σ_j W_ij (x_j − γs_j);  s_i⁺ = Σ_j W_ij (s_j + ∇f_j(x_j⁺) − ∇f_j(x_j)),  s_i = ∇f_i(x_i) at first. The second
    message waits for the first: a round is two exchanges. The mean of all s_i is that of all gradients in every round,
    also where W changes. By default γ = 1/(4 max r_i) (mpifed's choice).
    Source: the library decent_bench, for the paper, whose text was not at hand, with one γ for all nodes.
    """

    title = "Aug-DGM"
    plot_style = PlotStyle("sky", 2, 6)
    # Gradients of the round before are kept, so that the estimate of their mean goes on.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of doi:10.1109/CDC.2015.7402509 could not be read")

    gamma: Annotated[Rate | None, to_tune("step size γ (default: 1/(4 max r_i))")] = None

    upload = Upload(vectors=2)
    requires = (Requirement("lipschitz", unless=("gamma",)),)

    def init_client(self, f: Local) -> Client:
        g = f.grad(f.initial())
        return Client(x=f.initial(), s=g, g=g)

    def init_server(self, net: GraphFederation) -> Server:
        return Server(net.initial(), rate_at(self.gamma or 1 / float(4 * net.max(self.smoothness)), net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.descend, rate_at(self.gamma or server.gamma, net))
        net.mix("x", self.track)
        net.mix("s")
        return server

    def descend(self, f: Local, client: Client, gamma: float) -> tuple[Client, None]:
        return client._replace(x=client.x - gamma * client.s), None

    def track(self, f: Local, client: Client, mixed: Array) -> tuple[Client, None]:
        g = f.grad(mixed)
        return Client(x=mixed, s=client.s + g - client.g, g=g), None
