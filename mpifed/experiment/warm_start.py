"""The model that a run starts from where its experiment names a file: ``start = "out.h5"``."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import open_npz, reading
from mpifed.results.result import final_model, read


def given_start(name: str) -> Array:
    """The final model of the result file ``name``, or the array x of an NPZ file: (n,), finite.

    UserError where there is none.
    """
    path = Path(os.path.expanduser(name))
    try:
        if not path.is_file():
            raise UserError("there is no such file")
        x = array_x(path) if zipfile.is_zipfile(path) else vector(read(path, final_model))
        if not np.isfinite(x).all():
            raise UserError(f"{np.count_nonzero(~np.isfinite(x))} of its {x.size} numbers are not finite")
    except UserError as error:
        raise UserError(f"start = {toml_value(name)} is wrong: {error}") from None
    return x


def array_x(path: Path) -> Array:
    """The array x of an NPZ file."""
    with reading(path, "NPZ"):
        arrays = open_npz(path)
    if "x" not in arrays:
        raise UserError(f"it has no array x, but {', '.join(arrays) or 'no array at all'}")
    return np.asarray(vector(arrays["x"])[:])


def vector(x: Any) -> Any:
    """An array, read or not. UserError where it is no vector of real numbers."""
    if len(x.shape) != 1 or x.dtype.kind not in "fiu":
        raise UserError(f"x must be a vector of real numbers, and it has type {x.dtype} and shape {x.shape}")
    return x


def fitting(x: Array, n: int, dtype: str, name: str) -> Array:
    """``x`` as a model of n parameters of type ``dtype``. UserError where it is none; ``name`` is its file."""
    if x.size != n:
        raise UserError(
            f"start = {toml_value(name)} is wrong: its model has {x.size} parameters, but the model of this problem on "
            f"these data has {n}"
        )
    converted = x.astype(dtype)
    if not np.isfinite(converted).all():
        raise UserError(f"start = {toml_value(name)} is wrong: numbers of its model are too large for {dtype}")
    return converted
