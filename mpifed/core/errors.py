"""Exceptions for mistakes of the user and failures of a run, and functions that write their messages."""

import difflib
import importlib
import socket
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

LONGEST = 600  # characters of a message


class LastResult:
    """Words about what a method of a user's class has returned last: other errors may be its mistake."""

    text = ""


last_result = LastResult()


class UserError(Exception):
    """A mistake in the user's input; its message is one sentence with the key, its value and what would be right.

    >>> try:
    ...     mpifed.run(algorithm="fedadm")
    ... except mpifed.UserError as mistake:
    ...     print(mistake)
    unknown algorithm 'fedadm'; did you mean 'fedadmm'?
    """


class InvalidValue(UserError, ValueError):
    """A value that an object must not have; as a ValueError it is reported with its key in the study, if it has one."""


class RunError(Exception):
    """A failure that ends a run, explained in one sentence; the result file keeps the rounds recorded before it.

    >>> try:
    ...     mpifed.run(algorithm={"name": "gd", "gamma": 1e9}, rounds=9)
    ... except mpifed.RunError as failure:
    ...     print(str(failure).partition(":")[0])
    f diverges
    """


class SingularHessian(RunError):
    """A failure of ``method`` to find a step from the model ``x`` (n,), because the Hessian there is singular."""

    def __init__(self, method: str, why: str, x: Any) -> None:
        super().__init__(f"{method} finds no step: {why}")
        self.method = method
        self.x = x


def import_required(module: str, sentence: str) -> Any:
    """Import a module; if that fails, raise UserError with ``sentence``, in which {} becomes the reason."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(sentence.replace("{}", str(error))) from None


def format_count(number: int, what: str) -> str:
    """Write a number with its noun: 1 client, 2 clients, 1,000 clients."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def reason(error: BaseException) -> str:
    """Return the message of an error (for an OSError, that of the system) in lower case, as the end of a sentence."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def first_message_line(error: BaseException) -> str:
    """Return the first line of an error's message that is not empty."""
    try:
        return next(filter(None, map(str.strip, str(error).splitlines())), "")
    except Exception as other:  # a user's error may have a broken message
        return f"its message cannot be read: {type(other).__name__}"


def error_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    return f"{type(error).__name__}: {first_message_line(error)}".removesuffix(": ")


def with_article(noun: str) -> str:
    """Return a noun with its article: a list, an int."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def failure_message(rank: int, error: BaseException) -> str:
    """Return the message for an error on a rank: with the traceback, except for a UserError."""
    here = f"rank {rank} on {socket.gethostname()}"
    match error:
        case UserError():
            return str(error)
        case MemoryError():  # wherever it happened, the run is too large
            return f"{here} has no memory left: {reason(error)}".removesuffix(": ")
    # With the traceback: users who report an error of the program often cannot make it happen again.
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    if returned := vars(error).get("last_result"):
        here = f"{returned}, and then {here}"
        what += "; `python -m mpifed check` examines a class of your own"
    where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{here} failed: {what}\n{where}"


@contextmanager
def errors_about(file: str) -> Iterator[None]:
    """Put the name of ``file`` in front of each UserError raised inside, unless its sentence names the file already."""
    try:
        yield
    except UserError as error:
        if file in str(error):
            raise
        raise UserError(f"{file}: {error}") from error


def raise_unknown(what: str, name: Any, choices: Collection[str], path: str = "") -> NoReturn:
    """Raise a UserError for an unknown ``name``, with the most similar known name, or else all of them."""
    matches = difflib.get_close_matches(str(name), list(choices), 1)
    if matches:
        hint = f"did you mean {matches[0]!r}?"
    else:
        hint = "the choices are " + ", ".join(choices) if choices else "there are none here"
    raise UserError(f"unknown {what} {(f'{path}.{name}' if path else str(name))!r}; {hint}")


def to_one_line(mistake: object) -> str:
    """Write a message as one line of about LONGEST characters at most, without control characters."""
    text = escape_unprintable(str(mistake))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def escape_unprintable(text: str, keep: str = "") -> str:
    """Escape the unprintable characters of a text, except those in ``keep``."""
    if text.isprintable():
        return text
    # Names and texts of a file from elsewhere may hold codes that move the cursor of a terminal or rename its window.
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
