"""FedProx, Algorithm 2 of T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar, V. Smith, "Federated optimization in
heterogeneous networks", arXiv:1812.06127 (2020)."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.fedavg import FedAvg
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

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        rate = self.rate(f, gamma)
        for _ in range(self.inner):
            w = w - rate * f.grad(w) - gamma * self.mu * (w - x)
        return w
