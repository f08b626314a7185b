"""What clients see: mini-batches that depend on nobody else, and how well a model classifies."""

from __future__ import annotations

from itertools import chain
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.experiment.rounds import evaluate
from mpifed.federation import local as module
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import All
from mpifed.federation.setup import Setup
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic
from mpifed.problems.mlp import MLP
from mpifed.problems.softmax import Softmax
from mpifed.problems.svm import SVM
from tests.helpers.algorithm_runs import Run, build, local


def numbered(sizes, kind="dense", dtype="float64"):
    """Samples (1, j): the j-th of each client; labels 100 j."""
    j = np.concatenate([np.arange(d) for d in sizes])
    X = np.column_stack([np.ones(len(j)), j])
    return Pool(sp.csr_array(X) if kind == "csr" else X, 100.0 * j, None, np.array(sizes), dtype)


def numbers_of(sizes, kind="dense", **options):
    return local(numbered(sizes, kind), LeastSquares(), **options)


def drawn(batch, has):
    """The numbers of the samples in a mini-batch, a list a client; none where a client has no mini-batch."""
    numbers = batch.block.matvec(np.array([0.0, 1.0])).round().astype(int)
    assert np.array_equal(batch.block.b, 100.0 * numbers)  # labels go with their samples
    own = np.broadcast_to(has, (len(batch), 1))[:, 0]
    assert np.array_equal(own, (batch.block.w > 0).any(axis=1))
    return [list(row[weights > 0]) for row, weights in zip(numbers, batch.block.w, strict=True)]


@pytest.fixture(params=["dense", "csr"])
def kind(request):
    return request.param


