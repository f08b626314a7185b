"""Hosts on a device: no bit of a client depends on others, and everything around client methods works as in memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from mpifed.federation import sums
from mpifed.kernels.blocks import Block, padding_weights
from tests.helpers.algorithm_runs import M, Run, build

torch = pytest.importorskip("torch")
from mpifed.core.arrays import device_namespace, to_numpy  # noqa: E402
from mpifed.engine.devices.device_host import DeviceHost, DeviceKernels, sum_subtrees  # noqa: E402
from mpifed.experiment.config import experiment  # noqa: E402
from mpifed.kernels.tensor_products import TensorProducts, round_rows  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
SHAPES = [(4, 3), (20, 20), (72, 64), (40, 501), (1000, 31), (2000, 9)]
both = pytest.mark.parametrize("dtype", ["float32", "float64"])


def on_cpu(cohort=8):
    return lambda setup, data, lo, hi: DeviceHost(setup, data, lo, hi, CPU, cohort)


def clients(D, n, dtype, count=24):
    """A block of clients on the device, and the same in memory."""
    rng = np.random.default_rng(D)
    d = rng.integers(1, D + 1, count)
    A, b = (rng.standard_normal((count, *shape)).astype(dtype) for shape in ((D, n), (D,)))
    here = Block(A, b, d, n, padding_weights(d, D, dtype))
    return TensorProducts(device_namespace(CPU)).move_blocks([here], D), here


@both
@pytest.mark.parametrize(("D", "n"), SHAPES)
def test_products_agree_with_those_in_memory(D, n, dtype):
    there, here = clients(D, n, dtype)
    rng = np.random.default_rng(1)
    X, R, W, Z = (rng.standard_normal((24, *k)).astype(dtype) for k in ((n,), (D,), (5, n), (D, 5)))
    near = {"rtol": 0, "atol": 50 * (D + n) ** 0.5 * np.finfo(dtype).eps}
    for name, given in {"matvec": X, "vecmat": R, "matmat": W, "tmatmat": Z}.items():
        found = to_numpy(getattr(there, name)(torch.tensor(given)))
        np.testing.assert_allclose(found, getattr(here, name)(given), **near)
    for common in (X[0], W[0]):
        name = "matvec" if common.ndim == 1 else "matmat"
        found = to_numpy(getattr(there, name)(torch.tensor(common)))
        np.testing.assert_allclose(found, getattr(here, name)(common), **near)


@both
@pytest.mark.parametrize(("D", "n"), SHAPES)
def test_no_bit_of_a_product_depends_on_which_clients_are_in_the_block(D, n, dtype):
    whole, _ = clients(D, n, dtype)
    rng = np.random.default_rng(2)
    X, R, W, Z = (torch.tensor(rng.standard_normal((24, *k)).astype(dtype)) for k in ((n,), (D,), (5, n), (D, 5)))
    given = {"matvec": X, "vecmat": R, "matmat": W, "tmatmat": Z}
    right = {name: getattr(whole, name)(part) for name, part in given.items()}
    for size in (1, 2, 7, 8, 12, 24):
        rows = rng.permutation(24)[:size]
        for name, part in given.items():
            assert torch.equal(getattr(whole.take(rows), name)(part[rows]), right[name][rows]), (name, size)


METHODS = [
    ("fedavg", {"batch_size": 4}),
    ("scaffold", {"batch_size": 5, "epochs": 2}),
    ("fedgia", {"H": "gram"}),
    ("fedadmm", {}),
    ("fedavg", {"optimizer": "adam", "batch_size": 7, "epochs": 1}),
    ("fedadmm-insa", {"c": 0.1}),
]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("problem", "dtype"),
    [
        ("least-squares", "float64"),
        pytest.param("least-squares", "float32", marks=SLOW),
        *[pytest.param("softmax", dtype, marks=SLOW) for dtype in ("float32", "float64")],
    ],
)
@pytest.mark.parametrize(("name", "options"), METHODS)
def test_no_bit_depends_on_the_hosts(name, options, problem, dtype):
    if problem == "softmax" and "H" in options:
        options = {}
    runs = [Run(build(name, options), problem, cuts=cuts, dtype=dtype, host=on_cpu()) for cuts in CUTS]
    first, *others = [(run.rounds(3), *run.states(), np.array([*run.row().values()], float)) for run in runs]
    for other in others:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first, other, strict=True))


CUTS = [(0, M), (0, 5, M), (0, 1, 2, 9, M)]


def test_few_sizes_are_computed_together():
    sizes = [round_rows(D) for D in range(4, 4000, 4)]
    assert all(D <= size <= 1.25 * D for D, size in zip(range(4, 4000, 4), sizes, strict=True))
    assert len(set(sizes)) < 45
    assert all(size % 4 == 0 for size in sizes)


@both
@pytest.mark.parametrize("m", [1, 2, 7, 64, 100])
def test_sums_on_a_device_have_the_bits_of_those_in_memory(m, dtype):
    rng = np.random.default_rng(m)
    for lo, hi in ((0, m), (m // 3, m), (0, m // 2 + 1)):
        tree = sums.find_subtrees(lo, hi, m)
        called = np.flatnonzero(rng.random(hi - lo) < 0.4) + lo
        for ids in (None, called):
            count = hi - lo if ids is None else len(ids)
            rows = rng.standard_normal((count, 3)).astype(dtype)
            found = sum_subtrees(torch.tensor(rows), ids, lo, tree)
            assert found.tobytes() == sums.sum_subtrees(rows, ids, lo, tree).tobytes()


@pytest.mark.parametrize(("kernels", "sparse", "count"), [("cuda", True, 1), ("cuda", False, 0), ("torch", True, 0)])
def test_what_is_not_known_of_the_bits_of_sparse_products_on_a_gpu_is_said(kernels, sparse, count):
    feature = DeviceKernels(experiment({}))
    feature.prepare(None, SimpleNamespace(sparse=sparse))
    feature.host_maker(kernels)
    assert len(list(feature.notes())) == count
