"""Mini-batches of epochs: which samples they take, beside plain loops, and how many steps and gradients that is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.algorithms.parts import count_gradients, count_steps
from mpifed.extend import Pool, stream
from mpifed.kernels.plan import MiniBatches
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import local

SIZES = [9, 12, 10, 13, 2, 6]
SIZE = 4  # of mini-batches: rests of 1, 0, 2, 1, 2 and 2 samples
EPOCHS = [(2, "keep"), (2, "drop"), (2, "merge"), (2.5, "keep"), (1.3, "merge"), (0.3, "drop")]


def cut(order, size, last):
    """The mini-batches of an order, as a list of lists."""
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    rest = len(batches[-1])
    if last == "drop" and rest < size:
        batches.pop()
    if last == "merge" and len(batches) > 1 and rest < size and (rest == 1 or rest < size / 2):
        batches[-2:] = [np.concatenate(batches[-2:])]
    return batches


def written_out(rng, d, epochs, size, last):
    """The sample numbers of all mini-batches of a client of d samples."""
    taken = []
    for j in range(math.ceil(epochs)):
        batches = cut(rng.permutation(d), size, last)
        part = min(1, round(epochs - j, 9))
        taken += batches[: math.ceil(round(part * len(batches), 9))]
    return taken


@pytest.mark.parametrize(("epochs", "last"), EPOCHS)
def test_fedavg_is_its_loop(epochs, last):
    sizes = [d for d in SIZES if last != "drop" or d >= SIZE]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((sum(sizes), 3)), rng.standard_normal(sum(sizes))
    data = mpifed.arrays(X, y, np.repeat(np.arange(len(sizes)), sizes))
    algorithm = mpifed.algorithms.FedAvg(epochs=epochs, batch_size=SIZE, last_batch=last, step=0.05)
    study = {"problem": "least-squares", "selection": "all", "seed": 3, "rounds": 3}
    found = mpifed.run(study, data=data, algorithm=algorithm)
    x = np.zeros(3)
    ends = np.cumsum(sizes)
    for round in (1, 2, 3):
        models = []
        for i, d in enumerate(sizes):
            A, b, w = X[ends[i] - d : ends[i]], y[ends[i] - d : ends[i]], x
            for rows in written_out(stream(3, "clients", i, round, 0), d, epochs, SIZE, last):
                w = w - 0.05 * A[rows].T @ (A[rows] @ w - b[rows]) / len(rows)
            models.append(w)
        x = np.mean(models, axis=0)
    np.testing.assert_allclose(found.x, x, rtol=1e-12)


@given(
    least=st.integers(0, 9),
    size=st.integers(1, 50),
    epochs=st.integers(1, 35).map(lambda tenths: tenths / 10),
    last=st.sampled_from(["keep", "drop", "merge"]),
)
def test_steps_and_sample_gradients_are_counted_before_they_are_taken(least, size, epochs, last):
    """Also where a client has no mini-batch at all, which a run refuses."""
    sizes = np.arange(4 * least + 1, 4 * least + 5)
    data = Pool(np.ones((sizes.sum(), 1)), np.zeros(sizes.sum()), None, sizes)
    steps, gradients = np.zeros((2, 4), int)
    for _, batch, has in local(data, LeastSquares()).steps(0, epochs, size, last_batch=last):
        taken = (batch.block.w > 0).sum(axis=1)
        assert np.array_equal(taken > 0, np.broadcast_to(has, (4, 1))[:, 0])
        steps += taken > 0
        gradients += taken
    expected = [written_out(np.random.default_rng(0), d, epochs, size, last) for d in sizes]
    assert steps.tolist() == count_steps(sizes, 0, epochs, size, last).tolist() == [*map(len, expected)]
    assert gradients.tolist() == count_gradients(sizes, 0, epochs, size, last).tolist()
    assert gradients.tolist() == [sum(map(len, batches)) for batches in expected]


def test_a_tenth_of_ten_mini_batches_is_one_and_no_mini_batch_of_several_samples_has_one():
    assert MiniBatches(2.1, 7, "keep").count_final(np.array([10, 11])).tolist() == [1, 2]
    assert count_steps(np.array([5, 9]), 3, 0, 2, "drop").tolist() == [3, 3]  # each drawn anew: there is no rest
    for size in range(2, 20):
        for d in range(2, 60):
            assert min(map(len, cut(np.arange(d), size, "merge"))) > 1
