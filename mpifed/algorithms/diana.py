"""DIANA, Algorithm 1 of K. Mishchenko, E. Gorbunov, M. Takáč, P. Richtárik, "Distributed learning with compressed
gradient differences", arXiv:1901.09269 (2019)."""

from typing import NamedTuple

import numpy as np

from mpifed.algorithms.parts import COMPRESSED_UPLOAD, CompressedGradients, PlotStyle, rate_at
from mpifed.extend import Array, Federation, Local, Supports, Unsupported


class Client(NamedTuple):
    h: Array  # (c, n) shifts h_i, which learn ∇f_i at the optimum


class Server(NamedTuple):
    x: Array  # (n,) model
    h: Array  # (n,) mean of all h_i
    gamma: float  # step size γ


class Diana(CompressedGradients, tag="diana"):
    """Clients upload their gradient less a shift, compressed without bias; the shift learns the gradient.

    m_i = C(∇f_i(x) − h_i);  x⁺ = x − γ(h + mean m_i);  h_i ← h_i + α m_i,  h = mean of all h_i, from 0;  α = 1/(1 + ω).
    By default γ = 1/((1 + 6ω/m) max r_i), with (1 + ω)m/|S| − 1 in place of ω where |S| < m clients are selected
    (mpifed's choice).  Source: Algorithm 1 without momentum and regulariser, for any unbiased C as
    in E. Gorbunov, F. Hanzely, P. Richtárik, "A unified theory of SGD", arXiv:1905.11261 (2019), which has this γ.
    """

    title = "DIANA"
    plot_style = PlotStyle("purple", 1, 2)
    # Shifts learn from what was sent, so that server and clients never disagree after a checkpoint; C draws from f.rng.
    supports = Supports.REPEATED | Supports.DEVICES
    upload = COMPRESSED_UPLOAD
    theorem = Unsupported("that of arXiv:1905.11261 bounds an expectation over draws, of which a run is a single one")

    def init_client(self, f: Local) -> Client:
        return Client(h=f.zeros())

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x, h=0 * x, gamma=self.rate(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        selected = fed.select(server.x)
        mean = fed.mean(self.difference, server.x, to=selected, bits=self.bits(fed))
        x = server.x - rate_at(self.gamma or server.gamma, fed) * (server.h + mean)
        share = fed.fraction(selected)
        return server._replace(x=x, h=server.h + self.alpha(fed.n) * share * mean)

    def difference(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return the new shift and the upload m_i."""
        m = self.compress(f, f.grad(x) - client.h)
        return Client(h=client.h + self.alpha(f.n) * m), m

    def alpha(self, n: int) -> float:
        """Return the step size α of the shifts."""
        return 1 / (1 + (self.compressor.omega(n) or 0))

    def theory_gamma(self, fed: Federation, r: Array) -> float:
        return float(1 / ((1 + 6 * self.total_omega(fed) / fed.m) * np.max(r)))
