"""The model from which a run starts if its experiment names a file: ``start = "out.h5"``."""

import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.toml import wrong_value
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import open_npz, reading
from mpifed.features.settings import Experiment
from mpifed.results.result import read_final_model, read_result_file


def read_start_model(name: str) -> Array:
    """Read the final model of the result file ``name``, or x of an NPZ file: (n,), or (m, n) for nodes; finite.

    UserError where there is none.
    """
    path = Path(os.path.expanduser(name))
    try:
        if not path.is_file():
            raise UserError("there is no such file")
        x = read_npz(path) if zipfile.is_zipfile(path) else check_numbers(read_result_file(path, read_final_model))
        if not np.isfinite(x).all():
            raise UserError(f"{np.count_nonzero(~np.isfinite(x))} of its {x.size} numbers are not finite")
    except UserError as error:
        raise wrong_value("start", name, str(error)) from None
    return x


def read_npz(path: Path) -> Array:
    """Read the array x of an NPZ file."""
    with reading(path, "NPZ"):
        arrays = open_npz(path)
    if "x" not in arrays:
        raise UserError(f"it has no array x, but {', '.join(arrays) or 'no array at all'}")
    return np.asarray(check_numbers(arrays["x"])[:])


def check_numbers(x: Any) -> Any:
    """Return an array unchanged. UserError unless it is a real vector, or a table with a row for each node."""
    if len(x.shape) not in (1, 2) or x.dtype.kind not in "fiu":
        raise UserError(
            "x must be a vector of real numbers, or on a graph a table with one for each node, and it has type "
            f"{x.dtype} and shape {x.shape}"
        )
    return x


def split_start_model(x: Array, shape: tuple[int, int], config: Experiment) -> tuple[Array, Array | None]:
    """Split a loaded array into the mean model (n,) and, on graphs, the models of the nodes (m, n), in the run's dtype.

    ``shape`` is (m, n), the numbers of clients and parameters. UserError for another shape or too large numbers.
    """
    m, n = shape
    wrong = partial(wrong_value, "start", config.start or "")
    if x.ndim == 2 and config.graph is None:
        raise wrong(
            f"its x has shape {x.shape}, a model for each node, and without a table [graph] all clients start from "
            "one: x must be a vector"
        )
    if x.shape[-1] != n:
        raise wrong(f"its model has {x.shape[-1]} parameters, but the model of this problem on these data has {n}")
    if x.ndim == 2 and len(x) != m:
        raise wrong(f"its x has {len(x)} rows, but the graph has {m} nodes")
    converted = x.astype(config.dtype)
    if not np.isfinite(converted).all():
        raise wrong(f"numbers of its model are too large for {config.dtype}")
    return (converted, None) if x.ndim == 1 else (converted.mean(axis=0), converted)
