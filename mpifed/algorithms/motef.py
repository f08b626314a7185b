"""MoTEF, Algorithm 1 of R. Islamov, Y. Gao, S. U. Stich, "Towards faster decentralized stochastic
optimization with communication compression", arXiv:2405.20114 (2024)."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.beer import BEER
from mpifed.algorithms.parts import PlotStyle, Rate, to_tune
from mpifed.extend import Array, GraphFederation, Local, Supports, Unsupported


class MoTEF(BEER, tag="motef"):
    """BEER with momentum, a running mean of stochastic gradients, so that small batches are enough.

    x_i⁺ = x_i + γ Σ_j W_ij (h_j − h_i) − ηv_i;  h_i⁺ = h_i + C(x_i⁺ − h_i);
    d_i⁺ = (1 − λ)d_i + λ∇f_i(x_i⁺);  v_i⁺ = v_i + γ Σ_j W_ij (g_j − g_i) + d_i⁺ − d_i;  g_i⁺ = g_i + C(v_i⁺ − g_i),
    h_i = g_i = 0 and d_i = v_i = ∇f_i(x_i) at first. Both messages travel together; with λ = 1 it is beer. By default γ
    is δ of the compressor and η = λγ/(2 max r_i) (mpifed's choice).
    Source: Algorithm 1. From d_i = 0 and v_i = ∇f_i(x_i) it ends elsewhere, for mean v − mean d never changes.
    """

    title = "MoTEF"
    plot_style = PlotStyle("brown", 7, 5)
    # As beer, with momentum in place of its gradients.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2405.20114 could not be read")

    eta: Annotated[Rate | None, to_tune("step size η (default: λγ/(2 max r_i))")] = None
    lam: Annotated[float, Meta(gt=0, le=1, description="weight λ of the newest gradient in the momentum")] = 0.5

    def default_eta(self, net: GraphFederation, gamma: float) -> float:
        return self.lam * gamma / float(2 * net.max(self.smoothness))

    def estimate(self, f: Local, before: Array, x: Array) -> Array:
        """Return the momentum, a running mean of gradients: (c, n)."""
        return (1 - self.lam) * before + self.lam * self.gradient(f, x)
