"""Checks, their outcomes, and the table of all checks of a class."""

import inspect
import os
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import RunError, UserError, error_line
from mpifed.core.guards import UserClassError, is_user_class

PASSED = "passed"
FAILED = "failed"
OPEN = "could not be checked"
PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"  # this folder, and no other one named mpifed, such as a clone
LIBRARIES = ("site-packages", sysconfig.get_path("stdlib"))  # parts of the paths of files that users do not write
NAME = 26  # characters of the name of a check
WIDTH = 110

Check = tuple[str, Callable[[Any], str]]  # its name, and a function of a case that returns a text on success


class CheckFailure(Exception):
    """The failure of a check; the text has its numbers, and ``methods`` are those of the class that are at fault."""

    def __init__(self, text: str, *methods: str) -> None:
        super().__init__(text)
        self.methods = methods


class Inconclusive(Exception):
    """The reason why a check could not be carried out."""


class CheckRow(NamedTuple):
    """A check, its outcome, and numbers or a reason."""

    check: str
    outcome: str
    about: str = ""

    def lines(self) -> list[str]:
        about = f": {self.about}" if self.about else ""
        text = f"{self.check:<{NAME}}{self.outcome}{about}"
        return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent=" " * (NAME + 4))


class Report(NamedTuple):
    """The table of all checks of a class; true if none failed."""

    title: str
    rows: list[CheckRow]

    @property
    def failed(self) -> list[CheckRow]:
        return [row for row in self.rows if row.outcome == FAILED]

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        lines = [line for row in self.rows for line in row.lines()]
        counts = [f"{sum(row.outcome == outcome for row in self.rows)} {outcome}" for outcome in (PASSED, FAILED, OPEN)]
        return "\n".join([self.title, "", *lines, "", ", ".join(counts)])


def run_checks(checks: Sequence[Check], case: Any) -> Iterator[CheckRow]:
    """Run checks one after the other and yield their rows; a repeated failure is not reported again."""
    reported: set[str] = set()
    for name, check in checks:
        row = run_check(name, check, case)
        if row.outcome == FAILED and row.about in reported:
            row = CheckRow(name, OPEN, "it fails as above")
        reported.add(row.about)
        yield row


def run_check(name: str, check: Callable[[Any], str], case: Any) -> CheckRow:
    try:
        # numbers that are not finite fail a check with a sentence; warnings of numpy would stand in between
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return CheckRow(name, PASSED, check(case))
    except Inconclusive as why:
        return CheckRow(name, OPEN, str(why))
    except UserClassError as slip:
        where = f" (line {slip.line})" if slip.line else ""
        return CheckRow(name, FAILED, f"{slip}{where}")
    except CheckFailure as failure:
        location = f"{locate(case.component, *failure.methods)}: " if failure.methods else ""
        return CheckRow(name, FAILED, f"{location}{failure}")
    except (UserError, RunError) as mistake:
        return CheckRow(name, FAILED, str(mistake))
    except Exception as error:
        return CheckRow(name, FAILED, describe_error(error))


def describe_error(error: Exception) -> str:
    """Describe an error in a user's code, with the last line outside of mpifed and its libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if is_user_file(frame.filename)]
    where = "".join(f"{os.path.basename(one.filename)}:{one.lineno} {one.name}: " for one in user_frames[-1:])
    return f"{where}{error_line(error)}"


def is_user_file(file: str) -> bool:
    """Return True if a file is a user's: neither of mpifed, nor of a library or a program ("<string>")."""
    return not file.startswith((PACKAGE, "<")) and not any(part in file for part in LIBRARIES)


def locate(component: Any, *names: str) -> str:
    """Return file and line of methods of a component, as in my.py:31 round, or of its class, or just its name."""
    cls: Any = type(component)
    codes = {name: getattr(inspect.unwrap(getattr(cls, name, None) or str), "__code__", None) for name in names}
    existing = {name: code for name, code in codes.items() if code is not None}
    users = {name: code for name, code in existing.items() if not code.co_filename.startswith(PACKAGE)}
    if is_user_class(cls) and not users:
        try:
            line = inspect.getsourcelines(cls)[1]
            return f"{os.path.basename(inspect.getfile(cls))}:{line} {cls.__name__}"
        except (OSError, TypeError):
            return cls.__name__
    lines = [
        f"{os.path.basename(code.co_filename)}:{code.co_firstlineno} {name}"
        for name, code in (users or existing).items()
    ]
    return ", ".join(lines) or cls.__name__
