"""Weights and offsets that samples bring with them: which problems, methods and kernels go with them.

Blocks have them from the start, and the problem itself computes with them.
"""

from typing import NamedTuple

from mpifed.data.base import Dataset
from mpifed.data.sample_columns import COLUMNS
from mpifed.features.feature import Feature
from mpifed.features.findings import promises
from mpifed.features.matching import described
from mpifed.features.rule import Found, Rule, refuse
from mpifed.features.settings import Experiment
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs
from mpifed.problems.base import Problem

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
    return {"what": COLUMNS[wrong], "loss": problem.label(), "able": ", ".join(able), "instead": instead}


def lacking(c: Columned) -> Found:
    """What the method needs, and a problem has for plain samples alone."""
    method = c.config.algorithm
    return {"name": method.label(), "needs": described([PLAIN_ALONE])} if PLAIN_ALONE in needs(method) else None


def private(c: Columned) -> Found:
    """Whether weights would change what noise of the method hides."""
    weighted = "weight" in c.names or "frequency" in c.names
    return {"name": c.config.algorithm.label()} if weighted and promises(c.config) else None


def other_kernels(c: Columned) -> Found:
    """The kernels that are asked for and are not numpy's."""
    kernels = c.config.kernels
    return {"kernels": kernels} if kernels not in ("auto", "numpy") else None


RULES: list[Rule[Columned]] = [
    Rule(strange, "samples have {what}, and problem {loss} takes none: {able} do{instead}"),
    Rule(lacking, "samples have weights or offsets, and {name} needs {needs}, which are there for plain samples alone"),
    Rule(private, "samples have weights, and the privacy that {name} guarantees here is that of samples without"),
    Rule(
        other_kernels,
        'kernels = "{kernels}" is wrong: numpy alone reads weights and offsets of samples, so it must be "auto"',
    ),
]


class SampleColumns(Feature):
    """Weights and offsets of samples."""

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """UserError where the problem, the method or the kernels cannot have them."""
        assert data.columns is not None
        refuse(Columned(self.config, data.columns.names), RULES)
        return setup
