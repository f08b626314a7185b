"""Local gradient descent, Algorithm 1 of A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of local GD on
heterogeneous data", arXiv:1909.04715 (2019)."""

from typing import ClassVar

from mpifed.algorithms.gd import Server
from mpifed.algorithms.parts import Client, LocalIterations, PlotStyle, StepSize, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, MeanEstimate, Requirement, Supports, Unsupported, Upload


class LocalGD(Algorithm, tag="local-gd"):
    """k0 full gradient steps of each client from the server's model, then the mean.

    w_i ← w_i − γ ∇f_i(w_i), k0 times from w_i = x;  x⁺ = mean of w_i.  By default γ = 1/max r_i.  With k0 > 1 its limit
    is not the minimiser of f: the error grows with γ(k0 − 1).  Source: Algorithm 1, which averages every k0 steps.
    """

    title = "Local GD"
    plot_style = PlotStyle("black", 2, 4)
    # A round reads x alone, without random numbers.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:1909.04715 bounds f at the mean of all iterates, which no model of a run is")

    gamma: StepSize = None
    k0: LocalIterations = 5

    refused: ClassVar[dict[str, str]] = {"optimizer": "it is plain gradient descent; fedavg takes optimisers"}
    requires = (Requirement("lipschitz", unless=("gamma",)),)
    mean_estimate = MeanEstimate.UNBIASED
    upload = Upload(one_mean={}, at_home={})

    def sample_gradients(self, d: Array) -> Array:
        return self.k0 * d

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), gamma=rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed))

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.descend, server.x, server.gamma, to=fed.select(server.x))
        return server._replace(x=fed.estimate(server.x, of=fed.arrivals()))

    def descend(self, f: Local, client: Client, x: Array, gamma: float) -> tuple[Client, Array]:
        w = f.point(x, self.k0)
        for j in range(self.k0):
            w = w - rate_at(self.gamma or gamma, f, j, self.k0) * f.grad(w)
        return client, f.array(w)
