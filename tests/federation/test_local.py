"""What clients see, mini-batches that depend on nobody else, and their matrices: never all of them at once."""

import tracemalloc
from itertools import chain
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.algorithms.newton import Newton
from mpifed.core import memory
from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.federation.participation.selection import All
from mpifed.kernels import plan as module
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import Run, build, local


def numbered(sizes, kind=np.asarray):
    """Samples (1, j): the j-th of each client; labels 100 j."""
    j = np.concatenate([np.arange(d) for d in sizes])
    return Pool(kind(np.column_stack([np.ones(len(j)), j])), 100.0 * j, None, np.array(sizes), "float64")


def numbers_of(sizes, kind=np.asarray, **options):
    return local(numbered(sizes, kind), LeastSquares(), **options)


def drawn(batch, has):
    """The numbers of the samples in a mini-batch that count, a list a client; none where it has no mini-batch."""
    numbers = batch.block.matvec(np.array([0.0, 1.0])).round().astype(int)
    assert np.array_equal(batch.block.b, 100.0 * numbers)  # labels go with their samples
    weights = batch.block.w * np.broadcast_to(has, (len(batch), 1))
    return [list(row[own > 0]) for row, own in zip(numbers, weights, strict=True)]


@given(
    least=st.integers(0, 9),
    most=st.integers(1, 4),
    size=st.integers(1, 50),
    epochs=st.integers(1, 3),
    kind=st.sampled_from([np.asarray, sp.csr_array]),
)
def test_every_sample_comes_once_an_epoch(least, most, size, epochs, kind):
    sizes, seen = [4 * least + d for d in range(1, most + 1)], {}
    for j, batch, has in numbers_of(sizes, kind).steps(7, epochs, size):
        there = np.broadcast_to(has, (most, 1))[:, 0]
        assert np.array_equal(there, (batch.block.w > 0).any(axis=1))
        for i, numbers in enumerate(drawn(batch, has)):
            seen.setdefault((j, i), []).append(numbers)
    assert set(seen) == {(j, i) for j in range(epochs) for i in range(most)}
    for (_, i), batches in seen.items():
        assert sorted(chain(*batches)) == list(range(sizes[i]))
        full = [len(numbers) for numbers in batches if numbers]
        assert all(length == min(size, sizes[i]) for length in full[:-1])  # only the last one may be smaller
        assert len(full) == -(-sizes[i] // size)


def one_by_one(f, k0, epochs, size):
    """The numbers of the samples in every mini-batch, a list a client, drawn by permutation() client after client."""
    width = min(size, f.block.b.shape[1])
    passes = -(-max(f.d) // width) if epochs else 1
    for j in range(epochs or k0):
        orders = [rng.permutation(d) for rng, d in zip(f.rng, f.d, strict=True)]
        for k in range(passes):
            yield j, [list(order[k * width : (k + 1) * width]) for order in orders]


@pytest.mark.parametrize("ahead", [1, 40, 1 << 18])
@given(
    sizes=st.lists(st.integers(5, 8), min_size=1, max_size=5),
    size=st.integers(1, 9),
    k0=st.integers(1, 4),
    epochs=st.integers(0, 4),
)
def test_orders_are_permutations_from_each_clients_stream_however_many_are_drawn_ahead(ahead, sizes, size, k0, epochs):
    """So every sample is as likely anywhere. Numbers drawn before come first, and the streams go on from the last."""
    f, reference = numbers_of(sizes), numbers_of(sizes)
    before = [[rng.laplace() for rng in one.rng] for one in (f, reference)]
    assert before[0] == before[1]
    with patch.object(module, "AHEAD", ahead):
        found = [(j, drawn(batch, has)) for j, batch, has in f.steps(k0, epochs, size)]
    assert found == list(one_by_one(reference, k0, epochs, size))
    assert [rng.random() for rng in f.rng] == [rng.random() for rng in reference.rng]


@pytest.mark.parametrize(("k0", "epochs", "size"), [(6, 0, 0), (6, 0, 2), (0, 3, 4), (0, 4, 0)])
def test_a_client_that_may_take_fewer_steps_takes_its_first_ones(k0, epochs, size, kind):
    """Also where others of its block have more mini-batches an epoch; all of them is the same as no bound."""
    sizes, most = [9, 4, 5, 1, 12], np.array([1, 3, 2, 9, 5])
    every, fewer, plenty = (
        [(j, drawn(batch, has)) for j, batch, has in numbers_of(sizes, kind).steps(k0, epochs, size, bound)]
        for bound in (None, most, np.full(5, 99))
    )
    for i, count in enumerate(most):
        own = [(j, rows[i]) for j, rows in every if rows[i]]
        assert [(j, rows[i]) for j, rows in fewer if rows[i]] == own[:count]
    assert len(fewer) <= len(every)
    assert plenty == every


def test_batches_are_in_random_order_and_new_in_every_epoch_round_client_and_run():
    def order(**options):
        f = numbers_of([12, 12], **options)
        return [
            list(chain(*(drawn(batch, has)[i] for j, batch, has in f.steps(0, 2, 4) if j == epoch)))
            for epoch in (0, 1)
            for i in (0, 1)
        ]

    f = numbers_of([5, 7])  # size 0 is the full batch
    for epochs, count in ((0, 4), (2, 2)):
        assert list(f.steps(4, epochs, 0)) == [(j, f, 1) for j in range(count)]
    first = order()
    everything = first + order(place=(2, 0)) + order(place=(1, 1)) + order(seed=1) + order(ids=np.array([5, 9]))
    assert len(set(map(tuple, everything))) == len(everything)
    assert order() == first


def test_the_gradient_of_a_batch_is_that_of_its_samples(kind):
    """Its mean loss, and the regulariser of all d_i samples."""
    data, x = numbered([9, 10, 12], kind), np.array([0.3, -0.2])
    data.train.y[:] = np.arange(31) % 2
    f = local(data, Logistic(mu=3.0))
    for _, batch, has in f.steps(0, 1, 4):
        value, g, numbers = batch.value(x), batch.grad(x), batch.block.matvec(np.array([0.0, 1.0]))
        for i in np.flatnonzero(np.broadcast_to(has, (3, 1))[:, 0]):
            rows, ridge = batch.block.w[i] > 0, 3.0 / data.sizes[i]
            A, b = np.column_stack([np.ones(rows.sum()), numbers[i, rows]]), batch.block.b[i, rows]
            wanted = A.T @ (1 / (1 + np.exp(-A @ x)) - b) / len(b) + ridge * x
            assert np.allclose(g[i], wanted, rtol=1e-12)
            wanted = np.mean(np.logaddexp(0, A @ x) - b * (A @ x)) + ridge * x @ x / 2
            assert np.allclose(value[i], wanted, rtol=1e-12)


@pytest.mark.parametrize(("epochs", "last"), [(0, "keep"), (2, "keep"), (1.5, "merge")])
@pytest.mark.parametrize("size", [5, 8, 17, 100])
@pytest.mark.parametrize("name", ["fedavg", "scaffold", "flame", "fedadmm-deep"])
def test_training_on_batches_has_the_same_bits_whoever_else_is_in_the_block(name, epochs, last, size, kind):
    """Also where a neighbour has one mini-batch more, or one in which more samples have joined."""
    personal = name in ("flame", "fedadmm-deep")
    options = {"batch_size": size, "epochs": epochs or int(personal), "last_batch": last}
    algorithm = build(name, options | ({} if personal else {"k0": 3}))
    rng, sizes = np.random.default_rng(0), [17, 18, 19, 20]
    X, y = rng.standard_normal((sum(sizes), 3)), rng.standard_normal(sum(sizes))
    x, ends = rng.standard_normal(3), np.cumsum(sizes)
    more = {"fedavg": (0,), "scaffold": (rng.standard_normal(3), 0)}.get(name, ())

    def outcome(clients):
        rows = np.concatenate([np.arange(ends[i] - sizes[i], ends[i]) for i in clients])
        data = Pool(kind(X[rows]), y[rows], None, np.array([sizes[i] for i in clients]))
        f = local(data, LeastSquares(), ids=np.array(clients))
        f.m = 4
        state, reply = algorithm.update(f, algorithm.init_client(f), x, *more)
        return [*state, *(reply if isinstance(reply, tuple) else (reply,))]

    together, turned = outcome([0, 1, 2, 3]), outcome([3, 2, 1, 0])
    for i in range(4):
        for both, back, alone in zip(together, turned, outcome([i]), strict=True):
            assert both[i].tobytes() == back[3 - i].tobytes() == alone[0].tobytes()


def newton(sparse=False, m=40, n=120, **options):
    """Newton's method on clients of 4 to 20 samples in no order."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 21, m)
    X = rng.standard_normal((sizes.sum(), n)) * (rng.random((sizes.sum(), n)) < 0.2)
    data = Pool(sp.csr_array(X) if sparse else X, rng.integers(0, 2, len(X)).astype(float), None, sizes)
    return Run(Newton(), Logistic(mu=0.1, regulariser="whole"), data=data, selection=All(), **options)


def short_of_memory(monkeypatch, free):
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free", lambda: free)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_host_never_has_the_matrices_of_all_clients(sparse):
    one, run = 120 * 120 * 8, newton(sparse, block_bytes=1)
    run.rounds(1)
    tracemalloc.start()
    run.rounds(1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 14 * one < run.m * one / 2


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_hosts_change_no_bit(sparse):
    models = newton(sparse).rounds(3)
    for options in ({"block_bytes": 1}, {"block_bytes": 1 << 28}, {"cuts": (0, 7, 8, 40)}):
        run = newton(sparse, **options)
        assert run.rounds(3).tobytes() == models.tobytes()
        assert options != {"block_bytes": 1} or [len(block) for block in run.hosts[0].blocks] == [1] * 40


def test_want_of_memory_is_told_before_the_first_round(monkeypatch):
    short_of_memory(monkeypatch, 500_000)
    X = np.eye(200)
    with pytest.raises(UserError) as error:
        mpifed.run({"algorithm": "newton", "problem": "logistic"}, data=mpifed.arrays(X, X[0], [100, 100]))
    assert str(error.value) == (
        "the 4 matrices of 200 × 200 numbers that newton has at a time would take 1 MB of memory, but only 0 MB are "
        "free"
    )


class Keeping(NamedTuple):
    matrix: np.ndarray


def test_so_is_want_of_memory_for_what_clients_keep(monkeypatch):
    (host,) = newton().hosts
    short_of_memory(monkeypatch, 100_000)
    monkeypatch.setattr(type(host.setup.algorithm), "init_client", lambda self, f: Keeping(f.zeros(120, 120)))
    host.state = None
    told = r"^what clients 0 to 39 keep would take 5 MB of memory, but only 0 MB are free$"
    with pytest.raises(UserError, match=told):
        host.join()
