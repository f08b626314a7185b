"""Feature of weights and offsets of samples, and the rules about problems, methods and kernels that take them.

Blocks have them from the start, and the problem itself computes with them.
"""

from typing import ClassVar, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.promises import Reasons, Supports
from mpifed.data.dataset import Dataset
from mpifed.data.sample_columns import COLUMNS
from mpifed.features.feature import Plugin
from mpifed.features.matching import describe_needs
from mpifed.features.rule import Rule, SentenceWords, Violation, explain_violations
from mpifed.features.settings import Experiment
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods
from mpifed.problems.problem import Problem

PLAIN_ALONE = "clipped_grad"  # for samples without columns alone: bounds of privacy know no weights


class ColumnSettings(NamedTuple):
    """Settings with the columns ``names`` of samples, known once data are loaded."""

    config: Experiment
    names: tuple[str, ...]


def refused_column(c: ColumnSettings) -> Violation:
    """Return the first column that the problem does not take, with the problems that do; else None."""
    problem = c.config.problem
    refused = next((name for name in c.names if not problem.takes_column(name)), None)
    if refused is None:
        return None
    able = [name for name in Problem.choices if Problem.member(name, "problem").takes_column(refused)]
    logarithms = refused == "exposure" and problem.takes_column("offset")
    instead = "; data.offset takes the logarithms" if logarithms else ""
    return {"what": COLUMNS[refused], "able": ", ".join(able), "instead": instead}


def missing_function(c: ColumnSettings) -> Violation:
    """Return what the method needs and a problem has only for samples without columns, or None."""
    return {"needs": describe_needs([PLAIN_ALONE])} if PLAIN_ALONE in required_methods(c.config.algorithm) else None


RULES: list[Rule[ColumnSettings]] = [
    Rule(refused_column, "samples have {what}, and problem {loss} takes none: {able} do{instead}"),
    Rule(
        missing_function,
        "samples have weights or offsets, and {name} needs {needs}, which are there for plain samples alone",
    ),
    Rule(
        lambda c: c.config.kernels not in ("auto", "numpy"),
        'kernels = "{kernels}" is wrong: numpy alone reads weights and offsets of samples, so it must be "auto"',
    ),
]


class SampleColumnRules(Plugin):
    """Weights and offsets of samples."""

    # Each column says whether noise hides its weights: data.tables.kept.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    unsupported: ClassVar[Reasons] = {Supports.DEVICES: "numpy alone reads weights and offsets of samples"}

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Raise UserError where the problem, the method or the kernels cannot take the columns."""
        assert data.columns is not None
        settings = ColumnSettings(self.config, data.columns.names)
        for sentence in explain_violations(RULES, settings, SentenceWords(self.config)):
            raise UserError(sentence)
        return setup
