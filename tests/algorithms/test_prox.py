"""Proximal operators against brute force, and inexact solvers that depend on nobody else."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mpifed.algorithms.local_solvers import gradient_descent, newton
from mpifed.algorithms.prox import elastic_net_mean, soft
from mpifed.data.pool import Pool
from mpifed.problems.gram import conjugate_gradients
from mpifed.problems.logistic import Logistic
from mpifed.problems.quadratic import Quadratic
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import local, quadratics

reals = st.floats(-100, 100)


@given(v=reals, lam=st.floats(0, 50), other=reals)
def test_the_soft_threshold_is_the_proximal_operator_of_the_absolute_value(v, lam, other):
    def objective(u):
        return lam * abs(u) + (u - v) ** 2 / 2

    u = float(soft(np.array([v]), lam)[0])
    assert objective(u) <= objective(other) + 1e-9
    assert u == (v - lam if v > lam else v + lam if v < -lam else 0)


def test_the_soft_threshold_works_elementwise_and_keeps_the_type():
    V = np.array([[-3.0, -1.0, 0.5], [1.0, 4.0, 0.0]], np.float32)
    U = soft(V, 1.0)
    assert U.dtype == np.float32
    assert U.tolist() == [[-2, 0, 0], [0, 3, 0]]


# the elastic-net mean: 10,000 columns


def net(x, Z, lam, eta):
    """Σ_i λ|x − z_i| + (η/2)(x − z_i)² for each column of Z (m, n) and each x (k, n): (k, n)."""
    distance = np.abs(x[:, None] - Z)
    return (lam * distance + eta / 2 * distance**2).sum(axis=1)


def brute_force(Z, lam, eta):
    """The best of all z_i and of all mean + (λ/η)(2s − m)/m, s = 0 … m, for each column."""
    m = len(Z)
    inner = Z.mean(axis=0) + lam / eta * (2 * np.arange(m + 1)[:, None] - m) / m
    candidates = np.concatenate([Z, inner])
    values = net(candidates, Z, lam, eta)
    return np.take_along_axis(candidates, values.argmin(axis=0)[None], 0)[0], values.min(axis=0)


@pytest.mark.parametrize("ties", [False, True], ids=["all different", "with ties"])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 9])
def test_the_elastic_net_mean_is_the_minimiser(m, lam, ties):
    rng, n = np.random.default_rng([m, int(1000 * lam), ties]), 200  # 50 cases of 200 columns
    Z = (
        rng.integers(-2, 3, (m, n)).astype(float)
        if ties
        else rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 10.0], n)
    )
    eta = rng.choice([0.3, 1.0, 2.0])
    x, (best, value) = elastic_net_mean(Z, lam, eta), brute_force(Z, lam, eta)
    assert x.shape == (n,)
    assert (net(x[None], Z, lam, eta)[0] <= value * (1 + 1e-12) + 1e-12).all()
    assert np.allclose(x, best, rtol=1e-9, atol=1e-9 + 1e-12 * lam)
    around = x + np.linspace(-1, 1, 41)[:, None] ** 3
    assert (net(around, Z, lam, eta) >= net(x[None], Z, lam, eta) * (1 - 1e-12) - 1e-12).all()


@given(
    z=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 1e6]), min_size=1, max_size=12),
    ratio=st.sampled_from([0.25, 0.5, 1, 2.0]),
)
def test_the_elastic_net_mean_of_few_values_is_the_median_of_the_errata(z, ratio):
    """The median of {w_i} ∪ {mean + (λ/η)(2s − m)/m : s = 0 … m}."""
    Z, m = np.array(z)[:, None], len(z)
    candidates = [*z, *(np.mean(z) + ratio * (2 * s - m) / m for s in range(m + 1))]
    assert np.isclose(elastic_net_mean(Z, ratio * 0.1, 0.1)[0], np.median(candidates), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("wide", [1, 7])
def test_the_elastic_net_mean_has_its_limits(wide):
    Z = np.random.default_rng(0).standard_normal((9, wide))
    assert np.allclose(elastic_net_mean(Z, 1e-12, 1.0), Z.mean(axis=0))
    assert np.allclose(elastic_net_mean(Z, 1e6, 1.0), np.median(Z, axis=0))  # λ large: the median
    assert np.allclose(elastic_net_mean(Z + 5, 0.3, 1.0), elastic_net_mean(Z, 0.3, 1.0) + 5)
    assert np.allclose(elastic_net_mean(-Z, 0.3, 1.0), -elastic_net_mean(Z, 0.3, 1.0))
    assert np.array_equal(elastic_net_mean(Z[::-1], 0.3, 1.0), elastic_net_mean(Z, 0.3, 1.0))
    assert np.allclose(elastic_net_mean(np.full((5, wide), 3.25), 0.3, 1.0), 3.25)


def test_the_elastic_net_mean_leaves_its_input():
    Z = np.random.default_rng(0).standard_normal((9, 4))
    Z.setflags(write=False)
    assert elastic_net_mean(Z, 0.3, 1.0).dtype == np.float64


def test_the_elastic_net_mean_stays_single():
    assert elastic_net_mean(np.ones((3, 2), np.float32), 0.3, 1.0).dtype == np.float32


# conjugate gradients


def systems(c, n, seed=0, spread=3.0):
    """(c, n, n) positive definite matrices of different condition, and right-hand sides (c, n)."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((c, n, n)))[0]
    e = np.exp(rng.uniform(-1, 1, (c, n)) * np.linspace(0, spread, c)[:, None])
    return np.matmul(U * e[:, None], U.mT), rng.standard_normal((c, n))


