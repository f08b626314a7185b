"""SFedProx, Algorithms 3 and 4 of S. Zhou, G. Y. Li, "Exact penalty method for federated learning",
arXiv:2208.11231 (2022)."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle
from mpifed.algorithms.sfedavg import SFedAvg
from mpifed.extend import Array, Local, Supports, Unsupported


class SFedProx(SFedAvg, tag="sfedprox"):
    """SFedAvg whose local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

    v ← v − γ_i(∇f_i(v) + mu (v − x)), ``inner`` times, from x at a round's first iteration, then from w_i.
    Source: (36), Algorithm 4.
    """

    title = "SFedProx"
    plot_style = PlotStyle("sky", 3, 1)
    # As sfedavg, with other local steps.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("the FedEPM paper states none for it")

    mu: Annotated[float, Meta(ge=0, description="proximal weight μ")] = 1e-5
    inner: Annotated[int, Meta(ge=1, description="gradient steps an iteration")] = 3

    def sample_gradients(self, d: Array) -> Array:
        return super().sample_gradients(d) + self.k0 * (self.inner - 1) * d

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        for _ in range(self.inner):
            w = w - gamma * (f.grad(w) + self.mu * (w - x))  # (36)
        return w
