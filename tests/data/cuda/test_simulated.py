"""Start the tests of tests/data/cuda/simulated in a process in which a variable makes numba simulate a GPU.

By hand: ``NUMBA_ENABLE_CUDASIM=1 python -m pytest -n 0 tests/data/cuda/simulated``.
"""

import sys

import pytest

from mpifed.data.cuda.device import installed
from tests.helpers.commands import ROOT, execute

PYTEST = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", ""]
SIMULATED = "tests/data/cuda/simulated"


@pytest.mark.fast
@pytest.mark.slow
@pytest.mark.skipif(not installed(), reason="numba-cuda is not there: pip install mpifed[cuda]")
def test_in_the_simulator():
    done = execute([sys.executable, *PYTEST, SIMULATED], 900, ROOT, NUMBA_ENABLE_CUDASIM="1")
    assert done.code == 0, done.out + done.err
    assert "passed" in done.out
    assert "skipped" not in done.out, done.out
