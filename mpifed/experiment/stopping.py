"""The judge of stop rules over the evaluations of a run so far."""

from collections.abc import Mapping, Sequence

from mpifed.core.roles import TEST, VALIDATION, Role
from mpifed.features.stop import Patience, StopRules
from mpifed.results.columns import COLUMNS

History = Mapping[str, Sequence[float]]  # evaluations so far by column


class StopJudge:
    """The judge of the stop rules of a run of m clients and n parameters.

    ``role`` is that of the samples on which models are evaluated, ``validated`` whether there are validation samples.
    """

    def __init__(self, stop: StopRules, sizes: tuple[int, int], role: Role, validated: bool) -> None:
        self.stop = stop
        self.sizes = sizes
        self.role = VALIDATION if validated and stop.by != TEST else role.name  # of the accuracy
        self.patience = None
        if stop.patience:
            column = stop.column(validated)
            self.patience = Patience(stop, column, COLUMNS[column].better)

    def judge_all(self, history: History) -> str | None:
        """Return why a run with these evaluations has ended after the last of them, or None."""
        if self.patience is not None:
            for value in history[self.patience.name][:-1]:
                self.patience.add(value)
        return self.judge_last(history)

    def judge_last(self, history: History) -> str | None:
        """Return why to stop after the last evaluation, which is a new one, or None."""
        impatience = None if self.patience is None else self.patience.add(history[self.patience.name][-1])
        return self.stop.reason(history, *self.sizes, self.role) or impatience
