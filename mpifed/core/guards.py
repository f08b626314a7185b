"""What a class of a user's own returns is checked where it enters: a mistake is one sentence with the name of its file.

A guard is a function (component, result, *args) -> result. It gets what a method returned and its arguments, raises
Wrong where that cannot be, and may put it into the form that the program uses. The families keep tables of guards,
method -> what it returns, mostly of the forms that are made here: ``returns``, ``instance``, ``whole`` and ``array``.
"""

import functools
import inspect
import os
import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number, is_real
from mpifed.core.errors import RunError, UserError

Guard = Callable[..., Any]
REFUSING = ("__post_init__", "initial", "labels", "fitted", "dim")  # methods whose ValueError refuses what they get
HERE = __name__.partition(".")[0]
# Mistakes that users made, by kind and sign of the error that Python, numpy or PyTorch raises then.
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


class Slip(UserError):
    """A mistake in a class of a user's own, not in an experiment file; ``line`` is where its method begins."""

    line = 0


class Wrong(Exception):
    """What a method returned cannot be; the text says what it is and what would be right."""


@functools.cache
def own(cls: type) -> bool:
    """Whether a class, or one that it is derived from, is a user's own."""
    return any(base.__module__.partition(".")[0] not in (HERE, "msgspec", "builtins") for base in cls.__mro__)


def guarded(cls: type, guards: Mapping[str, Guard]) -> dict[str, Any]:
    """The methods of ``cls`` that a user has written and that have a guard, with their checks: name -> function."""
    found = {}
    absent = object()
    for name, guard in ({"__post_init__": as_it_is} | dict(guards)).items():
        # Statically: getattr would give the function within a staticmethod, which takes no component.
        method = inspect.getattr_static(cls, name, absent)
        if inspect.isfunction(method) and method.__module__.partition(".")[0] != HERE:
            found[name] = checked(method, guard)
        elif method is not absent and not callable(getattr(cls, name)) and not isinstance(method, property):
            raise ValueError(f"{name} of {cls.__name__} is {shown(method)}: it must be a method")
    return found


def returns(fits: Callable[..., bool], words: str) -> Guard:
    """A form: what ``fits``, which gets the arguments too; else ``words``, which may name these by {0}, say why not."""

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        if not fits(result, *args):
            raise Wrong(f"returns {shown(result)}{words.format(*args)}")
        return result

    return guard


def instance(kind: Any, words: str) -> Guard:
    return returns(lambda result, *args: isinstance(result, kind), words)


def whole(least: int, words: str) -> Guard:
    form = returns(lambda result, *args: is_whole(result, least), words)
    return lambda component, result, *args, **named: int(form(component, result, *args))


def array(shape: Callable[..., tuple[int, ...]], words: str, is_array: Callable[[Any], bool] = is_real) -> Guard:
    """A form: an array of the {shape} that follows from the component and the arguments."""

    def guard(component: Any, result: Any, *args: Any, **named: Any) -> Any:
        wanted = shape(component, *args)
        if not (is_array(result) or isinstance(result, np.floating)) or result.shape != wanted:
            raise Wrong(f"returns {shown(result)}{words.format(*wanted, shape=wanted)}")
        return result

    return guard


def is_whole(value: Any, least: int) -> bool:
    return is_number(value, int | np.integer) and bool(value >= least)


def as_it_is(component: Any, result: Any, *args: Any) -> Any:
    """What is not checked; errors in the method are told as those of any other."""
    return result


def checked(method: Callable[..., Any], guard: Guard, kind: str = "", name: str = "") -> Callable[..., Any]:
    """The method with its guard; what goes wrong in it, or with what it returns, is a UserError.

    ``kind`` are words in front of its name; with them, writing into a message is left to the host, which knows of it.
    ``name`` stands for both.
    """
    name = name or f"{kind}{method.__name__}"

    @functools.wraps(method)
    def call(component: Any, *args: Any, **named: Any) -> Any:
        try:
            result = method(component, *args, **named)
        except (UserError, RunError, MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # A user's method may raise anything. What is no fault of it ends the run by its own name: MPI's errors,
            # and a ValueError by which labels or options are refused, which becomes a sentence further up.
            if not fault(error, method) or (kind and "read-only" in message(error)):
                raise
            raise Slip(failed(error, method, name)) from error
        try:
            return guard(component, result, *args, **named)
        except Wrong as wrong:
            slip = Slip(f"{name} of {file(method)} {wrong}")
            slip.line = getattr(getattr(inspect.unwrap(method), "__code__", None), "co_firstlineno", 0)
            raise slip from None

    return call


def fault(error: BaseException, method: Callable[..., Any]) -> bool:
    refusing = type(error) is ValueError and method.__name__ in REFUSING
    return not (refusing or type(error).__module__.partition(".")[0] == "mpi4py")


def message(error: BaseException) -> str:
    """The first line of the message of an error that has some text in it."""
    try:
        return next(filter(None, map(str.strip, str(error).splitlines())), "")
    except Exception as other:  # a user's error may have a broken message
        return f"its message cannot be read: {type(other).__name__}"


def failed(error: BaseException, method: Callable[..., Any], name: str) -> str:
    """The sentence for an error in a user's method, with the last line of the user's file that it passed."""
    # The last line of the user's file, not of the traceback, which ends in numpy as often as not.
    code: Any = getattr(inspect.unwrap(method), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if code is not None and frame.filename == code.co_filename]
    line = lines[-1] if lines else getattr(code, "co_firstlineno", 0)
    what = f"{type(error).__name__}: {message(error)}".removesuffix(": ")
    return f"{name} of {file(method)} fails in line {line}: {what}{advice(error)}"


def advice(error: BaseException) -> str:
    """What would be right, where a mistake is a common one."""
    text = message(error)
    return next((words for kind, sign, words in ADVICE if isinstance(error, kind) and re.search(sign, text)), "")


def file(method: Callable[..., Any]) -> str:
    """The file of a user's method without its folder; in a notebook, its class."""
    code: Any = getattr(inspect.unwrap(method), "__code__", None)
    base = os.path.basename(getattr(code, "co_filename", ""))
    return base if base.endswith(".py") else method.__qualname__.partition(".")[0]


def shown(value: Any) -> str:
    """What a value is, for a sentence: its type, and of an array or a tuple its shape or length."""
    shape = getattr(value, "shape", None)
    if value is None:
        return "None"
    if shape is not None and getattr(value, "dtype", None) is not None:
        numbers = f" {value.dtype}" if getattr(value.dtype, "kind", "O") != "f" else ""
        kind = "an array" if type(value).__name__ in ("ndarray", "memmap") else f"a {type(value).__name__}"
        return f"{kind}{numbers} of shape {tuple(shape)}" if shape else "a single number"
    if isinstance(value, bool | int | float | complex):
        return f"the number {value}"
    kind = type(value).__name__
    count = f" of {len(value)}" if isinstance(value, list | tuple | dict) else ""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}{count}"
