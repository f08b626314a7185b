"""What every test has: one BLAS thread a process, as in a run, and few random examples unless slow tests run too."""

import gc
import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from tests.helpers.parts import in_part

os.environ.setdefault("MKL_CBWR", "AUTO")  # before a test imports PyTorch itself: see core/arrays.py
os.environ.setdefault("OMP_NUM_THREADS", "1")  # PyTorch's threads would wait for the processor that other tests have
settings.register_profile("few", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("many", max_examples=200, deadline=None, database=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="only part K = 0, 1 … of N of the tests, drawn by their names")


# files of few and long tests, which come first: the last one would leave the other processes of a run idle
LONG = ("test_under_mpirun.py", "test_resume.py", "test_check.py", "test_reliability.py", "test_slips.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is made here stays: to look for garbage in it meanwhile would take time for nothing."""
    gc.disable()
    found = yield
    gc.enable()  # without gc.freeze, under which hypothesis 6.100 calls tests flaky
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)
    config.hook.pytest_deselected(items=[item for item in items if not in_part(item.nodeid, config.option.part)])
    items[:] = [item for item in items if in_part(item.nodeid, config.option.part)]


def pytest_configure(config: pytest.Config) -> None:
    default = config.getini("addopts")
    settings.load_profile("few" if config.option.markexpr in default else "many")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for a whole run; one where paths are named, and on each of several ranks."""
    return 2 if config.args == config.getini("testpaths") and (os.cpu_count() or 1) > 1 else 0


MODULES = {"fast": ("numba", "numba is not there"), "torch": ("torch", "PyTorch is not there")}  # of markers and extras


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (module, reason) in MODULES.items():
        if item.get_closest_marker(marker) and importlib.util.find_spec(module) is None:
            pytest.skip(f"{reason}: pip install mpifed[{marker}]")


@pytest.fixture(autouse=True, scope="session")
def kernel_cache():
    """Compiled kernels are kept in the checkout, for all processes and ranks of all runs, and not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "kernels"))
        yield


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield
