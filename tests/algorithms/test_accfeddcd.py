"""AccFedDCD: what its paper proves, how accurate its solutions must be, and why it is not asynchronous."""

import math
from functools import cache

import numpy as np
import pytest

from mpifed.federation.participation.selection import All, UniformSelection
from tests.helpers.algorithm_runs import quadratics
from tests.helpers.dual_methods import Dual, after, begun, duals, every_dual, on_every_set, sharp, trajectory
from tests.oracles import event_loop


@every_dual
@pytest.mark.parametrize("tau", [2, 4])
def test_theorem_6_1_the_lyapunov_function_contracts_by_one_minus_a(place, tau):
    """G(y) − G* + (a² + b)/(2r²α)·‖z − y*‖² (errata), in every single step and over all pairs of draws."""
    dual = duals()[place]
    _, runs = on_every_set(dual, tau, name="accfeddcd")
    server = runs[0].server
    r, kappa = (tau - 1) / (dual.m - 1), dual.alpha / dual.beta
    assert np.isclose(server.r, r)
    assert np.isclose(server.a, math.sqrt(kappa) / (1 / r + math.sqrt(kappa)), rtol=1e-9)
    assert np.isclose(server.b, kappa * server.a * r**2, rtol=1e-9)
    weight = (server.a**2 + server.b) / (2 * r**2 * dual.alpha)
    for state in trajectory("accfeddcd", dual):
        before = dual.gap(state.y) + weight * np.sum((state.z - dual.y) ** 2)
        ends = [after(run, y=state.y, z=state.z, w=state.w) for run in runs]
        gap = np.mean([dual.gap(end.y) for end in ends])  # y⁺ depends on the first draw alone, z⁺ on the second
        distance = np.mean([np.sum((end.z - dual.y) ** 2) for end in ends])
        assert gap + weight * distance <= (1 - server.a) * before * (1 + 1e-9) + 1e-13


def test_theorem_6_1_as_printed_is_false():
    """Errata: (10) drops the z-term; with all clients, α = β/10, all error at curvature β: 1.066 times the bound."""
    dual, problem = sharp(1.0, 0.1)
    run = begun(dual, All(), "accfeddcd", problem)
    first = dual.gap(run.states().y)
    run.rounds(1)
    assert np.isclose(dual.gap(run.states().y) / first / (1 - run.server.a), 1.066, rtol=1e-3)


def test_the_two_draws_of_an_iteration_are_independent():
    selector = UniformSelection(count=5).selector(0, 20, 400)
    both = [len(np.intersect1d(selector.select(k, 0), selector.select(k, 1))) for k in range(1, 401)]
    assert abs(np.mean(both) - 5 * 5 / 20) < 5 * np.std(both) / 20


def growth(delta, kappa):
    """The spectral radius of an iteration with all clients on y, z and w where f_i has the curvature α, at any κ."""
    a = math.sqrt(kappa) / (1 + math.sqrt(kappa))
    b, q = kappa * a, math.sqrt(delta)

    def iterate(y, z, w):
        v = (1 - a) * y + a * z
        u = (a * a * z + b * v) / (a * a + b)
        first = v + q * (w - v)
        second = v + q * (first - v)
        return [v - first, u - a / (a * a + b) * second, second]

    return np.abs(np.linalg.eigvals(np.transpose([iterate(*one) for one in np.eye(3)]))).max()


@pytest.mark.parametrize(("condition", "border"), [(100, 0.364), (400, 0.301), (1e4, 0.26), (1e8, 0.25)])
def test_the_border_falls_to_a_quarter_as_the_condition_grows(condition, border):
    assert growth(border - 0.002, 1 / condition) < 1 < growth(border + 0.002, 1 / condition)


