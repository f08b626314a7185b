"""FedNova, Algorithm 1 of J. Wang, Q. Liu, H. Liang, G. Joshi, H. V. Poor, "Tackling the objective inconsistency
problem in heterogeneous federated optimization", arXiv:2007.07481 (2020)."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from mpifed.algorithms.fedavg import Client, LocalSteps, Server
from mpifed.algorithms.parts import PlotStyle
from mpifed.extend import Array, Federation, Local, Supports, Unsupported, Upload


class FedNova(LocalSteps, tag="fednova"):
    """FedAvg whose mean does not favour clients that take more local steps than others.

    w_i by the local steps of FedAvg, as many as each client takes;  d_i = (w_i − x)/‖a_i‖₁, where ‖a_i‖₁ is how far the
    same steps would go if all gradients were 1: τ_i γ for τ_i plain steps;  x⁺ = x + mean ‖a_i‖₁ · mean d_i.
    Source: sections 4.1 and 5, with the weights that f has (objective.weights); by default they are equal.
    """

    title = "FedNova"
    plot_style = PlotStyle("sky", 5, 3)
    # The number of local steps follows from samples and options, not from time that is measured.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:2007.07481 need bounds on variance and dissimilarity that a run does not show"
    )

    aggregate: Annotated[Literal["chosen"], Meta(description="means are over the selected clients")] = "chosen"

    mean_estimate = Unsupported("its step is the product of two means over the selected")
    upload = Upload(content="change", averaged=True)
    asynchronous = True

    def __post_init__(self) -> None:
        if not self.optimizer.linear():
            raise ValueError(
                f"optimizer = {self.optimizer.label()} is wrong: fednova divides by the weights of a sum of gradients, "
                "so it must be sgd, or momentum without weight decay, and without clip"
            )

    def message_size(self, n: int) -> tuple[int, int]:
        return n, n + 1

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.normalised, server.x, server.k, to=fed.select(server.x), each=fed.local_steps)
        d, norm = fed.mean(of=fed.arrivals())
        return Server(x=server.x + norm * d, k=server.k + self.iterations())

    def normalised(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Any]:
        """Upload d_i and ‖a_i‖₁: n + 1 numbers."""
        w = self.first_point(f, client, x)
        memory = None
        a = f.zeros(1)
        memory_a = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, most, self.last_batch):
            gamma = has * self.step.gamma(k + j, self.iterations(), f.samples)
            w, memory = self.iterate(batch, w, x, gamma, memory)
            a, memory_a = self.optimizer.step(a, f.xp.ones_like(a), self.rate(f, gamma), memory_a)
        # a schedule may come down to γ = 0: then w_i = x, and d_i is 0
        return client, (f.array(w - x) / f.xp.where(a < 0, -a, 1.0), -a[:, 0])