@given(
    least=st.integers(0, 9),
    most=st.integers(1, 4),
    size=st.integers(1, 50),
    epochs=st.integers(1, 3),
    sparse=st.booleans(),
)
def test_every_sample_comes_once_an_epoch(least, most, size, epochs, sparse):
    sizes = [4 * least + d for d in range(1, most + 1)]
    f, seen = numbers_of(sizes, "csr" if sparse else "dense"), {}
    for j, batch, has in f.steps(7, epochs, size):
        for i, numbers in enumerate(drawn(batch, has)):
            seen.setdefault((j, i), []).append(numbers)
    assert set(seen) == {(j, i) for j in range(epochs) for i in range(len(sizes))}
    for (_, i), batches in seen.items():
        assert sorted(chain(*batches)) == list(range(sizes[i]))
        full = [len(numbers) for numbers in batches if numbers]
        assert all(length == min(size, sizes[i]) for length in full[:-1])  # only the last one may be smaller
        assert len(full) == -(-sizes[i] // size)


@given(least=st.integers(0, 9), size=st.integers(1, 50), k0=st.integers(1, 5))
def test_without_epochs_each_iteration_draws_so_many_samples_without_repetition(least, size, k0):
    sizes = [4 * least + d for d in (1, 3, 4)]
    steps = list(numbers_of(sizes).steps(k0, 0, size))
    assert [j for j, _, _ in steps] == list(range(k0))
    for _, batch, has in steps:
        assert np.all(has == 1)
        for numbers, d in zip(drawn(batch, has), sizes, strict=True):
            assert len(set(numbers)) == len(numbers) == min(size, d)
            assert set(numbers) <= set(range(d))


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
    f, reference = numbers_of(sizes), numbers_of(sizes)
    with patch.object(module, "AHEAD", ahead):
        found = [(j, drawn(batch, has)) for j, batch, has in f.steps(k0, epochs, size)]
    assert found == list(one_by_one(reference, k0, epochs, size))
    assert [rng.random() for rng in f.rng] == [rng.random() for rng in reference.rng]  # the streams go on from there


def test_numbers_drawn_before_the_first_step_come_first():
    f, reference = numbers_of([5, 7]), numbers_of([5, 7])
    before = [[rng.laplace() for rng in one.rng] for one in (f, reference)]
    assert before[0] == before[1]
    found = [drawn(batch, has) for _, batch, has in f.steps(0, 2, 3)]
    assert found == [numbers for _, numbers in one_by_one(reference, 0, 2, 3)]


@pytest.mark.parametrize(("k0", "epochs", "count"), [(4, 0, 4), (4, 2, 2)])
def test_size_zero_is_the_full_batch(kind, k0, epochs, count):
    f = numbers_of([5, 7], kind)
    steps = list(f.steps(k0, epochs, 0))
    assert [(j, has) for j, _, has in steps] == [(j, True) for j in range(count)]
    assert all(batch is f for _, batch, _ in steps)


@pytest.mark.parametrize(("k0", "epochs", "size"), [(6, 0, 0), (6, 0, 2), (0, 3, 4), (0, 4, 0)])
def test_a_client_that_may_take_fewer_steps_takes_its_first_ones(k0, epochs, size, kind):
    """Also where others of its block have more mini-batches an epoch; all of them is the same as no bound."""
    sizes, most = [9, 4, 5, 1, 12], np.array([1, 3, 2, 9, 5])
    every, fewer, plenty = (
        [(j, trained(batch, has)) for j, batch, has in numbers_of(sizes, kind).steps(k0, epochs, size, bound)]
        for bound in (None, most, np.full(5, 99))
    )
    for i, count in enumerate(most):
        own = [(j, rows[i]) for j, rows in every if rows[i]]
        assert [(j, rows[i]) for j, rows in fewer if rows[i]] == own[:count]
    assert len(fewer) <= len(every)
    assert plenty == every


def trained(batch, has):
    """The numbers of the samples that count in a step, a list a client."""
    numbers = batch.block.matvec(np.array([0.0, 1.0])).round().astype(int)
    weights = batch.block.w * np.broadcast_to(has, (len(batch), 1))
    return [list(row[own > 0]) for row, own in zip(numbers, weights, strict=True)]


def test_batches_are_in_random_order_and_new_in_every_epoch_round_client_and_run():
    def order(**options):
        f = numbers_of([12, 12], **options)
        return [
            list(chain(*(drawn(batch, has)[i] for j, batch, has in f.steps(0, 2, 4) if j == epoch)))
            for epoch in (0, 1)
            for i in (0, 1)
        ]

    first = order()
    everything = first + order(place=(2, 0)) + order(place=(1, 1)) + order(seed=1) + order(ids=np.array([5, 9]))
    assert len(set(map(tuple, everything))) == len(everything)
    assert order() == first


def test_the_gradient_of_a_batch_is_that_of_its_samples(kind):
    """Its mean loss, and the regulariser of all d_i samples."""
    data, problem = numbered([9, 10, 12], kind), Logistic(mu=3.0)
    data.train.y[:] = np.arange(31) % 2
    f = local(data, problem)
    x = np.array([0.3, -0.2])
    for _, batch, has in f.steps(0, 1, 4):
        g = batch.grad(x)
        for i in np.flatnonzero(np.broadcast_to(has, (3, 1))[:, 0]):
            rows = batch.block.w[i] > 0
            A, b = (
                batch.block.dense(i)[: rows.sum()]
                if kind == "dense"
                else batch.block.A.toarray()[i * batch.block.b.shape[1] :][: rows.sum(), 2 * i : 2 * i + 2],
                batch.block.b[i, rows],
            )
            wanted = A.T @ (1 / (1 + np.exp(-A @ x)) - b) / len(b) + 3.0 / data.sizes[i] * x
            assert np.allclose(g[i], wanted, rtol=1e-12)
            value = np.mean(np.logaddexp(0, A @ x) - b * (A @ x)) + 1.5 / data.sizes[i] * x @ x
            assert np.allclose(batch.value(x)[i], value, rtol=1e-12)


@pytest.mark.parametrize("size", [3, *(pytest.param(size, marks=pytest.mark.slow) for size in (1, 7, 9))])
def test_the_gradient_of_a_random_batch_is_right_on_average(size, kind):
    f, draws, x = numbers_of([5, 7, 8], kind), 4000, np.array([40.0, -3.0])
    g = np.array([batch.grad(x) for _, batch, _ in f.steps(draws, 0, size)])
    assert (abs(g.mean(axis=0) - f.grad(x)) <= 5 * g.std(axis=0) / draws**0.5 + 1e-9).all()


def test_all_places_of_an_epoch_are_as_likely_for_every_sample():
    f, rounds = numbers_of([6, 5]), 3000
    first = np.array([drawn(batch, has)[0] for j, batch, has in f.steps(0, rounds, 2)])[::3]
    times = np.bincount(first.ravel(), minlength=6)
    assert abs(times - rounds / 3).max() <= 5 * np.sqrt(rounds * 2 / 9)


@pytest.mark.parametrize("size", [3, 5, 17, 18, 100])
@pytest.mark.parametrize("epochs", [0, 2])
@pytest.mark.parametrize("name", ["fedavg", "scaffold", "flame", "fedadmm-deep"])
def test_training_on_batches_has_the_same_bits_whoever_else_is_in_the_block(name, epochs, size, kind):
    """Also where a neighbour has one mini-batch more."""
    if name in ("flame", "fedadmm-deep"):
        algorithm = build(name, {"batch_size": size, "epochs": epochs or 1})
    else:
        algorithm = build(name, {"batch_size": size, "epochs": epochs, "k0": 3})
    rng, sizes = np.random.default_rng(0), [17, 18, 19, 20]
    X, y = rng.standard_normal((sum(sizes), 3)), rng.standard_normal(sum(sizes))
    x, ends = rng.standard_normal(3), np.cumsum(sizes)
    more = {"fedavg": (0,), "scaffold": (rng.standard_normal(3), 0)}.get(name, ())

    def outcome(clients):
        rows = np.concatenate([np.arange(ends[i] - sizes[i], ends[i]) for i in clients])
        A = sp.csr_array(X[rows]) if kind == "csr" else X[rows]
        f = local(Pool(A, y[rows], None, np.array([sizes[i] for i in clients])), LeastSquares(), ids=np.array(clients))
        f.m = 4
        state, reply = algorithm.update(f, algorithm.join(f), x, *more)
        return [*state, *(reply if isinstance(reply, tuple) else (reply,))]

    together, turned = outcome([0, 1, 2, 3]), outcome([3, 2, 1, 0])
    for i in range(4):
        for both, back, alone in zip(together, turned, outcome([i]), strict=True):
            assert both[i].tobytes() == back[3 - i].tobytes() == alone[0].tobytes()


# accuracy


def classified(sizes_test, kind="dense", classes=3, seed=0):
    """Seven clients with samples to train on and, where sizes_test is above 0, to test on; their model x (n,)."""
    rng, sizes = np.random.default_rng(seed), np.array([3, 9, 4, 10, 3, 12, 5])
    (A, b), test = (rng.standard_normal((sizes.sum(), 4)), rng.integers(0, classes, sizes.sum()).astype(float)), None
    b[:classes] = range(classes)
    if sizes_test is not None:
        d = sum(sizes_test)
        T, c = rng.standard_normal((d, 4)), rng.integers(0, classes, d).astype(float)
        test = (sp.csr_array(T) if kind == "csr" else T, c, None, np.array(sizes_test))
    return Pool(sp.csr_array(A) if kind == "csr" else A, b, None, sizes, test=test)


def hits(data, X):
    """(right, of how many) of each client at the linear classifiers X (7, 15), counted one by one."""
    A, b = data.rows(0, 7)
    T, c = data.rows_test(0, 7) if data.sizes_test is not None else (A[:0], b[:0])
    A, T = (a.toarray() if sp.issparse(a) else a for a in (A, T))
    tests = np.zeros(7, int) if data.sizes_test is None else data.sizes_test
    found = []
    for i in range(7):
        end, last = data.sizes[: i + 1].sum(), tests[: i + 1].sum()
        own = (A[end - data.sizes[i] : end], b[end - data.sizes[i] : end])
        if tests[i]:
            own = (T[last - tests[i] : last], c[last - tests[i] : last])
        right = 0
        for a, k in zip(*own, strict=True):
            scores = list(X[i, :12].reshape(3, 4) @ a + X[i, 12:])
            right += scores.index(max(scores)) == k
        found.append((right, len(own[0])))
    return np.array(found)


@pytest.mark.parametrize(
    "sizes_test", [None, [2, 1, 5, 4, 1, 7, 3], [2, 0, 5, 0, 1, 7, 0], [0] * 7, [0, 0, 0, 0, 0, 0, 9]], ids=str
)
@pytest.mark.parametrize("problem", [Softmax(), SVM()], ids=lambda p: p.label())
def test_accuracy_is_that_of_each_clients_own_test_samples_or_of_its_training_samples(problem, sizes_test, kind):
    data = classified(sizes_test, kind)
    run = Run(build("flame"), problem, data=data, selection=All())
    rng = np.random.default_rng(1)
    x, theta = rng.standard_normal(15), rng.standard_normal((7, 15))
    run.hosts[0].state.theta[:] = theta[run.hosts[0].order]
    row = evaluate(run.algorithm, run.fed, run.server._replace(x=x))
    right, count = hits(data, np.tile(x, (7, 1))).T
    assert np.isclose(row["accuracy"], np.mean(right / count), rtol=1e-14)
    assert np.isclose(row["accuracy_pooled"], right.sum() / count.sum(), rtol=1e-14)
    right, count = hits(data, theta).T
    assert np.isclose(row["personal_accuracy"], np.mean(right / count), rtol=1e-14)
    values = [
        run.problem.value(block, theta[run.hosts[0].order[a : a + len(block)]])
        for a, block in zip(run.hosts[0].starts[:-1], run.hosts[0].blocks, strict=True)
    ]
    assert np.isclose(row["personal_objective"], np.concatenate(values).mean(), rtol=1e-12)


def test_the_objective_is_that_of_training_samples():
    plain, tested = (Run(build("fedavg"), Softmax(), data=classified(sizes)) for sizes in (None, [2, 0, 5, 0, 1, 7, 0]))
    assert plain.data.rows(0, 7)[0].tobytes() == tested.data.rows(0, 7)[0].tobytes()
    x = np.linspace(-1, 1, 15)
    one, other = (evaluate(run.algorithm, run.fed, run.server._replace(x=x)) for run in (plain, tested))
    assert all(one[key] == other[key] for key in ("objective", "objective_samples", "grad_norm_sq"))
    assert one["accuracy"] != other["accuracy"]


@pytest.mark.parametrize("cuts", [(0, 4, 7), (0, 1, 2, 6, 7), range(8)], ids=lambda cuts: f"{len(cuts) - 1} hosts")
def test_accuracy_does_not_depend_on_how_many_hosts_there_are(cuts, kind):
    rows = []
    for parts in ((0, 7), cuts):
        run = Run(
            build("flame", {"batch_size": 3}), Softmax(), data=classified([2, 0, 5, 0, 1, 7, 0], kind), cuts=parts
        )
        run.rounds(3)
        rows.append(evaluate(run.algorithm, run.fed, run.server))
    assert rows[0] == rows[1]


def test_a_tie_goes_to_the_lowest_class():
    """At x = 0 all scores are equal: right are those of class 0."""
    data = classified([2, 0, 5, 0, 1, 7, 0])
    run = Run(build("flame"), Softmax(), data=data)
    row = evaluate(run.algorithm, run.fed, run.server)
    _, b = data.rows(0, 7)
    _, c = data.rows_test(0, 7)
    own = [c[:2] == 0, b[3:12] == 0, c[2:7] == 0, b[16:26] == 0, c[7:8] == 0, c[8:15] == 0, b[41:46] == 0]
    assert np.isclose(row["accuracy"], np.mean([zeros.mean() for zeros in own]), rtol=1e-14)
    assert row["personal_accuracy"] == row["accuracy"]
    assert np.isclose(row["accuracy_pooled"], np.concatenate(own).mean(), rtol=1e-14)


def test_a_logistic_score_of_zero_is_class_zero():
    rng = np.random.default_rng(2)
    data = Pool(rng.standard_normal((9, 2)), np.array([0.0, 1, 1, 0, 0, 1, 0, 0, 1]), None, np.array([4, 5]))
    run = Run(build("fedavg"), Logistic(), data=data)
    assert evaluate(run.algorithm, run.fed, run.server)["accuracy"] == (2 / 4 + 3 / 5) / 2
    signs = Pool(*data.rows(0, 2), None, data.sizes)
    signs.train.y[:] = 2 * signs.train.y - 1  # labels −1 and 1
    run = Run(build("fedavg"), Logistic(), data=signs)
    assert evaluate(run.algorithm, run.fed, run.server)["accuracy"] == (2 / 4 + 3 / 5) / 2


def test_what_predicts_nothing_has_no_accuracy():
    run = Run(build("flame"))
    row = evaluate(run.algorithm, run.fed, run.server)
    assert not [name for name in row if "accuracy" in name]
    assert row["personal_objective"] == row["objective"]


def test_labels_of_test_samples_are_checked_too():
    data = classified([2, 0, 5, 0, 1, 7, 0])
    data.test.y[3] = 0.5
    problem = Softmax()
    with pytest.raises(
        UserError, match=r"^problem 'softmax' cannot use these data: labels must be whole .* there is 0\.5$"
    ):
        Host(Setup(problem, build("fedavg"), 0, 7, np.zeros(15)), data, 0, 7)


@pytest.mark.parametrize("problem", [Softmax(), SVM(), MLP(hidden=(4,))], ids=lambda p: p.label())
def test_training_brings_accuracy(problem):
    """Classes that a line divides."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 200).astype(float)
    X = 4 * np.eye(3)[y.astype(int)] + rng.standard_normal((200, 3))
    data = Pool(X, y, None, np.full(10, 16), test=(X[160:], y[160:], None, np.full(10, 4)))
    run = Run(build("fedavg", {"step": {"name": "constant", "a": 0.2}, "batch_size": 8}), problem, data=data)
    before = evaluate(run.algorithm, run.fed, run.server)
    run.rounds(20)
    after = evaluate(run.algorithm, run.fed, run.server)
    assert after["accuracy"] > 0.9 > before["accuracy"]
    assert after["objective"] < before["objective"]
