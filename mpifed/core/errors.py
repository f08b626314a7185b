"""Exceptions for mistakes of the user and failures of a run, and how their messages are written."""

import difflib
import importlib
import socket
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

LONGEST = 600  # characters of a message


class UserError(Exception):
    """A mistake in the user's input. The message is one sentence with the key, its value and what would be right.

    >>> try:
    ...     mpifed.run(algorithm="fedadm")
    ... except mpifed.UserError as mistake:
    ...     print(mistake)
    unknown algorithm 'fedadm'; did you mean 'fedadmm'?
    """


class WrongValue(UserError, ValueError):
    """A value that an object cannot have. As a ValueError it is told with its place in the study, where it has one."""


class RunError(Exception):
    """A failure that ends a run, explained in one sentence; what was recorded so far stays in the result file.

    >>> try:
    ...     mpifed.run(algorithm={"name": "gd", "gamma": 1e9}, rounds=9)
    ... except mpifed.RunError as failure:
    ...     print(str(failure).partition(":")[0])
    f diverges
    """


class Singular(RunError):
    """No step of ``method`` from the model ``x`` (n,), whose Hessian is singular: the server's view of ``why``."""

    def __init__(self, method: str, why: str, x: Any) -> None:
        super().__init__(f"{method} finds no step: {why}")
        self.method = method
        self.x = x


def needed(module: str, sentence: str) -> Any:
    """Import a module; UserError with this sentence, in which {} is the reason, where it cannot be imported."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(sentence.replace("{}", str(error))) from None


def counted(number: int, what: str) -> str:
    """1 client, 2 clients, 1,000 clients."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def reason(error: BaseException) -> str:
    """The message of an error, in lower case, to end a sentence with; for an OSError, that of the system."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def failure(rank: int, error: BaseException) -> str:
    """The message for an error on a rank: that of a UserError alone, all others with the traceback."""
    here = f"rank {rank} on {socket.gethostname()}"
    match error:
        case UserError():
            return str(error)
        case MemoryError():  # wherever that was, the run is too large
            return f"{here} has no memory left: {reason(error)}".removesuffix(": ")
    # With where it happened: an error in the program is reported by users, who cannot make it happen again.
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{here} failed: {what}\n{where}"


@contextmanager
def concerning(file: str) -> Iterator[None]:
    """Put the name of a ``file`` in front of a UserError about what is in it, unless its sentence names the file."""
    try:
        yield
    except UserError as error:
        if file in str(error):
            raise
        raise UserError(f"{file}: {error}") from error


def unknown(what: str, name: Any, known: Collection[str], path: str = "") -> NoReturn:
    """Raise a UserError for an unknown ``name``, with the most similar known name or else a list of all."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    else:
        hint = "the choices are " + ", ".join(known) if known else "there are none here"
    raise UserError(f"unknown {what} {(f'{path}.{name}' if path else str(name))!r}; {hint}")


def sentence(mistake: object) -> str:
    """A message as one line of at most about LONGEST characters, without control characters."""
    text = printable(str(mistake))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def printable(text: str, keep: str = "") -> str:
    """Text with unprintable characters shown as escapes, except those in ``keep``."""
    # Names and texts of a file from elsewhere may hold codes that move the cursor of a terminal or rename its window.
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
