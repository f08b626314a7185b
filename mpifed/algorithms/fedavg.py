"""FedAvg, Algorithm 1 of H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-efficient
learning of deep networks from decentralized data", arXiv:1602.05629 (2017)."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    SGD,
    LocalEpochs,
    LocalOptimizer,
    Log2,
    PlotStyle,
    Step,
    Theorem,
    count_steps,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, MeanEstimate, Supports, Unsupported, Upload


class Client(NamedTuple):
    w: Array  # (c, n) last local model where it is needed again, else (c, 0)


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far


class LocalSteps(LocalEpochs):
    """Base of methods whose clients take k0 gradient steps, or some epochs, from the server's model."""

    step: Annotated[Step, to_tune("step size γ_k, k over the whole run")] = Log2()
    optimizer: LocalOptimizer = SGD()
    scale: Annotated[Literal["1", "1/m"], Meta(description="factor of ∇f_i")] = "1"
    aggregate: Annotated[Literal["chosen", "all"], Meta(description="whose models are averaged")] = "chosen"

    def local_steps(self, d: Array) -> Array | None:
        return count_steps(d, self.k0, self.epochs, self.batch_size, self.last_batch)

    def init_client(self, f: Local) -> Client:
        return Client(w=f.initial() if self.keeps_models() else f.zeros(0))

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), k=0)

    def update(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        """Take k0 local steps from the server's model, or at most ``most`` for each client, and upload w_i."""
        w = self.first_point(f, client, x)
        memory = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, most, self.last_batch):
            gamma = has * self.step.gamma(k + j, self.iterations(), f.samples)
            w, memory = self.iterate(batch, w, x, gamma, memory)
        w = f.array(w)
        return (client._replace(w=w) if self.keeps_models() else client), w

    def keeps_models(self) -> bool:
        return self.aggregate == "all"  # whether clients keep their last local models

    def first_point(self, f: Local, client: Client, x: Array) -> Array:
        """Return the models at which a round begins: (n,) or (c, n), or their point."""
        return f.point(x, self.optimizer.spans and self.iterations(), self.batch_size, epochs=self.epochs)

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        return self.optimizer.descend(f, w, self.rate(f, gamma), memory)  # (3.16)

    def rate(self, f: Local, gamma: Array | float) -> Array | float:
        return gamma if self.scale == "1" else gamma / f.m


class FedAvg(LocalSteps, tag="fedavg"):
    """Clients take k0 gradient steps from the server's model, the server averages.

    w_i ← w_i − γ_k ∇f_i(w_i), from w_i = x;  x⁺ = mean of w_i over the selected clients, or of the last w_i of all.
    An ``optimizer`` replaces ∇f_i.  Source: Algorithm 1, as compared in fedadmm (3.14)–(3.16) and fedgia, section V.D.
    """

    title = "FedAvg"
    plot_style = PlotStyle("black", 5)
    # Optimisers begin anew in every round and mini-batches come from f.rng: a round reads x and k.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem: ClassVar[Theorem | Unsupported] = Theorem("mpifed.theory.gradient_descent:fedavg")

    mean_estimate = MeanEstimate.UNBIASED
    upload = Upload(
        last_upload="w",
        when={"aggregate": "all"},
        averaged=True,
        one_mean={"aggregate": "chosen"},
        at_home={"aggregate": "chosen", "begin": "server"},  # last models that clients keep would lack what stays
    )
    asynchronous = True

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, server.k, to=fed.select(server.x), each=fed.local_steps)
        x = fed.estimate(server.x, of=fed.arrivals(), last="w" if self.aggregate == "all" else None)
        return Server(x=x, k=server.k + self.iterations())
