"""The best evaluation of a run, and a run as it stood then."""

import dataclasses
from typing import NamedTuple

import h5py
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.roles import VALIDATED
from mpifed.core.typing import Array
from mpifed.results.columns import COLUMNS, Columns
from mpifed.results.result import RunRecord
from mpifed.results.validate import read_columns


class BestEvaluation(NamedTuple):
    """The best evaluation of a run: its ``round``, the column ``by`` which it is the best, and all columns there.

    ``x`` (n,) is the model of the server in that round, with ``record.best``; else None.
    """

    round: int
    by: str
    numbers: dict[str, float]
    x: Array | None


def find_best(result: RunRecord) -> BestEvaluation:
    """Return the best evaluation by what the run chose by: validation samples, else the objective.

    UserError where the run has no such column.
    """
    default = f"{VALIDATED}objective" if f"{VALIDATED}objective" in result.rounds else "objective"
    by = str(result.attrs.get("chosen_by", default))
    values = np.asarray(result.rounds.get(by, ()), float)
    if not np.isfinite(values).any():
        raise UserError(f"{result.path or 'the result'} has no evaluation by {by}: it has no best round")
    better = COLUMNS[by].better if by in COLUMNS else -1
    k = int(np.nanargmax(better * values))
    round = int(result.rounds["round"][k])
    x = result.read(read_best_model) if result.attrs.get("best_round") == round else None
    numbers = {name: float(column[k]) for name, column in result.rounds.items() if name != "round"}
    return BestEvaluation(round, by, numbers, x)


def cut_at_best(result: RunRecord) -> RunRecord:
    """Return a run as if it had ended with its best evaluation; /ranks and /clients stay those of all rounds."""
    count = int(np.flatnonzero(result.rounds["round"] == find_best(result).round)[0]) + 1
    rounds = Columns({name: column[:count] for name, column in result.rounds.items()})
    return dataclasses.replace(result, rounds=rounds, selection=result.selection[:count])


def read_best_model(file: h5py.File, name: str) -> Array | None:
    """Return /model/best of the result ``name``, None without one."""
    model: Array | None = read_columns(file, "model", name).get("best")
    return model
