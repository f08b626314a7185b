"""FedDCD, Algorithm 1 of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated learning",
arXiv:2201.11183 (2022)."""

from typing import Any, NamedTuple

from mpifed.algorithms.parts import DualMethod, PlotStyle, Theorem
from mpifed.extend import Array, Federation, Local, Supports


class Client(NamedTuple):
    y: Array  # (c, n) dual variables
    w: Array  # (c, n) last local model


class Server(NamedTuple):
    x: Array  # (n,) model, of the w_i of the round
    alpha: float  # strong convexity α = min α_i
    beta: float  # smoothness β = max r_i
    share: float  # (τ − 1)/(N − 1)


class FedDCD(DualMethod, tag="feddcd"):
    """Dual coordinate descent: selected clients upload the minimiser of their tilted objective, the mean comes back.

    w_i = argmin f_i(w) − ⟨y_i, w⟩;  ŵ_i = α(w_i − mean of the selected);  y_i ← y_i − eta ŵ_i, so that Σ y_i = 0 stays.
    The model is the mean of the round's w_i. Strongly convex f_i are needed: α = min α_i. An iteration is one exchange:
    w_i up, the mean down.  Source: (1), (2), Algorithm 1, Λ = I/α; inexact oracle: section 5.

    In an asynchronous run nothing is stale: w_i depends on y_i alone, which moves only when client i takes part. Those
    that arrive are one more law of selection, so Σ y_i = 0 stays and the dual objective falls with exact w_i.
    """

    title = "FedDCD"
    plot_style = PlotStyle("wine", 7)
    # Σ y_i = 0 holds to rounding when ranks die: all duals go back to the checkpoint together.
    # α and β are exact extremes of data: no privacy.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.feddcd:feddcd", delayed=True)

    asynchronous = True

    def init_client(self, f: Local) -> Client:
        self.require_strong_convexity(f)
        return Client(y=f.zeros(), w=f.initial())

    def init_server(self, fed: Federation) -> Server:
        return Server(fed.initial(), *self.constants(fed))

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.solve, server.alpha, server.beta, server.share, to=self.select(fed, server))  # lines 4–5
        arrived = fed.arrivals()
        mean = self.average(fed, arrived)  # line 6
        fed.call(self.ascend, mean, self.rate(fed) * self.common_alpha(server), to=arrived)  # lines 7–12
        return server._replace(x=self.output_model(fed, mean, arrived))  # line 14

    def solve(self, f: Local, client: Client, alpha: float, beta: float, share: float) -> tuple[Client, Any]:
        """Solve (1) from the client's last w_i."""
        w = self.solver.minimise(f, client.y, client.w, alpha, beta, share)
        return client._replace(w=w), self.weighted_model(f, w)

    def ascend(self, f: Local, client: Client, mean: Array, scale: float) -> tuple[Client, None]:
        """Apply (2) and step the dual variables."""
        return client._replace(y=client.y - self.dual_step(f, client.w, mean, scale)), None
