"""Selections by scores of candidates, beside the biased one: by largest loss and by longest dual step."""

from typing import Annotated

from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.federation.participation.selection import ScoreSelection, Selector


class PowerOfChoice(ScoreSelection, tag="power-of-choice"):
    """Clients with the largest loss f_i at the model, on one random mini-batch, of uniformly drawn ``candidates``.

    The server sends candidates the model and they reply with one number; both are charged. The mean over the selected
    is no estimate of that over all, so a method that averages them has another fixed point than without.
    Source: the method of Y. J. Cho, J. Wang, G. Joshi, "Client selection in federated learning: Convergence analysis
    and power-of-choice selection strategies", arXiv:2010.01243 (2020), with p_k = 1/m as in f.
    """

    # As biased: candidates send exact losses.
    supports = Supports.REPEATED | Supports.DEVICES

    batch_size: Annotated[int, Meta(ge=0, description="samples of the mini-batch; 0: all")] = 0

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        return super().selector(seed, m, rounds)._replace(score="score_loss")


class Greedy(ScoreSelection, tag="greedy"):
    """Candidates whose dual variables would move most, and ``uniform`` others drawn from the rest.

    Candidates receive the model x, solve (1) of FedDCD and reply with ‖√α_i (w_i − x)‖, the length of their step in
    the norm of Λ if the mean were x; they keep w_i. The model down, that number up and the work of a selection are
    charged for each of them. Without a uniform part clients that are ahead together but agree can stop all progress.
    """

    # As biased: candidates send the exact length of their step.
    supports = Supports.REPEATED | Supports.DEVICES

    uniform: Annotated[int, Meta(ge=0, description="so many of the selected are drawn uniformly from the others")] = 1

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        scored = super().selector(seed, m, rounds)
        if self.uniform >= scored.size:
            raise UserError(
                f"selection.uniform = {self.uniform} is wrong: it must be less than the {scored.size} selected clients"
            )
        return scored._replace(score="score_dual_move", uniform=self.uniform)
