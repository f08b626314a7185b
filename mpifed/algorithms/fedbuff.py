"""FedBuff, the method of J. Nguyen, K. Malik, H. Zhan, A. Yousefpour, M. Rabbat, M. Malek, D. Huba, "Federated learning
with buffered asynchronous aggregation", arXiv:2106.06639 (2022)."""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import SGD, Client, LocalEpochs, LocalOptimizer, PlotStyle, Rate, Server, rate_at, to_tune
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload


class FedBuff(LocalEpochs, tag="fedbuff"):
    """The server adds the mean change of the first uploads to its model; changes from old models count less.

    Δ_i = w_i − x_s by local gradient steps from w_i = x_s, the model that client i was sent s rounds ago;
    x⁺ = x + server_lr (1/c) Σ v(s) Δ_i over the c uploads that arrive: K = asynchronous.arrivals, or more where
    asynchronous.staleness waits for old ones too, fewer where fewer are under way. v(s) = 1/(1 + s)^a; with
    ``weight = "delay"`` it is m/max(m, s): with one local step and arrivals = 1 that is asynchronous SGD with
    delay-adaptive steps, in the manner of Koloskova et al. and of Mishchenko et al. (2022), from memory.
    Old uploads are not kept, so clients that arrive more often count for more, and with unlike f_i the model has their
    bias.
    Source: public accounts of the paper, whose text was not at hand, and Meta's simulator FLSim. There clients are
    drawn at random, here one that arrives begins anew; FLSim sums up, and divides the weights by that of a mean s.
    """

    title = "FedBuff"
    plot_style = PlotStyle("sky", 4, 2)
    # Changes under way are kept with the clients, and their ages follow from arrivals.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2106.06639 could not be read; by 2210.01161 it needs bounds of gradients")

    lr: Annotated[Rate, to_tune("step size of the local iterations")] = 0.01
    server_lr: Annotated[Rate, Meta(description="step size of the server")] = 1.0
    a: Annotated[float, Meta(ge=0, description="exponent of the weights 1/(1 + s)^a")] = 0.5
    weight: Annotated[
        Literal["power", "delay"], Meta(description="of an upload from s rounds ago: 1/(1 + s)^a, or m/max(m, s)")
    ] = "power"
    optimizer: LocalOptimizer = SGD()

    upload = Upload(content="change", averaged=True)
    asynchronous = True

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, to=fed.select(server.x))
        arrived = fed.arrivals()
        s = fed.staleness
        weights = (1 + s) ** -self.a if self.weight == "power" else fed.m / np.maximum(fed.m, s)
        change = fed.mean(of=arrived, weights=weights)
        return Server(x=server.x + rate_at(self.server_lr, fed) * change)

    def update(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Take local steps from the received model x, and upload the change."""
        w = f.point(x, self.optimizer.spans and self.iterations(), self.batch_size, epochs=self.epochs)
        memory = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, None, self.last_batch):
            lr = rate_at(self.lr, f, j, self.iterations())
            w, memory = self.optimizer.descend(batch, w, lr * has, memory)
        return client, f.array(w - x)
