"""The network of numpy against a plain loop, and its size."""

import numpy as np
import pytest

from mpifed.data.base import Dataset
from mpifed.problems.mlp import MLP
from mpifed.problems.softmax import Softmax
from mpifed.problems.svm import SVM
from tests.helpers.problem_cases import dataset, one_block


def test_a_network_is_written_out_right(size, kind):
    """Parameters flat, layer by layer, [W row-major (out × in) | bias]."""
    data, problem = dataset("mlp", size, kind), MLP(hidden=(5, 4), lam=0.4)
    block, rng = one_block(problem, data), np.random.default_rng(12)
    layers = [(rng.standard_normal((o, i)), rng.standard_normal(o)) for i, o in ((6, 5), (5, 4), (4, 3))]
    x = np.concatenate([part.ravel() for layer in layers for part in layer])
    assert problem.dim(data) == len(x) == 6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3
    wanted = []
    for i, d in enumerate(data.sizes):
        loss = []
        for a, k in zip(block.dense(i), block.b[i, :d].astype(int), strict=True):
            for W, c in layers[:-1]:
                a = np.maximum(W @ a + c, 0)
            z = layers[-1][0] @ a + layers[-1][1]
            loss.append(np.log(np.exp(z).sum()) - z[k])
        wanted.append(np.mean(loss) + 0.2 * sum(np.sum(W**2) for W, _ in layers))
    assert np.allclose(problem.value(block, x), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "n"), [(Softmax(), 7850), (SVM(), 7850), (MLP(), 79510), (Softmax(bias=False), 7840)], ids=repr
)
def test_models_of_mnist_have_the_size_of_the_papers(problem, n):
    data = Dataset()
    data.m, data.n, data.classes, data.sizes = 1, 784, 10, np.array([1])
    assert problem.dim(data) == n == len(problem.initial(data, 0))
