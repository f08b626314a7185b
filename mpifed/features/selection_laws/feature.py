"""Selections by turns and by scores of candidates, and the feature of all selections beyond all and uniform."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, LoadedSettings, Moment
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.federation.method import ScoresDualMoves
from mpifed.federation.participation.selection import ScoreSelection, Selector, SizedSelection
from mpifed.federation.traits import MeanEstimate


class Cyclic(SizedSelection, tag="cyclic"):
    """Clients by turns: the first ⌈share·m⌉ (or ``count``) in round 1, the next in round 2, after the last the first.

    A set begins with the last ``overlap`` clients of the one before, which then train twice in a turn. The second
    selection of a round is the first one of the next.
    """

    # Turns follow from the round.
    supports = Supports.EVERYTHING

    overlap: Annotated[int, Meta(ge=0, description="clients that a set shares with the one before")] = 0
    shuffled: Annotated[
        bool, Meta(description="in a random order, the same in all rounds, not in that of the data")
    ] = False

    def repeats_sets(self, m: int) -> bool:
        return not self.overlap and self.size(m) < m and m % self.size(m) == 0

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        if self.overlap >= size:
            raise UserError(
                f"selection.overlap = {self.overlap} is wrong: it must be less than the {size} selected clients"
            )
        order = stream(seed, "selection", 0, 0).permutation(m) if self.shuffled else np.arange(m)

        def select(round: int, again: int) -> Array | None:
            if size == m:
                return None
            first = (round - 1 + again) * (size - self.overlap)
            return np.sort(order[np.arange(first, first + size) % m])

        return Selector(size, select, apart=1 if self.overlap else m // size)


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

    scored_methods: ClassVar[type] = ScoresDualMoves

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        scored = super().selector(seed, m, rounds)
        if self.uniform >= scored.size:
            raise UserError(
                f"selection.uniform = {self.uniform} is wrong: it must be less than the {scored.size} selected clients"
            )
        return scored._replace(score="score_dual_move", uniform=self.uniform)


def fixed_size_reason(c: LoadedSettings) -> Violation:
    """Return why a study needs rounds of a fixed size where each client is drawn by itself, or None."""
    method = c.config.algorithm
    name = method.label()
    coupled = method.mean_estimate is MeanEstimate.COUPLED or method.participation.selections > 1
    reasons = {
        "nodes of a graph wait for their neighbours": c.config.graph is not None,
        f"{name} asks clients that are not selected, too": method.participation.everyone,
        f"{name} exchanges within the selected clients alone": coupled,
        "masks hide no single upload, which a round may have": c.config.masks is not None,
        "the theorems of algorithm.certify are about such rounds": method.certify,
    }
    return next(({"why": why} for why, holds in reasons.items() if holds and c.selector.varies), None)


class SelectionLaws(Plugin):
    """Selections by turns, by odds, by scores and from recordings."""

    # The selection speaks for itself.
    supports = Supports.EVERYTHING
    conflicts = (
        *CONFLICTS["selection_laws"],
        Conflict(
            ('selection.name = "poisson"', "a graph, masks, certify, a method that asks others or exchanges within"),
            'selection.name = "{selected}" is wrong: {why}, so it must be one of a fixed size, such as "uniform"',
            fixed_size_reason,
            Moment.DATA,
        ),
    )
