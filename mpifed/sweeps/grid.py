"""The points of a sweep: every combination of the given values, each a complete experiment with its file and cost."""

import copy
import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.toml import flatten, toml_value
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.sweeps.cost import cost

MAX_POINTS = 100_000  # of a sweep
LONGEST = 100  # characters of a name without its hash
INTEGER = r"[+-]?\d{1,18}"
RANGE = re.compile(rf"({INTEGER}):({INTEGER})(?::({INTEGER}))?")
LIKE_RANGE = re.compile(r"[+-]?\d[\d.eE+-]*(:[+-]?\d[\d.eE+-]*){1,2}")

GridSetting = tuple[tuple[str, str], ...]  # (key, value) of keys that change together


class Point(NamedTuple):
    """A run of a sweep: its name, from the keys of the grids, and its estimated cost in seconds (see ``cost``)."""

    name: str
    words: tuple[str, ...]
    config: Experiment
    cost: float

    @property
    def file(self) -> str:
        return f"{self.name}.h5"


def points(table: dict[str, Any], words: Sequence[str], grids: Iterable[str], zips: Iterable[str] = ()) -> list[Point]:
    """Return the product of all grids on top of ``table`` and the overrides ``words``, without repetitions.

    Raise UserError, which names the point, for an invalid configuration.
    """
    axes = [parse_grid(text) for text in grids] + [parse_zip(text) for text in zips]
    if not axes:
        raise UserError("a sweep needs --grid KEY=VALUES, for example --grid algorithm.k0=1,5,10 --grid seed=0:20")
    grid_keys = [short_key(key) for axis in axes for key, _ in axis[0]]
    overridden = [short_key(word.partition("=")[0].strip()) for word in words]
    for k, key in enumerate(grid_keys):
        if key in grid_keys[:k] or key in overridden:
            sources = "two grids" if key in grid_keys[:k] else "a grid and an override"
            raise UserError(f"{key} is given twice: in {sources}")
    if (count := math.prod(map(len, axes))) > MAX_POINTS:
        raise UserError(f"a sweep has at most {MAX_POINTS:,} points, and these grids have {count:,}")
    # keyed by the full configuration, so that 1 and 1.0, or a default and its value, are one run with the first name
    points: dict[str, Point] = {}
    for combination in itertools.product(*axes):
        setting = [pair for part in combination for pair in part]
        name = file_name(setting)
        overrides = tuple(f"{key}={value}" for key, value in setting)
        try:
            config = configuration.experiment(configuration.override(copy.deepcopy(table), [*words, *overrides]))
        except UserError as mistake:
            raise UserError(f"point {name}: {mistake}") from None
        points.setdefault(config.toml(), Point(name, overrides, config, cost(config)))
    return list(points.values())


def order_points(points: Sequence[Point], order: str = "cost", part: str | None = None) -> list[Point]:
    """Return the points by rising cost, or as they are, and of these the i-th of n parts for ``part`` i/n."""
    result = sorted(points, key=lambda point: point.cost) if order == "cost" else list(points)
    if part is None:
        return result
    i, _, n = part.partition("/")
    if not (i.isdecimal() and n.isdecimal() and int(i) < int(n)):
        raise UserError(f"--part {part} is wrong: write i/n with i from 0 to n − 1, for example 0/4, 1/4, 2/4 and 3/4")
    return result[int(i) :: int(n)]


def check_ranks(points: Sequence[Point], size: int) -> None:
    """Raise UserError if a point has too few clients for ``size`` ranks."""
    for point in points:
        m = point.config.data.clients
        if m is not None and size > m + 1:
            right = f"start at most {m + 1}, one for the server and one for each client"
            raise UserError(f"{size} ranks are too many for point {point.name} of {m} clients: {right}")


def parse_grid(text: str) -> list[GridSetting]:
    """Parse KEY=VALUES into settings of one key each."""
    return [((key, value),) for key, value in parse_pairs(text, "--grid")]


