"""Local solvers: Newton and gradient descent, which do not depend on the other clients."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.algorithms.parts.local_solvers import GradientDescent, NewtonSolver, minimise_by_newton
from mpifed.data.pool import Pool
from mpifed.data.sources.quadratic import RandomQuadratic
from mpifed.problems import Logistic, Quadratic, Softmax
from tests.helpers import traits
from tests.helpers.algorithm_runs import build, local, quadratics, systems
from tests.helpers.dual_methods import Dual


@pytest.mark.parametrize(
    ("kappa", "delta", "steps"),
    [(0.5, 0.25, 1), (0.5, 0.24, 2), (0.5, 1 / 16, 2), (0.1, 0.1, 11), (0.01, 0.5, 35), (1.0, 0.1, 1), (0.999, 0.9, 1)],
)
def test_gradient_steps_for_an_accuracy(kappa, delta, steps):
    """The fewest k >= 1 with (1 − α/β)^(2k) <= δ."""
    assert GradientDescent(delta=delta).count(kappa, 1.0) == steps
    assert (1 - kappa) ** (2 * steps) <= delta * (1 + 1e-9)
    assert steps == 1 or (1 - kappa) ** (2 * steps - 2) > delta


@pytest.mark.parametrize("kappa", [0.9, 0.3, 0.01])
def test_gradient_descent_is_an_inexact_oracle(kappa):
    """Definition 5.1: ‖w − ∇f*(y)‖² <= δ‖w_init − ∇f*(y)‖², on quadratics of every condition."""
    dual = Dual(RandomQuadratic(clients=4, features=5, mu=kappa, L=1.0).load(3, "float64"))
    rng = np.random.default_rng(5)
    Y, W = rng.standard_normal((2, 4, 5))
    for delta in (0.5, 0.01, "theorem"):
        solver = GradientDescent(delta=delta)
        exact = np.matvec(dual.inverse, Y + dual.b)
        found = solver.minimise(local(dual.data, Quadratic()), Y, W, kappa, 1.0, 1.0)
        bound = (1 - kappa / 32) / 4 if delta == "theorem" else delta
        assert (np.sum((found - exact) ** 2, axis=1) <= bound * np.sum((W - exact) ** 2, axis=1) * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {"hessian"}),
        ({"solver": {"name": "gd", "steps": 1}}, set()),
        ({"solver": {"name": "gd", "steps": 1}, "dual": True}, {"hessian"}),
    ],
    ids=str,
)
def test_a_dual_method_needs_what_its_solver_needs(options, more):
    assert set(traits.required_methods(build("feddcd", options))) == {"convexity", "lipschitz"} | more


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
@pytest.mark.parametrize(
    ("tol", "kind"),
    [(1e-10, "dense"), (1e-4, "csr")]
    + [pytest.param(*case, marks=pytest.mark.slow) for case in [(1e-4, "dense"), (1e-10, "csr")]],
)
def test_newton_reaches_its_tolerance(problem, tol, kind):
    f = clients(problem, kind)
    rng = np.random.default_rng(1)
    Y = 0.01 * rng.standard_normal((len(f), f.n))
    for W in (f.zeros(), rng.standard_normal((len(f), f.n)), 30 * rng.standard_normal((len(f), f.n))):
        before = W.copy()
        found = minimise_by_newton(f, Y, W, tol)
        assert (np.linalg.norm(f.grad(found) - Y, axis=1) <= tol).all()
        assert np.array_equal(W, before)


def at_work_in(round, monkeypatch):
    """Clients in this round, or each in one of its own, and random y_i."""
    f = clients(Quadratic())
    monkeypatch.setattr(f, "key", (round, 0 * round))
    return f, np.random.default_rng(1).standard_normal((len(f), f.n))


@pytest.mark.parametrize("round", [1, 4])
def test_newton_lowers_its_tolerance_by_a_factor_a_round(round, monkeypatch):
    f, Y = at_work_in(round, monkeypatch)
    found = NewtonSolver(tol=0.5, shrink=0.1, economical=True).minimise(f, Y, f.zeros(), 0.05, 1.0, 1.0)
    left = np.linalg.norm(f.grad(found) - Y, axis=1)
    assert (left <= 0.5 * 0.1 ** (round - 1)).all()
    assert left.max() > 1e-3 * 0.1**round


def test_clients_of_different_rounds_have_tolerances_of_their_own(monkeypatch):
    solver, rounds = NewtonSolver(tol=0.5, shrink=0.1), np.arange(1, 6)
    f, Y = at_work_in(rounds, monkeypatch)
    together = solver.minimise(f, Y, f.zeros(), 0.05, 1.0, 1.0)
    for i in range(len(f)):
        one = f.take(np.array([i]))
        assert np.array_equal(one.round, rounds[i : i + 1])
        assert np.array_equal(solver.minimise(one, Y[i : i + 1], one.zeros(), 0.05, 1.0, 1.0)[0], together[i])


def test_a_tolerance_ends_at_1e_14_of_the_first_one(monkeypatch):
    f, _ = at_work_in(10**6, monkeypatch)
    W = np.ones((len(f), f.n))
    assert np.array_equal(NewtonSolver(tol=1e14, shrink=0.5).minimise(f, f.grad(W) + 0.01, W, 0.05, 1.0, 1.0), W)


def test_newton_takes_at_most_its_steps():
    """Five steps are two and three more, to the bit; none raises any ‖∇f_i − y_i‖; a hundred are the default."""
    f = clients(Softmax(lam=0.05, bias=False))
    rng = np.random.default_rng(8)
    Y, W = 0.01 * rng.standard_normal((len(f), f.n)), rng.standard_normal((len(f), f.n))

    def steps(count, W):
        return NewtonSolver(steps=count).minimise(f, Y, W, 0.05, 1.0, 1.0)

    assert steps(5, W).tobytes() == steps(3, steps(2, W)).tobytes()
    norms = [np.linalg.norm(f.grad(V) - Y, axis=1) for V in (W, steps(1, W), steps(2, W), steps(3, W))]
    assert (np.diff(norms, axis=0) <= 0).all()
    assert (norms[1] < norms[0]).all()
    assert NewtonSolver().minimise(f, Y, W, 0.05, 1.0, 1.0).tobytes() == steps(100, W).tobytes()


@convex
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_an_economical_newton_reaches_its_tolerance_with_fewer_products(problem, tol, monkeypatch):
    f = clients(problem)
    rng = np.random.default_rng(1)
    products = {True: 0, False: 0}
    Y, W = 0.01 * rng.standard_normal((len(f), f.n)), rng.standard_normal((len(f), f.n))
    hessian = type(f.problem).hessian

    def counted(problem, block, X):
        def product(V):
            products[economical] += 1
            return apply(V)

        apply = hessian(problem, block, X)
        return product

    monkeypatch.setattr(type(f.problem), "hessian", counted)
    for economical in products:
        found = NewtonSolver(tol=tol, economical=economical).minimise(f, Y, W, 0.05, 1.0, 1.0)
        assert (np.linalg.norm(f.grad(found) - Y, axis=1) <= tol).all()
    assert products[True] < products[False] + (tol < 1e-3)


@convex
def test_newton_stays_where_it_has_arrived(problem):
    f = clients(problem)
    Y = np.zeros((len(f), f.n))
    W = minimise_by_newton(f, Y, f.zeros(), 1e-10)
    assert minimise_by_newton(f, Y, W, 1e-10).tobytes() == W.tobytes()


def test_newton_ends_where_rounding_ends_it():
    """A tolerance that cannot be reached is no endless loop, and the result is as good as rounding allows."""
    f = clients(Softmax(lam=0.05, bias=False))
    found = minimise_by_newton(f, np.zeros((len(f), f.n)), f.zeros(), 0.0)
    assert np.linalg.norm(f.grad(found), axis=1).max() < 1e-12
