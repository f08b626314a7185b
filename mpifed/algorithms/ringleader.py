"""Ringleader ASGD, the method of A. Maranjyan, P. Richtárik, "Ringleader ASGD: The first asynchronous SGD with optimal
time complexity under data heterogeneity", arXiv:2509.22860 (2025)."""

from typing import Annotated, NamedTuple

import numpy as np

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.algorithms.rennala import ArrivingGradients
from mpifed.extend import Array, Federation, Participation, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ
    G: Array  # (m, n) sums of early gradients of each client
    b: Array  # (m,) number of gradients in each sum


class Ringleader(ArrivingGradients, tag="ringleader"):
    """Asynchronous gradient steps along the mean of a table of gradients, one step for each client in a round.

    The table has sums G_i of b_i gradients. At first the server only collects, until every client has one. Then each
    client, in the order of arrivals, has its turn once: its gradient goes into G_i, and x⁺ = x − γ (1/m) Σ G_i/b_i; the
    first turn is that of the last to come while the server collected. What clients send after their turn is kept for
    the table of the next round. A client begins anew from the newest model as soon as it has sent a gradient, and no
    gradient is in vain. Those that arrive at once have their turn together.
    By default γ = 1/(2mL) with L = max r_i.
    Source: the method from memory; γ is a choice of mpifed.
    """

    title = "Ringleader"
    plot_style = PlotStyle("blue", 6, 6)
    # The table is state of the server, and arrivals decide what enters it.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2509.22860 could not be read")

    gamma: Annotated[Rate | None, to_tune("step size γ (default: 1/(2m max r_i))")] = None

    participation = Participation.ALL
    upload = Upload(content="gradient", single={})

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        gamma = rate_at(self.gamma or float(1 / (2 * fed.m * fed.max(self.smoothness))), fed)
        return Server(x, gamma, G=np.zeros((fed.m, fed.n), x.dtype), b=np.zeros(fed.m, x.dtype))

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x
        gamma = rate_at(self.gamma or server.gamma, fed)
        G, b = server.G.copy(), server.b.copy()
        later = Server(x, server.gamma, np.zeros_like(G), np.zeros_like(b))
        had_turn = np.zeros(fed.m, bool)
        while not had_turn.all():
            fed.send(self.gradient, x, to=fed.free)
            ids = fed.arrivals()
            arrived = fed.mask(ids)
            g = np.zeros_like(G)
            g[arrived] = fed.call(of=ids)
            late, due = arrived & had_turn, arrived & ~had_turn
            later.G[late] += g[late]
            later.b[late] += 1
            G[due] += g[due]
            b[due] += 1
            if b.all() and due.any():
                x = x - gamma * (G / b[:, None]).mean(axis=0)
                had_turn |= due
        return later._replace(x=x)
