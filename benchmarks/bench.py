"""What a benchmark file may say, and the runs it stands for; the keys are explained in benchmarks/README.md."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from mpifed.core.errors import UserError
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment

HERE = Path(__file__).parent
Number = float | str  # of a paper: 6.1, or "> 100" for a table that stops there, "" for no number


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table of a benchmark file; keys that are not known are refused."""


class Columns(Strict, kw_only=True):
    """The values of one key of the experiment file, a column of the table each."""

    key: str
    values: list[Any]

    @property
    def short(self) -> str:
        return self.key.rsplit(".", 1)[-1]


class Block(Strict, kw_only=True):
    """A part of the table: ``rows`` on top of ``study``; numbers by row and measure, a list over the columns."""

    name: str
    study: dict[str, Any] = {}
    rows: list[dict[str, Any]]
    optimum: bool = False  # stop.optimum is worked out before the runs
    paper: dict[str, dict[str, list[Number]]] = {}
    reference: dict[str, dict[str, list[Number]]] = {}
    why: dict[str, str] = {}  # row -> why its cells are off

    def row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.rows if row["name"] == name)


class Figure(Strict, kw_only=True):
    """A picture: curves of columns, means of measures over the columns' key with their spread, or boxes of them."""

    name: str
    title: str
    kind: Literal["curves", "means", "boxes"] = "curves"
    panels: Literal["block", "column", "row"] = "block"
    x: str = "round"
    y: list[str] = msgspec.field(default_factory=lambda: ["objective"])
    log: Literal["", "x", "y", "xy"] = ""
    blocks: list[str] = []
    rows: list[str] = []
    values: list[Any] = []


class Claim(Strict, kw_only=True):
    """What a paper says of its picture or table, and how it is checked on the means of ours: one of the lists of rows."""

    text: str
    where: str = ""
    measure: str
    blocks: list[str] = []
    values: list[Any] = []
    order: list[str] = []  # in every column from least to greatest
    falls: list[str] = []  # along the columns
    rises: list[str] = []
    flat: list[str] = []  # greatest over least at most 1 + within
    equal: list[str] = []  # in every column greatest over least at most 1 + within
    below: list[str] = []  # at most bound in every run
    bound: float = 0.0
    within: float = 0.25


class Quick(Strict, kw_only=True):
    """What is left of the grid where ten minutes must do for all benchmarks; empty: everything."""

    seeds: int = 3
    values: list[Any] = []
    blocks: list[str] = []
    rows: list[str] = []
    study: dict[str, Any] = {}


class Bench(Strict, kw_only=True):
    """A table or figure of a paper."""

    title: str
    source: str  # section and number of the table or figure
    about: str = ""
    seeds: int  # the paper's number of draws
    report: int  # draws of the report on all papers, which takes an hour
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
        return self.columns.values if self.columns is not None else [None]

    def reduced(self) -> Bench:
        """The same with the grid of ``quick``."""
        quick = self.quick
        blocks = [
            msgspec.structs.replace(
                block, rows=[row for row in block.rows if not quick.rows or row["name"] in quick.rows]
            )
            for block in self.block
            if not quick.blocks or block.name in quick.blocks
        ]
        columns = self.columns
        if columns is not None and quick.values:
            places = [columns.values.index(value) for value in quick.values]
            columns = msgspec.structs.replace(columns, values=quick.values)
            blocks = [
                msgspec.structs.replace(
                    block, paper=picked(block.paper, places), reference=picked(block.reference, places)
                )
                for block in blocks
            ]
        return msgspec.structs.replace(
            self, columns=columns, block=[block for block in blocks if block.rows], study=merge(self.study, quick.study)
        )


class Cell(NamedTuple):
    """A place of the table: the runs of a row with one value of the columns' key differ in nothing but the seed."""

    block: str
    row: str
    value: Any


class Run(NamedTuple):
    """One run of a benchmark: its cell, seed and experiment; ``name`` is its file without .h5."""

    cell: Cell
    seed: int
    config: Experiment
    optimum: bool
    name: str


def names() -> list[str]:
    """Every benchmark, as folder/file."""
    return sorted(f"{file.parent.name}/{file.stem}" for file in HERE.glob("*/*.toml"))


