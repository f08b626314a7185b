"""Aggregated L-BFGS, mpifed's quasi-Newton form of DIAG, the method of A. Mokhtari, M. Gürbüzbalaban, A. Ribeiro,
"Surpassing gradient descent provably: A cyclic incremental method with linear convergence rate", arXiv:1611.00347
(2018)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.lbfgs import lbfgs_direction, remember_pair
from mpifed.algorithms.parts import Client, PlotStyle, StepSize, rate_at
from mpifed.extend import Algorithm, Array, Federation, Local, Requirement, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    X: Array  # (m, n) model of the last reply of each client, 0 before the first one
    G: Array  # (m, n) its gradient there
    known: Array  # (m,) 1 for clients that have replied
    S: Array  # (memory, n) steps of the last pairs, the newest last; 0 where there is none yet
    Y: Array  # (memory, n) differences of their gradients
    gamma: float  # step size γ until there is a pair


class AggregatedLBFGS(Algorithm, tag="aggregated-lbfgs"):
    """A quasi-Newton method at the server, on the last gradient of each client; it needs no reply of all clients.

    The selected clients take x_i = x and send ∇f_i(x);  x⁺ = mean x_i − B mean ∇f_i(x_i) over all clients that have
    ever replied. B is the inverse Hessian of the two loops of L-BFGS over the last ``memory`` pairs of s and y + ds,
    where s and y are the changes in a round of mean x_i and mean ∇f_i(x_i), of clients known before, and d = damping/γ;
    B = γI until there is a pair. A pair is kept if ⟨s, y + ds⟩ is above 1e-8 of the product of their norms.
    The server keeps 2m vectors. By default γ = 1/max r_i.
    Source: the step of DIAG, arXiv:1611.00347, with B in place of a step size, and clients in any order; both are
    mpifed's choice. Its theorem is for B = γI and a cyclic order. Nothing is proved for this B, and no step is checked:
    with little curvature, or f_i that are not convex, the method may diverge. ``damping`` keeps B below (γ/damping)I.
    """

    title = "Aggregated L-BFGS"
    plot_style = PlotStyle("black", 6, 7)
    # The tables of models and gradients are state of the server.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:1611.00347 holds for one step size and a cyclic order of clients")

    memory: Annotated[int, Meta(ge=1, description="pairs of steps and differences of gradients")] = 10
    gamma: StepSize = None
    damping: Annotated[float, Meta(ge=0, description="curvature damping/γ that is added to that of the pairs")] = 1e-4

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    upload = Upload(content="gradient", single={})
    no_proximal_step = Unsupported("its steps are in the metric of past gradients, so they are no proximal steps")

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        gamma = rate_at(self.gamma or float(1 / fed.max(self.smoothness)), fed)
        table = np.zeros((fed.m, fed.n), x.dtype)
        pairs = np.zeros((self.memory, fed.n), x.dtype)
        return Server(x, table, table, np.zeros(fed.m, x.dtype), pairs, pairs, gamma)

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x
        S = server.S
        Y = server.Y
        gamma = rate_at(self.gamma or server.gamma, fed)
        selected = fed.select(x)
        ids = np.arange(fed.m) if selected is None else selected
        X = server.X.copy()
        G = server.G.copy()
        known = server.known.copy()
        G[ids] = fed.call(self.gradient, x, to=selected)
        X[ids] = x
        if known.any():  # of clients that reply for the first time no change is known
            s, y = (known @ (new - old) / known.sum() for new, old in ((X, server.X), (G, server.G)))
            S, Y = remember_pair(S, Y, s, y + self.damping / gamma * s)
        known[ids] = 1
        g = known @ G / known.sum()
        d = lbfgs_direction(S, Y, g) if Y.any() else -gamma * g
        return server._replace(x=known @ X / known.sum() + d, X=X, G=G, known=known, S=S, Y=Y)

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return ∇f_i."""
        return client, f.grad(x)
