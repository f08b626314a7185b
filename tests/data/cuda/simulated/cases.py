"""Clients of different sizes, and the kernels for a problem beside the problem itself."""

import numpy as np

from mpifed.data.blocks import Block
from mpifed.data.cuda.device import Device
from mpifed.data.cuda.launch import Kernels, Model
from mpifed.problems.base import Problem

MODELS = {
    "least-squares": (Model("linear"), {}),
    "logistic": (Model("logistic"), {"mu": 0.3}),
    "nonconvex-logistic": (Model("logistic", "bounded"), {"mu": 0.3}),
    "softmax": (Model("softmax", classes=3, bias=True), {"lam": 0.2}),
    "softmax without bias": (Model("softmax", classes=3), {"lam": 0.2, "bias": False}),
}
SIZES = (5, 1, 7, 3)
NEAR = {"float32": 2e-6, "float64": 1e-14}  # how far sums in two orders are from each other


class Case:
    """Clients of ``sizes`` with samples of ``features`` features."""

    def __init__(self, name="logistic", features=3, dtype="float64", sizes=SIZES):
        self.model, options = MODELS[name]
        self.problem = Problem.build({"name": name.partition(" ")[0], **options}, "problem")
        self.dtype = dtype
        self.kernels = Kernels(self.model, Device(np.dtype(dtype), self.empty))
        rng = np.random.default_rng(features)
        d = np.array(sizes)
        there = np.arange(-(-d.max() // 4) * 4) < d[:, None]
        A = np.where(there[:, :, None], rng.standard_normal((*there.shape, features)), 0).astype(dtype)
        b = np.where(there, rng.integers(0, max(2, self.model.classes), there.shape), 0).astype(dtype)
        self.block = Block(A, b, d, features)
        self.n = self.model.classes * (features + self.model.bias)
        self.X = rng.standard_normal((len(d), self.n)).astype(dtype)
        self.V = rng.standard_normal((len(d), self.n)).astype(dtype)

    def empty(self, shape):
        return np.full(shape, np.nan, self.dtype)

    def clients(self, rows=slice(None), more=0):
        """The clients at positions ``rows``, with so many more rows of padding."""
        A, b, w = (np.pad(part[rows], [(0, 0), (0, more)] + [(0, 0)] * (part.ndim - 2)) for part in self.arrays())
        return self.kernels.clients(A, b, w, self.factors()[rows])

    def arrays(self):
        return self.block.A, self.block.b, self.block.w

    def factors(self):
        """s_i, the factors of the regularisers."""
        given = self.problem.lam if self.model.residual == "softmax" else self.problem.weight(self.block.d)
        return np.broadcast_to(given, len(self.block)).astype(self.dtype)

    def close(self, found, expected):
        assert found.dtype == self.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=NEAR[self.dtype] * max(1, np.abs(expected).max()))
