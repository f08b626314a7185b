"""Parquet files, of which only the columns that are asked for are read, one at a time."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, check_text, free, size_of
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import reading
from mpifed.data.tables.table import MISSING, Column, Table, in_order

CODE = 8  # bytes of the code of a text
LONG = 64  # bytes of a text before it is one, about
AT_ONCE = 1 << 25  # bytes of the columns that are read at a time, at least one


class ParquetTable(Table):
    """A Parquet file. Nulls and NaN are missing."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with pq.ParquetFile(path) as file:
            super().__init__(str(path), file.schema_arrow.names)
            about = file.schema_arrow.metadata or {}
            # Who writes categories in the order in which they come says nothing by it; pandas and R have an order.
            self.own_order = b"pandas" in about or b"r" in about
            self.categories = self.of_pandas(about.get(b"pandas", b"{}"))

    def of_pandas(self, about: bytes) -> set[str]:
        """Note the columns that are indices without a name; the columns that were categories, also those of numbers."""
        try:
            found = json.loads(about)
            index = map(str, found.get("index_columns", ()))
            columns = {entry["field_name"]: entry for entry in found.get("columns", ())}
        except (ValueError, KeyError, TypeError, AttributeError):  # written by others
            return set()
        unnamed = [name for name in index if name in columns and columns[name].get("name") is None]
        self.row_names |= {self.places[name] for name in unnamed if name in self.places}
        return {name for name, entry in columns.items() if entry.get("pandas_type") == "categorical"}

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        import pyarrow.parquet as pq

        with reading(self.path, "Parquet"), pq.ParquetFile(self.path) as file:
            d = file.metadata.num_rows
            what = f"the {d:,} rows and {len(wanted):,} columns of {self.path}"
            schema = file.schema_arrow
            kinds = [schema.field(k).type for k in wanted]
            size = size_of((d,), sum(map(width, kinds)))
            check_memory(size, what)
            step = max(1, AT_ONCE // max(1, d * max(width(kind, LONG) for kind in kinds)))
            # Texts take more than is known before they are read, so that memory may end in spite of the check.
            try:
                groups = [[self.names[k] for k in wanted[lo : lo + step]] for lo in range(0, len(wanted), step)]
                return [column for names in groups for column in self.columns(file, names)]
            except MemoryError:
                raise UserError(
                    f"{what} do not fit in memory: they take more than {size / 1e6:,.0f} MB, and {free() / 1e6:,.0f} "
                    "MB are free"
                ) from None

    def columns(self, file: Any, names: Sequence[str]) -> Iterator[Column]:
        """Several columns: pyarrow looks through all of them for each that it is asked for alone."""
        found = file.read(columns=list(names), use_threads=False)
        for name in names:
            yield self.column(found.column(name), name)

    def column(self, values: Any, name: str) -> Column:
        import pyarrow.types as kinds

        coded = bool(kinds.is_dictionary(values.type))
        kind = values.type.value_type if coded else values.type
        what = f"the column {name!r} of {self.path}"
        if coded and (self.own_order or values.type.ordered):
            return levels(values, what)
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
        return Column(numbers(values.cast(kind), kind), category=coded or name in self.categories)


def width(kind: Any, text: int = CODE) -> int:
    """Bytes of a number in a column of an Arrow type, at least; texts become codes."""
    import pyarrow.types as kinds

    return max(1, kind.bit_width // 8) if kinds.is_primitive(kind) else text


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


def levels(values: Any, what: str) -> Column:
    """A category of an Arrow array whose dictionary is in an order of its own."""
    if not len(values):
        return Column(np.zeros(0, np.int64), ())
    whole = values.unify_dictionaries().combine_chunks()
    made = in_order(whole.dictionary.to_pylist(), np.asarray(whole.indices.fill_null(MISSING)).astype(np.int64))
    check_text(max(map(len, made.texts or ()), default=0), what)
    return made
