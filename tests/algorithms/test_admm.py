"""ADMM methods: their recorded Lagrangian, penalties that change, what clients keep, and where duals have to stay."""

import math

import numpy as np
import pytest

from mpifed.algorithms import SISA, FedADMM, FedDyn, FedGiA
from mpifed.algorithms.ad_admm import ADADMM
from mpifed.algorithms.parts.step_sizes import ConstantStep
from mpifed.federation.participation.selection import All
from mpifed.theory.ad_admm import certificate, minimum_penalty, minimum_proximal_weight
from tests.helpers import traits
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, smoothness
from tests.oracles import admm, event_loop
from tests.oracles.problems import LeastSquares, mean_value
from tests.theory.test_theorems import KNOWN

FIXED = 1e30  # for penalties that do not change


def lagrangian(run, x, w, pi, sigma):
    """L(x, W, Π), client by client."""
    f = [np.sum((A @ wi - b) ** 2) / (2 * len(A)) for (A, b), wi in zip(run.samples(), w, strict=True)]
    return np.sum(f) / M + np.vecdot(w - x, pi).sum() + np.sum(sigma / 2 * np.sum((w - x) ** 2, axis=1))


@pytest.mark.parametrize("first", ["zero", "-gradient"])
def test_fedadmm_records_its_augmented_lagrangian(first):
    run = Run(FedADMM(k0=2, r0=0.7, first=first, lagrangian=True))
    for _ in range(4):
        run.rounds(1)
        states, sigma = run.states(), 0.7 * smoothness(run) / M
        w = (states.z - states.pi) / sigma[:, None]
        expected = lagrangian(run, run.server.x, w, states.pi, sigma)
        assert run.row()["lagrangian"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("first", ["zero", "-gradient"])
@pytest.mark.parametrize("H", ["diagonal", "gram"])
def test_fedgia_records_its_augmented_lagrangian(first, H):
    run = Run(FedGiA(k0=2, t=2.0, H=H, first=first, lagrangian=True))
    for _ in range(4):
        x = run.server.x
        run.rounds(1)
        states, sigma = run.states(), run.server.sigma
        resting = np.setdiff1d(np.arange(M), run.fed.selected)
        assert np.allclose(states.w[resting], x, rtol=1e-12, atol=1e-14)  # (15)
        expected = lagrangian(run, run.server.x, states.w, states.pi, np.full(M, sigma))
        assert run.row()["lagrangian"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "options"), [("fedadmm", {"r0": 0.5}), ("fedgia", {"t": 6.0})])
def test_the_lagrangian_is_the_objective_at_the_start_and_at_the_end_and_changes_nothing_else(name, options):
    plain, watched = (Run(build(name, {"k0": 3, "lagrangian": on, **options})) for on in (False, True))
    assert watched.row()["lagrangian"] == pytest.approx(watched.row()["objective"], rel=1e-14)
    assert plain.rounds(200).tobytes() == watched.rounds(200).tobytes()
    assert watched.row()["lagrangian"] == pytest.approx(watched.row()["objective"], rel=1e-6)
    assert set(watched.row()) - set(plain.row()) == {"lagrangian"}


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_penalties_that_have_grown_for_long_are_numbers_still(precision):
    run = Run(SISA(gamma=0.5), dtype=precision)
    assert np.isfinite(run.rounds(150)[-1]).all()
    assert all(np.isfinite(field).all() for field in run.states())


def test_sisa_with_one_penalty_and_no_preconditioner_is_fedgia_with_h_zero():
    """All clients, full gradients, k0 = 1; FedGiA's objective has the weight 1/m, so that its σ is sigma/m."""
    theirs = Run(FedGiA(H="zero", k0=1, t=2.0), selection=All())
    own = Run(SISA(rho=0.0, sigma=theirs.server.sigma * M), selection=All())
    assert np.allclose(own.rounds(30), theirs.rounds(30), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "needs"),
    [({}, ["lipschitz"]), ({"sigma": 0.1}, []), ({"sigma": 0.1, "preconditioner": "smoothness"}, ["lipschitz"])],
    ids=str,
)
def test_sisa_asks_for_r_i_only_where_it_uses_them(options, needs):
    assert list(traits.required_methods(build("sisa", options))) == needs


