"""FedNL-PP, Algorithm 2 of M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods
applicable to federated learning", arXiv:2106.02969 (2022)."""

from typing import NamedTuple

import numpy as np

from mpifed.algorithms.parts import REGULAR_HESSIAN, LearnedHessians, PlotStyle, frobenius, packed_size, rate_at, unpack
from mpifed.extend import Array, Federation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    H: Array  # (c, n(n+1)/2) server's estimate of ∇²f_i, packed
    l: Array  # (c,) ‖H_i − ∇²f_i(w_i)‖_F at the last model w_i of this client
    g: Array  # (c, n) (H_i + l_i I)w_i − ∇f_i(w_i)


class Server(NamedTuple):
    x: Array  # (n,) model
    H: Array  # (n(n+1)/2,) mean of all H_i, packed
    l: float  # mean of all l_i
    g: Array  # (n,) mean of all g_i


class FedNLPP(LearnedHessians, tag="fednl-pp"):
    """FedNL with partial participation: in a round only the selected clients compute and send.

    x = [H + l I]⁻¹ g;  the selected clients take w_i = x, H_i ← H_i + αC(∇²f_i(w_i) − H_i),
    l_i = ‖H_i − ∇²f_i(w_i)‖_F and g_i = (H_i + l_i I)w_i − ∇f_i(w_i), and send C(·) and the changes of l_i and g_i;
    the server keeps H, l and g, the means over all clients. H_i⁰ = ∇²f_i(x⁰) and g_i⁰ travel whole before the first
    round, and are charged.  Source: Algorithm 2.
    """

    title = "FedNL-PP"
    plot_style = PlotStyle("green", 3, 4)
    # As fednl; the server's means hold the last uploads of clients that rest.
    supports = Supports.REPEATED
    theorem = Unsupported("those of arXiv:2106.02969 hold near x*, as those of fednl")

    requires = (Requirement("hess", also=REGULAR_HESSIAN),)

    def init_client(self, f: Local) -> Client:
        return Client(H=f.zeros(packed_size(f.n)), l=f.zeros(1)[:, 0], g=f.zeros())

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        H, g = fed.mean(self.first, x, charge=True)
        return Server(x=x, H=H, l=0.0, g=g)

    def first(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, Array]]:
        """Return H_i⁰ and g_i⁰; l_i⁰ is 0."""
        H = f.packed_hess(x)
        g = np.matvec(unpack(H, f.n), x) - f.grad(x)
        return Client(H, client.l, g), (H, g)

    def round(self, fed: Federation, server: Server) -> Server:
        _, H, l, g = server
        x = -self.step(H, g, l, server.x)
        S, dl, dg = fed.sum(self.learn, x, to=fed.select(x), bits=self.bits(fed, fed.n + 1))
        return Server(x, H + rate_at(self.rate(fed.n), fed) / fed.m * S, l + float(dl) / fed.m, g + dg / fed.m)

    def learn(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, Array, Array]]:
        """Upload the compressed difference, and the changes of l_i and g_i."""
        D, S, H = self.learn_hessian(f, client.H, x)
        l = frobenius(D - (H - client.H), f.n)
        g = np.matvec(unpack(H, f.n), x) + l[:, None] * x - f.grad(x)
        return Client(H, l, g), (S, l - client.l, g - client.g)
