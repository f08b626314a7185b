"""What to try: methods with ranges of their options, and the settings drawn from them."""

import copy
import itertools
import math
import re
import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.parts.step_sizes import Step
from mpifed.core.errors import UserError, reason
from mpifed.core.files import text_of
from mpifed.core.streams import stream
from mpifed.core.toml import flat, from_toml, toml_value
from mpifed.experiment.config import parse
from mpifed.federation.traits import tuned
from mpifed.sweeps.grid import pairs

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")
WHOLE = re.compile(r"[+-]?\d+")
WIDE = 100.0  # a usual range goes from 1/100 of the default to 100 times it
UNSET = (1e-3, 10.0)  # usual range of an option whose default depends on the data
LABEL = "label="  # before the name of a method among its options
DIGITS = 3  # significant digits of the values that are tried


class Range(NamedTuple):
    """All numbers from low to high: evenly spaced in the logarithm where both are positive; ``whole`` numbers only."""

    low: float
    high: float
    whole: bool = False

    def at(self, share: float) -> float | int:
        """The number at a share of the way from low to high, rounded."""
        if self.low > 0:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        return round(value) if self.whole else float(f"{value:.{DIGITS}g}")

    def spread(self, count: int) -> list[Any]:
        """So many numbers from low to high, each once."""
        return list(dict.fromkeys(map(self.at, np.linspace(0, 1, count))))


class Values(NamedTuple):
    """Values to choose from, as a range has numbers."""

    values: list[Any]

    def at(self, share: float) -> Any:
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def spread(self, count: int) -> list[Any]:
        return self.values


Axis = Range | list[Any]


class Try(NamedTuple):
    """A setting: the options that are tuned, by dotted key, and the whole table [algorithm]."""

    options: dict[str, Any]
    algorithm: dict[str, Any]


class Method(NamedTuple):
    """What is tuned under a name: the settings to try."""

    label: str
    tries: list[Try]


def from_text(text: str, runs: int, number: int) -> Method:
    """The method of a text such as "fedgia t=0.001..1 k0=1,5,10", called "ours" with a word label=ours.

    UserError where it is none.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--method {text!r} is wrong: {error}") from None
    if not words or "=" in words[0]:
        raise UserError(f"--method {text!r} is wrong: write a name and options, such as 'fedgia t=0.001..1 k0=1,5,10'")
    fixed: dict[str, Any] = {"name": words[0]}
    labels = [word.removeprefix(LABEL) for word in words if word.startswith(LABEL)]
    if "" in labels or len(labels) > 1:
        raise UserError(f"--method {text!r} is wrong: it must have one {LABEL}NAME at most, such as {LABEL}ours")
    axes: dict[str, Axis] = {}
    for word in (word for word in words[1:] if not word.startswith(LABEL)):
        found = pairs(word, f"--method {text!r}:")
        key, first = found[0]
        if len(found) > 1:
            axes[key] = [parse(value) for _, value in found]
        elif axis := as_range(first, key):
            axes[key] = axis
        else:
            fixed[key] = parse(first)
    return method((labels or words)[0], fixed, axes, runs, number)


def from_file(path: str, runs: int) -> list[Method]:
    """The methods of a file, whose values may be lists and ranges "a..b"."""
    found = []
    for number, (label, table) in enumerate(read(path)):
        fixed: dict[str, Any] = {}
        axes: dict[str, Axis] = {}
        for key, value in flat(table).items():
            axis = as_range(str(value), key) or value
            if axis is not value or (isinstance(value, list) and value):
                axes[key] = axis
            else:
                fixed[key] = value
        found.append(method(label, fixed, axes, runs, number))
    return found


def read(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Label and table [algorithm] of the methods in a file: its tables [[method]], each with a name."""
    try:
        text = text_of(path)
    except (OSError, ValueError) as error:
        raise UserError(f"--methods {path} is wrong: it cannot be read: {reason(error)}") from None
    try:
        tables = msgspec.convert(from_toml(text, path).get("method"), list[dict[str, Any]])
    except msgspec.ValidationError:
        raise UserError(f"--methods {path} is wrong: it must have tables [[method]], each with a name") from None
    for number, table in enumerate(tables, 1):
        if not isinstance(table.get("name"), str):
            raise UserError(f'--methods {path} is wrong: method {number} has no name, such as name = "fedgia"')
    return [(str(table.pop("label", table["name"])), table) for table in tables]


