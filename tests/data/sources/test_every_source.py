"""Generated data: a client's numbers are the same wherever they are made, and follow the law of the source."""

import tracemalloc

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from tests.helpers.data_files import same_rows_however_asked, same_tests_however_asked
from tests.helpers.image_files import build

SMALL = {"least": 20, "most": 30}
TABLES = [
    {"name": "synthetic", "clients": 5, **SMALL},
    {"name": "synthetic", "clients": 5, "iid": True, **SMALL},
    {"name": "images", "clients": 4, "samples": 7, "size": 8},
    {"name": "linreg-noniid", "clients": 7, "features": 3},
    {"name": "quadratic", "clients": 5},
    {"name": "lower-bound", "clients": 4, "features": 9},
    {"name": "gaussian", "clients": 9, "samples": 60, "features": 100},
    {"name": "gaussian", "clients": 9, "samples": 3, "features": 2, "task": "linear"},
    {"name": "gaussian", "clients": 9, "samples": 3, "features": 2, "task": "positive"},
    {"name": "gaussian", "clients": 3, "samples": 200, "features": 170, "test": 0.5},
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["name"])
def test_made_clients_are_the_same_wherever_they_are_made(table):
    dataset = build(table)
    same_rows_however_asked(dataset)
    sizes = dataset.sizes
    if dataset.sizes_test is not None:
        same_tests_however_asked(dataset)
        sizes = sizes + dataset.sizes_test
    assert table.get("least", 0) <= sizes.min() <= sizes.max() <= table.get("most", 10**4)
    assert not dataset.classes or set(dataset.rows(0, dataset.m)[1]) <= set(range(dataset.classes))
    one, single = dataset.rows(1, 3), build(table, dtype="float32").rows(1, 3)
    assert single[0].dtype == single[1].dtype == np.float32
    assert all(np.array_equal(single[k], one[k].astype(np.float32)) for k in (0, 1))
    if table["name"] != "lower-bound":
        other = build(table, seed=1).rows(1, 3)[0]
        assert other.shape != one[0].shape or not np.array_equal(other, one[0])
        assert np.array_equal(build({**table, "seed": 1}).rows(1, 3)[0], other)


@pytest.mark.parametrize("table", TABLES[:4], ids=lambda table: table["name"])
def test_a_rank_makes_its_own_clients_and_no_others(table, monkeypatch):
    dataset, made = build(table if table["name"] == "linreg-noniid" else {**table, "test": 0.0}), []
    draw = type(dataset).draw
    monkeypatch.setattr(type(dataset), "draw", lambda self, i, *d: made.append(i) or draw(self, i, *d))
    dataset.rows(1, 3)
    assert np.hstack(made).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("linreg-noniid", {"least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ("quadratic", {"mu": 2.0}, r"data: mu = 2\.0 is more than L = 1\.0"),
        ("synthetic", {"least": 9, "most": 8}, r"data: least = 9 is more than most = 8"),
        ("lower-bound", {"clients": 10, "alpha": 0.1}, r"data: alpha = 0\.1 must be below beta/clients = 0\.1, as"),
        ("lower-bound", {"clients": 1}, r"data: clients = 1 is too few"),
        ("images", {"per_client": 7}, r"data: per_client = 7 is more than classes = 6"),
        ("gaussian", {"noise": 1.5}, r"data: noise = 1\.5 is the share of labels flipped"),
        ("gaussian", {"samples": 1, "test": 0.5}, r"data\.test = 0\.5 leaves no client a test sample, .* more than 1"),
    ],
)
def test_values_that_cannot_be_are_refused(name, options, sentence):
    with pytest.raises(UserError, match=sentence):
        Data.build({"name": name, **options}, "data").load(0, "float64")


