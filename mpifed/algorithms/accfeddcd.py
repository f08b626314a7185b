"""AccFedDCD, Algorithm 2 of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated learning",
arXiv:2201.11183 (2022)."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import DualMethod, PlotStyle, Theorem, UnitFraction
from mpifed.extend import Array, Federation, Local, Participation, Supports, Unsupported


class Client(NamedTuple):
    y: Array  # (c, n) dual variables
    z: Array  # (c, n) second sequence
    v: Array  # (c, n) points of the gradients
    w: Array  # (c, n) last local model


class Server(NamedTuple):
    x: Array  # (n,) model, of the w_i of the second selection
    alpha: float  # strong convexity α = min α_i
    beta: float  # smoothness β = max r_i
    share: float  # (τ − 1)/(N − 1)
    a: float  # a of Algorithm 2
    b: float  # b
    r: float  # r


class AccFedDCD(DualMethod, tag="accfeddcd"):
    """Accelerated FedDCD: three dual sequences, two selections of clients and two exchanges an iteration.

    v = (1 − a)y + a z, u = (a²z + b v)/(a² + b);  first selection: y⁺ = v − ŵ, others y⁺ = v;  second, gradients at v
    again: z⁺ = u − (a r/(a² + b)) ŵ, others z⁺ = u;  ŵ_i = eta α(w_i − mean of the selection);  r = (τ−1)/(N−1),
    a = √κ/(1/r + √κ), b = κ a r², κ = α/β.  Source: Algorithm 2; ŵ: feddcd.
    """

    title = "AccFedDCD"
    plot_style = PlotStyle("wine", 0, 1)
    # A round reads three sequences of each client and six numbers of the server.
    # α and β are exact maxima of data: no privacy.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.feddcd:accfeddcd")

    r: Annotated[UnitFraction | None, Meta(description="r (default: (τ−1)/(N−1))")] = None
    kappa: Annotated[UnitFraction | None, Meta(description="κ (default: α/β)")] = None
    participation = Participation.TWICE
    asynchronous = Unsupported("every round moves v_i of all clients, at which those under way solve (1)")

    def init_client(self, f: Local) -> Client:
        self.require_strong_convexity(f)
        return Client(y=f.zeros(), z=f.zeros(), v=f.zeros(), w=f.initial())

    def init_server(self, fed: Federation) -> Server:
        alpha, beta, share = self.constants(fed)
        r, kappa = self.r or share, self.kappa or alpha / beta
        a = np.sqrt(kappa) / (1 / r + np.sqrt(kappa))
        return Server(fed.initial(), alpha, beta, share, a=float(a), b=float(kappa * a * r**2), r=float(r))

    def round(self, fed: Federation, server: Server) -> Server:
        a = server.a
        b = server.b
        r = server.r
        eta = self.rate(fed)
        alpha = self.common_alpha(server)
        fed.call(self.extrapolate, a, b)  # lines 17–18, 26, 29
        first = self.select(fed, server)  # line 19
        server = server._replace(x=self.collect(fed, server, first))  # lines 20–22
        fed.call(self.step_y, server.x, eta * alpha, to=first)  # lines 23–28
        second = self.select(fed, server)  # line 31
        mean = self.collect(fed, server, second)  # lines 32–34
        fed.call(self.step_z, mean, eta * (alpha * a * r / (a * a + b)), to=second)  # lines 35–39
        return server._replace(x=self.output_model(fed, mean, second))  # line 42

    def extrapolate(self, f: Local, client: Client, a: float, b: float) -> tuple[Client, None]:
        """Compute v_i, and y_i and z_i as unselected clients keep them."""
        v = (1 - a) * client.y + a * client.z
        u = (a * a * client.z + b * v) / (a * a + b)
        return client._replace(v=v, y=v, z=u), None

    def solve(self, f: Local, client: Client, alpha: float, beta: float, share: float) -> tuple[Client, Any]:
        """Solve (1) at v_i and upload w_i."""
        w = self.solver.minimise(f, client.v, client.w, alpha, beta, share)
        return client._replace(w=w), self.weighted_model(f, w)

    def step_y(self, f: Local, client: Client, mean: Array, scale: float) -> tuple[Client, None]:
        return client._replace(y=client.y - self.dual_step(f, client.w, mean, scale)), None

    def step_z(self, f: Local, client: Client, mean: Array, scale: float) -> tuple[Client, None]:
        return client._replace(z=client.z - self.dual_step(f, client.w, mean, scale)), None
