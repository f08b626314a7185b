"""The parts of a benchmark file: columns, blocks, figures, claims; benchmarks/README.md explains the keys."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Number = float | str  # of a paper: 6.1, "> 100" if not reached within 100, "" if missing
ON_OTHER_DATA = "†"  # beside blocks with a surrogate
KINDS = ("order", "falls", "rises", "flat", "equal", "below")  # of claims


class Printed(float):
    """A number with the digits that were printed: 3.0 is known to a tenth, 3 to one."""

    text: str

    def __new__(cls, text: str) -> Printed:
        made = super().__new__(cls, text)
        made.text = text
        return made


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table of a benchmark file; unknown keys are an error."""


class Columns(Strict, kw_only=True):
    """The columns of the table: one for each value of a key of the experiment file."""

    key: str
    values: list[Any]

    @property
    def short(self) -> str:
        """The last part of the key, which tables and file names show."""
        return self.key.rsplit(".", 1)[-1]


class Block(Strict, kw_only=True):
    """A part of the table.

    A row is a name and its additions to ``study``. ``paper`` and ``reference`` (an independent implementation) have
    numbers by row and measure, in lists over the columns. ``seeds``, ``report``, ``trials`` and ``assumed`` take
    precedence over those of the file if they are given. A block with ``array`` takes too long for ``report``, which
    shows what an array job or ``run`` has left.
    """

    name: str
    seeds: int = 0
    report: int = 0
    trials: int = 0
    assumed: int = 0
    array: bool = False
    reference_trials: float = 1  # runs behind a number of ``reference``; inf for an exact value
    surrogate: str = ""  # the data that stand in place of the paper's; its numbers are then not judged
    center: Literal["mean", "median"] = "mean"  # what a number of the paper or reference is of its trials
    study: dict[str, Any] = {}
    rows: list[dict[str, Any]]
    optimum: bool = False  # compute stop.optimum before the runs
    paper: dict[str, dict[str, list[Number]]] = {}
    reference: dict[str, dict[str, list[Number]]] = {}
    why: dict[str, str | dict[str, str]] = {}  # row, or row and measure -> why its cells are off or open
    fitted: dict[str, str | dict[str, str]] = {}  # the same -> which setting was chosen after looking at its numbers

    def reason(self, row: str, measure: str) -> str:
        """Why the cells of a row are off or open; "" without a reason."""
        return told(self.why, row, measure)

    def fit(self, row: str, measure: str) -> str:
        """Which setting of a row was chosen after looking at the paper's numbers; "" if none was."""
        return told(self.fitted, row, measure)

    @property
    def title(self) -> str:
        """The name, marked if the data are not the paper's."""
        return f"{self.name} {ON_OTHER_DATA}" if self.surrogate else self.name


def told(table: dict[str, str | dict[str, str]], row: str, measure: str) -> str:
    """What a table says of a row, or of a measure of it."""
    found = table.get(row, "")
    return (found if isinstance(found, str) else found.get(measure, "")).strip()


class Figure(Strict, kw_only=True):
    """A picture: curves over the rounds, means or boxes of measures over the columns' key, or dots of many rows."""

    name: str
    title: str
    kind: Literal["curves", "means", "boxes", "dots"] = "curves"
    panels: Literal["block", "column", "row"] = "block"
    x: str = "round"
    along: str = ""  # of means: the measure to draw them over, in place of the columns' key
    y: list[str] = msgspec.field(default_factory=lambda: ["objective"])
    log: Literal["", "x", "y", "xy"] = ""
    blocks: list[str] = []
    rows: list[str] = []
    values: list[Any] = []


class Claim(Strict, kw_only=True):
    """A sentence of the paper about an order or a trend, and its check on our means: one list of rows, one of KINDS."""

    text: str
    where: str = ""
    measure: str
    blocks: list[str] = []
    values: list[Any] = []
    order: list[str] = []  # from smallest to largest in every column
    falls: list[str] = []  # along the columns
    rises: list[str] = []  # along the columns
    flat: list[str] = []  # along the columns largest / smallest is at most 1 + within
    equal: list[str] = []  # in every column largest / smallest is at most 1 + within
    below: list[str] = []  # at most bound in every run
    bound: float = 0.0
    within: float = 0.25
    why: str = ""  # why it does not hold


class Quick(Strict, kw_only=True):
    """The smaller grid of ``--quick``; an empty list keeps everything."""

    seeds: int = 3
    values: list[Any] = []
    blocks: list[str] = []
    rows: list[str] = []
    study: dict[str, Any] = {}
