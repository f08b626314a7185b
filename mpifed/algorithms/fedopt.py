"""FedOpt, Algorithm 2 of S. J. Reddi, Z. Charles, M. Zaheer, Z. Garrett, K. Rush, J. Konečný, S. Kumar, H. B. McMahan,
"Adaptive federated optimization", arXiv:2003.00295 (2021)."""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.fedavg import Client, LocalSteps
from mpifed.algorithms.parts import Memory, PlotStyle, ServerAdam, ServerOptimizer, rate_at, squared_norms
from mpifed.extend import Array, Federation, Local, MeanEstimate, Supports, Unsupported, Upload


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far
    u: Array  # (n,) mean or sum of the steps Δ, or (0,)
    v: Array  # (n,) mean or sum of their squares, or (0,)
    eta: float  # step size of the last round


class FedOpt(LocalSteps, tag="fedopt"):
    """FedAvg whose server takes the clients' mean step for a gradient: momentum, Adagrad, Adam, Yogi or FedExP.

    w_i by the local steps of FedAvg;  Δ = mean of w_i − x over the selected clients;  x⁺ = x + η d, with η and the
    direction d as ``server`` says.  Source: Algorithm 2; for FedExP arXiv:2301.09604 (2023), Algorithm 1.
    """

    title = "FedOpt"
    plot_style = PlotStyle("black", 3, 2)
    # The memory of the server's optimiser is a part of its state.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:2003.00295 and 2301.09604 ask for bounds of gradients and of variances that no run shows"
    )

    server: Annotated[ServerOptimizer, Meta(description="optimiser of the server")] = ServerAdam()
    aggregate: Annotated[Literal["chosen"], Meta(description="Δ is a mean over the selected clients")] = "chosen"

    mean_estimate = MeanEstimate.UNBIASED
    upload = Upload(averaged=True, one_mean={}, at_home={})
    asynchronous = Unsupported("Δ is the step from the server's model, which moves on while clients compute")

    def message_size(self, n: int) -> tuple[int, int]:
        return n, n + self.server.spread

    def init_server(self, fed: Federation) -> Any:
        u, v = self.server.begin(fed.initial())
        return Server(fed.initial(), 0, u, v, 1.0)

    def round(self, fed: Federation, server: Server) -> Server:
        method = self.measured if self.server.spread else self.update
        spread = 0.0
        fed.send(method, server.x, server.k, to=fed.select(server.x), each=fed.local_steps)
        if self.server.spread:
            mean, spread = fed.estimate((server.x, 0.0), of=fed.arrivals())
        else:
            mean = fed.estimate(server.x, of=fed.arrivals())
        delta = mean - server.x
        eta = rate_at(self.server.rate(delta, float(spread)), fed)
        d, (u, v) = self.server.direction(Memory(server.u, server.v), delta)
        return Server(server.x + eta * d, server.k + self.iterations(), u, v, eta)

    def measured(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Any]:
        """Upload the local model and ‖w_i − x‖²."""
        client, w = self.update(f, client, x, k, most)
        return client, (w, squared_norms(w - x))

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:
        return {"server_step": server.eta} if self.server.spread else {}
