"""A data frame in the memory of a Python program as federated data."""

import hashlib
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.objects import plain
from mpifed.data.base import Data, Dataset
from mpifed.data.formats.frames import FrameTable
from mpifed.data.sources.held import Words, found, kept
from mpifed.data.sources.tabular import Tabular

SOURCE = "the data frame"


class Held:
    """A data frame and its hash."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def digest(self) -> str:
        """The hash of names and values as they are now."""
        found = hashlib.sha256()
        for k, name in enumerate(self.frame.columns):
            values = self.frame.iloc[:, k].to_numpy()
            found.update(f"{name} {values.dtype} {values.shape};".encode())
            data = (
                "\0".join(map(repr, values)).encode()
                if values.dtype.kind not in "biuf"
                else np.ascontiguousarray(values).data
            )
            found.update(data)
        return found.hexdigest()


WORDS = Words(
    name="frame",
    call='mpifed.table(frame, target="y")',
    again="mpifed.table(frame, …)",
    what="a data frame",
    same="frame",
    changed="the data frame has changed since mpifed.table(…) took it",
)


class Frame(Tabular, kw_only=True, tag="frame", dict=True):
    """A data frame of a Python program, as `mpifed.table(frame, target="y")` gives it; recorded by shape and hash.

    Only a Python program that holds the same frame can run and resume such an experiment.
    """

    shape: Annotated[list[int] | None, Meta(description="rows and columns")] = None
    sha256: Annotated[str, Meta(description="hash of names and values")] = ""

    def check(self) -> None:
        self.held()

    def held(self) -> Held:
        """The data frame. UserError where this program does not hold it, or has changed it."""
        frame: Held = found(self, WORDS)
        return frame

    def load(self, seed: int, dtype: str) -> Dataset:
        return self.of_table(FrameTable(self.held().frame, SOURCE), seed, dtype)


def table(frame: Any, **options: Any) -> Data:
    """Federated data from a data frame in memory: ``mpifed.run(data=mpifed.table(frame, target="y", client="site"))``.

    ``frame``: a data frame of pandas, or of a library whose frames have ``to_pandas``. ``options``: those of
    [data] name = "frame": target, client, test, time, event, categories, missing, standardise … The frame is not
    copied; results have its shape and hash. Under mpirun every rank needs the same one.
    Raises UserError for what is no data frame, and for unknown options.
    """
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise UserError(
            f"mpifed.table takes a data frame, not {type(frame).__name__}; mpifed.arrays takes X, y and clients"
        )
    FrameTable(frame, SOURCE)  # which refuses names that are there twice
    held = Held(frame)
    sha256 = held.digest()
    given = {key: plain(value, key) for key, value in options.items() if value is not None}
    made = Frame.fill({**given, "shape": list(frame.shape), "sha256": sha256}, "data")
    return kept(made, held)
