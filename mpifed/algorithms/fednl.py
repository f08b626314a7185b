"""FedNL, Algorithms 1 and 3 of M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods
applicable to federated learning", arXiv:2106.02969 (2022)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    REGULAR_HESSIAN,
    LearnedHessians,
    PlotStyle,
    backtrack,
    frobenius,
    packed_size,
    rate_at,
)
from mpifed.extend import Array, Federation, Local, Participation, Requirement, Supports, Unsupported


class Client(NamedTuple):
    H: Array  # (c, n(n+1)/2) server's estimate of ∇²f_i, packed


class Server(NamedTuple):
    x: Array  # (n,) model
    H: Array  # (n(n+1)/2,) mean of all H_i, packed
    mu: float  # μ of option A
    step: float  # step size s of the last round


class FedNL(LearnedHessians, tag="fednl"):
    """Newton's method with Hessians that the server learns from compressed differences; all clients take part.

    They send ∇f_i(x), S_i = C(∇²f_i(x) − H_i) and l_i = ‖∇²f_i(x) − H_i‖_F;  H_i ← H_i + αS_i.
    d = −[H + l I]⁻¹ ∇f(x) (option B), or with H projected onto the matrices ⪰ μI in place of H + l I (option A);
    x ← x + s d with s = 1, or with line search the first s of 1, shrink, shrink² … with
    f(x + s d) <= f(x) + c s ⟨∇f(x), d⟩;  H ← H + α(1/m)Σ S_i.  l is the mean of all l_i, μ that of all α_i.
    Top-k takes the first of equal entries; on softmax some are equal but for rounding, which then decides.
    H_i⁰ = ∇²f_i(x⁰) travels whole before the first round, and is charged.
    Source: Algorithm 1, whose option 1 is A and 2 is B; with line search Algorithm 3.
    """

    title = "FedNL"
    plot_style = PlotStyle("green", 7, 3)
    # The H_i of clients and their mean come from one checkpoint; packed matrices are those of numpy: no devices.
    supports = Supports.REPEATED
    theorem = Unsupported(
        "those of arXiv:2106.02969 hold near x*, in a ball of which they need Lipschitz constants of ∇²f_i"
    )

    option: Annotated[Literal["A", "B"], Meta(description="A: project H onto the matrices ⪰ μI; B: add l I")] = "B"
    line_search: Annotated[
        bool, Meta(description="shorten steps until f falls enough (FedNL-LS)", extra={"safeguard": True})
    ] = False
    c: Annotated[float, Meta(gt=0, lt=0.5, description="line search: share of the slope by which f must fall")] = 0.49
    shrink: Annotated[float, Meta(gt=0, lt=1, description="line search: factor of the step after a failure")] = 0.5

    requires = (Requirement("hess", also=REGULAR_HESSIAN), Requirement("convexity", when={"option": "A"}))
    participation = Participation.ALL

    def init_client(self, f: Local) -> Client:
        return Client(H=f.zeros(packed_size(f.n)))

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        mu = self.strong_convexity(fed) if self.option == "A" else 0.0
        return Server(x=x, H=fed.mean(self.first, x, charge=True), mu=mu, step=0.0)

    def round(self, fed: Federation, server: Server) -> Server:
        x, H = server.x, server.H
        g, S, l, *f = fed.mean(self.learn, x, bits=self.bits(fed, fed.n + 1 + self.line_search))
        d = self.step(H, g, l, x) if self.option == "B" else self.projected_step(H, g, server.mu, x)
        step = 1.0
        if self.line_search:
            step = backtrack(lambda s: fed.mean(self.value, x + s * d), f[0], g @ d, self.c, self.shrink)
        return server._replace(x=x + step * d, H=H + rate_at(self.rate(fed.n), fed) * S, step=step)

    def learn(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, ...]]:
        """Upload the gradient, C(D) and ‖D‖_F of D = ∇²f_i − H_i; with line search f_i(x) too."""
        value, g = f.value_grad(x) if self.line_search else (None, f.grad(x))
        D, S, H = self.learn_hessian(f, client.H, x)
        return Client(H), (g, S, frobenius(D, f.n), *([] if value is None else [value]))

    def value(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return f_i at a point of the line search."""
        return client, f.value(x)

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:
        return {"server_step": server.step} if self.line_search else {}
