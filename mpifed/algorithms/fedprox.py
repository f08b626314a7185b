"""FedProx, Algorithm 2 of T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar, V. Smith, "Federated optimization in
heterogeneous networks", arXiv:1812.06127 (2020)."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from mpifed.algorithms.fedavg import Client, FedAvg
from mpifed.algorithms.parts import SGD, PlotStyle
from mpifed.extend import Array, Local, Supports, Unsupported


class FedProx(FedAvg, tag="fedprox"):
    """FedAvg whose local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

    w ← w − γ_k(∇f_i(w) + mu (w − x)), ``inner`` times, from x at a round's first iteration, then from w_i.
    Source: Algorithm 2, as compared in fedgia, section V.D. (3.17) of fedadmm, with its sign corrected (errata), is
    inner = 1, scale = "1/m" and begin = "own": there a round begins at the client's own last w_i.
    """

    title = "FedProx"
    plot_style = PlotStyle("sky", 4)
    # As fedavg: the proximal term is about the model that was received.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:1812.06127 needs the dissimilarity B of the f_i at every point, which no run shows"
    )

    mu: Annotated[float, Meta(ge=0, description="proximal weight μ")] = 1e-4
    inner: Annotated[int, Meta(ge=1, description="gradient steps an iteration")] = 5

    begin: Annotated[
        Literal["server", "own"], Meta(description="where a round begins: the server's model or the client's own last")
    ] = "server"

    def sample_gradients(self, d: Array) -> Array:
        return self.inner * super().sample_gradients(d)

    def keeps_models(self) -> bool:
        return self.begin == "own" or super().keeps_models()

    def first_point(self, f: Local, client: Client, x: Array) -> Array:
        w = client.w if self.begin == "own" else x
        return f.point(
            w, self.optimizer.spans and self.inner * self.iterations(), self.batch_size, 2, self.inner * self.epochs
        )

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        rate = self.rate(f, gamma)
        mu = self.mu * (1 if self.scale == "1" else f.m)
        for _ in range(self.inner):
            if self.optimizer == SGD():
                w = w - rate * f.grad(w) - gamma * self.mu * (w - x)
            else:
                w, memory = self.optimizer.step(w, f.grad(w) + mu * (w - x), rate, memory)
        return w, memory
