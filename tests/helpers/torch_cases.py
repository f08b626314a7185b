"""Data and problems on which the tests of torch networks run, and what a user of torch would compute."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.data.pool import Pool
from mpifed.federation.local import Local
from mpifed.federation.setup import RunSpec
from mpifed.kernels.fill import BlockLayout, add_held_out, fill_blocks
from mpifed.problems.problem import Problem

torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
M, N, C = 4, 7, 3


def dataset(targets="classes", dtype="float64", kind="dense", sizes=None):
    """M clients of 9 to 12 samples, and 0 to 3 test samples each."""
    rng, sizes = np.random.default_rng(1), 9 + np.arange(M) if sizes is None else np.asarray(sizes)
    d, sizes_test = sizes.sum(), np.arange(len(sizes))
    X = rng.standard_normal((d + sizes_test.sum(), N)) + rng.standard_normal(N)
    y = rng.integers(0, C, len(X)) if targets == "classes" else X[:, 0] + 0.1 * rng.standard_normal(len(X))
    X, X_test = (sp.csr_array(part) if kind == "csr" else part for part in (X[:d], X[d:]))
    return Pool(X, y[:d], None, sizes, dtype, (X_test, y[d:], None, sizes_test))


def tables(folder):
    """The data of ``dataset`` as a file."""
    data = dataset()
    (X, y), (X_test, y_test) = data.rows(0, M), data.rows_test(0, M)
    sizes = {"sizes": data.sizes, "sizes_test": data.sizes_test}
    np.savez(folder / "clients.npz", X=X, y=y, X_test=X_test, y_test=y_test, **sizes)
    return {"name": "file", "path": str(folder / "clients.npz")}


def network(module, **options):
    return Problem.build({"name": "torch", "module": module, **options}, "problem")


def local(problem, data, views=()):
    """All clients of ``data``, of one padded size, in one block with their test samples."""
    layout = BlockLayout(0, data.sizes, [np.arange(data.m)], np.dtype(data.dtype))
    blocks = fill_blocks(data, layout, problem.labels)
    if data.sizes_test is not None:
        add_held_out(blocks, data, layout, problem.labels, "test")
    start = problem.initial(data, 0).astype(data.dtype)
    setup = RunSpec(problem, None, 0, data.m, start, role=data.role)
    return Local(blocks[0], setup, np.arange(data.m), (1, 0), views)


def point(f, shape=()):
    """Parameters of a network, or of one for each client."""
    return np.random.default_rng(3).standard_normal((*shape, f.n))


def samples(data, i, test=False):
    """(A_i, b_i) of a client."""
    sizes = data.sizes_test if test else data.sizes
    end = np.cumsum(sizes)[i]
    X, y = (data.rows_test if test else data.rows)(0, data.m)
    return X[end - sizes[i] : end], y[end - sizes[i] : end]


def at(module, x):
    """A module of torch, in double precision, whose trained parameters are x."""
    module.double()
    left = torch.tensor(x)
    for p in module.parameters():
        if p.requires_grad:
            p.data, left = left[: p.numel()].view(p.shape).clone(), left[p.numel() :]
    assert not len(left)
    return module


def tensors(A, b):
    """Samples and classes as tensors."""
    return torch.tensor(A), torch.tensor(b.astype(int))


def by_torch(module, A, b, loss=None):
    """Loss and gradient of a client as a user of torch computes them."""
    A, b = tensors(A, b)
    found = (loss or torch.nn.functional.cross_entropy)(module(A), b)
    trained = [p for p in module.parameters() if p.requires_grad]
    return found.item(), np.concatenate([g.numpy().ravel() for g in torch.autograd.grad(found, trained)])


def agrees(f, x, module, loss=None, data=None):
    """f and its gradient at x (n,), or (c, n), are those of ``module``, for every client."""
    values, gradients = f.value_grad(x)
    for i in range(M):
        value, gradient = by_torch(at(module, x if x.ndim == 1 else x[i]), *samples(data or dataset(), i), loss)
        assert np.isclose(values[i], value, rtol=1e-12)
        assert np.allclose(gradients[i], gradient, rtol=1e-9, atol=1e-12)
