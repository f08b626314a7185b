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
    """Base of methods whose clients keep their last step, and upload by how much the new one differs from it."""

    server_lr: Annotated[Rate, Meta(description="step size of the server")] = 1.0
    aggregate: Annotated[Literal["chosen"], Meta(description="changes come from the selected clients")] = "chosen"

    upload = Upload(content="change", feedback="error")

    def init_client(self, f: Local) -> Client:  # type: ignore[override]
        return Client(y=f.zeros())

    def init_server(self, fed: Federation) -> Server:  # type: ignore[override]
        return Server(x=fed.initial(), y=0 * fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        selected = fed.select(server.x)
        change = fed.mean(self.renew, server.x, server.k, to=selected, each=fed.local_steps)
        y = server.y + fed.fraction(selected) * change
        x = server.x + rate_at(self.server_lr, fed) * self.direction(server.y, change, y)
        return Server(x, y, server.k + self.iterations())

    def direction(self, y: Array, change: Array, new: Array) -> Array:
        """Return the server's step from the means of all last steps before and after the round: (n,)."""
        return new

    def renew(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        """Take local steps, and upload how the step w_i − x differs from the last one."""
        _, w = self.update(f, client, x, k, most)  # type: ignore[arg-type]
        return Client(y=w - x), w - x - client.y


class MIFA(RememberedSteps, tag="mifa"):
    """FedAvg whose server averages the last steps of all clients, also of those that are absent.

    y_i ← w_i − x of the selected clients, w_i by the local steps of FedAvg;  x⁺ = x + server_lr · (1/m) Σ y_i over all
    m clients, y_i = 0 before the first reply. Clients keep y_i, and upload its change.
    Source: Algorithm 1, in the form of its section 4 that needs little memory, for a constant local step: G_i is
    −y_i/η. There every client replies in the first round.
    """

    title = "MIFA"
    plot_style = PlotStyle("sky", 2, 2)
    # Last steps of clients and their mean come from one checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2106.04159 bound expectations, with variances that no run shows")
