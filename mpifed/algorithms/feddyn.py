"""FedDyn, Algorithm 1 of D. A. E. Acar, Y. Zhao, R. Matas Navarro, M. Mattina, P. N. Whatmough, V. Saligrama,
"Federated learning based on dynamic regularization", arXiv:2111.04263 (2021)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    SGD,
    LocalEpochs,
    LocalOptimizer,
    Log2,
    PlotStyle,
    Step,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, MeanEstimate, Supports, Unsupported, Upload


class Client(NamedTuple):
    h: Array  # (c, n) linear terms, ∇f_i(θ_i) if local solutions are exact


class Server(NamedTuple):
    x: Array  # (n,) model
    h: Array  # (n,) mean of h_i over all clients
    k: int  # iterations so far


class FedDyn(LocalEpochs, tag="feddyn"):
    """Local steps on f_i with a penalty and a linear term; rounds change the term until all clients agree.

    θ_i ≈ argmin f_i(θ) − ⟨h_i, θ⟩ + (α/2)‖θ − x‖², by local steps from x;  h_i ← h_i − α(θ_i − x);  over the selected
    clients S, h ← h − (α/m) Σ(θ_i − x), x⁺ = mean θ_i − h/α.  Source: Algorithm 1, where the argmin is exact.
    """

    title = "FedDyn"
    plot_style = PlotStyle("green", 0, 1)
    # Linear terms of clients and their mean at the server come from one checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:2111.04263 ask for the exact minimiser of the local problem, which steps do not give"
    )

    alpha: Annotated[float, Meta(gt=0, description="weight α of the penalty")] = 0.1
    step: Annotated[Step, to_tune("step size γ_k, k over the whole run")] = Log2()
    optimizer: LocalOptimizer = SGD()

    upload = Upload(feedback="error", at_home={})
    mean_estimate = MeanEstimate.UNBIASED  # at the fixed point all θ_i agree

    def init_client(self, f: Local) -> Client:
        return Client(h=f.zeros())

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), h=0 * fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        selected = fed.select(server.x)
        theta = fed.mean(self.update, server.x, server.k, to=selected)
        share = fed.fraction(selected)
        h = server.h - self.alpha * share * (theta - server.x)
        return Server(x=theta - h / self.alpha, h=h, k=server.k + self.iterations())

    def update(self, f: Local, client: Client, x: Array, k: int) -> tuple[Client, Array]:
        """Take local steps, renew the linear term, and upload θ_i."""
        theta = self.descend(f, client, x, k)
        return Client(h=client.h - self.alpha * (theta - x)), theta

    def descend(self, f: Local, client: Client, x: Array, k: int) -> Array:
        """Return the local models after all steps: (c, n)."""
        x = f.xp.broadcast_to(x, client.h.shape)
        theta = f.point(x, self.optimizer.spans and self.iterations(), self.batch_size, vectors=2, epochs=self.epochs)
        memory = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, None, self.last_batch):
            gamma = has * self.step.gamma(k + j, self.iterations(), f.samples)
            g = batch.grad(theta) - client.h + self.alpha * (theta - x)
            theta, memory = self.optimizer.step(theta, g, gamma, memory)
        return f.array(theta)
