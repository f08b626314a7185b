"""Samples from the arrays of a data file, with checks of names, shapes and types, and CSR matrices."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, check_text_length, text_capacity
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import StoredArray, StoredCsr
from mpifed.data.pool import PoolSamples, check_finite

OF_SCIPY = ("data", "indices", "indptr", "shape")  # arrays that scipy.sparse.save_npz writes, beside format
TEXT = "SU"  # kinds of numpy's types for bytes and text


def label(name: str, path: Path | str) -> str:
    """Return a phrase for an array of a file, or of a program where ``path`` is empty."""
    return f"{name} of {path}" if path else name


def read_samples(arrays: dict[str, Any], path: Path | str, part: str, texts: bool = False) -> tuple[Any, Array]:
    """Return X and y (d,) of a role's samples, whose names end in ``part``; UserError for wrong shapes and types."""
    X_name, y_name = f"X{part}", f"y{part}"
    X = arrays[X_name] if X_name in arrays else read_csr(arrays, path, X_name)
    check_real(X, X_name, path)
    if len(X.shape) != 2 or 0 in X.shape:
        raise UserError(f"{label(X_name, path)} has the shape {tuple(X.shape)}: it must be (d, n) with d > 0 and n > 0")
    columns = f"{label(X_name, path)} has {X.shape[1]:,} columns"
    check_memory(8 * int(X.shape[1]), f"{columns}: a model with as many parameters")
    y = read_vector(arrays, y_name, path, texts)
    if len(y) != X.shape[0]:
        turned = f": it needs a row for each sample, so write {X_name} transposed" if len(y) == X.shape[1] else ""
        raise UserError(f"{label(y_name, path)} has {len(y)} entries, but {X_name} has {X.shape[0]} rows{turned}")
    if y.dtype.kind not in TEXT:
        check_finite(y.astype(np.float64), range(len(y)), label(y_name, path))
    return X, y


def read_held_out(arrays: dict[str, Any], path: Path, X: Any, sizes: Array | None, role: str) -> PoolSamples | None:
    """Return X_test, y_test and sizes_test of a role, checked against X and ``sizes``; None if there are none."""
    names = {f"X_{role}", f"X_{role}_data", f"y_{role}", f"sizes_{role}"}
    if not names & set(arrays):
        return None
    own = f"sizes_{role}"
    if sizes is None or own not in arrays:
        lacking = "sizes" if sizes is None else own
        raise UserError(f"{path} has {role} samples but no {lacking}: they need X_{role}, y_{role}, sizes and {own}")
    X_role, y_role = read_samples(arrays, path, f"_{role}", texts=True)
    sizes_role = read_sizes(arrays, own, path, X_role, 0)
    if len(sizes_role) != len(sizes):
        raise UserError(f"{own} of {path} has {len(sizes_role)} entries, but sizes has {len(sizes)}")
    if X_role.shape[1] != X.shape[1]:
        raise UserError(f"X_{role} of {path} has {X_role.shape[1]} columns, but X has {X.shape[1]}")
    return PoolSamples(X_role, y_role, None, sizes_role)


def read_csr(arrays: dict[str, Any], path: Path | str, name: str) -> StoredCsr:
    """Return the CSR matrix stored as name_data, name_indices, name_indptr and name_shape."""
    keys = [f"{name}_{key}" for key in ("data", "indices", "indptr", "shape")]
    missing = [key for key in keys if key not in arrays]
    if set(OF_SCIPY) <= set(arrays) and name == "X":
        check_scipy_csr(arrays, path)
        keys = list(OF_SCIPY)
        missing = []
    if missing:
        lack = f"no {name}" if len(missing) == 4 else f"no {missing[0]}"
        raise UserError(f"{path} has {lack}: it needs {name}, or {', '.join(keys[:3])} and {keys[3]}")
    data, indices = (arrays[key] for key in keys[:2])
    # read_mat returns arrays in memory, which cannot be read by rows.
    if not isinstance(data, StoredArray):
        raise UserError(f"{keys[0]} of {path}: a MATLAB file holds a sparse matrix as {name} itself")
    indptr, shape = (read_vector(arrays, key, path) for key in keys[2:])
    check_real(data, keys[0], path)
    check_real(indices, keys[1], path)
    if indices.dtype.kind not in "iu":
        raise UserError(f"{keys[1]} of {path} has the type {indices.dtype}: it must be an integer type")
    if len(shape) != 2 or not is_counts(shape):
        raise UserError(f"{keys[3]} of {path} must be two whole numbers >= 0, rows and columns")
    d, n = map(int, shape)
    if len(indptr) != d + 1 or not is_counts(indptr) or indptr[0] != 0 or np.any(np.diff(indptr.astype(np.int64)) < 0):
        raise UserError(f"{keys[2]} of {path} must be {d + 1} whole numbers that start at 0 and never decrease")
    # Checked here, before round one: readers of rows would meet the mistake only at the client that it concerns.
    end = int(indptr[-1])
    for array, key in ((data, keys[0]), (indices, keys[1])):
        if array.shape != (end,):
            raise UserError(f"{key} of {path} has the shape {array.shape}, but {keys[2]} ends at {end}")
    return StoredCsr(data, indices, indptr, (d, n))


