"""What every test has: as in a run, one BLAS thread a process."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield
