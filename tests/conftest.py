"""What every test has: one BLAS thread a process, as in a run, and few random examples unless slow tests run too."""

from __future__ import annotations

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("few", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("many", max_examples=200, deadline=None, database=None)


def pytest_configure(config: pytest.Config) -> None:
    default = config.getini("addopts")
    settings.load_profile("few" if config.option.markexpr in default else "many")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield
