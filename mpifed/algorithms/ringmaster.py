"""Ringmaster ASGD, the method of A. Maranjyan, A. Tyurin, P. Richtárik, "Ringmaster ASGD: The first asynchronous SGD
with optimal time complexity", arXiv:2501.16168 (2025)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, PositiveInt, Rate, rate_at, to_tune
from mpifed.algorithms.rennala import ArrivingGradients
from mpifed.extend import Array, Federation, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ
    R: int  # delay threshold R


class Ringmaster(ArrivingGradients, tag="ringmaster"):
    """Asynchronous gradient steps that ignore gradients from models R or more steps old.

    When a gradient g = ∇f_i(x_s), begun s steps ago, arrives, x⁺ = x − γ g if s < R; otherwise it is ignored, and the
    server waits for the next one. Client i begins anew from the newest model. With ``stop`` clients do not finish
    what would be ignored: after R steps they drop it and begin anew. Where several arrive at once, the step is the mean
    of those used. A round is a step. Fast clients count for more, so with unlike f_i the model has their bias.
    By default γ = 1/(2RL) with L = max r_i.
    Source: both versions of the method, and γ for exact gradients, from memory; the paper has one f for all clients.
    """

    title = "Ringmaster"
    plot_style = PlotStyle("vermilion", 0, 6)
    # Gradients depend on the models that clients were sent; arrivals decide which are too old.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2501.16168 is about one f that all clients share")

    gamma: Annotated[Rate | None, to_tune("step size γ (default: 1/(2R max r_i))")] = None
    R: Annotated[PositiveInt | None, Meta(description="steps from which on a gradient is too old (default: m)")] = None
    stop: Annotated[bool, Meta(description="clients drop what is too old, in place of finishing it in vain")] = False

    upload = Upload(content="gradient", exact={"up": "clients that drop their work would have compressed it already"})

    def init_server(self, fed: Federation) -> Server:
        R = self.R or fed.m
        gamma = self.gamma or float(1 / (2 * R * fed.max(self.smoothness)))
        return Server(fed.initial(), rate_at(gamma, fed), R)

    def round(self, fed: Federation, server: Server) -> Server:
        if self.stop:
            fed.drop(server.R)
        used = 0
        while not used:
            fed.send(self.gradient, server.x, to=fed.select(server.x))
            arrived = fed.arrivals()
            recent = fed.staleness < server.R
            g = fed.sum(of=arrived, weights=recent)
            used = int(recent.sum())
        return server._replace(x=server.x - rate_at(self.gamma or server.gamma, fed) * g / used)
