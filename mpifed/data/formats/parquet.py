"""Parquet files, read one column at a time."""

from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, check_text, size_of
from mpifed.core.typing import Array
from mpifed.data.formats.csv import Column, special_columns


def read_parquet(path: Path, target: Column, client: Column) -> dict[str, Array]:
    """X (d, n), y (d,) and, with ``client``, client (d,) of a table; ``target`` is the column of y (None: the last).

    Columns of X hold numbers or booleans; those of y and client may also hold text. X has the smallest type that holds
    all its columns. UserError for nulls and other types.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        special = special_columns(path, schema.names, True, target, client)
        for name in schema.names:
            if schema.names.count(name) > 1:
                raise UserError(f"{path} has several columns {name!r}: each needs a name of its own")
        features = [k for k in range(len(schema.names)) if k not in special.values()]
        kinds = [number_type(schema.field(k), path) for k in features]
        kind = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        d = file.metadata.num_rows
        check_memory(size_of((d, len(features)), kind.itemsize), f"the {d:,} rows of {path}")
        X = np.empty((d, len(features)), kind)
        for column, k in enumerate(features):
            X[:, column] = numbers(column_values(file, schema.names[k], path))
        arrays = {"X": X}
        for name, k in special.items():
            values = column_values(file, schema.names[k], path)
            found = texts(values, f"the column {schema.names[k]!r} of {path}")
            if found is None:
                number_type(schema.field(k), path)
                found = numbers(values)
            arrays[name] = found
    return arrays


def column_values(file: Any, name: str, path: Path) -> Any:
    """A column of a file as one Arrow array; UserError where it has a null."""
    values = file.read(columns=[name], use_threads=False).column(name)
    if values.null_count:
        row = values.is_null().index(True).as_py()
        nulls = f"{values.null_count} null{'s' * (values.null_count > 1)}"
        raise UserError(
            f"{path} has {nulls} in the column {name!r}, the first one in row {row} (rows are counted from 0): "
            "fill them in or drop these rows"
        )
    return values


def number_type(field: Any, path: Path) -> np.dtype[Any]:
    """numpy's type for the numbers of a column; UserError where it holds something else."""
    import pyarrow.types as kinds

    if kinds.is_boolean(field.type):
        return np.dtype(np.int8)
    if kinds.is_integer(field.type) or kinds.is_floating(field.type):
        return np.dtype(field.type.to_pandas_dtype())
    if kinds.is_decimal(field.type):
        return np.dtype(np.float64)
    raise UserError(
        f"the column {field.name!r} of {path} has the type {field.type}: it must have numbers or booleans; "
        "replace text by columns of numbers, or leave it out"
    )


def numbers(values: Any) -> Array:
    """Numbers of an Arrow array as numpy's."""
    import pyarrow as pa

    return np.asarray(values.cast(pa.float64()) if pa.types.is_decimal(values.type) else values)


def texts(values: Any, what: str) -> Array | None:
    """Texts of an Arrow array, also those of a dictionary of categories, as numpy's; None where it has others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return None
    found = values.cast(pa.large_string())
    check_text(pc.max(pc.utf8_length(found)).as_py() or 0, what)
    return np.asarray(found.to_pylist(), dtype=str)