def read(name: str) -> Bench:
    """The benchmark folder/file. Raises UserError where there is none, or something in it is wrong."""
    file = HERE / f"{name}.toml"
    if name not in names():
        raise UserError(f"there is no benchmark {name!r}; see python -m benchmarks list")
    try:
        bench = msgspec.convert(tomllib.loads(file.read_text("utf-8")), Bench)
        check(bench)
    except (ValueError, msgspec.ValidationError) as error:
        raise UserError(f"{file}: {error}") from None
    return bench


def check(bench: Bench) -> None:
    """Raise ValueError for what does not fit together."""
    blocks = [block.name for block in bench.block]
    rows = {row["name"] for block in bench.block for row in block.rows}
    for block in bench.block:
        own = [row["name"] for row in block.rows]
        if len(set(own)) < len(own):
            raise ValueError(f"block {block.name!r} has two rows of one name")
        for table in (block.paper, block.reference):
            for row, measured in table.items():
                for measure, numbers in measured.items():
                    if row not in own or measure not in bench.measures or len(numbers) != len(bench.values):
                        raise ValueError(
                            f"numbers of {block.name!r}, {row!r}, {measure!r}: no such row or measure, or not "
                            f"{len(bench.values)} of them"
                        )
        if unknown := block.why.keys() - set(own):
            raise ValueError(f"block {block.name!r} explains rows that it has not: {sorted(unknown)}")
    parts: list[Figure | Claim | Quick] = [*bench.figure, *bench.claim, bench.quick]
    for part in parts:
        used = [
            row
            for kind in ("order", "falls", "rises", "flat", "equal", "below", "rows")
            for row in getattr(part, kind, [])
        ]
        wrong = [
            *(set(part.blocks) - set(blocks)),
            *(set(used) - rows),
            *(v for v in part.values if v not in bench.values),
        ]
        if wrong:
            raise ValueError(f"{type(part).__name__.lower()} names what is not there: {wrong}")
    for claim in bench.claim:
        if sum(map(bool, (claim.order, claim.falls, claim.rises, claim.flat, claim.equal, claim.below))) != 1:
            raise ValueError(f"claim {claim.text!r} needs one of order, falls, rises, flat, equal and below")


def runs(bench: Bench, seeds: int, name: str = "", only: str = "") -> Iterator[Run]:
    """The runs of a benchmark; ``only`` those whose block and row contain this."""
    for block in bench.block:
        for row, value in product(block.rows, bench.values):
            if only not in f"{block.name} {row['name']}":
                continue
            cell = Cell(block.name, row["name"], value)
            known: dict[str, Any] = {"stop": {"optimum": 0.0}} if block.optimum else {}
            own = {key: part for key, part in row.items() if key != "name"}
            study = merge(merge(merge(known, bench.study), block.study), own)
            for seed in range(seeds):
                point = merge(study, {"seed": seed})
                if bench.columns is not None:
                    assign(point, bench.columns.key, value)
                try:
                    config = configuration.experiment(point)
                except UserError as mistake:
                    raise UserError(f"{name}, {block.name}, {row['name']}: {mistake}") from None
                yield Run(cell, seed, config, block.optimum, f"{name}/{stem(bench, cell)}-seed-{seed}")


def stem(bench: Bench, cell: Cell) -> str:
    """What the files of a cell are called, but for the seed."""
    where = "" if bench.columns is None else f"-{bench.columns.short}-{cell.value}"
    return slug(f"{cell.block}-{cell.row}{where}")


def slug(text: str) -> str:
    return "-".join("".join(c if c.isalnum() or c in ".-" else " " for c in text.lower()).split())


def picked(table: dict[str, dict[str, list[Number]]], places: list[int]) -> dict[str, dict[str, list[Number]]]:
    """The numbers in these places."""
    return {
        row: {measure: [numbers[k] for k in places] for measure, numbers in measured.items()}
        for row, measured in table.items()
    }


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``extra`` put in, table by table."""
    result = dict(base)
    for key, value in extra.items():
        result[key] = (
            merge(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
        )
    return result


def assign(table: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key."""
    *parents, last = key.split(".")
    for parent in parents:
        table[parent] = dict(table.get(parent, {}))
        table = table[parent]
    table[last] = value
