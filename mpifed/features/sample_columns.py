"""Feature of weights and offsets of samples, and which problems, methods and kernels take them.

Blocks have them from the start, and the problem itself computes with them.
"""

from typing import ClassVar

from mpifed.core.promises import Reasons, Supports
from mpifed.data.sample_columns import COLUMNS
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, LoadedSettings, Moment
from mpifed.features.feature import Plugin
from mpifed.features.matching import describe_needs
from mpifed.federation.traits import required_methods
from mpifed.problems.problem import Problem

PLAIN_ALONE = "clipped_grad"  # for samples without columns alone: bounds of privacy know no weights


def refused_column(c: LoadedSettings) -> Violation:
    """Return the first column that the problem does not take, with the problems that do; else None."""
    problem = c.config.problem
    assert c.data.columns is not None
    refused = next((name for name in c.data.columns.names if not problem.takes_column(name)), None)
    if refused is None:
        return None
    able = [name for name in Problem.choices if Problem.member(name, "problem").takes_column(refused)]
    logarithms = refused == "exposure" and problem.takes_column("offset")
    instead = "; data.offset takes the logarithms" if logarithms else ""
    return {"what": COLUMNS[refused], "able": ", ".join(able), "instead": instead}


def missing_function(c: LoadedSettings) -> Violation:
    """Return what the method needs and a problem has only for samples without columns, or None."""
    return {"needs": describe_needs([PLAIN_ALONE])} if PLAIN_ALONE in required_methods(c.config.algorithm) else None


class SampleColumnRules(Plugin):
    """Weights and offsets of samples."""

    # Each column says whether noise hides its weights: data.sample_columns.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    unsupported: ClassVar[Reasons] = {Supports.DEVICES: "numpy alone reads weights and offsets of samples"}

    conflicts = (
        Conflict(
            ("weights or offsets of samples", "a problem that takes none"),
            "samples have {what}, and problem {loss} takes none: {able} do{instead}",
            refused_column,
            Moment.DATA,
        ),
        Conflict(
            ("weights or offsets of samples", "a method that clips gradients of samples"),
            "samples have weights or offsets, and {name} needs {needs}, which are there for plain samples alone",
            missing_function,
            Moment.DATA,
        ),
        Conflict(
            ("weights or offsets of samples", "kernels"),
            'kernels = "{kernels}" is wrong: numpy alone reads weights and offsets of samples, so it must be "auto"',
            lambda c: c.config.kernels not in ("auto", "numpy"),
            Moment.DATA,
        ),
    )
