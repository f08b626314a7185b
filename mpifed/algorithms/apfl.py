"""APFL, Algorithm 1 of Y. Deng, M. M. Kamani, M. Mahdavi, "Adaptive personalized federated learning",
arXiv:2003.13461 (2020)."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.parts import PlotStyle
from mpifed.extend import Array, Local, Supports, Unsupported


class Client(NamedTuple):
    w: Array  # (c, n) last local models
    v: Array  # (c, n) own models, mixed with w


class APFL(FedAvg, tag="apfl"):
    """FedAvg, beside which every selected client trains a model of its own; the personal one is a mixture of both.

    w_i and x⁺ as in FedAvg;  v_i ← v_i − γ_k α ∇f_i(α v_i + (1 − α) w_i), before each step of w_i and with the same
    mini-batch.  Personal model: α v_i + (1 − α) w_i, where w_i is the client's own last one. v_i never travels, and x
    does not depend on it. alpha = 1 is local training alone.  Source: Algorithm 1 with one fixed α for all clients.
    """

    title = "APFL"
    plot_style = PlotStyle("brown", 4, 4)
    # Step sizes count rounds from f.round, not from a counter of its own.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "those of arXiv:2003.13461 ask for step sizes by a theorem, and for bounds of variance and diversity"
    )

    alpha: Annotated[float, Meta(ge=0, le=1, description="share α of the own model in the personal one")] = 0.5

    def sample_gradients(self, d: Array) -> Array:
        return 2 * super().sample_gradients(d)

    def init_client(self, f: Local) -> Any:
        return Client(w=f.initial(), v=f.initial())

    def update(self, f: Local, client: Any, x: Array, k: int, most: Array | None = None) -> tuple[Any, Array]:
        """Take k0 local steps of both models, or at most ``most`` for each client, and upload w_i."""
        w = f.point(x, self.optimizer.spans and 2 * self.iterations(), self.batch_size, 3, 2 * self.epochs)
        v = client.v
        memory = None
        memory_v = None
        for j, batch, has in f.steps(self.k0, self.epochs, self.batch_size, most, self.last_batch):
            gamma = has * self.step.gamma(k + j, self.iterations(), f.samples)
            g = self.alpha * batch.grad(self.mixture(v, w))
            v, memory_v = self.optimizer.step(v, g, self.rate(f, gamma), memory_v)
            w, memory = self.iterate(batch, w, x, gamma, memory)
        w = f.array(w)
        return Client(w, f.array(v)), w

    def mixture(self, v: Array, w: Array) -> Array:
        return self.alpha * v + (1 - self.alpha) * w

    def personal_models(self, f: Local, client: Any) -> Array:
        return self.mixture(client.v, client.w)

    def newcomer_models(self, f: Local, x: Array) -> Array:
        """Return the mixtures that the local steps of the next round make from v_i = x: (c, n)."""
        client = Client(w=x, v=f.xp.tile(x, (len(f), 1)))
        client, _ = self.update(f, client, x, int(np.max(f.round)) * self.iterations())
        return self.personal_models(f, client)
