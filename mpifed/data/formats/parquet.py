"""Parquet files, of which only the columns that are asked for are read, one at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, check_text, free, size_of
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import reading
from mpifed.data.tables.table import MISSING, Column, Table

CODE = 8  # bytes of the code of a text


class ParquetTable(Table):
    """A Parquet file. Nulls and NaN are missing."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with pq.ParquetFile(path) as file:
            super().__init__(str(path), file.schema_arrow.names)

    def read(self, wanted: Sequence[int], categories: Sequence[int]) -> list[Column]:
        import pyarrow.parquet as pq

        with reading(self.path, "Parquet"), pq.ParquetFile(self.path) as file:
            d = file.metadata.num_rows
            what = f"the {d:,} rows and {len(wanted):,} columns of {self.path}"
            size = size_of((d,), sum(width(file.schema_arrow.field(k).type) for k in wanted))
            check_memory(size, what)
            # Texts take more than is known before they are read, so that memory may end in spite of the check.
            try:
                return [self.column(file, self.names[k]) for k in wanted]
            except MemoryError:
                raise UserError(
                    f"{what} do not fit in memory: they take more than {size / 1e6:,.0f} MB, and {free() / 1e6:,.0f} "
                    "MB are free"
                ) from None

    def column(self, file: Any, name: str) -> Column:
        import pyarrow.types as kinds

        values = file.read(columns=[name], use_threads=False).column(name)
        coded = bool(kinds.is_dictionary(values.type))
        kind = values.type.value_type if coded else values.type
        what = f"the column {name!r} of {self.path}"
        if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
            return texts(values, what)._replace(category=coded)
        if kinds.is_temporal(kind):
            raise UserError(
                f"{what} has the type {kind}: replace dates and times by numbers, such as days since the first, "
                "or name the column in data.ignore"
            )
        if not (kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)):
            raise UserError(
                f"{what} has the type {kind}: it must have numbers, booleans or texts; name it in data.ignore, "
                "or leave it out"
            )
        return Column(numbers(values.cast(kind), kind), category=coded)


def width(kind: Any) -> int:
    """Bytes of a number in a column of an Arrow type, at least; texts become codes."""
    import pyarrow.types as kinds

    return max(1, kind.bit_width // 8) if kinds.is_primitive(kind) else CODE


def numbers(values: Any, kind: Any) -> Array:
    """Numbers of an Arrow array as numpy's smallest type that holds them, NaN where there is a null."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    if pa.types.is_decimal(kind) or (values.null_count and not pa.types.is_floating(kind)):
        values = values.cast(pa.float64())
    return np.asarray(values)


def texts(values: Any, what: str) -> Column:
    """Texts of an Arrow array, also those of a dictionary of categories, as codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(values):  # combine_chunks of nothing is no array
        return Column(np.zeros(0, np.int64), ())
    # Large: offsets of the usual type have 32 bits, which a column of more than 2 GB of texts exceeds.
    found = pc.utf8_trim_whitespace(values.cast(pa.large_string()))
    check_text(pc.max(pc.utf8_length(found)).as_py() or 0, what)
    coded = pc.dictionary_encode(found).combine_chunks()
    codes = np.asarray(coded.indices.fill_null(MISSING)).astype(np.int64)
    return Column(codes, tuple(coded.dictionary.to_pylist()))