def test_linreg_noniid_is_example_v1():
    dataset = build({"name": "linreg-noniid", "clients": 300})
    d, kinds = dataset.sizes.sum(), dataset.distributions
    assert (dataset.n, dataset.classes, dataset.sizes.min(), dataset.sizes.max()) == (100, 0, 50, 150)
    assert list(np.bincount(kinds)) == [d // 3, d // 3, d - 2 * (d // 3)]
    rows, b = dataset.rows(0, 300)
    wanted = [1, 5 / 3, 100 / 12]  # variances of normal, t(5), uniform in [-5, 5]
    assert np.allclose([rows[kinds == kind].var() for kind in range(3)], wanted, rtol=0.03)
    assert np.allclose([b[kinds == kind].var() for kind in range(3)], wanted, rtol=0.1)
    assert np.abs(rows[kinds == 2]).max() <= 5
    starts = np.cumsum(dataset.sizes) - dataset.sizes
    assert min(len(set(kinds[a : a + 50])) for a in starts) == 3  # every client has all three


def test_synthetic_follows_the_law_of_fedprox():
    table = {"name": "synthetic", "clients": 2000, "alpha": 0.0, "beta": 2.0, "least": 20, "most": 20, "test": 0.0}
    X = build(table).rows(0, 2000)[0].reshape(2000, 20, 60)
    spread = (X - X.mean(axis=1, keepdims=True)).var(axis=(0, 1), ddof=0) * 20 / 19
    assert np.allclose(spread, np.arange(1, 61) ** -1.2, rtol=0.05)  # Sigma_jj
    v = X.mean(axis=1)
    assert np.allclose(v.mean(axis=1).std(), 2.0, rtol=0.1)  # B_k, a standard deviation and no variance
    assert np.allclose((v - v.mean(axis=1, keepdims=True)).var(), 1, rtol=0.05)
    calm = build({**table, "beta": 0.0}).rows(0, 2000)[0].reshape(2000, 20, 60).mean(axis=(1, 2))
    assert calm.std() < 0.2


def shares(y):
    """Of each of the two clients, the shares of the four classes."""
    return [np.bincount(part.astype(int), minlength=4) / 3000 for part in (y[:3000], y[3000:])]


def test_synthetic_labels_come_from_one_linear_model_a_client():
    table = {"name": "synthetic", "clients": 2, "features": 3, "classes": 4, "least": 3000, "most": 3000, "test": 0.0}
    X, y = build({**table, "alpha": 50.0}).rows(0, 2)
    for half in (slice(0, 3000), slice(3000, 6000)):  # classes of a linear model are convex: midpoints keep them
        A, label = X[half], y[half]
        same = np.flatnonzero(label == label[0])
        middle = (A[same[0]] + A[same[1:200]]) / 2
        near = np.argmin(((A[:, None] - middle) ** 2).sum(axis=2), axis=0)
        assert np.mean(label[near] == label[0]) > 0.9
    X, y = build({**table, "iid": True}).rows(0, 2)
    assert np.allclose(*shares(y), atol=0.05)  # one law for both
    assert np.abs(X.mean(axis=0)).max() < 0.1
    assert not np.allclose(*shares(build(table).rows(0, 2)[1]), atol=0.05)


def test_gaussian_labels_come_from_a_hyperplane_with_a_tenth_flipped():
    table = {"name": "gaussian", "clients": 500, "samples": 40, "features": 10}
    dataset, linear = build(table), build({**table, "task": "linear", "noise": 0.2})
    X, y = dataset.rows(0, 500)
    assert (dataset.classes, linear.classes, set(y)) == (2, 0, {0, 1})
    assert np.allclose(X.var() * 10, 1, rtol=0.02)
    assert np.isclose(np.mean((X @ dataset.w > 0) != y), 0.1, atol=0.01)
    X, b = linear.rows(0, 500)
    assert np.isclose((b - X @ linear.w).std(), 0.2, rtol=0.05)


def test_gaussian_numbers_do_not_depend_on_the_number_of_clients_and_those_of_others_are_not_drawn():
    few, many = (build({"name": "gaussian", "clients": m}).rows(3, 5) for m in (5, 300))
    assert all(np.array_equal(few[k], many[k]) for k in (0, 1))
    dataset = build({"name": "gaussian", "clients": 1_000_000})
    tracemalloc.start()
    X, _ = dataset.rows(500_000, 510_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape == (200_000, 20)
    assert peak < 4 * X.nbytes  # all clients' samples are a hundred times as much


def test_images_show_the_pattern_of_their_class():
    table = {"name": "images", "clients": 12, "samples": 10, "size": 16, "noise": 0.0, "test": 0.0}
    dataset = build(table)
    X, y = dataset.rows(0, 12)
    assert (dataset.n, dataset.classes, set(y)) == (768, 6, set(range(6)))
    for part in y.astype(int).reshape(12, 10):
        assert sorted(np.bincount(part))[-2:] == [5, 5]
    patterns = dataset.patterns
    for row, c in zip(X, y, strict=True):
        shifts = [np.roll(patterns[int(c)], (-a, -b), axis=(1, 2)).ravel() for a in range(3) for b in range(3)]
        assert any(np.allclose(row, shifted) for shifted in shifts)
    assert np.allclose((patterns**2).mean(), 1, atol=0.4)
    noisy = build({**table, "noise": 0.5}).rows(0, 12)[0]
    assert np.allclose((noisy - X).std(), 0.5, rtol=0.05)


def test_quadratics_have_the_eigenvalues_asked_for():
    dataset = build({"name": "quadratic", "clients": 3, "features": 8, "mu": 0.5, "L": 4.0})
    rows, b = dataset.rows(0, 3)
    for Q in rows.reshape(3, 8, 8):
        assert np.array_equal(Q, Q.T)
        assert np.allclose(np.linalg.eigvalsh(Q)[[0, -1]], [0.5, 4.0])
    assert (list(dataset.sizes), b.shape) == ([8, 8, 8], (24,))


@pytest.mark.parametrize(("m", "n"), [(2, 6), (3, 7), (4, 2), (5, 11)])
def test_the_blocks_of_42_are_those_printed(m, n):
    alpha, beta = 0.05, 1.0
    table = {"name": "lower-bound", "clients": m, "features": n, "alpha": alpha, "beta": beta}
    X, y = build(table).rows(0, m)
    Q, b = X.reshape(m, n, n), y.reshape(m, n)
    c = (beta - m * alpha) / 4
    far = np.zeros((m, n + m + 2, n + m + 2))  # the matrices of the paper, indices from 1, before they are cut
    for k in range(1, m + 1):
        for j in range(k, n + 2, m):
            far[k - 1, j : j + 2, j : j + 2] = [[1, -1], [-1, 1]]
    far[0, 1:3, 1:3] = [[2, -1], [-1, 1]]
    assert np.allclose(Q, c * far[:, 1 : n + 1, 1 : n + 1] + alpha * np.eye(n), atol=1e-15)
    chain = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    assert np.allclose(Q.sum(axis=0), c * chain + m * alpha * np.eye(n), atol=1e-14)
    assert np.allclose(b[0], c * np.eye(n)[0])
    assert not b[1:].any()
    eigenvalues = np.linalg.eigvalsh(Q)
    assert alpha - 1e-14 <= eigenvalues.min() <= eigenvalues.max() <= beta


@pytest.mark.parametrize("m", [4, 5])
def test_all_clients_have_one_tridiagonal_matrix_and_vectors_whose_mean_is_that_of_one_f(m):
    dataset = build({"name": "tridiagonal", "clients": m, "features": 6, "spread": 0.5})
    same_rows_however_asked(dataset)
    X, y = dataset.rows(0, m)
    A = (2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)) / 4
    assert np.array_equal(X.toarray().reshape(m, 6, 6), np.tile(A, (m, 1, 1)))
    b = y.reshape(m, 6)
    assert np.allclose(b.mean(axis=0), -np.eye(6)[0] / 4)
    assert np.array_equal(b[2], -np.eye(6)[0] / 4) == (m == 5)
    assert np.abs(b[0] - b[-1]).max() > 0.1
    one = build({"name": "tridiagonal", "clients": m, "features": 6}).rows(0, m)[1].reshape(m, 6)
    assert np.array_equal(one, np.tile(-np.eye(6)[0] / 4, (m, 1)))
    minimum = -one[0] @ np.linalg.solve(A, one[0]) / 2
    assert np.isclose(minimum, -6 / (8 * 7))
