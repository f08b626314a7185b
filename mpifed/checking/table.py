"""What a check is, how it ends, and the table of all checks of a class."""

import inspect
import os
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.guards import Slip, message, own

PASSED = "passed"
FAILED = "failed"
OPEN = "could not be checked"
PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"  # and no other folder of this name, such as that of a clone
LIBRARIES = ("site-packages", sysconfig.get_path("stdlib"))  # parts of the names of files that users do not write
NAME = 26  # characters of the name of a check
WIDTH = 110

Check = tuple[str, Callable[[Any], str]]  # what is checked, and a function of a case that returns words about it


class Found(Exception):
    """A check has failed; the text has its numbers, and ``place`` the user's method, or ""."""

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(f"{place}: {text}" if place else text)


class Open(Exception):
    """Something could not be checked; the text says why."""


class Row(NamedTuple):
    """What was checked, how it ended, and numbers or reasons."""

    check: str
    outcome: str
    about: str = ""

    def lines(self) -> list[str]:
        about = f": {self.about}" if self.about else ""
        text = f"{self.check:<{NAME}}{self.outcome}{about}"
        return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent=" " * (NAME + 4))


class Report(NamedTuple):
    """The table of all checks of a class; true where nothing failed."""

    title: str
    rows: list[Row]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.outcome == FAILED]

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        lines = [line for row in self.rows for line in row.lines()]
        counts = [f"{sum(row.outcome == outcome for row in self.rows)} {outcome}" for outcome in (PASSED, FAILED, OPEN)]
        return "\n".join([self.title, "", *lines, "", ", ".join(counts)])


def carried_out(checks: Sequence[Check], case: Any) -> Iterator[Row]:
    """The rows of checks, made one after the other; what failed already is not told again."""
    told: set[str] = set()
    for name, check in checks:
        row = ended(name, check, case)
        if row.outcome == FAILED and row.about in told:
            row = Row(name, OPEN, "it fails as above")
        told.add(row.about)
        yield row


def ended(name: str, check: Callable[[Any], str], case: Any) -> Row:
    try:
        # what is not finite fails a check with a sentence of its own, and warnings of numpy would stand between them
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return Row(name, PASSED, check(case))
    except Open as why:
        return Row(name, OPEN, str(why))
    except Slip as slip:
        where = f" (line {slip.line})" if slip.line else ""
        return Row(name, FAILED, f"{slip}{where}")
    except (Found, UserError, RunError) as mistake:
        return Row(name, FAILED, str(mistake))
    except Exception as error:
        return Row(name, FAILED, raised(error))


def raised(error: Exception) -> str:
    """An error in a user's code, with the last line outside of mpifed and its libraries that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if users(frame.filename)]
    where = f"{os.path.basename(mine[-1].filename)}:{mine[-1].lineno} {mine[-1].name}: " if mine else ""
    return f"{where}{type(error).__name__}: {message(error)}".removesuffix(": ")


def users(file: str) -> bool:
    """Whether a user has written the code in a file: not mpifed, no library and no program ("<string>")."""
    return not file.startswith((PACKAGE, "<")) and not any(part in file for part in LIBRARIES)


def place(component: Any, *names: str) -> str:
    """File and line of methods of a component, as in my.py:31 round, or of its class; its name where there is none."""
    cls: Any = type(component)
    codes = {name: getattr(inspect.unwrap(getattr(cls, name, None) or str), "__code__", None) for name in names}
    there = {name: code for name, code in codes.items() if code is not None}
    mine = {name: code for name, code in there.items() if not code.co_filename.startswith(PACKAGE)}
    if own(cls) and not mine:
        try:
            line = inspect.getsourcelines(cls)[1]
            return f"{os.path.basename(inspect.getfile(cls))}:{line} {cls.__name__}"
        except (OSError, TypeError):
            return cls.__name__
    lines = [
        f"{os.path.basename(code.co_filename)}:{code.co_firstlineno} {name}" for name, code in (mine or there).items()
    ]
    return ", ".join(lines) or cls.__name__
