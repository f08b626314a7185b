"""Weights and offsets that samples bring with them: which problems, methods and kernels go with them.

Blocks have them from the start, and the problem itself computes with them.
"""

from typing import ClassVar, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps, Reasons
from mpifed.data.dataset import Dataset
from mpifed.data.sample_columns import COLUMNS
from mpifed.features.feature import Feature
from mpifed.features.matching import described
from mpifed.features.rule import Found, Rule, Words, broken
from mpifed.features.settings import Experiment
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs
from mpifed.problems.problem import Problem

PLAIN_ALONE = "clipped_grad"  # what a problem has for plain samples alone: bounds of privacy know no weights


class Columned(NamedTuple):
    """Settings once data are loaded whose samples have the columns ``names``."""

    config: Experiment
    names: tuple[str, ...]


def strange(c: Columned) -> Found:
    """The column that the problem does not take, and which problems do."""
    problem = c.config.problem
    wrong = next((name for name in c.names if not problem.takes_column(name)), None)
    if wrong is None:
        return None
    able = [name for name in Problem.choices if Problem.member(name, "problem").takes_column(wrong)]
    logarithms = wrong == "exposure" and problem.takes_column("offset")
    instead = "; data.offset takes the logarithms" if logarithms else ""
    return {"what": COLUMNS[wrong], "able": ", ".join(able), "instead": instead}


def lacking(c: Columned) -> Found:
    """What the method needs, and a problem has for plain samples alone."""
    return {"needs": described([PLAIN_ALONE])} if PLAIN_ALONE in needs(c.config.algorithm) else None


RULES: list[Rule[Columned]] = [
    Rule(strange, "samples have {what}, and problem {loss} takes none: {able} do{instead}"),
    Rule(lacking, "samples have weights or offsets, and {name} needs {needs}, which are there for plain samples alone"),
    Rule(
        lambda c: c.config.kernels not in ("auto", "numpy"),
        'kernels = "{kernels}" is wrong: numpy alone reads weights and offsets of samples, so it must be "auto"',
    ),
]


class SampleColumns(Feature):
    """Weights and offsets of samples."""

    # Whether noise hides what they weigh, each column says: data.tables.kept.
    keeps = Keeps.EVERYTHING & ~Keeps.DEVICES
    unkept: ClassVar[Reasons] = {Keeps.DEVICES: "numpy alone reads weights and offsets of samples"}

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """UserError where the problem, the method or the kernels cannot have them."""
        assert data.columns is not None
        columned = Columned(self.config, data.columns.names)
        for sentence in broken(RULES, columned, Words(self.config)):
            raise UserError(sentence)
        return setup
