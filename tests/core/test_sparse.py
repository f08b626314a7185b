"""scipy.sparse is imported by those who have sparse data, and by nobody else."""

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
    for X, found in ((scipy.sparse.eye_array(2), True), (scipy.sparse.csr_matrix((2, 2)), True), (np.eye(2), False)):
        assert sparse.issparse(X) is found


def test_a_dense_run_imports_neither_scipy_nor_numba_for_kernels_of_numpy():
    run = "import mpifed, sys; mpifed.run(rounds=1, kernels='numpy', progress=False); print(*sys.modules)"
    done = execute([sys.executable, "-c", f"{run}; from mpifed.core.sparse import issparse; print(issparse(1))"])
    assert done.code == 0, done.err
    *loaded, sparse = done.out.split()
    assert sparse == "False"
    assert not {name.split(".")[0] for name in loaded} & {"scipy", "numba", "matplotlib", "pandas"}
