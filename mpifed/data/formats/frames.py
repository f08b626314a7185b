"""Data frames of pandas, and those of other libraries that turn into them, as tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_text
from mpifed.core.toml import toml_value
from mpifed.data.tables.table import MISSING, Column, Table


class FrameTable(Table):
    """A data frame. None, NaN and NA are missing."""

    def __init__(self, frame: Any, source: str) -> None:
        if hasattr(frame, "to_pandas"):
            frame = frame.to_pandas()
        super().__init__(source, [str(name) for name in frame.columns])
        self.frame = frame

    def read(self, wanted: Sequence[int], categories: Sequence[int]) -> list[Column]:
        return [self.column(k, k in categories) for k in wanted]

    def column(self, k: int, any_text: bool) -> Column:
        """A column of the frame. UserError where it holds neither numbers, booleans nor texts."""
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
        if getattr(kind, "kind", "O") in "biuf" and not hasattr(kind, "categories"):
            if missing.any():
                return Column(series.to_numpy(dtype=np.float64, na_value=np.nan))
            values = series.to_numpy(dtype=getattr(kind, "numpy_dtype", kind))
            return Column(values.astype(np.int8) if values.dtype.kind == "b" else values)
        values = series.to_numpy(dtype=object)
        given = values[~missing]
        if infer_dtype(given) == "string":
            return texts(series.astype(object), what)._replace(category=hasattr(kind, "categories"))
        flags = [isinstance(value, bool | np.bool_) for value in given]
        if len(given) and all(flags):
            return Column(np.array([np.nan if lost else float(x) for x, lost in zip(values, missing, strict=True)]))
        wrong = next((value for value in given if not isinstance(value, str) and not any_text), None)
        if wrong is not None and not hasattr(kind, "categories"):
            raise UserError(
                f"{what} holds {wrong!r} among others: all must be numbers, or all text; "
                f"data.categories = [{toml_value(self.names[k])}] takes both"
            )
        found: dict[str, int] = {}
        codes = [
            MISSING if lost else found.setdefault(str(x).strip(), len(found))
            for x, lost in zip(values, missing, strict=True)
        ]
        check_text(max(map(len, found), default=0), what)
        return Column(np.array(codes, np.int64), tuple(found), hasattr(kind, "categories"))


def texts(series: Any, what: str) -> Column:
    """A column of texts and missing cells, without a loop over its rows."""
    codes, levels = series.factorize()  # in the order in which they come; missing cells are -1
    found: dict[str, int] = {}
    stripped = [found.setdefault(str(level).strip(), len(found)) for level in levels]
    check_text(max(map(len, found), default=0), what)
    return Column(np.array([*stripped, MISSING], np.int64)[codes], tuple(found))
