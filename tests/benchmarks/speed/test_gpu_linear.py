"""The program that measures linear models on a GPU: all of it but the GPU."""

import importlib.util
import re
import sys

import numpy as np
import pytest
from mpifed.data.cuda.device import installed

from benchmarks.speed.gpu_linear import bmm, loop
from benchmarks.speed.gpu_machines import Row, Simulator
from tests.helpers.commands import ROOT, execute

PROGRAM = [sys.executable, "-m", "benchmarks.speed.gpu_linear"]


@pytest.mark.fast
@pytest.mark.slow
@pytest.mark.skipif(not installed(), reason="numba-cuda is not there: pip install mpifed[cuda]")
def test_it_runs_in_the_simulator():
    done = execute([*PROGRAM, "--simulate"], 600, ROOT)
    assert (done.code, done.err) == (0, "")
    table = [re.split(r"  +", line) for line in done.out.splitlines() if "×" in line]
    rows = [["5 × 3 × 4", "float32"], ["3 × 2 × 9", "float64"]]
    assert [line[:2] for line in table] == (2 * rows if importlib.util.find_spec("torch") else rows)
    assert max(float(line[-2]) for line in table) < 1e-6, "kernels do what the loop does, alone and through mpifed"


def test_without_a_gpu_it_says_so_in_one_sentence():
    done = execute(PROGRAM, 60, ROOT, CUDA_VISIBLE_DEVICES="")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"nothing is measured: (torch|numba(-cuda)?) (finds no GPU|is not installed).*\n", done.err)


def test_a_row_that_is_not_there_is_refused():
    done = execute([*PROGRAM, "--rows", "A,C"], 60, ROOT)
    assert done.code == 2
    assert "there is no row C; the rows are A, A64, B, 1e4, 1e5, 1e6, 15e6" in done.err


@pytest.mark.torch
def test_the_products_of_torch_do_what_the_loop_does():
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")

    data = Simulator(Row(6, 5, 4, "float64")).samples(Row(6, 5, 4, "float64"))
    found = bmm(torch, type(data)(*map(torch.from_numpy, data)))()
    np.testing.assert_allclose(found.numpy(), loop(data)(), rtol=1e-12)
