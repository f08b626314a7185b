"""The points of a sweep: every combination of the given values, each a complete experiment with its file and cost."""

import copy
import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.toml import flat, toml_value
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.sweeps.cost import cost

MOST = 100_000  # points of a sweep
LONGEST = 100  # characters of a name without its hash
WHOLE = r"[+-]?\d{1,18}"
RANGE = re.compile(rf"({WHOLE}):({WHOLE})(?::({WHOLE}))?")
LIKE_RANGE = re.compile(r"[+-]?\d[\d.eE+-]*(:[+-]?\d[\d.eE+-]*){1,2}")

Setting = tuple[tuple[str, str], ...]  # (key, value) of keys that go together


class Point(NamedTuple):
    """One run of a sweep: its name, from the keys of the grids, and its estimated cost in seconds (see ``cost``)."""

    name: str
    words: tuple[str, ...]
    config: Experiment
    cost: float

    @property
    def file(self) -> str:
        return f"{self.name}.h5"


def points(table: dict[str, Any], words: Sequence[str], grids: Iterable[str], zips: Iterable[str] = ()) -> list[Point]:
    """The product of all grids on top of ``table`` and the overrides ``words``, without repetitions.

    UserError, which names the point, for an invalid configuration.
    """
    axes = [grid(text) for text in grids] + [zipped(text) for text in zips]
    if not axes:
        raise UserError("a sweep needs --grid KEY=VALUES, for example --grid algorithm.k0=1,5,10 --grid seed=0:20")
    keys = [whole(key) for axis in axes for key, _ in axis[0]]
    given = [whole(word.partition("=")[0].strip()) for word in words]
    for k, key in enumerate(keys):
        if key in keys[:k] or key in given:
            places = "two grids" if key in keys[:k] else "a grid and an override"
            raise UserError(f"{key} is given twice: in {places}")
    if (count := math.prod(map(len, axes))) > MOST:
        raise UserError(f"a sweep has at most {MOST:,} points, and these grids have {count:,}")
    # by the whole configuration, so that 1 and 1.0, or a default and its value, are one run; of such the first names it
    found: dict[str, Point] = {}
    for combination in itertools.product(*axes):
        setting = [pair for part in combination for pair in part]
        name = file_name(setting)
        own = tuple(f"{key}={value}" for key, value in setting)
        try:
            config = configuration.experiment(configuration.override(copy.deepcopy(table), [*words, *own]))
        except UserError as mistake:
            raise UserError(f"point {name}: {mistake}") from None
        found.setdefault(config.toml(), Point(name, own, config, cost(config)))
    return list(found.values())


def ordered(points: Sequence[Point], order: str = "cost", part: str | None = None) -> list[Point]:
    found = sorted(points, key=lambda point: point.cost) if order == "cost" else list(points)
    if part is None:
        return found
    i, _, n = part.partition("/")
    if not (i.isdecimal() and n.isdecimal() and int(i) < int(n)):
        raise UserError(f"--part {part} is wrong: write i/n with i from 0 to n − 1, for example 0/4, 1/4, 2/4 and 3/4")
    return found[int(i) :: int(n)]


def hosted(points: Sequence[Point], size: int) -> None:
    """UserError where a point has too few clients for so many ranks."""
    for point in points:
        m = point.config.data.clients
        if m is not None and size > m + 1:
            right = f"start at most {m + 1}, one for the server and one for each client"
            raise UserError(f"{size} ranks are too many for point {point.name} of {m} clients: {right}")


def grid(text: str) -> list[Setting]:
    """KEY=VALUES as settings of one key each."""
    return [((key, value),) for key, value in pairs(text, "--grid")]


def zipped(text: str) -> list[Setting]:
    """KEY=VALUES;KEY=VALUES … as settings of all these keys: the first values, then the second values …"""
    columns = [pairs(part, "--zip") for part in split(text, ";") if part.strip()]
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(f"{column[0][0]} has {len(column)}" for column in columns) or "there is no key"
        raise UserError(f"--zip {text!r} is wrong: its keys must have equally many values, but {counts}")
    return list(zip(*columns, strict=True))


def pairs(text: str, option: str) -> list[tuple[str, str]]:
    """(key, value) for each of the values in KEY=VALUES."""
    key, equals, rest = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{option} {text!r} is wrong: write KEY=VALUES, for example algorithm.k0=1,5,10")
    return [(key.strip(), value) for part in split(rest, ",") for value in values(part.strip(), f"{option} {text!r}")]


def values(part: str, what: str) -> list[str]:
    """One value, or those of a range a:b or a:b:step without b. A UserError calls the option ``what``."""
    if not part:
        raise UserError(f"{what} is wrong: a value is missing")
    found = RANGE.fullmatch(part)
    if found is None:
        if LIKE_RANGE.fullmatch(part):
            raise UserError(f"{what} is wrong: a range has whole numbers, such as 0:20 or 0:20:5, and not {part}")
        return [part]
    a, b, step = (int(number or 1) for number in found.groups())
    numbers = range(a, b, step) if step else range(0)
    if not 0 < len(numbers) <= MOST:
        many = f"more than {MOST:,}" if len(numbers) else "no"
        raise UserError(f"{what} is wrong: the range {part} has {many} values")
    return [str(number) for number in numbers]


def split(text: str, at: str) -> list[str]:
    """The parts of ``text`` between the characters ``at`` that stand outside of brackets and quotes."""
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


def whole(key: str) -> str:
    """One spelling of a key that has two: algorithm for algorithm.name."""
    return key.removesuffix(".name")


def file_name(setting: Iterable[tuple[str, str]]) -> str:
    """A file name such as k0=5,seed=3: the last parts of the keys, in alphabetical order of the keys.

    Characters unfit for a file name become _, and a hash keeps such names, and long ones, apart.
    """
    values = {whole(key): value for key, value in setting}
    lasts = [key.rpartition(".")[2] for key in values]
    short = {key: last if lasts.count(last) == 1 else key for key, last in zip(values, lasts, strict=True)}
    text = ",".join(f"{short[key]}={plain(configuration.parse(values[key]))}" for key in sorted(values))
    clean = re.sub(r"[^\w.=,+-]+", "_", text, flags=re.ASCII)
    # the hash is that of the whole text: two values that differ in a character that became _ stay two files
    if clean == text and len(text) <= LONGEST:
        return text
    return f"{clean[:LONGEST]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def plain(value: Any) -> str:
    """A value as a part of a file name; a table is its name and its other keys: fedavg-k0=5-step=log2-step.a=0.8."""
    if isinstance(value, list):
        return "-".join(map(plain, value))
    if isinstance(value, dict):
        parts = {key.removesuffix(".name"): plain(part) for key, part in flat(value).items()}
        first = [parts.pop("name")] if "name" in parts else []
        return "-".join([*first, *(f"{key}={part}" for key, part in parts.items())])
    return bare(value)


def bare(value: Any) -> str:
    """A value as on the command line: texts without quotes."""
    return value if isinstance(value, str) else toml_value(value)
