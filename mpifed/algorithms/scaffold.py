"""SCAFFOLD, Algorithm 1 of S. P. Karimireddy, S. Kale, M. Mohri, S. J. Reddi, S. U. Stich, A. T. Suresh, "SCAFFOLD:
Stochastic controlled averaging for federated learning", arXiv:1910.06378 (2020)."""

from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import LocalEpochs, Log2, PlotStyle, Rate, Step, rate_at, to_tune
from mpifed.extend import Array, Federation, Local, MeanEstimate, Supports, Unsupported, Upload


class Client(NamedTuple):
    c: Array  # (c, n) control variates c_i


class Server(NamedTuple):
    x: Array  # (n,) model
    c: Array  # (n,) control variate
    k: int  # iterations so far


class Scaffold(LocalEpochs, tag="scaffold"):
    """Local steps corrected by control variates, which the steps themselves renew (option II).

    y ← y − γ(∇f_i(y) − c_i + c), from y = x;  c_i⁺ = c_i − c + (x − y)/Σγ;  over the selected clients S,
    x⁺ = x + server_lr · mean(y − x), c⁺ = c + (|S|/m) mean(c_i⁺ − c_i).  Source: Algorithm 1, as compared in feddcd.
    """

    title = "SCAFFOLD"
    plot_style = PlotStyle("orange", 3)
    # Control variates of clients and their mean come from one checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:1910.06378 holds up to constants that it does not state")

    step: Annotated[Step, to_tune("step size γ, k over the whole run")] = Log2()
    server_lr: Annotated[Rate, Meta(description="step size of the server")] = 1.0

    upload = Upload(content="change", vectors=2, feedback="error", averaged=True, at_home={})
    mean_estimate = MeanEstimate.UNBIASED  # at the fixed point all c_i are exact
    refused: ClassVar[dict[str, str]] = {
        "optimizer": "(x − y)/Σγ renews the control variates, and is a mean gradient for plain gradient steps only"
    }

    def init_client(self, f: Local) -> Client:
        return Client(c=f.zeros())

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), c=0 * fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        selected = fed.select(server.x)
        dy, dc = fed.mean(self.update, server.x, server.c, server.k, to=selected)
        x = server.x + rate_at(self.server_lr, fed) * dy
        c = server.c + fed.fraction(selected) * dc
        return Server(x, c, server.k + self.iterations())

    def update(self, f: Local, client: Client, x: Array, c: Array, k: int) -> tuple[Client, tuple[Array, Array]]:
        """Take local steps, renew the control variate, and upload both changes."""
        y, total = self.descend(f, client, x, c, k)
        # a schedule may come down to γ = 0: such steps tell nothing, and c_i stays
        new = f.xp.where(total > 0, client.c - c + (x - y) / f.xp.where(total > 0, total, 1.0), client.c)
        return Client(c=new), (y - x, new - client.c)

    def descend(self, f: Local, client: Client, x: Array, c: Array, k: int) -> tuple[Array, Array]:
        """Return the local models after all steps (c, n), and the sum of step sizes."""
        y = f.point(
            f.xp.broadcast_to(x, client.c.shape), self.iterations(), self.batch_size, vectors=3, epochs=self.epochs
        )
        total = f.zeros(1)
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, None, self.last_batch):
            gamma = has * self.step.gamma(k + j, self.iterations(), f.samples)
            y = y - gamma * (batch.grad(y) - client.c + c)
            total = total + gamma
        return f.array(y), total
