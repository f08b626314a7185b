"""FedNS, Algorithm 1 of J. Li, Y. Liu, W. Wang, H. Wu, W. Wang, "FedNS: A fast sketching Newton-type algorithm for
federated learning", arXiv:2401.02734 (2024)."""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed import RunError
from mpifed.algorithms.parts import (
    REGULAR_HESSIAN,
    Client,
    PlotStyle,
    Rate,
    Server,
    add_diagonal,
    is_regular,
    newton_direction,
    pack,
    rate_at,
    to_tune,
    unpack,
)
from mpifed.extend import Algorithm, Array, Federation, Local, Participation, Requirement, Supports, Unsupported, Upload

ENOUGH = 4  # rows of all sketches per coefficient; with half as many, steps are twice too long


class FedNS(Algorithm, tag="fedns"):
    """Newton's method with sketched Hessians: k rows of n numbers go up in place of a matrix; all take part.

    B_i = S_i (∇²f_i(x) − α_i I)^{1/2}, with k × n entries of S_i drawn from N(0, 1/k) in every round;
    x⁺ = x − μ (mean of B_iᵀB_i + α_i I)⁻¹ mean ∇f_i(x).  α_i is the strong convexity that the problem knows of f_i,
    that of its regulariser, which needs no sketch, or 0 with ``regulariser`` "inside". Any square root gives B_iᵀB_i
    the same law, so the symmetric one stands for that over the samples.
    Source: public accounts of Algorithm 1, whose text was not at hand, with Gaussian sketches.
    """

    title = "FedNS"
    plot_style = PlotStyle("green", 6, 6)
    # Sketches come from f.rng, and a round reads x alone; roots of matrices are computed by numpy: no devices.
    supports = Supports.REPEATED
    theorem = Unsupported("those of arXiv:2401.02734 could not be read")

    k: Annotated[int, Meta(ge=1, description="rows k of a sketch")] = 10
    mu: Annotated[Rate, to_tune("step size μ")] = 1.0
    regulariser: Annotated[
        Literal["outside", "inside"], Meta(description="whether α_i I is added at the server or sketched too")
    ] = "outside"

    requires = (Requirement("hess", also=REGULAR_HESSIAN),)
    participation = Participation.ALL
    upload = Upload(
        content="compressed", exact=dict.fromkeys(("up", "down"), "its sketches are short messages already")
    )

    def sample_gradients(self, d: Array) -> None:
        """Return None, because a Hessian is no sample gradient."""

    def message_size(self, n: int) -> tuple[int, int]:
        return n, (self.k + 1) * n

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        # clients upload B_i; the sums on the way are those of the matrices that the server would make of them
        bits = 8 * fed.dtype.itemsize * (self.k + 1) * fed.n
        g, H = fed.mean(self.sketch, server.x, bits=bits)
        H = unpack(H, fed.n)
        # with few rows the mean is singular, or its inverse so large that steps are too long, for any data
        if self.k * fed.m < ENOUGH * fed.n and not is_regular(H):
            enough = -(-ENOUGH * fed.n // fed.m)
            raise RunError(
                f"fedns finds no step: algorithm.k = {self.k} rows from each of {fed.m} clients are {self.k * fed.m}, "
                f"too few for {fed.n} coefficients: set algorithm.k = {enough}, so that they are {ENOUGH} for each"
            )
        return Server(server.x + rate_at(self.mu, fed) * newton_direction(H, g, self.label(), server.x))

    def sketch(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, Array]]:
        """Return ∇f_i and the packed B_iᵀB_i + α_i I."""
        H = f.hess(x)
        alpha = f.zeros(1)
        if self.regulariser == "outside" and f.problem.has("convexity"):
            alpha = f.convexity()[:, None].astype(H.dtype)
        add_diagonal(H, -alpha)
        values, Q = np.linalg.eigh(H)
        # an eigenvalue that is 0 but for rounding would have a root far above rounding
        smallest = f.n * np.finfo(H.dtype).eps * values[:, -1:]
        root = (Q * np.sqrt(np.where(values > smallest, values, 0))[:, None, :]) @ Q.mT
        S = np.stack([rng.standard_normal((self.k, f.n)) for rng in f.rng]) / np.sqrt(self.k)
        B = S.astype(H.dtype) @ root
        H = B.mT @ B
        add_diagonal(H, alpha)
        return client, (f.grad(x), pack(H))
