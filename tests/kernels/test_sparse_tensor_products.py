"""CSR samples on a device: PyTorch's sparse products agree with scipy's, and no bit depends on who else is there."""

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed as public
from mpifed.data.pool import Pool
from mpifed.kernels.fill import BlockLayout, fill_blocks
from mpifed.kernels.plan import plan_blocks

torch = pytest.importorskip("torch")
from mpifed.core.arrays import device_namespace, to_numpy  # noqa: E402
from mpifed.engine.devices.device_host import client_bytes  # noqa: E402
from mpifed.kernels.tensor_products import SparseTensorProducts  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
SIZES = np.array([9, 1, 12, 5, 10, 11, 9, 12, 3, 10])
N = 40
NEAR = {"rtol": 1e-12, "atol": 1e-12}


def drawn(seed=0, dtype="float64", n=N, sizes=SIZES):
    """CSR samples with rows of 0 to 12 nonzeros in any order."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 13, sizes.sum())
    columns = np.concatenate([rng.permutation(n)[:k] for k in counts])
    values = rng.standard_normal(len(columns)).astype(dtype)
    return sp.csr_array((values, columns, np.concatenate([[0], np.cumsum(counts)])), (len(counts), n))


def clients(dtype="float64"):
    """All clients in one block on the device, and in memory, each in a block of its own."""
    data = Pool(drawn(dtype=dtype), np.arange(SIZES.sum()) % 3.0, None, SIZES, dtype)
    layout = BlockLayout(0, SIZES, list(plan_blocks(SIZES, N, 8, 1)), np.dtype(dtype))
    here = fill_blocks(data, layout, np.asarray)
    return SparseTensorProducts(device_namespace(CPU)).move_blocks(here, 16), here


def padded(parts):
    return np.concatenate(
        [np.pad(part, [(0, 0), (0, 16 - part.shape[1]), *[(0, 0)] * (part.ndim - 2)]) for part in parts]
    )


def given(dtype="float64"):
    rng = np.random.default_rng(1)
    shapes = {"matvec": (N,), "matmat": (3, N), "vecmat": (16,), "tmatmat": (16, 3)}
    return {name: rng.standard_normal((len(SIZES), *shape)).astype(dtype) for name, shape in shapes.items()}


def test_products_agree_with_those_of_scipy():
    there, here = clients()
    parts = given()
    for name in ("matvec", "matmat"):
        X = parts[name]
        right = padded([getattr(block, name)(X[k : k + 1]) for k, block in enumerate(here)])
        np.testing.assert_allclose(to_numpy(getattr(there, name)(torch.tensor(X))), right, **NEAR)
        common = padded([getattr(block, name)(X[0]) for block in here])
        np.testing.assert_allclose(to_numpy(getattr(there, name)(torch.tensor(X[0]))), common, **NEAR)
    for name in ("vecmat", "tmatmat"):
        R = parts[name]
        right = [getattr(block, name)(R[k : k + 1, : block.b.shape[1]]) for k, block in enumerate(here)]
        np.testing.assert_allclose(to_numpy(getattr(there, name)(torch.tensor(R))), np.concatenate(right), **NEAR)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_bit_of_a_client_depends_on_the_others_in_the_block(dtype):
    there, _ = clients(dtype)
    rng = np.random.default_rng(2)
    for name, X in given(dtype).items():
        whole = getattr(there, name)(torch.tensor(X))
        for size in (1, 1, 2, 2, 3, 5, 9):
            rows = rng.permutation(len(SIZES))[:size]
            for part in (there.part(rows), there.part(rows).part(np.arange(size))):
                assert torch.equal(getattr(part, name)(torch.tensor(X[rows])), whole[rows]), (name, size)


def test_mini_batches_are_rows_of_each_client_with_repetitions():
    there, _ = clients()
    picks = np.random.default_rng(3).integers(0, there.sizes[:, None], (len(SIZES), 6))
    batch = there.batch(picks, np.full(picks.shape, 1 / 6))
    X, R = given()["matvec"], np.random.default_rng(4).standard_normal(picks.shape)
    scores = to_numpy(there.matvec(torch.tensor(X)))
    np.testing.assert_allclose(to_numpy(batch.matvec(torch.tensor(X))), np.take_along_axis(scores, picks, 1), **NEAR)
    rows = [there.dense(i).numpy()[own] for i, own in enumerate(picks)]
    right = [r @ A for r, A in zip(R, rows, strict=True)]
    np.testing.assert_allclose(to_numpy(batch.vecmat(torch.tensor(R))), right, **NEAR)
    assert to_numpy(batch.b).tolist() == np.take_along_axis(to_numpy(there.b), picks, 1).tolist()


def test_the_copy_in_memory_has_the_same_numbers():
    there, here = clients()
    order = np.random.default_rng(5).permutation(len(SIZES))
    copy = there.part(order).in_cpu_memory()
    for position, k in enumerate(order):
        assert np.array_equal(copy.dense(position), here[k].dense(0))


DATA = public.arrays(drawn(7), (np.arange(SIZES.sum()) % 2.0), SIZES.tolist(), test=0.3)
CLASSES = public.arrays(drawn(8), (np.arange(SIZES.sum()) % 3.0), SIZES.tolist())
COUNTS = public.arrays(drawn(9) * 0.1, 1.0 + np.arange(SIZES.sum()) % 4, SIZES.tolist())
AVG = {"name": "fedavg", "step": 0.1}
STUDIES = {
    "least squares": {"problem": "least-squares", "data": DATA},
    "logistic": {"problem": "logistic", "data": DATA},
    "non-convex logistic": {"problem": "nonconvex-logistic", "data": DATA, "algorithm": "scaffold"},
    "softmax": {"problem": "softmax", "data": CLASSES},
    "svm": {"problem": "svm", "data": CLASSES},
    "poisson": {"problem": "poisson", "data": COUNTS},
    "mini-batches": {"problem": "logistic", "data": DATA, "algorithm": AVG | {"batch_size": 4}},
    "selection": {"problem": "logistic", "data": DATA, "selection": {"name": "uniform", "count": 3}},
    "inverses": {"problem": "logistic", "data": DATA, "algorithm": {"name": "fedgia", "H": "gram"}},
}


SLOW = ("least squares", "logistic", "svm", "poisson")  # no other products than those of the others


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in STUDIES])
def test_a_run_agrees_with_one_in_memory_to_twelve_digits(name):
    study = {"algorithm": AVG, "rounds": 3, "stop": {"gradient": 0.0}} | STUDIES[name]
    here, there = (public.run(study, kernels=kernels) for kernels in ("numpy", "torch"))
    np.testing.assert_allclose(there.x, here.x, rtol=1e-12, atol=1e-12 * abs(here.x).max())
    for column in {"objective", "grad_norm_sq", "accuracy"} & here.rounds.keys():
        np.testing.assert_allclose(there.rounds[column], here.rounds[column], rtol=1e-11, err_msg=column)


def test_bytes_of_clients_count_their_own_nonzeros():
    data = Pool(drawn(), np.arange(SIZES.sum()) % 3.0, None, SIZES)
    layout = BlockLayout(0, SIZES, list(plan_blocks(SIZES, N, 8, 1 << 20)), np.dtype("float64"))
    blocks = fill_blocks(data, layout, np.asarray)
    assert max(map(len, blocks)) > 1
    for block in blocks:
        counts = [block.products.matrix(block, i).nnz for i in range(len(block))]
        assert client_bytes(block, 16) == sum(3 * count * (8 + 4) + 16 * (2 * 8 + 24) for count in counts)
