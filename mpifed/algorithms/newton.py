"""Newton's method on pooled derivatives, Algorithm 9.5 of S. Boyd, L. Vandenberghe, "Convex optimization",
doi:10.1017/CBO9780511804441 (2004)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    REGULAR_HESSIAN,
    Client,
    PlotStyle,
    backtrack,
    newton_direction,
    packed_size,
    to_tune,
    unpack,
)
from mpifed.extend import Algorithm, Array, Federation, Local, Participation, Requirement, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    step: float  # step size s of the last round


class Newton(Algorithm, tag="newton"):
    """Damped Newton steps with the mean gradient g and the mean Hessian H of all clients; no selection is made.

    d = −H⁻¹ g;  x⁺ = x + s d, where s is the first of 1, shrink, shrink² … with f(x + s d) <= f(x) + c s ⟨g, d⟩.
    Matrices travel as n(n+1)/2 numbers; at each trial point all clients send f_i.
    Source: Algorithm 9.5 with the backtracking of Algorithm 9.2.
    """

    title = "Newton"
    plot_style = PlotStyle("green", 5, 2)
    # A round reads x alone. Hessians are computed in memory by the problem, and the server factorises them: no devices.
    supports = Supports.REPEATED
    theorem = Unsupported("that of section 9.5.3 needs a Lipschitz constant of ∇²f, which no problem tells")

    c: Annotated[float, to_tune("share of the slope by which f must go down", gt=0, lt=0.5)] = 0.49
    shrink: Annotated[float, Meta(gt=0, lt=1, description="factor from one trial step to the next")] = 0.5

    requires = (Requirement("hess", also=REGULAR_HESSIAN),)
    participation = Participation.ALL
    upload = Upload(exact=dict.fromkeys(("up", "down"), "fednl is Newton's method with compressed Hessians"))

    def sample_gradients(self, d: Array) -> None:
        """Return None: a Hessian is no sample gradient, and the number of trial points is not known."""

    def message_size(self, n: int) -> tuple[int, int]:
        """Return (down, up) with one trial point."""
        return 2 * n, 2 + n + packed_size(n)

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), step=0.0)

    def round(self, fed: Federation, server: Server) -> Server:
        x = server.x
        f, g, H = fed.mean(self.derivatives, x)
        d = newton_direction(unpack(H, fed.n), g, self.label(), x)
        step = backtrack(lambda s: fed.mean(self.value, x + s * d), f, g @ d, self.c, self.shrink)
        return Server(x + step * d, step)

    def derivatives(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, Array, Array]]:
        """Return f_i, ∇f_i and the upper triangle of ∇²f_i."""
        return client, (*f.value_grad(x), f.packed_hess(x))

    def value(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return f_i at a trial point."""
        return client, f.value(x)

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:
        return {"server_step": server.step}