@pytest.mark.parametrize("accuracy", [0.1, 1e-6, 1e-12])
def test_conjugate_gradients_solve_to_the_accuracy_of_each_client(accuracy):
    H, B = systems(6, 8)
    B[2] = 0
    wanted = accuracy * np.array([1.0, 0.1, 1.0, 1.0, 0.5, 1.0])
    X = conjugate_gradients(lambda V: np.matvec(H, V), B, wanted, 100)
    residual = np.linalg.norm(np.matvec(H, X) - B, axis=1)
    assert (residual <= wanted * np.linalg.norm(B, axis=1) * 1.01 + 1e-14).all()
    assert not X[2].any()


def test_conjugate_gradients_have_the_same_bits_whoever_else_solves():
    H, B = systems(6, 8)
    accuracy = np.full(6, 1e-9)
    together = conjugate_gradients(lambda V: np.matvec(H, V), B, accuracy, 100)
    for i in range(6):
        alone = conjugate_gradients(lambda V, i=i: np.matvec(H[i : i + 1], V), B[i : i + 1], accuracy[:1], 100)
        assert together[i].tobytes() == alone[0].tobytes()


def test_conjugate_gradients_keep_the_type_and_the_input():
    H, B = systems(3, 5)
    H, B = H.astype(np.float32), B.astype(np.float32)
    B.setflags(write=False)
    X = conjugate_gradients(lambda V: np.matvec(H, V), B, np.full(3, 1e-3), 100)
    assert X.dtype == np.float32
    assert np.allclose(np.matvec(H, X), B, rtol=1e-2, atol=1e-2)


# local solvers


def clients(problem, kind="dense", c=5, seed=0):
    """c clients of one padded size as a Local, the second of large and the last of small features."""
    rng, sizes = np.random.default_rng(seed), 9 + np.arange(c) % 4
    if isinstance(problem, Quadratic):
        Q, b = systems(c, 6, seed)
        data = quadratics(Q, b)
    else:
        A = rng.standard_normal((sizes.sum(), 6)) * (rng.random((sizes.sum(), 6)) < 0.8)
        A[sizes[0] : sizes[:2].sum()] *= 20
        A[-sizes[-1] :] *= 0.01
        y = rng.integers(0, 3 if isinstance(problem, Softmax) else 2, len(A)).astype(float)
        data = Pool(sp.csr_array(A) if kind == "csr" else A, y, None, sizes)
    return local(data, problem)


CONVEX = [Quadratic(), Softmax(lam=0.05, bias=False), Logistic(mu=0.5), Logistic(mu=1e-3, regulariser="whole")]
convex = pytest.mark.parametrize("problem", CONVEX, ids=repr)


@convex
@pytest.mark.parametrize("tol", [1e-4, 1e-10])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_newton_reaches_its_tolerance(problem, tol, kind):
    f = clients(problem, kind)
    rng = np.random.default_rng(1)
    Y = 0.01 * rng.standard_normal((len(f), f.n))
    for W in (f.zeros(), rng.standard_normal((len(f), f.n)), 30 * rng.standard_normal((len(f), f.n))):
        before = W.copy()
        found = newton(f, Y, W, tol)
        assert (np.linalg.norm(f.grad(found) - Y, axis=1) <= tol).all()
        assert np.array_equal(W, before)


@convex
def test_newton_has_the_same_bits_whoever_else_solves(problem):
    f = clients(problem)
    rng = np.random.default_rng(2)
    Y, W = 0.01 * rng.standard_normal((len(f), f.n)), 5 * rng.standard_normal((len(f), f.n))
    together = newton(f, Y, W, 1e-10)
    for rows in (np.array([1]), np.array([4]), np.array([0, 3]), np.array([1, 2, 4])):
        alone = newton(f.take(rows), Y[rows], W[rows], 1e-10)
        assert together[rows].tobytes() == alone.tobytes()


@convex
def test_newton_stays_where_it_has_arrived(problem):
    f = clients(problem)
    Y = np.zeros((len(f), f.n))
    W = newton(f, Y, f.zeros(), 1e-10)
    assert newton(f, Y, W, 1e-10).tobytes() == W.tobytes()


def test_newton_finds_the_minimiser_of_a_quadratic():
    f = clients(Quadratic())
    Y = np.random.default_rng(3).standard_normal((len(f), f.n))
    H, b = systems(5, 6)
    assert np.allclose(newton(f, Y, f.zeros(), 1e-12), np.linalg.solve(H, (b + Y)[..., None])[..., 0], rtol=1e-9)


def test_newton_ends_where_rounding_ends_it():
    """A tolerance that cannot be reached is no endless loop, and the result is as good as rounding allows."""
    f = clients(Softmax(lam=0.05, bias=False))
    found = newton(f, np.zeros((len(f), f.n)), f.zeros(), 0.0)
    assert np.linalg.norm(f.grad(found), axis=1).max() < 1e-12


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_gradient_descent_takes_its_steps(steps):
    f = clients(Logistic(mu=0.5))
    rng = np.random.default_rng(4)
    Y, W = 0.1 * rng.standard_normal((2, len(f), f.n))
    wanted = W
    for _ in range(steps):
        wanted = wanted - 0.02 * (f.grad(wanted) - Y)
    assert np.array_equal(gradient_descent(f, Y, W, steps, 0.02), wanted)