def test_clients_of_feddyn_that_solve_their_problem_keep_the_gradient_at_its_solution():
    alpha = 0.5
    run = Run(FedDyn(k0=600, step=ConstantStep(a=0.05), alpha=alpha), selection=All())
    x, old = run.rounds(1)[-1], run.states().h
    run.rounds(1)
    solved = np.array(
        [
            np.linalg.solve(A.T @ A / len(A) + alpha * np.eye(N), A.T @ b / len(A) + alpha * x + h)
            for (A, b), h in zip(run.samples(), old, strict=True)
        ]
    )
    assert np.allclose(run.states().h, gradients(run, solved), rtol=1e-6, atol=1e-7)


SECONDS = np.exp(np.random.default_rng(5).standard_normal(8))  # of a client, from model to upload


def clients():
    rng = np.random.default_rng(3)
    for _ in SECONDS:
        A = rng.standard_normal((9, 4)) * np.exp(rng.uniform(-1, 0.5, 4))
        yield LeastSquares(A, A @ rng.standard_normal(4) + rng.standard_normal(9))


class MovedByTheServer(admm.ADADMM):
    """The same, but that the server moves all λ_i in every step, with the x_i that it has."""

    def begin(self, i):
        before = self.pi[i]
        super().begin(i)
        self.pi[i] = before
        return self.own[i]

    def mean(self):
        x = sum(own + pi / self.rho for own, pi in zip(self.z, self.pi, strict=True)) / self.m
        self.pi = [pi + self.rho * (own - x) for own, pi in zip(self.z, self.pi, strict=True)]
        return x


def gap(kind, rho):
    """f − f* after 300 asynchronous steps, over f at the start."""
    every = list(clients())
    method = kind(every, rho=rho)
    event_loop.run(method, lambda i, count: SECONDS[i], 300, arrivals=1)
    best = np.linalg.solve(sum(f.majorant for f in every), sum(f.A.T @ f.b / f.d for f in every))
    end, least, start = (mean_value(every, [x] * len(every)) for x in (method.x, best, 0 * best))
    return (end - least) / start


@pytest.mark.slow  # of no code of the package
@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_duals_that_the_server_moves_diverge_where_those_of_the_clients_converge(rho):
    assert abs(gap(admm.ADADMM, rho)) < 1e-2
    assert gap(MovedByTheServer, rho) > 1e3


def test_the_conditions_of_the_convergence_of_ad_admm_are_those_of_the_proof():
    assert minimum_penalty(1.0, False) == pytest.approx((3 + math.sqrt(17)) / 2)
    assert minimum_penalty(1.0, True) == pytest.approx((2 + math.sqrt(12)) / 2)
    assert minimum_proximal_weight(2.0, m=10, S=4, age=3) == pytest.approx((4 * 5 * 9 - 20) / 2)
    assert minimum_proximal_weight(2.0, m=10, S=4, age=0) == -10
    assert minimum_proximal_weight(2.0, m=10, S=4, age=math.inf) == math.inf


def test_the_certificate_of_ad_admm_holds_with_the_constants_that_it_asks_for():
    L, late = float(np.max(KNOWN.r)), KNOWN._replace(selection="arrivals", oldest=3.0)
    rho = 1.01 * minimum_penalty(L, True)
    gamma = 1.01 * minimum_proximal_weight(rho, KNOWN.m, KNOWN.m + 1, 3.0)
    assert certificate(ADADMM(rho=rho, gamma=gamma), late).holds
    assert certificate(ADADMM(rho=0.9 * rho, gamma=gamma), late).holds is False
    assert certificate(ADADMM(rho=rho, gamma=0.9 * gamma), late).holds is False
    assert certificate(ADADMM(rho=rho, gamma=gamma), late._replace(oldest=math.inf)).holds is False
    assert certificate(ADADMM(rho=rho), KNOWN._replace(oldest=0.0)).holds
