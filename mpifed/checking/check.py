"""All checks of a class, in the order of the table."""

import tempfile
from pathlib import Path

from mpifed.checking import algorithms, curvature, parts, problems, promises, robust, runs, studies
from mpifed.checking.case import case_of
from mpifed.checking.families import Table
from mpifed.checking.table import Check, Report, carried_out
from mpifed.core.component import Component

CHECKS: dict[str, list[Check]] = {
    "algorithms": algorithms.CHECKS,
    "problems": [*problems.CHECKS, *curvature.CHECKS],
    **parts.CHECKS,
    **studies.CHECKS,
    **robust.CHECKS,
}


def checks_of(cls: type[Component]) -> list[Check]:
    return [*runs.EVERY, *CHECKS[cls.kind], *promises.EVERY, *promises.PRIVATE.get(cls.kind, [])]


def check(cls: type[Component], own: Table, table: Table) -> Report:
    """Check a class with the options ``own``, name included, in the study of a table, as far as that describes one.

    Raises UserError for a mistake in the table.
    """
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(cls, own, table, Path(folder))
        return Report(case.title, list(carried_out(checks_of(cls), case)))
