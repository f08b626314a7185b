"""Checks of the values that methods of a user's class return: a mistake is one sentence with the name of the file.

A guard is a function (component, result, *args) -> result. It gets the returned value and the arguments of a method,
raises Wrong if the value is impossible, and may convert it. Each family has a table of guards, method -> guard, most
of them made by ``require``, ``require_instance``, ``require_integer`` and ``require_array``.
"""

import functools
import inspect
import os
import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number, is_real_array
from mpifed.core.errors import RunError, UserError

Guard = Callable[..., Any]
REFUSING = ("__post_init__", "initial", "labels", "fit_labels", "dim")  # methods whose ValueError refuses their input
PACKAGE = __name__.partition(".")[0]
# Mistakes that users made: type and pattern of the error that Python, numpy or PyTorch raises, and the advice.
ADVICE: tuple[tuple[type[Exception], str, str], ...] = (
    (AttributeError, "immutable type", "; no attribute of a component is set: what changes belongs to the state"),
    (
        AttributeError,
        "'Federation'.*'(mix|local|add|gather)'",
        "; a method on a graph is derived from mpifed.GraphAlgorithm",
    ),
    (
        TypeError,
        "device type tensor to numpy",
        "; its clients' arrays are on a device: use f.xp in place of np, as in f.xp.sqrt(x)",
    ),
    (
        ValueError,
        "read-only",
        "; arrays that a method receives are read by others too: change a copy, as in x = x.copy()",
    ),
)


class UserClassError(UserError):
    """A mistake in a user's class, not in an experiment file; ``line`` is the first line of the method."""

    line = 0


class InvalidReturn(Exception):
    """An impossible return value of a method; the text says what it is and what would be right."""


@functools.cache
def is_user_class(cls: type) -> bool:
    """Return whether a class, or one of its bases, was written by a user."""
    return any(base.__module__.partition(".")[0] not in (PACKAGE, "msgspec", "builtins") for base in cls.__mro__)


def guard_methods(cls: type, guards: Mapping[str, Guard]) -> dict[str, Any]:
    """Wrap the methods of ``cls`` that a user has written and that have a guard: name -> function with its check."""
    methods = {}
    absent = object()
    for name, guard in ({"__post_init__": accept_any} | dict(guards)).items():
        # Statically, because getattr would return the function inside a staticmethod, which takes no component.
        method = inspect.getattr_static(cls, name, absent)
        if inspect.isfunction(method) and method.__module__.partition(".")[0] != PACKAGE:
            methods[name] = wrap_with_guard(method, guard)
        elif method is not absent and not callable(getattr(cls, name)) and not isinstance(method, property):
            raise ValueError(f"{name} of {cls.__name__} is {describe_value(method)}: it must be a method")
    return methods


def require(fits: Callable[..., bool], words: str) -> Guard:
    """Make a guard that accepts what ``fits(result, *args)``; else ``words``, with {0} for arguments, say why not."""

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        if not fits(result, *args):
            raise InvalidReturn(f"returns {describe_value(result)}{words.format(*args)}")
        return result

    return guard


def require_instance(cls: Any, words: str) -> Guard:
    """Make a guard that accepts instances of ``kind``."""
    return require(lambda result, *args: isinstance(result, cls), words)


def require_integer(minimum: int, words: str) -> Guard:
    """Make a guard that accepts whole numbers from ``minimum`` on and converts them to int."""
    guard = require(lambda result, *args: is_integer(result, minimum), words)
    return lambda component, result, *args, **named: int(guard(component, result, *args))


def require_array(
    shape: Callable[..., tuple[int, ...]], words: str, is_array: Callable[[Any], bool] = is_real_array
) -> Guard:
    """Make a guard that accepts arrays of the shape ``shape(component, *args)``."""

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        required = shape(component, *args)
        if not (is_array(result) or isinstance(result, np.floating)) or result.shape != required:
            raise InvalidReturn(f"returns {describe_value(result)}{words.format(*required, shape=required)}")
        return result

    return guard