def check_scipy_csr(arrays: dict[str, Any], path: Path | str) -> None:
    """Raise UserError where a file of scipy.sparse.save_npz has no CSR matrix, or there are no labels beside it."""
    if "y" not in arrays:
        raise UserError(
            f"{path} has a matrix of scipy.sparse.save_npz and no labels: write numpy.savez(file, X_data=A.data, "
            'X_indices=A.indices, X_indptr=A.indptr, X_shape=A.shape, y=y), or data.join = "y.npz" with y in it'
        )
    entry = arrays.get("format")
    form = "unknown"
    if entry is not None and entry.shape == () and entry.dtype.kind in TEXT:
        with np.load(path, allow_pickle=False) as file:
            form = str(file["format"].astype(str))
    if form != "csr":
        raise UserError(
            f"{path} has a matrix of the format {form!r}: scipy.sparse.save_npz(file, A.tocsr()) writes rows"
        )


def check_real(array: Any, name: str, path: Path | str) -> None:
    """Raise UserError where an array holds anything but real numbers, such as objects, text or complex numbers."""
    dtype = getattr(array, "dtype", np.dtype(object))
    if dtype.kind not in "biuf":
        never = "; pickled objects are never loaded" if dtype.hasobject else ""
        raise UserError(f"{label(name, path)} has the type {dtype}: it must be an array of real numbers{never}")


def is_counts(values: Array) -> bool:
    """Return whether all values are whole numbers >= 0 that fit into 64 bits."""
    return bool(np.all((values >= 0) & (values < 2.0**63) & (values == np.floor(values))))


def read_vector(arrays: dict[str, Any], name: str, path: Path | str, texts: bool = False) -> Array:
    """Return the array ``name`` as a vector (d,) of numbers or, with ``texts``, of texts; (d, 1) and (1, d) will do."""
    if name not in arrays:
        raise UserError(f"{path} has no {name}; it has {', '.join(arrays) or 'no arrays'}")
    if not (texts and getattr(arrays[name], "dtype", np.dtype(object)).kind in TEXT):
        check_real(arrays[name], name, path)
    else:
        check_text_length(text_capacity(arrays[name].dtype), label(name, path))
    shape = tuple(arrays[name].shape)
    if len(shape) == 0 or math.prod(shape) not in shape:
        raise UserError(f"{label(name, path)} has the shape {shape}: it must be a vector")
    values = arrays[name][:]
    vector = np.asarray(values.toarray() if sp.issparse(values) else values).ravel()
    return np.char.decode(vector, "utf-8") if vector.dtype.kind == "S" else vector


def read_sizes(arrays: dict[str, Any], name: str, path: Path, X: Any, minimum: int) -> Array:
    """Return the numbers of rows of the clients (m,), at least ``minimum`` each, which add up to the rows of X."""
    sizes = read_vector(arrays, name, path)
    if not len(sizes) or not is_counts(sizes) or sizes.min() < minimum:
        raise UserError(f"{name} of {path} must be whole numbers, the rows of each client, each at least {minimum}")
    # In integers of Python where one is too large: a sum in 64 bits can overflow to the very number of rows.
    total = sum(map(int, sizes)) if sizes.max() > X.shape[0] else int(sizes.sum())
    if total != X.shape[0]:
        raise UserError(f"{name} of {path} add up to {total}, but X{name.removeprefix('sizes')} has {X.shape[0]} rows")
    return sizes.astype(np.int64)
