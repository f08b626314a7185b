"""Checks of a class, called by a Python program."""

from typing import Any

from threadpoolctl import threadpool_limits

from mpifed.api.study import StudyLike, build_table
from mpifed.checking import check as checking
from mpifed.checking.families import classes_named
from mpifed.checking.table import Report
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.objects import to_plain
from mpifed.mpi.launcher import read_launcher


def check(component: type[Component] | Component | str, experiment: StudyLike = None, /, **settings: Any) -> Report:
    """Check a class against its own traits in a small study: ``mpifed.check(mpifed.steps.ConstantStep(a=0.1))``.

    ``component``: an algorithm, a problem, a selection …, its class, or text as on the command line, "my.py:Class".
    ``experiment`` and ``settings`` describe the study as for ``run``; what they leave out is chosen so that it is
    small, and there are at most six rounds. The report is true where no check failed, and its ``rows`` are the checks:
    ``check``, ``outcome`` ("passed", "failed" or "could not be checked") and ``about``, the numbers or the reason.

    Raises UserError for a mistake in the study.
    """
    if (read_launcher()[0] or 1) > 1:
        raise UserError("mpifed.check works in one process and starts ranks itself: call it without mpirun")
    table = build_table(experiment, None, settings)
    if isinstance(component, str):
        cls = classes_named(component)[0]
        options = {"name": component}
    else:
        cls = component if isinstance(component, type) else type(component)
        if not issubclass(cls, Component):
            raise UserError(f"{cls.__name__} is no component: check takes an algorithm, a problem, a selection …")
        options = to_plain(component, "component")
    with threadpool_limits(1, "blas"):
        return checking.check(cls, options, table)
