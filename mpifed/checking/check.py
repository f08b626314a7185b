"""The checks of every family, and the function that runs them."""

import tempfile
from pathlib import Path

from mpifed.checking import algorithms, parts, problems, promises, runs, studies
from mpifed.checking.case import make_case
from mpifed.checking.families import StudyDict
from mpifed.checking.table import Check, Report, run_checks
from mpifed.core.component import Component

CHECKS: dict[str, list[Check]] = {
    "algorithms": algorithms.CHECKS,
    "problems": problems.CHECKS,
    **parts.CHECKS,
    **studies.CHECKS,
}


def checks_of(cls: type[Component]) -> list[Check]:
    return [*runs.EVERY, *CHECKS[cls.kind], *promises.EVERY, *promises.PRIVATE.get(cls.kind, [])]


def check(cls: type[Component], options: StudyDict, table: StudyDict) -> Report:
    """Check a class with these options, name included, in the study of a table, completed where it is silent.

    Raises UserError for a mistake in the table.
    """
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(cls, options, table, Path(folder))
        return Report(case.title, list(run_checks(checks_of(cls), case)))
