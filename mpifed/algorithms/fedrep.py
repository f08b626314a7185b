"""FedRep, Algorithm 1 of L. Collins, H. Hassani, A. Mokhtari, S. Shakkottai, "Exploiting shared representations for
personalized federated learning", arXiv:2102.07078 (2021)."""

from typing import Annotated, Literal

from msgspec import Meta

from mpifed.algorithms.fedavg import Client, FedAvg
from mpifed.algorithms.parts import PlotStyle, count_gradients
from mpifed.extend import Array, Local, Supports, Unsupported


class FedRep(FedAvg, tag="fedrep"):
    """FedAvg whose clients first train the head, which stays with them, then the body, which travels.

    h_i ← h_i − γ_k ∇_h f_i(h_i, φ), ``head_steps`` times from the client's last head and the body φ received; then
    φ_i ← φ_i − γ_k ∇_φ f_i(h_i, φ_i), k0 times;  φ⁺ = mean of φ_i.  The head is what ``personal``, a key of the study,
    names; without it there is none, and this is FedAvg with one γ_k a round.  Source: Algorithm 1, where k0 = 1.
    """

    title = "FedRep"
    plot_style = PlotStyle("wine", 2, 4)
    # As fedavg: the transform that keeps heads speaks for itself.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2102.07078 is about linear models whose heads are exact in every round")

    k0: Annotated[int, Meta(ge=1, description="steps of the body a round")] = 1
    head_steps: Annotated[int, Meta(ge=1, description="steps τ of the head a round")] = 10
    head_epochs: Annotated[float, Meta(ge=0, description="epochs of the head in place of head_steps, if above 0")] = 0.0
    aggregate: Annotated[Literal["chosen"], Meta(description="bodies of the selected clients are averaged")] = "chosen"

    def sample_gradients(self, d: Array) -> Array:
        head = count_gradients(d, self.head_steps, self.head_epochs, self.batch_size, self.last_batch)
        return head + super().sample_gradients(d)

    def local_steps(self, d: Array) -> Array | None:
        return None  # the head takes all of its steps

    def update(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        """Train the head with the body as received, then the body, and upload what travels of both."""
        w = f.xp.broadcast_to(x, (len(f), f.n))
        for moving, steps, epochs in ((f.home, self.head_steps, self.head_epochs), (~f.home, self.k0, self.epochs)):
            memory = None
            for _, batch, has in f.steps(steps, epochs, self.batch_size, None, self.last_batch):
                gamma = has * self.step.gamma(k, self.iterations(), f.samples)
                moved, memory = self.iterate(batch, w, x, gamma, memory)
                w = f.xp.where(moving, moved, w)
        return client, w
