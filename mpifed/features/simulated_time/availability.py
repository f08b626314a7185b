"""Availability of clients: who is there, by probabilities, by the time of day or as a trace has recorded it."""

import os
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.typing import Array, PositiveFloat, UnitFraction
from mpifed.data.formats.hdf5 import open_h5
from mpifed.data.formats.on_disk import reading

COLUMNS = ("client", "from", "until")  # of a trace
HDF5 = (".h5", ".hdf5")
TRACES = (".csv", *HDF5)  # endings of traces


class Intervals(NamedTuple):
    """Times at which clients are there: client[k] from begin[k] until end[k], all repeated after ``period`` seconds.

    The arrays (k,) are in any order. An interval may end after the period, before the next one of its client begins.

        >>> night = mpifed.extend.Intervals(np.array([0, 1]), np.array([60.0, 80.0]), np.array([90.0, 120.0]), 100.0)
        >>> float(night.period)  # client 1 is there from 80 until 120 seconds, and from 180 until 220
        100.0
    """

    client: Array
    begin: Array
    end: Array
    period: float


class Availability(Component):
    """Availability of clients: probabilities by round, or intervals of simulated time.

    A number or a list alone stands for probabilities, the name of a file (.csv, .h5, .hdf5) for a trace.

        >>> class Turns(mpifed.extend.Availability):
        ...     def draw(self, rng, m):
        ...         begin = np.arange(m) % 2 * 5.0
        ...         return mpifed.extend.Intervals(np.arange(m), begin, begin + 5.0, 10.0)
        >>> turns = mpifed.run(system={"availability": Turns(), "latency": 2.5}, algorithm="fedavg", rounds=2)
        >>> [int(client % 2) for client in (turns.selected(1)[0], turns.selected(2)[0])]
        [0, 1]
    """

    choices: ClassVar[dict[str, str]] = {
        "random": "mpifed.features.simulated_time.availability:RandomAvailability",
        "diurnal": "mpifed.features.simulated_time.availability:Diurnal",
        "trace": "mpifed.features.simulated_time.availability:Trace",
    }
    default: ClassVar[str] = "random"
    kind: ClassVar[str] = "availabilities"

    by_time: ClassVar[bool] = True  # clients come and go in simulated time; false: a round knows no other moments

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Return the availability that ``table`` names; numbers are probabilities, a file is a trace."""
        match table:
            case int() | float() | list() | tuple() if not isinstance(table, bool):
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
        return np.full(m, self.probability) if isinstance(self.probability, float) else np.array(self.probability)


class Diurnal(Availability, tag="diurnal"):
    """Each client is there for a share of each day, which begins at its own time of day, drawn uniformly."""

    # Drawn from the seed, without data.
    supports = Supports.EVERYTHING

    period: Annotated[PositiveFloat, Meta(description="simulated seconds of a day")] = 86400.0
    share: Annotated[UnitFraction, Meta(description="share of the day for which a client is there")] = 0.5

    def draw(self, rng: np.random.Generator, m: int) -> Intervals:
        begin = self.period * rng.random(m)
        return Intervals(np.arange(m), begin, begin + self.share * self.period, self.period)


class Trace(Availability, tag="trace"):
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
        if not path.is_file():
            raise ValueError(f"{self.path!r} is no file")
        is_hdf5 = self.path.endswith(HDF5)
        try:
            with reading(path, "HDF5" if is_hdf5 else "CSV"):
                client, begin, end = read_hdf5(path) if is_hdf5 else read_csv(path)
        except UserError as error:
            raise ValueError(str(error)) from None
        return Intervals(client, begin, end, self.period or float(end.max(initial=0.0)))


def read_csv(path: Path) -> Array:
    """Return the columns of a trace in a CSV file: (3, k)."""
    with path.open(encoding="utf-8-sig") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a file without rows, which is refused with a sentence
        places = find_columns(path, [name.strip() for name in file.readline().split(",")])
        return np.loadtxt(file, delimiter=",", usecols=places, ndmin=2).T


def read_hdf5(path: Path) -> list[Array]:
    """Return the columns of a trace in an HDF5 file, (k,) each."""
    arrays = open_h5(path)
    find_columns(path, list(arrays))
    return [np.asarray(arrays[name][:]) for name in COLUMNS]


def find_columns(path: Path, names: list[str]) -> list[int]:
    """Return the places of the columns of a trace; raise UserError where one is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        there = f"has the columns {', '.join(names)}" if any(names) else "is empty"
        raise UserError(f"{path} {there}: it must have {', '.join(COLUMNS)}")
    return [names.index(name) for name in COLUMNS]