def is_integer(value: Any, minimum: int) -> bool:
    """Return whether a value is a whole number and at least ``minimum``."""
    return is_number(value, int | np.integer) and bool(value >= minimum)


def accept_any(component: Any, result: Any, *args: Any) -> Any:
    """Accept any result; errors inside the method are still reported as those of a user's class."""
    return result


def wrap_with_guard(method: Callable[..., Any], guard: Guard, front: str = "", name: str = "") -> Callable[..., Any]:
    """Wrap a method so that an error in it, or a result that ``guard`` does not accept, is a UserError.

    ``kind`` are words in front of the method's name; with them, writing into a read-only array is left to the host,
    which has a message of its own. ``name`` replaces both.
    """
    name = name or f"{front}{method.__name__}"

    @functools.wraps(method)
    def call(component: Any, *args: Any, **named: Any) -> Any:
        try:
            result = method(component, *args, **named)
        except (UserError, RunError, MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # A user's method may raise anything. Errors that are not its fault pass: those of MPI, and a ValueError by
            # which it refuses labels or options, which becomes a sentence further up.
            if not is_fault_of(error, method) or (front and "read-only" in first_message_line(error)):
                raise
            raise UserClassError(failure_sentence(error, method, name)) from error
        try:
            return guard(component, result, *args, **named)
        except InvalidReturn as wrong:
            slip = UserClassError(f"{name} of {file_name_of(method)} {wrong}")
            slip.line = getattr(getattr(inspect.unwrap(method), "__code__", None), "co_firstlineno", 0)
            raise slip from None

    return call


def is_fault_of(error: BaseException, method: Callable[..., Any]) -> bool:
    """Return whether an error is the fault of the method that raised it."""
    refusing = type(error) is ValueError and method.__name__ in REFUSING
    return not (refusing or type(error).__module__.partition(".")[0] == "mpi4py")


def first_message_line(error: BaseException) -> str:
    """Return the first line of an error's message that is not empty."""
    try:
        return next(filter(None, map(str.strip, str(error).splitlines())), "")
    except Exception as other:  # a user's error may have a broken message
        return f"its message cannot be read: {type(other).__name__}"


def failure_sentence(error: BaseException, method: Callable[..., Any], name: str) -> str:
    """Write the sentence for an error in a user's method, with the last line of the user's file in the traceback."""
    # Not the last line of all, which is in numpy as often as not.
    code: Any = getattr(inspect.unwrap(method), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if code is not None and frame.filename == code.co_filename]
    line = lines[-1] if lines else getattr(code, "co_firstlineno", 0)
    what = f"{type(error).__name__}: {first_message_line(error)}".removesuffix(": ")
    return f"{name} of {file_name_of(method)} fails in line {line}: {what}{advice_for(error)}"


def advice_for(error: BaseException) -> str:
    """Return the advice for a common mistake, else an empty text."""
    text = first_message_line(error)
    return next((words for kind, sign, words in ADVICE if isinstance(error, kind) and re.search(sign, text)), "")


def file_name_of(method: Callable[..., Any]) -> str:
    """Return the name of the file of a user's method; in a notebook, that of its class."""
    code: Any = getattr(inspect.unwrap(method), "__code__", None)
    base = os.path.basename(getattr(code, "co_filename", ""))
    return base if base.endswith(".py") else method.__qualname__.partition(".")[0]


def describe_value(value: Any) -> str:
    """Describe a value for a sentence: its type, and the shape or length of an array or a tuple."""
    shape = getattr(value, "shape", None)
    if value is None:
        return "None"
    if shape is not None and getattr(value, "dtype", None) is not None:
        numbers = f" {value.dtype}" if getattr(value.dtype, "kind", "O") != "f" else ""
        noun = "an array" if type(value).__name__ in ("ndarray", "memmap") else f"a {type(value).__name__}"
        return f"{noun}{numbers} of shape {tuple(shape)}" if shape else "a single number"
    if isinstance(value, bool | int | float | complex):
        return f"the number {value}"
    noun = type(value).__name__
    count = f" of {len(value)}" if isinstance(value, list | tuple | dict) else ""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}{count}"
