"""Wrapper of the methods of a user's class: a mistake in one is one sentence with the name of the file.

A method must return what its base class declares. Where another value would give other numbers in silence, such as an
array of another shape, its family has a guard for it, a function (component, result, *args) -> result: it gets the
returned value and the arguments of the method, raises InvalidReturn if the value is impossible, and may convert it.
Most of them are made by ``require`` and ``require_array``. All else that a class may do wrong is for ``mpifed check``.
"""

import functools
import inspect
import os
import re
import traceback
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number, is_real_array
from mpifed.core.errors import RunError, UserError, error_line, first_message_line, last_result, with_article

Guard = Callable[..., Any]
FINITE = ": it must be an array of finite numbers"
REFUSING = ("__post_init__", "initial", "labels", "fit_labels", "dim")  # methods whose ValueError refuses their input
PACKAGE = __name__.partition(".")[0]
# Mistakes that users made: type and pattern of the error that Python, numpy or PyTorch raises, and the advice.
ADVICE: tuple[tuple[type[Exception], str, str], ...] = (
    (AttributeError, "immutable type", "; no attribute of a component is set: what changes belongs to the state"),
    (
        AttributeError,
        "'Federation'.*'(mix|local|add|gather)'",
        "; a method on a graph is derived from mpifed.extend.GraphAlgorithm",
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


TYPE_NOUNS = {"dict": "dictionary", "str": "text", "int": "whole number", "float": "number", "Callable": "function"}
ALIKE: dict[Any, tuple[type, ...]] = {  # what passes for a type beside itself
    float: (float, int, np.number),
    int: (int, np.integer),
    bool: (bool, np.bool_),
    tuple: (tuple, list),
}
ANYTHING = (object, typing.Any, np.ndarray)  # arrays have guards of their own: they may be tensors, and have shapes


class UserClassError(UserError):
    """A mistake in a user's class, not in an experiment file; ``line`` is the first line of the method."""

    line = 0


class InvalidReturn(Exception):
    """An impossible return value of a method; the text says what it is and what would be right."""


@functools.cache
def is_user_class(cls: type) -> bool:
    """Return whether a class, or one of its bases, was written by a user."""
    return any(base.__module__.partition(".")[0] not in (PACKAGE, "msgspec", "builtins") for base in cls.__mro__)


def guard_methods(cls: type, family: type, guards: Mapping[str, Guard]) -> dict[str, Any]:
    """Wrap the methods of ``cls`` that a user has written and its ``family`` has: name -> function with its check."""
    declared = {name: value for base in reversed(family.__mro__) for name, value in vars(base).items()}
    methods = {}
    # Statically, because getattr would return the function inside a staticmethod, which takes no component.
    for name, method in inspect.getmembers_static(cls):
        base = declared.get(name)
        if inspect.isfunction(method) and method.__module__.partition(".")[0] != PACKAGE:
            if name in guards or inspect.isfunction(base) or name == "__post_init__":
                methods[name] = wrap_with_guard(method, join_guards(guards.get(name), require_declared(base)))
        elif inspect.isfunction(base) and not callable(getattr(cls, name)) and not isinstance(method, property):
            raise ValueError(f"{name} of {cls.__name__} is {describe_value(method)}: it must be a method")
    return methods


def require(fits: Callable[..., bool], words: str) -> Guard:
    """Make a guard that accepts what ``fits(result, *args)``; else ``words``, with {0} for arguments, say why not."""

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        if not fits(result, *args):
            raise InvalidReturn(f"returns {describe_value(result)}{words.format(*args)}")
        return result

    return guard


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


def require_finite(guard: Guard) -> Guard:
    """Make a guard that also asks for finite numbers."""
    return join_guards(guard, require(lambda result, *args: bool(np.isfinite(result).all()), FINITE)) or guard


def shaped_like(position: int, first: int, words: str) -> Guard:
    """Make a guard: a result has the shape of the argument at ``position`` from axis ``first`` on, and is finite."""
    return require_finite(require_array(lambda component, *args: np.shape(args[position])[first:], words))


def is_integer(value: Any, minimum: int) -> bool:
    """Return whether a value is a whole number and at least ``minimum``."""
    return is_number(value, int | np.integer) and bool(value >= minimum)


def require_declared(function: Any) -> Guard | None:
    """Make a guard that accepts what a method of a base class declares that it returns; None if that is anything."""
    try:
        classes = accepted_types(typing.get_type_hints(function)["return"])
    except (KeyError, NameError, TypeError):  # it declares nothing, or what only type checkers import
        return None
    if classes in ((), (type(None),)):  # what nobody uses may be anything
        return None
    nouns = [name_type(cls) for cls in classes if cls is not type(None)]
    none = ", or None" if type(None) in classes else ""
    alike = tuple([other for cls in classes for other in ALIKE.get(cls, (cls,))])
    return require(lambda result, *args: isinstance(result, alike), f": it must return {' or '.join(nouns)}{none}")


def join_guards(first: Guard | None, second: Guard | None) -> Guard | None:
    """Make a guard of two, either of which may be None; the second also says what is wrong where the first fails."""
    if first is None or second is None:
        return first or second

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        try:
            checked = first(component, result, *args, **named)
        except (AttributeError, TypeError, ValueError):
            second(component, result, *args, **named)
            raise
        return second(component, checked, *args, **named)

    return guard


def accepted_types(declared: Any) -> tuple[type, ...]:
    """Return the classes of an annotation, or none where it accepts anything."""
    if declared is None:
        return (type(None),)
    if isinstance(declared, types.UnionType) or typing.get_origin(declared) is typing.Union:
        parts = [accepted_types(part) for part in typing.get_args(declared)]
        return tuple([cls for part in parts for cls in part]) if all(parts) else ()
    origin = typing.get_origin(declared) or declared
    is_protocol = getattr(origin, "_is_protocol", False)
    return (origin,) if isinstance(origin, type) and origin not in ANYTHING and not is_protocol else ()


def name_type(cls: type) -> str:
    """Return the noun of a class in a sentence."""
    return with_article(TYPE_NOUNS.get(cls.__name__, cls.__name__))


def wrap_with_guard(
    method: Callable[..., Any], guard: Guard | None = None, front: str = "", name: str = ""
) -> Callable[..., Any]:
    """Wrap a method so that an error in it, or a result that ``guard`` does not accept, is a UserError.

    ``front`` are words in front of the method's name; with them, writing into a read-only array is left to the host,
    which has a message of its own. ``name`` replaces both.
    """
    name = name or f"{front}{method.__name__}"
    line = getattr(getattr(inspect.unwrap(method), "__code__", None), "co_firstlineno", 0)

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
            checked = result if guard is None else guard(component, result, *args, **named)
        except InvalidReturn as wrong:
            why = str(wrong)
        except (AttributeError, TypeError, ValueError) as error:  # the guard takes the result for what it should be
            why = f"returns {describe_value(result)}, with which a run cannot go on: {first_message_line(error)}"
        else:
            last_result.text = f"{name} of {file_name_of(method)} (line {line}) returned {describe_value(result)}"
            return checked
        slip = UserClassError(f"{name} of {file_name_of(method)} {why}")
        slip.line = line
        raise slip from None

    return call


def is_fault_of(error: BaseException, method: Callable[..., Any]) -> bool:
    """Return whether an error is the fault of the method that raised it."""
    refusing = type(error) is ValueError and method.__name__ in REFUSING
    return not (refusing or type(error).__module__.partition(".")[0] == "mpi4py")


def failure_sentence(error: BaseException, method: Callable[..., Any], name: str) -> str:
    """Write the sentence for an error in a user's method, with the last line of the user's file in the traceback."""
    # Not the last line of all, which is in numpy as often as not.
    code: Any = getattr(inspect.unwrap(method), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if code is not None and frame.filename == code.co_filename]
    line = lines[-1] if lines else getattr(code, "co_firstlineno", 0)
    return f"{name} of {file_name_of(method)} fails in line {line}: {error_line(error)}{advice_for(error)}"


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
    return f"{with_article(noun)}{count}"
