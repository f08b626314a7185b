"""Availability of clients: who is there, by probabilities, by the time of day or as a trace has recorded it."""

import os
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.promises import Supports
from mpifed.core.typing import Array, PositiveFloat, UnitFraction
from mpifed.data.formats.hdf5 import open_h5

COLUMNS = ("client", "from", "until")  # of a trace
HDF5 = (".h5", ".hdf5")
TRACES = (".csv", *HDF5)  # endings of traces


class Intervals(NamedTuple):
    """Times at which clients are there: client[k] from begin[k] until end[k], all repeated after ``period`` seconds.

    The arrays (k,) are in any order. An interval may end after the period, before the next one of its client begins.
    """

    client: Array
    begin: Array
    end: Array
    period: float


class Availability(Component):
    """Availability of clients: probabilities by round, or intervals of simulated time.

    A number or a list alone stands for probabilities, the name of a file (.csv, .h5, .hdf5) for a trace.
    """

    choices: ClassVar[dict[str, str]] = {
        "random": "mpifed.features.simulated_time.availability:RandomAvailability",
        "diurnal": "mpifed.features.simulated_time.availability:Diurnal",
        "trace": "mpifed.features.simulated_time.availability:AvailabilityTrace",
    }
    default: ClassVar[str] = "random"

    by_time: ClassVar[bool] = True  # clients come and go in simulated time; false: a round knows no other moments

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Return the availability that ``table`` names; numbers are probabilities, a file is a trace."""
        match table:
            case True | False:
                pass
            case int() | float() | list() | tuple():
                table = {"name": "random", "probability": table}
            case str() if table.endswith(TRACES):
                table = {"name": "trace", "path": table}
        return super().build(table, path)

    @abstractmethod
    def draw(self, rng: np.random.Generator, m: int) -> Array | Intervals:
        """Return the probability (m,) with which each client is there in a round, or when clients are there."""


class RandomAvailability(Availability, tag="random"):
    """Each client is there in a round with its probability, independent of others and of other rounds."""

    # Drawn from the seed, without data.
    supports = Supports.EVERYTHING

    by_time: ClassVar[bool] = False

    probability: Annotated[
        UnitFraction | tuple[UnitFraction, ...],
        Meta(description="the probability that a client is there, or one for each client"),
    ]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        p = np.array(self.probability)
        return p if p.ndim else np.full(m, p)


class Diurnal(Availability, tag="diurnal"):
    """Each client is there for a share of each day, which begins at its own time of day, drawn uniformly."""

    # Drawn from the seed, without data.
    supports = Supports.EVERYTHING

    period: Annotated[PositiveFloat, Meta(description="simulated seconds of a day")] = 86400.0
    share: Annotated[UnitFraction, Meta(description="share of the day for which a client is there")] = 0.5

    def draw(self, rng: np.random.Generator, m: int) -> Intervals:
        begin = self.period * rng.random(m)
        return Intervals(np.arange(m), begin, begin + self.share * self.period, self.period)


class AvailabilityTrace(Availability, tag="trace"):
    """Each client is there as a file says, in rows of client (from 0), from and until in simulated seconds.

    CSV with a first line of names, or HDF5 with an array for each column. The trace repeats after its period. A client
    without a row is never there.
    """

    # Times that are given.
    supports = Supports.EVERYTHING

    path: Annotated[str, Meta(description="CSV or HDF5 file with the columns client, from and until")]
    period: Annotated[float, Meta(ge=0, description="seconds after which it repeats; 0: its largest until")] = 0.0

    def __post_init__(self) -> None:
        if not self.path.endswith(TRACES):
            raise ValueError(f"path = {self.path!r} is wrong: it must end in {', '.join(TRACES)}")

    def draw(self, rng: np.random.Generator, m: int) -> Intervals:
        path = Path(os.path.expanduser(self.path))
        try:
            client, begin, end = read_hdf5(path) if self.path.endswith(HDF5) else read_csv(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path!r} cannot be read: {error}") from None
        return Intervals(client, begin, end, self.period or float(end.max(initial=0.0)))


def read_csv(path: Path) -> Array:
    """Return the columns of a trace in a CSV file: (3, k)."""
    with path.open(encoding="utf-8-sig") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a file without rows, which is refused with a sentence
        places = find_columns([name.strip() for name in file.readline().split(",")])
        return np.loadtxt(file, delimiter=",", usecols=places, ndmin=2).T


def read_hdf5(path: Path) -> list[Array]:
    """Return the columns of a trace in an HDF5 file, (k,) each."""
    arrays = open_h5(path)
    find_columns(list(arrays))
    return [np.asarray(arrays[name][:], float).ravel() for name in COLUMNS]


def find_columns(names: list[str]) -> list[int]:
    """Return the places of the columns of a trace; raise ValueError where one is missing."""
    if not set(COLUMNS) <= set(names):
        there = f"its columns are {', '.join(names)}" if any(names) else "it is empty"
        raise ValueError(f"{there}, and it must have {', '.join(COLUMNS)}")
    return [names.index(name) for name in COLUMNS]


def check_availability(drawn: Array | Intervals, m: int) -> Array | Intervals:
    """Return what an availability has drawn, intervals sorted by client and time; raise ValueError if it cannot be."""
    match drawn:
        case Intervals():
            order = np.lexsort((drawn.begin, drawn.client))
            client, begin, end = (np.asarray(column)[order] for column in drawn[:3])
            check_intervals(client, begin, end, drawn.period, m)
            return Intervals(client, begin, end, drawn.period)
        case _:
            if np.shape(drawn) != (m,):
                raise ValueError(f"it has {np.size(drawn)} numbers, and there are {m} clients")
            is_valid = (drawn > 0) & (drawn <= 1)
            if not is_valid.all():
                first = int(np.argmin(is_valid))
                raise ValueError(f"it must be above 0 and at most 1, and client {first} has {drawn[first]:g}")
            return drawn


def find_ends(client: Array) -> tuple[Array, Array]:
    """Return the positions of the first and the last interval of each client, of intervals sorted by client."""
    is_next = client[1:] == client[:-1]
    return np.flatnonzero(np.append(True, ~is_next)), np.flatnonzero(np.append(~is_next, True))


def check_intervals(client: Array, begin: Array, end: Array, period: float, m: int) -> None:
    """Raise ValueError for the first of these intervals, sorted by client and time, that cannot be."""
    if not len(client):
        raise ValueError("it has no intervals")
    is_next = client[1:] == client[:-1]
    overlaps = np.append(False, is_next & (begin[1:] < end[:-1]))
    heads, tails = find_ends(client)
    overlaps[tails] |= end[tails] > begin[heads] + period
    rules = {
        f"clients are whole numbers from 0 to {m - 1}": ~((client >= 0) & (client < m) & (client % 1 == 0)),
        "times must be finite and not negative": ~(np.isfinite(begin) & np.isfinite(end) & (begin >= 0)),
        "until must be after from": end <= begin,
        f"it must begin before the period of {period:g} seconds is over": begin >= period,
        "that overlaps another interval of this client": overlaps,
    }
    for rule, is_wrong in rules.items():
        if is_wrong.any():
            k = int(np.argmax(is_wrong))
            raise ValueError(f"client {client[k]:g} is there from {begin[k]:g} until {end[k]:g} seconds: {rule}")
