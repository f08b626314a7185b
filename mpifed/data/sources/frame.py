"""A data frame in the memory of a Python program as federated data."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.memory import check_text
from mpifed.core.objects import plain
from mpifed.core.promises import Keeps, keeping
from mpifed.core.toml import toml_value
from mpifed.data.dataset import Data, Dataset
from mpifed.data.inferred import KINDS
from mpifed.data.sources.held import Words, found, kept
from mpifed.data.sources.tabular import Tabular
from mpifed.data.tables.table import MISSING, Column, Table, in_order

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # what pandas calls columns of Python's objects


class FrameTable(Table):
    """A data frame. None, NaN and NA are missing."""

    def __init__(self, frame: Any, source: str) -> None:
        if hasattr(frame, "to_pandas"):
            frame = frame.to_pandas()
        super().__init__(source, [str(name) for name in frame.columns])
        self.frame = frame

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        mixed = set(as_texts)
        return [self.column(k, k in mixed) for k in wanted]

    def column(self, k: int, any_text: bool) -> Column:
        from pandas.api.types import infer_dtype

        series = self.frame.iloc[:, k]
        kind = series.dtype
        what = f"{self.called(k)} of {self.source}"
        missing = series.isna().to_numpy(dtype=bool)
        if getattr(kind, "kind", "O") in "mM":
            raise UserError(
                f"{what} has the type {kind}: replace dates and times by numbers, such as days since the first, "
                "or name the column in data.ignore"
            )
        if hasattr(kind, "categories"):
            made = in_order(kind.categories.tolist(), series.cat.codes.to_numpy())
            check_text(max(map(len, made.texts or ()), default=0), what)
            return made
        if getattr(kind, "kind", "O") in "biuf":
            if missing.any():
                return Column(series.to_numpy(dtype=np.float64, na_value=np.nan))
            values = series.to_numpy(dtype=getattr(kind, "numpy_dtype", getattr(kind, "subtype", kind)))
            return Column(values.astype(np.int8) if values.dtype.kind == "b" else values)
        if kind == np.dtype(object):
            self.inferred = (KINDS,)
        cells = series.astype(object)
        given = cells[~missing]
        held = infer_dtype(given)
        if held == "boolean" or held in NUMBERS:
            return Column(cells.mask(missing, np.nan).to_numpy(dtype=np.float64))
        if held != "string":
            wrong = next((value for value in given if not isinstance(value, str) and not any_text), None)
            if wrong is not None:
                raise UserError(
                    f"{what} holds {wrong!r} among others: all must be numbers, or all text; for a "
                    f"feature data.categories = [{toml_value(self.names[k])}] takes both"
                )
            # As texts, before levels are looked for: to Python 1, 1.0 and True are one value.
            cells = cells.mask(~missing, cells.map(str))
        return texts(cells, what)


def texts(series: Any, what: str) -> Column:
    """A column of texts and missing cells, without a loop over its rows."""
    codes, levels = series.factorize()  # in the order in which they come; missing cells are -1
    found: dict[str, int] = {}
    stripped = [found.setdefault(str(level).strip(), len(found)) for level in levels]
    check_text(max(map(len, found), default=0), what)
    return Column(np.array([*stripped, MISSING], np.int64)[codes], tuple(found))


SOURCE = "the data frame"


class Held:
    """A data frame and its hash."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def digest(self) -> str:
        found = hashlib.sha256()
        for k, name in enumerate(self.frame.columns):
            series = self.frame.iloc[:, k]
            values = series.to_numpy()
            found.update(f"{name} {values.dtype} {values.shape};".encode())
            if hasattr(series.dtype, "categories"):  # whose order says which one the others are compared with
                found.update(repr(series.dtype.categories.tolist()).encode())
            numbers = values.dtype.kind in "biuf"
            found.update(np.ascontiguousarray(values).data if numbers else "\0".join(map(repr, values)).encode())
        return found.hexdigest()


WORDS = Words(
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

    # As file; every rank has the frame of the program.
    keeps = Keeps.EVERYTHING
    held = True
    options = keeping("shape", "sha256")

    shape: Annotated[list[int] | None, Meta(description="rows and columns")] = None
    sha256: Annotated[str, Meta(description="hash of names and values")] = ""

    def check(self) -> None:
        found(self, WORDS)

    def load(self, seed: int, dtype: str) -> Dataset:
        return self.of_table(FrameTable(found(self, WORDS).frame, SOURCE), seed, dtype)


def table(frame: Any, **options: Any) -> Data:
    """Federated data from a data frame in memory: ``mpifed.table(frame, target="y", client="site")``.

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
