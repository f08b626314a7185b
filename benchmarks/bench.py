"""The format of a benchmark file; benchmarks/README.md explains the keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from mpifed import UserError

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


HERE = Path(__file__).parent


class Bench(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A table or figure of a paper."""

    title: str
    source: str  # section and number of the table or figure
    about: str = ""
    seeds: int  # of ``run``
    report: int  # seeds of the full report, which takes an hour
    trials: int = 0  # runs behind a number of the paper, as the paper prints it; 0: it does not
    assumed: int = 1  # the same, where the paper does not print it
    columns: Columns | None = None
    measures: list[str] = []
    study: dict[str, Any] = {}
    block: list[Block]
    figure: list[Figure] = []
    claim: list[Claim] = []
    quick: Quick = msgspec.field(default_factory=Quick)
    different: str = ""

    @property
    def values(self) -> list[Any]:
        """The values of the columns' key; [None] for a table without columns."""
        return self.columns.values if self.columns is not None else [None]

    def trials_of(self, block: Block) -> tuple[int, bool]:
        """The number of runs behind a number of the paper, and whether the paper prints it."""
        if block.trials or block.assumed:
            return block.trials or block.assumed, bool(block.trials)
        return self.trials or self.assumed, bool(self.trials)

    def repeated(self, command: str) -> Bench:
        """This benchmark with the ``seeds`` of each block for ``run`` or ``report``; 0 for those of all blocks."""
        replace = msgspec.structs.replace
        return replace(self, block=[replace(block, seeds=getattr(block, command, 0), report=0) for block in self.block])

    def reduced(self) -> Bench:
        """This benchmark with the grid of ``quick``."""
        replace = msgspec.structs.replace
        quick = self.quick
        columns = self.columns
        blocks = [
            replace(block, rows=[row for row in block.rows if not quick.rows or row["name"] in quick.rows])
            for block in self.block
            if not quick.blocks or block.name in quick.blocks
        ]
        if columns is not None and quick.values:
            kept = [columns.values.index(value) for value in quick.values]
            columns = replace(columns, values=quick.values)
            blocks = [
                replace(block, paper=at_columns(block.paper, kept), reference=at_columns(block.reference, kept))
                for block in blocks
            ]
        blocks = [block for block in blocks if block.rows]
        return replace(self, columns=columns, block=blocks, study=merge(self.study, quick.study))


def names() -> list[str]:
    """The names of all benchmarks, as folder/file."""
    files = [file for file in HERE.glob("*/*.toml") if file.parent.name != "arena"]  # which is a study of its own
    return sorted(f"{file.parent.name}/{file.stem}" for file in files)


def read(name: str) -> Bench:
    """Read the benchmark folder/file. Raises UserError if it does not exist or is wrong."""
    file = HERE / f"{name}.toml"
    if name not in names():
        raise UserError(f"there is no benchmark {name!r}; see python -m benchmarks list")
    try:
        text = file.read_text("utf-8")
        bench = msgspec.convert(tomllib.loads(text), Bench)
        for block, table in zip(bench.block, tomllib.loads(text, parse_float=Printed)["block"], strict=True):
            block.paper, block.reference = table.get("paper", {}), table.get("reference", {})
        check(bench)
    except (ValueError, msgspec.ValidationError) as error:
        raise UserError(f"{file}: {error}") from None
    return bench


def check(bench: Bench) -> None:
    """Raise ValueError if parts of the file contradict each other."""
    for block in bench.block:
        check_block(bench, block)
    blocks = [block.name for block in bench.block]
    if len(set(blocks)) < len(blocks):
        raise ValueError("two blocks have the same name")
    rows = {row["name"] for block in bench.block for row in block.rows}
    parts: list[Figure | Claim | Quick] = [*bench.figure, *bench.claim, bench.quick]
    for part in parts:
        used = [row for kind in (*KINDS, "rows") for row in getattr(part, kind, [])]
        unknown = [
            *(set(part.blocks) - set(blocks)),
            *(set(used) - rows),
            *(value for value in part.values if value not in bench.values),
        ]
        if unknown:
            raise ValueError(f"{type(part).__name__.lower()} names unknown blocks, rows or values: {unknown}")
    for claim in bench.claim:
        if sum(bool(getattr(claim, kind)) for kind in KINDS) != 1:
            raise ValueError(f"claim {claim.text!r} needs exactly one of {', '.join(KINDS)}")


def check_block(bench: Bench, block: Block) -> None:
    """Raise ValueError if rows have no names of their own, or if there are numbers or reasons for what is not there."""
    rows = [row.get("name") for row in block.rows]
    if None in rows or len(set(rows)) < len(rows):
        raise ValueError(f"block {block.name!r} has a row without a name, or two with the same")
    numbers = [
        (row, measure, found)
        for table in (block.paper, block.reference)
        for row, measured in table.items()
        for measure, found in measured.items()
    ]
    for row, measure, found in numbers:
        if row not in rows or measure not in bench.measures or len(found) != len(bench.values):
            wrong = f"no such row or measure, or not {len(bench.values)} numbers"
            raise ValueError(f"numbers of {block.name!r}, {row!r}, {measure!r}: {wrong}")
    for table in (block.why, block.fitted):
        unknown = table.keys() - set(rows)
        unknown |= {name for why in table.values() if isinstance(why, dict) for name in why} - set(bench.measures)
        if unknown:
            raise ValueError(f"block {block.name!r} explains unknown rows or measures: {sorted(unknown)}")


def at_columns(table: dict[str, dict[str, list[Number]]], columns: list[int]) -> dict[str, dict[str, list[Number]]]:
    """The numbers of some columns."""
    return {
        row: {measure: [numbers[k] for k in columns] for measure, numbers in measured.items()}
        for row, measured in table.items()
    }


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Add the values of ``extra`` to ``base``, table by table; ``extra`` takes precedence."""
    result = dict(base)
    for key, value in extra.items():
        result[key] = (
            merge(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
        )
    return result