def as_range(text: str, key: str) -> Range | None:
    found = RANGE.fullmatch(text)
    if found is None:
        return None
    low, high = float(found[1]), float(found[2])
    if not low < high:
        raise UserError(f"{key} = {text} is wrong: a range goes from a smaller number to a larger one")
    return Range(low, high, all(WHOLE.fullmatch(end) for end in found.groups()))


def assign(table: dict[str, Any], key: str, value: Any) -> None:
    """Write a value under a dotted key; a text in the place of a table is its name, as in run and sweep."""
    *parents, last = key.split(".")
    for parent in parents:
        if type(table.get(parent)) is str:
            table[parent] = {"name": table[parent]}
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise UserError(f"{key} = {toml_value(value)} is wrong: {parent} is not a table")
    table[last] = value


def table_of(options: dict[str, Any]) -> dict[str, Any]:
    """The table [algorithm] with options by dotted key, in whatever order these are."""
    found: dict[str, Any] = {}
    for key in sorted(options, key=lambda key: key.count(".")):
        # a copy: settings share the tables among their values, which others are written into
        assign(found, key, copy.deepcopy(options[key]))
    return found


def method(label: str, fixed: dict[str, Any], axes: dict[str, Axis], runs: int, number: int) -> Method:
    """At most ``runs`` settings of a method; without ``axes``, of the usual range of its option."""
    axes = axes or usual(fixed)
    return Method(label, [Try(options, table_of(fixed | options)) for options in settings(axes, runs, number)])


def usual(fixed: dict[str, Any]) -> dict[str, Axis]:
    """The range of the option that a method is tuned by, around its default."""
    algorithm = Algorithm.build(table_of(fixed), "algorithm")
    key = tuned(algorithm)
    if not key:
        raise UserError(f"{fixed['name']} does not say what it is tuned by: give a range, such as KEY=0.01..1")
    value = getattr(algorithm, key)
    if isinstance(value, Step):
        key += ".a"
        value = getattr(value, "a", None)
    if value is None:
        return {key: Range(*UNSET)}
    return {key: Range(value / WIDE, value * WIDE)}


def settings(axes: dict[str, Axis], runs: int, number: int) -> list[dict[str, Any]]:
    """At most ``runs`` different settings: a grid where there is one range at most, else a Latin hypercube.

    ``number`` is that of the method, so that methods draw different numbers.
    """
    lists = {key: Values(axis) for key, axis in axes.items() if isinstance(axis, list)}
    every: list[Any] = [lists.get(key, axis) for key, axis in axes.items()]
    ranges = len(every) - len(lists)
    left = runs // math.prod(len(axis.values) for axis in lists.values())  # settings for each combination of the lists
    rows: Iterable[tuple[Any, ...]]
    # with two ranges a grid would try few values of each, where every setting of a hypercube has another one
    if ranges <= 1 and left >= 1 + ranges:
        rows = itertools.product(*(axis.spread(left) for axis in every))
    else:
        shares = hypercube(len(axes), runs, number)
        rows = (tuple(axis.at(share) for axis, share in zip(every, row, strict=True)) for row in shares)
    found = [dict(zip(axes, row, strict=True)) for row in rows]
    # rounding may make two settings one, which would run twice under one name
    return list({toml_value(setting): setting for setting in found}.values())


def hypercube(dimensions: int, count: int, number: int) -> list[tuple[float, ...]]:
    # a seed of its own, not the study's: the same command goes on with the same settings, whatever the study says
    rng = stream(0, "tuning", number)
    columns = [((rng.permutation(count) + 0.5) / count).tolist() for _ in range(dimensions)]
    return list(zip(*columns, strict=True))
