"""The kernels for a GPU outside of the simulator: whether they compile, where their code is, and no GPU at all."""

import sys

import pytest

from mpifed.data.cuda import device
from tests.helpers.commands import ROOT, execute

pytestmark = [
    pytest.mark.fast,
    pytest.mark.skipif(not device.installed(), reason="numba-cuda is not there: pip install mpifed[cuda]"),
]

COMPILE = """
from types import SimpleNamespace
from numba import cuda
from numba.cuda import dispatcher
from mpifed.data.cuda import device, kernels, tree
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # an H100; none is needed to compile
for which, module in device.MODULES.items():
    module = {"kernels": kernels, "tree": tree}[module]
    for name in ("float32", "float64"):
        code, _ = cuda.compile_ptx(getattr(module, which), module.signature(name).args, cc=(9, 0))
        print(which, name, code.count("fma."), code.count(".target sm_90"), "mul.rn.f" in code or which == "subtree")
"""


@pytest.mark.slow
def test_every_kernel_compiles_and_merges_no_product_with_an_addition():
    done = execute([sys.executable, "-c", COMPILE], 300, ROOT)
    if "libnvvm" in done.err.lower() or "nvvmsupporterror" in done.err.lower():
        pytest.skip("numba finds no compiler of NVIDIA: pip install mpifed[cuda]")
    assert done.code == 0, done.err
    expected = [f"{which} {name} 0 1 True" for which in device.MODULES for name in ("float32", "float64")]
    assert done.out.splitlines() == expected


def test_machine_code_is_kept_in_the_folder_of_numba_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    place = device.folder()
    assert place.parent == tmp_path / "mpifed"
    assert place.is_dir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null")
    assert device.folder() is None


def test_why_there_is_no_gpu_is_one_sentence():
    done = execute([sys.executable, "-c", "from mpifed.data.cuda.device import failure; print(failure())"], 60, ROOT)
    assert (done.code, done.err) == (0, "")
    if done.out != "None\n":
        assert done.out == "numba finds no GPU: nvidia-smi lists those that the driver knows\n"


def test_whether_numba_cuda_is_installed_is_known_without_importing_it():
    ask = "import sys; from mpifed.data.cuda.device import installed; print(installed(), 'numba' in sys.modules)"
    assert execute([sys.executable, "-c", ask], 60, ROOT).out == "True False\n"


def test_kernels_that_do_not_compile_are_told_in_one_line(monkeypatch):
    def broken(which, number):
        raise RuntimeError("libnvvm is missing\nin many folders")

    monkeypatch.setattr(device, "failure", lambda: None)
    monkeypatch.setattr("numba.cuda.select_device", lambda index: None)
    monkeypatch.setattr(device, "kernel", broken)
    assert device.unready("float64", 0).startswith("libnvvm is missing")
    monkeypatch.setattr(device, "kernel", lambda which, number: None)
    assert device.unready("float64", 0) is None
    monkeypatch.setattr(device, "failure", lambda: "numba finds no GPU")
    assert device.unready("float64", 0) == "numba finds no GPU"
