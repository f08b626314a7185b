"""MATLAB files up to version 7."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mpifed.component import UserError
from mpifed.data.memory import declared, room, size_of

NUMBERS = {"double", "single", "logical", "sparse", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
WIDEST = 8  # bytes of a number


def read_mat(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file, sparse ones as CSR; of one that is no array of numbers only that it is there."""
    from scipy.io import loadmat, whosmat

    try:
        found = whosmat(path)
        names = [name for name, _, kind in found if kind in NUMBERS]
        for name, shape, kind in found:
            size = 0 if kind not in NUMBERS - {"sparse"} else size_of(shape, WIDEST)
            declared(size, WIDEST * path.stat().st_size, f"{name} of {path}")
            room(size, f"{name} of {path}")
        variables = loadmat(path, variable_names=names) if names else {}
    except UserError:
        raise
    except NotImplementedError:
        raise UserError(f"{path} is a MATLAB 7.3 file: save it with -v7, or as HDF5 with the suffix .h5") from None
    except Exception as error:  # scipy's reader raises many kinds on damaged files
        raise ValueError(error) from error
    others = {name: np.zeros(0, object) for name, _, kind in found if kind not in NUMBERS}
    return others | {name: sp.csr_array(value) if sp.issparse(value) else value
                     for name, value in variables.items() if not name.startswith("__")}
