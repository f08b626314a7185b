"""Machine code of kernels: where it is kept, and what happens where it cannot be, is damaged or is made at once."""

import os
import subprocess
import sys

import pytest

from mpifed.kernels import compiling

pytestmark = pytest.mark.fast

COMPUTE = """
import numpy as np
from mpifed.kernels.blocks import Block
from mpifed.kernels import compiling
from mpifed.kernels.compiling import CompiledProducts
from mpifed.problems.logistic import Logistic
print(compiling.is_cached("float64"))
block = Block(np.ones((2, 4, 3)), np.ones((2, 4)), np.array([4, 4]), 3, products=CompiledProducts())
print(Logistic(mu=0.0).grad(block, np.zeros(3)).sum())
print(sum(compiling.get_kernel(np.dtype("float64")).stats.cache_hits.values()), compiling.is_cached("float64"))
"""


def started(program=COMPUTE, **variables):
    clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = clean | {name: str(value) for name, value in variables.items()}
    pipe, words = subprocess.PIPE, [sys.executable, "-c", program]
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment)


def ended(process):
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out.split()


@pytest.mark.slow
def test_a_process_loads_what_others_have_compiled_also_at_once_and_compiles_anew_what_is_damaged(tmp_path):
    assert ended(started(HOME=tmp_path)) == ["False", "-3.0", "0", "True"]
    assert ended(started(HOME=tmp_path)) == ["True", "-3.0", "1", "True"]
    assert list(tmp_path.glob(".cache/mpifed/kernels/float64-*"))
    for process in [started(NUMBA_CACHE_DIR=tmp_path) for _ in range(4)]:
        assert ended(process)[1] == "-3.0"
    assert ended(started(NUMBA_CACHE_DIR=tmp_path)) == ["True", "-3.0", "1", "True"]
    for file in (tmp_path / "mpifed").rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:40])
    assert ended(started(NUMBA_CACHE_DIR=tmp_path))[1] == "-3.0"


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["/proc/none", "/dev/null"])
def test_where_nothing_can_be_written_the_kernel_is_compiled_in_memory(folder):
    assert ended(started(HOME=folder)) == ["False", "-3.0", "0", "False"]


def test_the_folder_is_that_of_the_user_of_xdg_or_of_numba(tmp_path, monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compiling.cache_root() == tmp_path / ".cache/mpifed/kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert compiling.cache_folder("float32") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compiling.cache_root() == tmp_path / "xdg/mpifed/kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compiling.cache_folder("float32").parent == tmp_path / "numba/mpifed"
    assert compiling.cache_folder("float32") != compiling.cache_folder("float64")


def test_a_numba_that_cannot_be_used_is_told(monkeypatch):
    import numba

    assert compiling.compile_failure() is None
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert compiling.compile_failure() == "NUMBA_DISABLE_JIT is set"
