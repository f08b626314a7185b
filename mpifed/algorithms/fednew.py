"""FedNew, Algorithm 1 of A. Elgabli, C. B. Issaid, A. S. Bedi, K. Rajawat, M. Bennis, V. Aggarwal, "FedNew: A
communication-efficient and privacy-preserving Newton-type method for federated learning", arXiv:2206.08829 (2022)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, add_diagonal, packed_size, to_tune, unpack
from mpifed.compressors import Identity
from mpifed.extend import (
    Algorithm,
    Array,
    Compressor,
    Federation,
    Local,
    Participation,
    Requirement,
    Supports,
    Unsupported,
    Upload,
)


class Client(NamedTuple):
    x: Array  # (c, n) model, moved by what the server sends
    H: Array  # (c, n(n+1)/2) ∇²f_i of the last renewal, packed
    lam: Array  # (c, n) dual variables λ_i
    y: Array  # (c, n) own direction, as the server has it


class Server(NamedTuple):
    x: Array  # (n,) model
    y: Array  # (n,) direction, the mean of all y_i
    k: int  # rounds so far


class FedNew(Algorithm, tag="fednew"):
    """Newton's method whose direction comes from one ADMM pass a round, so that one vector goes up; all take part.

    y_i⁺ = (∇²f_i(x̂) + (α + ρ)I)⁻¹ (∇f_i(x) − λ_i + ρy);  y = mean of y_i⁺;  λ_i ← λ_i + ρ(y_i⁺ − y);  x⁺ = x − y.
    x̂ is the model of round 1 and of every round that ``period`` divides, or with ``period`` 0 the first model.
    Clients send C(y_i⁺ − y_i), and y_i ← y_i + C(·): with ``uniform`` for C this is Q-FedNew.
    Source: Algorithm 1; when Hessians are renewed as in the program of arXiv:2401.02734.
    """

    title = "FedNew"
    plot_style = PlotStyle("green", 1, 5)
    # y_i and λ_i of clients and the direction at the server come from one checkpoint; matrices are those of numpy.
    supports = Supports.REPEATED
    theorem = Unsupported(
        "that of arXiv:2206.08829 is about the limit, by its abstract, and no rate that a run could be held to"
    )

    rho: Annotated[float, to_tune("penalty ρ of the directions", gt=0)] = 0.1
    alpha: Annotated[float, Meta(gt=0, description="regularisation α of the Hessians")] = 0.1
    period: Annotated[int, Meta(ge=0, description="rounds from one renewal of Hessians to the next; 0: never")] = 1
    compressor: Annotated[Compressor, Meta(description="C, for changes of the directions")] = Identity()

    requires = (Requirement("hess"),)
    participation = Participation.ALL
    upload = Upload(
        content="compressed",
        exact={
            "up": "it compresses them itself: algorithm.compressor says how",
            "down": "clients move their models by the directions that they receive",
        },
    )

    def verify(self, selected: int) -> None:
        self.compressor.verify()

    def sample_gradients(self, d: Array) -> None:
        """Return None, because a Hessian is no sample gradient."""

    def message_size(self, n: int) -> tuple[float, float]:
        return n, self.compressor.numbers(n)

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), H=f.zeros(packed_size(f.n)), lam=f.zeros(), y=f.zeros())

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        return Server(x=x, y=0 * x, k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        k = server.k + 1
        renewed = k == 1 or (self.period and k % self.period == 0)
        method = self.renew if renewed else self.pull
        y = server.y + fed.mean(method, server.y, bits=self.compressor.bits(fed.n, fed.dtype.itemsize))
        return Server(server.x - y, y, k)

    def renew(self, f: Local, client: Client, y: Array) -> tuple[Client, Array]:
        """Compute a new Hessian, then act as ``pull``."""
        return self.pull(f, client._replace(H=f.packed_hess(client.x - y)), y)

    def pull(self, f: Local, client: Client, y: Array) -> tuple[Client, Array]:
        """Apply the last direction y to x and λ_i, and upload C(y_i⁺ − y_i)."""
        x = client.x - y
        lam = client.lam + self.rho * (client.y - y)
        H = unpack(client.H, f.n)
        add_diagonal(H, np.array(self.alpha + self.rho, H.dtype))
        y_new = np.linalg.solve(H, (f.grad(x) - lam + self.rho * y)[..., None])[..., 0]
        change = self.compressor.compress(y_new - client.y, lambda: f.rng)
        return Client(x, client.H, lam, client.y + change), change
