"""scipy.sparse is imported by those who have sparse data, and by nobody else."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse

from mpifed.core import sparse
from tests.helpers.commands import execute


def test_names_are_those_of_scipy():
    assert sparse.csr_array is scipy.sparse.csr_array
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = sparse.no_such_name


@pytest.mark.parametrize(
    ("X", "found"), [(scipy.sparse.eye_array(2), True), (scipy.sparse.csr_matrix((2, 2)), True), (np.eye(2), False)]
)
def test_a_sparse_matrix_is_seen(X, found):
    assert sparse.issparse(X) is found


def test_a_dense_run_imports_neither_scipy_nor_numba_for_kernels_of_numpy():
    run = "import mpifed, sys; mpifed.run(rounds=1, kernels='numpy', progress=False); print(*sys.modules)"
    done = execute([sys.executable, "-c", run])
    assert done.code == 0, done.err
    loaded = {name for name in done.out.split() if name.split(".")[0] in ("scipy", "numba", "matplotlib", "pandas")}
    assert not loaded


def test_without_scipy_loaded_nothing_is_sparse():
    ask = "import sys; from mpifed.core.sparse import issparse; print(issparse(1), 'scipy' in sys.modules)"
    assert execute([sys.executable, "-c", ask]).out.split() == ["False", "False"]
