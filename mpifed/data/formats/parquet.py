"""Reader of Parquet files, which reads only the columns that are used."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import bytes_of_shape, check_memory, free
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import reading
from mpifed.data.tables.table import DATES, MISSING, DataTable, TableColumn, make_category

CODE = 8  # bytes of the code of a text
LONG = 64  # bytes of a text before it becomes a code, about
AT_ONCE = 1 << 25  # bytes of the columns that are read at a time, at least one


class ParquetTable(DataTable):
    """A table in a Parquet file, in which nulls and NaN are missing."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with pq.ParquetFile(path) as file:
            super().__init__(str(path), file.schema_arrow.names)
            metadata = file.schema_arrow.metadata or {}
            # Others write levels in the order in which they occur, which says nothing; pandas and R have an order.
            self.has_order = b"pandas" in metadata or b"r" in metadata
            self.categories = self.read_pandas(metadata.get(b"pandas", b"{}"))

    def read_pandas(self, metadata: bytes) -> set[str]:
        """Take indices without a name out of the features; return the columns that pandas says are categories."""
        try:
            description = json.loads(metadata)
            index = map(str, description.get("index_columns", ()))
            columns = {entry["field_name"]: entry for entry in description.get("columns", ())}
        except (ValueError, KeyError, TypeError, AttributeError):  # written by others
            return set()
        unnamed = [name for name in index if name in columns and columns[name].get("name") is None]
        self.row_names |= {self.positions[name] for name in unnamed if name in self.positions}
        return {name for name, entry in columns.items() if entry.get("pandas_type") == "categorical"}

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        import pyarrow.parquet as pq

        with reading(self.path, "Parquet"), pq.ParquetFile(self.path) as file:
            d = file.metadata.num_rows
            label = f"the {d:,} rows and {len(wanted):,} columns of {self.path}"
            schema = file.schema_arrow
            types = [schema.field(k).type for k in wanted]
            size = bytes_of_shape((d,), sum(map(width, types)))
            check_memory(size, label)
            step = max(1, AT_ONCE // max(1, d * max(width(dtype, LONG) for dtype in types)))
            # The size of texts is not known before they are read, so that memory may end in spite of the check.
            try:
                groups = [[self.names[k] for k in wanted[lo : lo + step]] for lo in range(0, len(wanted), step)]
                return [column for names in groups for column in self.columns(file, names)]
            except MemoryError:
                raise UserError(
                    f"{label} do not fit in memory: they take more than {size / 1e6:,.0f} MB, and {free() / 1e6:,.0f} "
                    "MB are free"
                ) from None

    def columns(self, file: Any, names: Sequence[str]) -> Iterator[TableColumn]:
        """Yield several columns, read at once: for each alone, pyarrow would look through all of them."""
        group = file.read(columns=list(names), use_threads=False)
        for name in names:
            yield self.column(group.column(name), name)

    def column(self, values: Any, name: str) -> TableColumn:
        """Return the column of an Arrow array; UserError if it holds neither numbers nor texts."""
        from pyarrow import types

        coded = bool(types.is_dictionary(values.type))
        dtype = values.type.value_type if coded else values.type
        label = f"the column {name!r} of {self.path}"
        if coded and (self.has_order or values.type.ordered):
            return read_texts(values, label, ordered=True)
        if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
            return read_texts(values, label, ordered=False)._replace(category=coded)
        if types.is_temporal(dtype):
            raise UserError(f"{label} has the type {dtype}: {DATES}")
        if not any(test(dtype) for test in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)):
            raise UserError(
                f"{label} has the type {dtype}: it must have numbers, booleans or texts; name it in data.ignore, "
                "or leave it out"
            )
        return TableColumn(read_numbers(values.cast(dtype), dtype), category=coded or name in self.categories)


def width(dtype: Any, text: int = CODE) -> int:
    """Return the bytes of a number in a column of an Arrow type, at least, or of a text."""
    from pyarrow import types

    return max(1, dtype.bit_width // 8) if types.is_primitive(dtype) else text


def read_numbers(values: Any, dtype: Any) -> Array:
    """Return the numbers of an Arrow array in numpy's smallest type that holds them, NaN in place of nulls."""
    import pyarrow as pa

    if pa.types.is_boolean(dtype):
        values = values.cast(pa.int8())
    if pa.types.is_decimal(dtype) or (values.null_count and not pa.types.is_floating(dtype)):
        values = values.cast(pa.float64())
    return np.asarray(values)


def read_texts(values: Any, label: str, ordered: bool) -> TableColumn:
    """Return a column of the texts of an Arrow array, or a category if its dictionary is in an order of its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(values):  # combine_chunks of nothing is no array
        return TableColumn(np.zeros(0, np.int64), ())
    # Large: offsets of the usual type have 32 bits, which a column of more than 2 GB of texts exceeds.
    coded = values.unify_dictionaries() if ordered else pc.dictionary_encode(values.cast(pa.large_string()))
    coded = coded.combine_chunks()
    codes = np.asarray(coded.indices.fill_null(MISSING))
    column = make_category(coded.dictionary.to_pylist(), codes, label)
    return column if ordered else column._replace(category=False, ordered=False)
