"""/models of a result file: the server's model after some of the rounds."""

from typing import Any

import numpy as np

from mpifed.core.hdf5 import entry
from mpifed.core.typing import Array
from mpifed.results.columns import MODELS, Columns
from mpifed.results.netcdf import Dataset, Group, Growing, append, dataset, dimension
from mpifed.results.rounds_table import METADATA
from mpifed.results.validate import column

LONGEST = 1 << 17  # most numbers of a model that are stored together
CHUNK = 256  # numbers of rounds that are stored together


class ModelLog:
    """The datasets round (k,) and x (k, n); they are created with the first model."""

    def __init__(self, growing: Growing) -> None:
        self.growing = growing
        self.last = -1  # round of the last model
        self.group: Group | None = None

    def add(self, round: int, x: Array) -> None:
        """Store the model x (n,) after ``round``, unless that is there."""
        if round <= self.last:
            return
        chunk = min(max(1, x.size), LONGEST)
        pieces = -(-x.size // chunk)
        self.growing.reserve(pieces * (chunk * x.itemsize + 64) + 8 * CHUNK + 4 * METADATA)
        if self.group is None:
            with self.growing.renewed():
                self.group = self.growing.file.create_group("models")
                layout: dict[str, Any] = {"chunks": (CHUNK,), "fillvalue": -1}
                numbers = dataset(self.group, "round", (0,), np.int64, (), MODELS["round"], **layout)
                numbers.make_scale("round")
                layout = {"chunks": (1, chunk), "maxshape": (None, x.size)}
                axes = (numbers, dimension(self.group, "parameter", x.size))
                dataset(self.group, "x", (0, x.size), x.dtype, axes, MODELS["x"], **layout)
        numbers = self.group["round"]
        models = self.group["x"]
        count = len(numbers)
        models.resize((count + 1, x.size))
        models[count] = x
        append(numbers, count, np.array([-1]))
        self.growing.flush()
        numbers[count] = round  # last: a model that has its round is complete
        self.growing.flush()
        self.last = round


def stored_models(file: Group, name: str) -> tuple[Array, Dataset | None]:
    """The rounds (k,) of the models in a result, and the dataset that holds these models in its first k rows, if any.

    A model without a round was being written.
    """
    group = entry(file, "models", name)
    stored = None if group is None else entry(group, "x", name)
    if stored is None:
        return np.zeros(0, np.int64), None
    numbers = column(entry(group, "round", name), "models/round", name)
    return numbers[: min(int(np.count_nonzero(numbers >= 0)), len(stored))], stored


def read_models(file: Group, name: str) -> Columns:
    """/models of the result ``name``: ``round`` (k,) and ``x`` (k, n)."""
    numbers, stored = stored_models(file, name)
    x = np.zeros((0, 0)) if stored is None else column(stored, "models/x", name)
    return Columns(round=numbers, x=x[: len(numbers)])