@pytest.mark.parametrize(("delta", "grows"), [pytest.param(0.3, False, marks=pytest.mark.slow), (0.42, True)])
def test_with_all_clients_duals_diverge_beyond_the_border_and_the_model_does_not_show_it(delta, grows):
    """f_0 and f_1 have the curvatures 1 and 100, and opposite linear terms: x* = 0 is the mean of w_0 and w_1."""
    dual = Dual(quadratics(np.tile(np.diag([1.0, 100.0]), (2, 1, 1)), np.array([[1.0, 0.0], [-1.0, 0.0]])))
    run = begun(dual, All(), "accfeddcd", solver={"name": "gd", "delta": delta})
    sizes = []
    for _ in range(400):
        run.rounds(1)
        assert np.allclose(run.server.x, 0, atol=1e-12 * max(1.0, np.abs(run.states().w).max()))
        sizes.append(np.abs(run.states().w[:, 0]).max())  # w_i is 0 at the solution
    assert (max(sizes[350:]) > 100 * max(sizes[:50])) == grows
    assert (max(sizes[350:]) < 1e-4 * max(sizes[:50])) == (not grows)


# Why it is not asynchronous: with clients that arrive unequally often its momentum diverges, and FedDCD goes on.
M = 20
N = 6
TAU = 10
ALPHA = 1.0
BETA = 100.0


class Nobody:
    """A method that does nothing: only who arrives counts."""

    m = M

    def begin(self, i):
        return None

    def step(self, uploads, ages):
        pass

    def drops(self, age):
        return False


def arriving(sigma, count):
    """Who arrives in each step: TAU of clients whose speeds have the logarithmic standard deviation ``sigma``."""
    rng = np.random.default_rng(3)
    seconds, jitter = np.exp(sigma * rng.standard_normal(M)), np.exp(0.3 * rng.standard_normal((M, count)))
    return [one.arrived for one in event_loop.run(Nobody(), lambda i, k: seconds[i] * jitter[i, k], count, TAU)]


@cache
def inverses():
    """The inverses of Q_i with eigenvalues from ALPHA to BETA, and b_i, of f_i = ½⟨x, Q_i x⟩ − ⟨b_i, x⟩."""
    rng = np.random.default_rng(0)
    values = np.geomspace(ALPHA, BETA, N)
    bases = [np.linalg.qr(rng.standard_normal((N, N)))[0] for _ in range(M)]
    return np.array([U @ np.diag(1 / values) @ U.T for U in bases]), rng.standard_normal((M, N))


def dual(y):
    """Σ f_i*(y_i)."""
    Q, b = inverses()
    return 0.5 * np.einsum("ij,ijk,ik->", y + b, Q, y + b)


def step(point, selected):
    """α(w_i − mean) of the selected clients, with exact w_i at the point (M, N)."""
    Q, b = inverses()
    w = np.matvec(Q[selected], (point + b)[selected])
    return ALPHA * (w - w.mean(axis=0))


def ends(sets):
    """The dual objective over its first value: FedDCD after one set a step, AccFedDCD (Algorithm 2) after two."""
    r, kappa = (TAU - 1) / (M - 1), ALPHA / BETA
    a = np.sqrt(kappa) / (1 / r + np.sqrt(kappa))
    b = kappa * a * r**2
    x, y, z = np.zeros((3, M, N))
    for first, second in zip(sets[::2], sets[1::2], strict=True):
        x[first] -= step(x, first)
        v = (1 - a) * y + a * z
        y, z = v.copy(), (a * a * z + b * v) / (a * a + b)
        y[first] -= step(v, first)
        z[second] -= a * r / (a * a + b) * step(v, second)
        if not dual(y) < 1e6 * dual(np.zeros((M, N))):
            return dual(x) / dual(np.zeros((M, N))), np.inf
    return dual(x) / dual(np.zeros((M, N))), dual(y) / dual(np.zeros((M, N)))


@pytest.mark.slow  # of no code of the package
@pytest.mark.parametrize(("sigma", "diverges"), [(0.0, False), (2.0, True)])
def test_momentum_needs_selections_that_are_uniform(sigma, diverges):
    plain, accelerated = ends(arriving(sigma, 6000))
    assert plain < 1
    assert (accelerated > 1e5) == diverges
    assert diverges or accelerated < plain
