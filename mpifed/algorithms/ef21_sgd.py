"""EF21-SGD, Algorithm 2 of I. Fatkhullin, I. Sokolov, E. Gorbunov, Z. Li, P. Richtárik, "EF21 with bells & whistles:
Six algorithmic extensions of modern error feedback", arXiv:2110.03294 (2021)."""

from mpifed.algorithms.ef21 import EF21
from mpifed.algorithms.parts import BatchSize, PlotStyle, count_gradients, minibatch
from mpifed.extend import Array, Local, Supports, Unsupported


class EF21SGD(EF21, tag="ef21-sgd"):
    """EF21 with the gradient of a mini-batch, drawn anew in every round.

    x⁺ = x − γ mean g_i;  g_i ← g_i + C(∇f_B(x⁺) − g_i) of the selected clients, B being B_i random samples of client i
    without replacement. At the start, g_i = C(∇f_i(x)) of all samples, or ∇f_i(x) in full. It ends where the noise of
    mini-batches lets it. By default γ is that of ef21 (mpifed's choice): the paper's has bounds of this noise.
    Source: Algorithm 2.
    """

    title = "EF21-SGD"
    plot_style = PlotStyle("orange", 6, 6)
    # As ef21; mini-batches come from f.rng.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:2110.03294 needs bounds of the gradients of single samples, which no run shows"
    )

    batch_size: BatchSize = 32

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def gradient(self, f: Local, x: Array) -> Array:
        return self.batch(f).grad(x)

    def batch(self, f: Local) -> Local:
        """Return f on the mini-batch of this round."""
        return minibatch(f, self.batch_size)
