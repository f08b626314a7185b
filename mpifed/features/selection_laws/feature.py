"""Feature of selections beyond all and uniform: rules about methods, and what they learn before round one."""

from mpifed.core.promises import Supports
from mpifed.features.feature import Plugin
from mpifed.features.findings import mean_bias
from mpifed.features.rule import LoadedSettings, Rule
from mpifed.features.selection_laws.cyclic import Cyclic
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.selection_laws.scored import Greedy
from mpifed.features.settings import Experiment
from mpifed.federation.method import ScoresDualMoves
from mpifed.federation.traits import MeanEstimate


def same_sets(c: LoadedSettings) -> bool:
    """Return whether clients that take turns always form the same sets and exchange within these alone."""
    selection = c.config.selection
    if not isinstance(selection, Cyclic) or c.config.algorithm.mean_estimate is not MeanEstimate.COUPLED:
        return False
    size = selection.size(c.m)
    return not selection.overlap and size < c.m and c.m % size == 0


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: isinstance(c.selection, Importance) and not mean_bias(c),
        'selection.name = "importance" is wrong: {name} needs equal probabilities, because '
        '{algorithm.mean_estimate.why}, so it must be one such as "uniform"',
    ),
    Rule(
        lambda c: isinstance(c.selection, Importance) and c.selection.odds is None and not c.problem.has("lipschitz"),
        "selection.odds is missing: {loss} tells no Lipschitz constants L_i to take odds from",
    ),
    Rule(
        lambda c: isinstance(c.selection, Greedy) and not isinstance(c.algorithm, ScoresDualMoves),
        'selection.name = "greedy" is wrong: clients of {name} have no dual step to score, so it must be "biased" (by '
        'gradients), "power-of-choice" (by losses) or one without scores',
    ),
]


COUNTED: list[Rule[LoadedSettings]] = [
    Rule(
        same_sets,
        "selection.overlap = 0 is wrong: {name} exchanges within the selected clients alone, and {selector.size} of "
        "{m} by turns are always the same sets, so it must be at least 1",
    ),
]


class SelectionLaws(Plugin):
    """Selections by turns, by odds, by scores and from recordings."""

    # It has rules alone: the selection speaks for itself.
    supports = Supports.EVERYTHING

    rules = RULES
    counted = COUNTED
