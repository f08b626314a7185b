"""FedProx, Algorithm 2 of T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar, V. Smith, "Federated optimization in
heterogeneous networks", arXiv:1812.06127 (2020)."""

from typing import Annotated, Any

from msgspec import Meta

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.optimizers import SGD
from mpifed.core.typing import Array
from mpifed.federation.local import Local


class FedProx(FedAvg, tag="fedprox"):
    """FedAvg whose local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

    w ← w − γ_k(∇f_i(w) + mu (w − x)), ``inner`` times, from x at a round's first iteration, then from w_i.
    Source: Algorithm 2, as compared in fedgia, section V.D, and fedadmm (3.17), with its sign corrected (errata).
    """

    mu: Annotated[float, Meta(ge=0, description="proximal weight μ")] = 1e-4
    inner: Annotated[int, Meta(ge=1, description="gradient steps an iteration")] = 5

    def work(self, d: Array) -> Array:
        return self.inner * super().work(d)

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        rate, mu = self.rate(f, gamma), self.mu * (1 if self.scale == "1" else f.m)
        for _ in range(self.inner):
            if isinstance(self.optimizer, SGD):
                w = w - rate * f.grad(w) - gamma * self.mu * (w - x)
            else:
                w, memory = self.optimizer.step(w, f.grad(w) + mu * (w - x), rate, memory)
        return w, memory