def parse_zip(text: str) -> list[GridSetting]:
    """Parse KEY=VALUES;KEY=VALUES … into settings of all these keys: the first values, then the second values …"""
    columns = [parse_pairs(part, "--zip") for part in split_outside(text, ";") if part.strip()]
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(f"{column[0][0]} has {len(column)}" for column in columns) or "there is no key"
        raise UserError(f"--zip {text!r} is wrong: its keys must have equally many values, but {counts}")
    return list(zip(*columns, strict=True))


def parse_pairs(text: str, option: str) -> list[tuple[str, str]]:
    """Parse KEY=VALUES into (key, value) for each of the values."""
    key, equals, rest = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{option} {text!r} is wrong: write KEY=VALUES, for example algorithm.k0=1,5,10")
    parts = split_outside(rest, ",")
    return [(key.strip(), value) for part in parts for value in parse_values(part.strip(), f"{option} {text!r}")]


def parse_values(part: str, what: str) -> list[str]:
    """Return one value, or those of a range a:b or a:b:step without b; errors call the option ``what``."""
    if not part:
        raise UserError(f"{what} is wrong: a value is missing")
    match = RANGE.fullmatch(part)
    if match is None:
        if LIKE_RANGE.fullmatch(part):
            raise UserError(f"{what} is wrong: a range has whole numbers, such as 0:20 or 0:20:5, and not {part}")
        return [part]
    a, b, step = (int(number or 1) for number in match.groups())
    numbers = range(a, b, step) if step else range(0)
    if not 0 < len(numbers) <= MAX_POINTS:
        many = f"more than {MAX_POINTS:,}" if len(numbers) else "no"
        raise UserError(f"{what} is wrong: the range {part} has {many} values")
    return [str(number) for number in numbers]


def split_outside(text: str, at: str) -> list[str]:
    """Split ``text`` at the characters ``at`` that are outside brackets and quotes."""
    parts = []
    begin = depth = 0
    quote = ""
    for k, c in enumerate(text):
        # as in TOML: in '…' nothing is escaped, in "…" a backslash keeps a quote from ending the text
        if quote:
            quote = "" if c == quote and (c == "'" or text[k - 1] != "\\") else quote
        elif c in "\"'":
            quote = c
        elif c == at and depth <= 0:
            parts.append(text[begin:k])
            begin = k + 1
        else:
            depth += (c in "[{") - (c in "]}")
    return [*parts, text[begin:]]


def short_key(key: str) -> str:
    """Return one spelling of a key that has two: algorithm for algorithm.name."""
    return key.removesuffix(".name")


def file_name(setting: Iterable[tuple[str, str]]) -> str:
    """Return a file name such as k0=5,seed=3: the last parts of the keys, in alphabetical order of the keys.

    Characters unfit for a file name become _; a hash keeps such names, and names that are too long, distinct.
    """
    values = {short_key(key): value for key, value in setting}
    lasts = [key.rpartition(".")[2] for key in values]
    short = {key: last if lasts.count(last) == 1 else key for key, last in zip(values, lasts, strict=True)}
    text = ",".join(f"{short[key]}={file_name_part(configuration.parse_value(values[key]))}" for key in sorted(values))
    clean = re.sub(r"[^\w.=,+-]+", "_", text, flags=re.ASCII)
    # the hash is of the full text: values that differ only in characters that became _ are two files
    if clean == text and len(text) <= LONGEST:
        return text
    return f"{clean[:LONGEST]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def file_name_part(value: Any) -> str:
    """Format a value for a file name; a table is its name and other keys: fedavg-k0=5-step=log2-step.a=0.8."""
    if isinstance(value, list):
        return "-".join(map(file_name_part, value))
    if isinstance(value, dict):
        parts = {key.removesuffix(".name"): file_name_part(part) for key, part in flatten(value).items()}
        first = [parts.pop("name")] if "name" in parts else []
        return "-".join([*first, *(f"{key}={part}" for key, part in parts.items())])
    return format_value(value)


def format_value(value: Any) -> str:
    """Format a value as on the command line: texts without quotes."""
    return value if isinstance(value, str) else toml_value(value)
