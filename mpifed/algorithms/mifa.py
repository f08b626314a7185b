"""MIFA, Algorithm 1 of X. Gu, K. Huang, J. Zhang, L. Huang, "Fast federated learning in the presence of arbitrary
device unavailability", arXiv:2106.04159 (2021)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.fedavg import LocalSteps
from mpifed.algorithms.parts import PlotStyle, Rate, rate_at
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    y: Array  # (c, n) last step w_i − x, 0 before the first one


class Server(NamedTuple):
    x: Array  # (n,) model
    y: Array  # (n,) mean of all y_i
    k: int  # iterations so far


class RememberedSteps(LocalSteps):
    """Base of methods whose server steps by the last steps of all clients."""

    server_lr: Annotated[Rate, Meta(description="step size of the server")] = 1.0
    aggregate: Annotated[Literal["chosen"], Meta(description="new steps are those of the selected clients")] = "chosen"

    upload = Upload(content="change", last_upload="y")

    def init_client(self, f: Local) -> Client:  # type: ignore[override]
        return Client(y=f.zeros())

    def init_server(self, fed: Federation) -> Server:  # type: ignore[override]
        return Server(x=fed.initial(), y=0 * fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.renew, server.x, server.k, to=fed.select(server.x), each=fed.local_steps)
        arrived = fed.arrivals()
        share = fed.fraction(arrived)
        y = fed.mean(of=arrived, last="y")
        x = server.x + rate_at(self.server_lr, fed) * self.direction(server.y, y, share)
        return Server(x, y, server.k + self.iterations())

    def direction(self, old: Array, new: Array, share: float) -> Array:
        """Return the server's step from the means of all last steps; ``share`` of the clients have renewed theirs."""
        return new

    def renew(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        """Take local steps, and upload the step w_i − x."""
        _, w = self.update(f, client, x, k, most)  # type: ignore[arg-type]
        return Client(y=w - x), w - x


class MIFA(RememberedSteps, tag="mifa"):
    """FedAvg whose server averages the last steps of all clients, also of those that are absent.

    y_i ← w_i − x of the selected clients, w_i by the local steps of FedAvg;  x⁺ = x + server_lr · (1/m) Σ y_i over all
    m clients, y_i = 0 before the first reply.
    Source: Algorithm 1 for a constant local step η, where G_i is −y_i/η. There every client replies in the first round.
    """

    title = "MIFA"
    plot_style = PlotStyle("wine", 2, 3)
    # Last steps of clients and their mean come from one checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2106.04159 bound expectations, with variances that no run shows")
