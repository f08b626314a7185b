"""Runs whose gradients the kernels compute, on PyTorch's CPU and in the simulator: the results of runs with numpy."""

import numpy as np
import pytest

import mpifed as public
from mpifed.data.cuda import device
from mpifed.data.cuda.launch import Kernels
from mpifed.experiment import gpu_kernels
from mpifed.federation.device_host import DeviceHost
from mpifed.problems import torch_device
from tests.helpers.algorithm_runs import Run, build

torch = pytest.importorskip("torch")
CPU = torch.device("cpu")
LINREG = {"name": "linreg-noniid", "clients": 4, "features": 3, "least": 2, "most": 9}
CLASSES = {"name": "synthetic", "clients": 4, "features": 3, "classes": 3, "least": 2, "most": 9}
HALF = {"name": "uniform", "share": 0.5}
STUDIES = {
    "least squares": {"data": LINREG, "problem": "least-squares"},
    "logistic": {"data": CLASSES | {"classes": 2}, "problem": {"name": "logistic", "mu": 0.3}},
    "non-convex logistic": {"data": CLASSES | {"classes": 2}, "problem": {"name": "nonconvex-logistic", "mu": 0.3}},
    "softmax": {"data": CLASSES, "problem": {"name": "softmax", "lam": 0.2}},
    "softmax without bias": {"data": CLASSES, "problem": {"name": "softmax", "bias": False}},
}
METHODS = {
    "fedavg": {"name": "fedavg", "k0": 2},
    "fedgia": {"name": "fedgia", "k0": 2},
    "mini-batches": {"name": "fedavg", "batch_size": 3, "epochs": 1},
}


@pytest.fixture
def launches(monkeypatch):
    """A GPU that is not one: tensors on the CPU, and the simulator; how many launches there were."""
    counted = []
    launch = Kernels.gradients

    def gradients(self, clients, X):
        counted.append(clients.c)
        return launch(self, clients, X)

    monkeypatch.setattr(Kernels, "gradients", gradients)
    monkeypatch.setattr(torch_device, "device_of", lambda *words: CPU)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "none")
    return counted


@pytest.mark.parametrize("algorithm", METHODS)
@pytest.mark.parametrize("name", STUDIES)
def test_have_the_results_of_numpy(name, algorithm, launches):
    study = STUDIES[name] | {"algorithm": METHODS[algorithm], "rounds": 2, "selection": HALF}
    here = public.run(study, kernels="numpy")
    assert not launches
    there = public.run(study, kernels="cuda")
    assert launches
    np.testing.assert_allclose(there.x, here.x, 1e-12, 1e-12)
    for column in ("objective", "grad_norm_sq"):
        np.testing.assert_allclose(there.rounds[column], here.rounds[column], 1e-11, 1e-13)
    assert (there.attrs["kernels"], there.attrs["numba_cuda"]) == ("cuda", gpu_kernels.version())
