"""Runs whose gradients the kernels compute, on PyTorch's CPU and in the simulator: the results of runs with numpy."""

import numpy as np
import pytest
import torch

import mpifed as public
from mpifed.core.arrays import on
from mpifed.data.base import Data
from mpifed.data.blocks import Block, weights
from mpifed.data.cuda.block import CudaBlock, added
from mpifed.data.cuda.launch import Kernels
from mpifed.experiment import gpu_kernels
from mpifed.federation import sums
from mpifed.federation.device_host import DeviceHost
from mpifed.federation.device_sums import subtotals
from mpifed.federation.participation.selection import Uniform
from mpifed.federation.setup import LAUNCHED
from mpifed.problems.base import Problem
from tests.helpers.algorithm_runs import Run, build

pytestmark = pytest.mark.usefixtures("fewest_threads")
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
METHODS = {  # and the studies that are run by each
    "fedavg": ({"name": "fedavg", "k0": 2}, [*STUDIES]),
    "fedgia": ({"name": "fedgia", "k0": 2}, ["least squares", "logistic", "softmax"]),
    "clipped": ({"name": "fedavg", "optimizer": {"name": "sgd", "clip": 0.1}, "k0": 2}, ["softmax", "logistic"]),
    "mini-batches": ({"name": "fedavg", "batch_size": 3, "epochs": 1}, ["non-convex logistic", "softmax"]),
}


@pytest.fixture
def launches(no_gpu, monkeypatch):
    """Which kernels were launched."""
    counted = []
    launch = Kernels._launch

    def noted(self, which, *args):
        counted.append(which)
        return launch(self, which, *args)

    monkeypatch.setattr(Kernels, "_launch", noted)
    return counted


@pytest.mark.parametrize(("name", "algorithm"), [(name, key) for key, (_, names) in METHODS.items() for name in names])
def test_have_the_results_of_numpy(name, algorithm, launches):
    study = STUDIES[name] | {"algorithm": METHODS[algorithm][0], "rounds": 2, "selection": HALF}
    here = public.run(study, kernels="numpy")
    assert not launches
    there = public.run(study, kernels="cuda")
    assert ("steps" if algorithm == "fedavg" else "gradients") in launches
    np.testing.assert_allclose(there.x, here.x, 1e-12, 1e-12)
    for column in ("objective", "grad_norm_sq"):
        np.testing.assert_allclose(there.rounds[column], here.rounds[column], 1e-11, 1e-13)
    assert (there.attrs["kernels"], there.attrs["numba_cuda"]) == ("cuda", gpu_kernels.version())


@pytest.mark.parametrize("name", ["least squares", "softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_have_the_same_bits_on_one_host_and_on_three(name, dtype):
    study = STUDIES[name]
    data = Data.build(study["data"], "data").load(0, dtype)
    runs = [
        Run(
            build("fedavg", {"k0": 2}),
            Problem.build(study["problem"], "problem"),
            data=data,
            cuts=cuts,
            dtype=dtype,
            selection=Uniform(count=3),
            host=lambda setup, *place: DeviceHost(setup._replace(kernels=LAUNCHED), *place, CPU, 3),
        )
        for cuts in ((0, 4), (0, 1, 2, 4))
    ]
    one, three = (run.rounds(2) for run in runs)
    assert one.dtype == dtype
    np.testing.assert_array_equal(one, three, strict=True)


def test_a_part_of_a_block_has_the_bits_of_the_whole_and_copies_no_sample():
    problem = Problem.build({"name": "logistic", "mu": 0.3}, "problem")
    rng = np.random.default_rng(0)
    d = np.array([4, 1, 3, 2])
    A, b = rng.standard_normal((4, 4, 3)), rng.integers(0, 2, (4, 4)).astype(float)
    whole = CudaBlock.moved([Block(A, b, d, 3, weights(d, 4, "float64"))], 4, on(CPU))
    X = torch.tensor(rng.standard_normal((4, 3)))
    Z, G = problem._pass(whole, X)
    for rows in (slice(1, 3), np.array([3, 0]), np.array([2, 2])):
        part = whole.part(rows)
        found = problem._pass(part, X[rows])
        assert "A" not in vars(part)
        assert torch.equal(found[0], Z[rows])
        assert torch.equal(found[1], G[rows])
    assert torch.equal(problem.grad(whole, X[0].expand(4, 3)), problem.grad(whole, X[0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 9, 20])
def test_sums_have_the_bits_of_those_of_pytorch(m, dtype):
    rng = np.random.default_rng(m)
    for lo, hi in ((0, m), (m // 3, m)):
        tree = sums.nodes(lo, hi, m)
        for ids in (None, np.flatnonzero(rng.random(hi - lo) < 0.6) + lo):
            rows = torch.tensor(rng.standard_normal((hi - lo if ids is None else len(ids), 3)).astype(dtype))
            found = subtotals(rows, ids, lo, tree, added)
            assert found.tobytes() == subtotals(rows, ids, lo, tree).tobytes()
