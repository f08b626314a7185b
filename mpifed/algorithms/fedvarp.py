"""FedVARP, Algorithm 2 of D. Jhunjhunwala, P. Sharma, A. Nagarkatti, G. Joshi, "FedVARP: Tackling the variance due to
partial client participation in federated learning", arXiv:2207.14130 (2022)."""

from mpifed.algorithms.mifa import RememberedSteps
from mpifed.algorithms.parts import PlotStyle
from mpifed.extend import Array, Supports, Unsupported


class FedVARP(RememberedSteps, tag="fedvarp"):
    """FedAvg without the variance of selecting clients: last steps stand in for those of the others, without bias.

    x⁺ = x + server_lr · [(1/m) Σ y_i + (1/|S|) Σ_{i∈S} (w_i − x − y_i)] over all m clients and the selected ones S, w_i
    by the local steps of FedAvg;  then y_i ← w_i − x for i ∈ S, from y_i = 0.
    Source: Algorithm 2.
    """

    title = "FedVARP"
    plot_style = PlotStyle("brown", 7, 6)
    # Last steps of clients and their mean come from one checkpoint.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2207.14130 bounds an expectation, with variances that no run shows")

    def direction(self, old: Array, new: Array, share: float) -> Array:
        # new − old is the mean over all clients of w_i − x − y_i, which is 0 where a client is not selected
        return old + (new - old) / share
