"""The runs of a benchmark: every block, row, value of the columns' key and seed."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

from benchmarks.bench import Bench, merge
from mpifed import UserError
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.sweeps.search import assign


class Cell(NamedTuple):
    """A cell of the table: its runs differ in nothing but the seed."""

    block: str
    row: str
    value: Any  # of the columns' key


class Run(NamedTuple):
    """One run of a benchmark: its cell, seed and experiment; ``name`` is its file without .h5."""

    cell: Cell
    seed: int
    config: Experiment
    optimum: bool
    name: str

    @property
    def key(self) -> tuple[Cell, int]:
        """Which run it is: cell and seed."""
        return self.cell, self.seed


NO_CHECKPOINTS = {"checkpoint": {"keep": False}}  # of finished runs: they would take more room than the results


def runs(bench: Bench, seeds: int, name: str = "", only: str = "") -> Iterator[Run]:
    """The runs of a benchmark, with ``seeds`` seeds in each block that does not say otherwise.

    ``only``: those whose "block row" contains this text.
    """
    for block in bench.block:
        for row, value in product(block.rows, bench.values):
            if only not in f"{block.name} {row['name']}":
                continue
            cell = Cell(block.name, row["name"], value)
            placeholder: dict[str, Any] = {"stop": {"optimum": 0.0}} if block.optimum else {}
            own = {key: part for key, part in row.items() if key != "name"}
            study = merge(merge(merge(merge(placeholder, NO_CHECKPOINTS), bench.study), block.study), own)
            for seed in range(block.seeds or seeds):
                point = deepcopy(merge(study, {"seed": seed}))  # ``assign`` writes into tables that runs share
                try:
                    if bench.columns is not None:
                        assign(point, bench.columns.key, value)
                    config = configuration.experiment(point)
                except UserError as mistake:
                    raise UserError(f"{name}, {block.name}, {row['name']}: {mistake}") from None
                yield Run(cell, seed, config, block.optimum, f"{name}/{stem(bench, cell)}-seed-{seed}")


def stem(bench: Bench, cell: Cell) -> str:
    """The file name of a cell's runs without the seed."""
    column = "" if bench.columns is None else f"-{bench.columns.short}-{cell.value}"
    return slug(f"{cell.block}-{cell.row}{column}")


def slug(text: str) -> str:
    """Lower case, with a hyphen for every other character than letters, digits, full stops and hyphens."""
    return "-".join("".join(c if c.isalnum() or c in ".-" else " " for c in text.lower()).split())
