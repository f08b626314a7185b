"""The search space: methods with ranges of their options, and the settings drawn from them."""

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
from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError, reason
from mpifed.core.files import read_text_file
from mpifed.core.streams import stream
from mpifed.core.toml import flatten, from_toml, toml_value
from mpifed.experiment.config import parse_value
from mpifed.federation.traits import option_to_tune
from mpifed.sweeps.grid import parse_pairs

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")
INTEGER = re.compile(r"[+-]?\d+")
DEFAULT_FACTOR = 100.0  # the default range goes from 1/100 of an option's default to 100 times it
DEFAULT_RANGE = (1e-3, 10.0)  # for an option whose default depends on the data
LABEL = "label="  # before the name of a method among its options
DIGITS = 3  # significant digits of values drawn from a range


class Range(NamedTuple):
    """The numbers from low to high, evenly spaced in the logarithm if both are positive; ``whole`` numbers only."""

    low: float
    high: float
    whole: bool = False

    def at(self, fraction: float) -> float | int:
        """Return the number at ``fraction`` (0 … 1) of the way from low to high, rounded."""
        if self.low > 0:
            value = self.low * (self.high / self.low) ** fraction
        else:
            value = self.low + (self.high - self.low) * fraction
        return round(value) if self.whole else float(f"{value:.{DIGITS}g}")

    def spread(self, count: int) -> list[Any]:
        """Return ``count`` numbers from low to high, each once."""
        return list(dict.fromkeys(map(self.at, np.linspace(0, 1, count))))


class Choices(NamedTuple):
    """A list of values to choose from, with the methods of a range."""

    values: list[Any]

    def at(self, fraction: float) -> Any:
        return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]

    def spread(self, count: int) -> list[Any]:
        return self.values


SearchAxis = Range | list[Any]


class Trial(NamedTuple):
    """A setting: the options that are tuned, by dotted key, and the full table [algorithm]."""

    options: dict[str, Any]
    algorithm: dict[str, Any]


class TunedMethod(NamedTuple):
    """A method to tune, under a label, with the settings to try."""

    label: str
    tries: list[Trial]


def parse_method(text: str, runs: int, number: int) -> TunedMethod:
    """Parse a text such as "fedgia t=0.001..1 k0=1,5,10" to a method, or raise UserError; label=ours names it."""
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
    axes: dict[str, SearchAxis] = {}
    for word in (word for word in words[1:] if not word.startswith(LABEL)):
        key_values = parse_pairs(word, f"--method {text!r}:")
        key, first = key_values[0]
        if len(key_values) > 1:
            axes[key] = [parse_value(value) for _, value in key_values]
        elif axis := parse_range(first, key):
            axes[key] = axis
        else:
            fixed[key] = parse_value(first)
    return make_method((labels or words)[0], fixed, axes, runs, number)


def read_methods(path: str, runs: int) -> list[TunedMethod]:
    """Read the methods of a file, whose values may be lists and ranges "a..b"."""
    methods = []
    for number, (label, table) in enumerate(read_tables(path)):
        fixed: dict[str, Any] = {}
        axes: dict[str, SearchAxis] = {}
        for key, value in flatten(table).items():
            axis = parse_range(str(value), key) or value
            if axis is not value or (isinstance(value, list) and value):
                axes[key] = axis
            else:
                fixed[key] = value
        methods.append(make_method(label, fixed, axes, runs, number))
    return methods


def read_tables(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Read label and table [algorithm] of the methods in a file: its tables [[method]], each with a name."""
    try:
        text = read_text_file(path)
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


def parse_range(text: str, key: str) -> Range | None:
    """Parse "a..b" to a range; return None if the text is none."""
    match = RANGE.fullmatch(text)
    if match is None:
        return None
    low, high = float(match[1]), float(match[2])
    if not low < high:
        raise UserError(f"{key} = {text} is wrong: a range goes from a smaller number to a larger one")
    return Range(low, high, all(INTEGER.fullmatch(end) for end in match.groups()))


def assign(table: dict[str, Any], key: str, value: Any) -> None:
    """Write a value under a dotted key; a text where a table is needed is its name, as in run and sweep."""
    *parents, last = key.split(".")
    for parent in parents:
        if type(table.get(parent)) is str:
            table[parent] = {"name": table[parent]}
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise UserError(f"{key} = {toml_value(value)} is wrong: {parent} is not a table")
    table[last] = value


def nest_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the table [algorithm] with options given by dotted key, in any order."""
    table: dict[str, Any] = {}
    for key in sorted(options, key=lambda key: key.count(".")):
        # a copy, because settings share tables among their values, and later keys are written into them
        assign(table, key, copy.deepcopy(options[key]))
    return table


def make_method(label: str, fixed: dict[str, Any], axes: dict[str, SearchAxis], runs: int, number: int) -> TunedMethod:
    """Return a method with at most ``runs`` settings; without ``axes``, from the default range of its option."""
    axes = axes or default_axes(fixed)
    return TunedMethod(
        label, [Trial(options, nest_options(fixed | options)) for options in draw_settings(axes, runs, number)]
    )


def default_axes(fixed: dict[str, Any]) -> dict[str, SearchAxis]:
    """Return the range, around its default, of the option that a method is tuned by."""
    algorithm = Algorithm.build(nest_options(fixed), "algorithm")
    key = option_to_tune(algorithm)
    if not key:
        raise UserError(f"{fixed['name']} does not say what it is tuned by: give a range, such as KEY=0.01..1")
    value = getattr(algorithm, key)
    if not (value is None or is_number(value)):  # a rule for a step size
        key += ".a"
        value = getattr(value, "a", None)
    if value is None:
        return {key: Range(*DEFAULT_RANGE)}
    return {key: Range(value / DEFAULT_FACTOR, value * DEFAULT_FACTOR)}


def draw_settings(axes: dict[str, SearchAxis], runs: int, number: int) -> list[dict[str, Any]]:
    """Draw at most ``runs`` different settings: a grid if there is at most one range, else a Latin hypercube.

    ``number`` is that of the method, so that methods draw different numbers.
    """
    lists = {key: Choices(axis) for key, axis in axes.items() if isinstance(axis, list)}
    every: list[Any] = [lists.get(key, axis) for key, axis in axes.items()]
    ranges = len(every) - len(lists)
    left = runs // math.prod(len(axis.values) for axis in lists.values())  # settings for each combination of the lists
    rows: Iterable[tuple[Any, ...]]
    # with two ranges a grid would try few values of each; in a hypercube every setting has another value
    if ranges <= 1 and left >= 1 + ranges:
        rows = itertools.product(*(axis.spread(left) for axis in every))
    else:
        fractions = hypercube(len(axes), runs, number)
        rows = (tuple(axis.at(fraction) for axis, fraction in zip(every, row, strict=True)) for row in fractions)
    combinations = [dict(zip(axes, row, strict=True)) for row in rows]
    # two settings may be equal after rounding, and would run twice under one name
    return list({toml_value(setting): setting for setting in combinations}.values())


def hypercube(dimensions: int, count: int, number: int) -> list[tuple[float, ...]]:
    """Return ``count`` points of a Latin hypercube in (0, 1)^dimensions."""
    # a fixed seed, not the study's: the same command continues with the same settings, whatever the study says
    rng = stream(0, "tuning", number)
    columns = [((rng.permutation(count) + 0.5) / count).tolist() for _ in range(dimensions)]
    return list(zip(*columns, strict=True))
