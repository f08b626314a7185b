"""FedAvg, Algorithm 1 of H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-efficient
learning of deep networks from decentralized data", arXiv:1602.05629 (2017)."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, counted, passes, tuned
from mpifed.algorithms.parts.optimizers import SGD, LocalOptimizer
from mpifed.algorithms.parts.step_sizes import Log2, Step
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Mean, Refused, Theorem, Upload


class Client(NamedTuple):
    w: Array  # (c, n) last local model where it is needed again, else (c, 0)


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # iterations so far


class LocalSteps(Algorithm):
    """Methods whose clients take k0 gradient steps, or some epochs, from the server's model."""

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 5
    step: Annotated[Step, tuned("step size γ_k, k over the whole run")] = Log2()
    optimizer: LocalOptimizer = SGD()
    scale: Annotated[Literal["1", "1/m"], Meta(description="factor of ∇f_i")] = "1"
    aggregate: Annotated[Literal["chosen", "all"], Meta(description="whose models are averaged")] = "chosen"
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0
    epochs: Annotated[int, Meta(ge=0, description="local epochs in place of k0, if above 0")] = 0

    def work(self, d: Array) -> Array:
        return passes(d, self.k0, self.epochs, self.batch_size)

    def local_steps(self, d: Array) -> Array | None:
        return counted(d, self.k0, self.epochs, self.batch_size)

    def join(self, f: Local) -> Client:
        return Client(w=f.initial() if self.remembers() else f.zeros(0))

    def start(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), k=0)

    def update(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        """k0 iterations from the server's model, or at most as many as each client may take."""
        w = self.origin(client, x)
        memory = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, most):
            gamma = has * self.step.gamma(k + j, self.epochs or self.k0, f.samples)
            w, memory = self.iterate(batch, w, x, gamma, memory)
        return (client._replace(w=w) if self.remembers() else client), w

    def remembers(self) -> bool:
        return self.aggregate == "all"  # whether clients keep their last local models

    def origin(self, client: Client, x: Array) -> Array:
        """Where the first iteration of a round begins: (n,) or (c, n)."""
        return x

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        return self.optimizer.step(w, f.grad(w), self.rate(f, gamma), memory)  # (3.16)

    def rate(self, f: Local, gamma: Array | float) -> Array | float:
        return gamma if self.scale == "1" else gamma / f.m


class FedAvg(LocalSteps, tag="fedavg"):
    """Clients take k0 gradient steps from the server's model, the server averages.

    w_i ← w_i − γ_k ∇f_i(w_i), from w_i = x;  x⁺ = mean of w_i over the selected clients, or of the last w_i of all.
    An ``optimizer`` replaces ∇f_i.  Source: Algorithm 1, as compared in fedadmm (3.14)–(3.16) and fedgia, section V.D.
    """

    title = "FedAvg"
    look = Look("black", 5)
    # Optimisers begin anew in every round and mini-batches come from f.rng: a round reads x and k.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem: ClassVar[Theorem | Refused] = Theorem("mpifed.theory.gradient_descent:fedavg")

    mean = Mean.UNBIASED
    upload = Upload(kept="w", when={"aggregate": "all"}, averaged=True, one_mean={"aggregate": "chosen"})
    asynchronous = True

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, server.k, to=fed.select(server.x), each=fed.local_steps)
        x = fed.estimate(server.x, of=fed.arrivals(), last="w" if self.aggregate == "all" else None)
        return Server(x=x, k=server.k + (self.epochs or self.k0))
