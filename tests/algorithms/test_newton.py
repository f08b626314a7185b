"""Newton's method: exact on quadratics, fast near the minimiser, damped far from it, and charged in full."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.newton import Newton
from mpifed.algorithms.newton_steps import backtrack, direction
from mpifed.core.errors import Trouble, UserError
from mpifed.data.pool import Pool
from mpifed.experiment.config import experiment
from mpifed.experiment.matching import refuse_mismatch
from mpifed.federation.participation.selection import All, Uniform
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import M, N, Run, build, minimiser


def classes(scale=1.0, wrong=1000, m=8, n=6):
    """Two classes at the sides of a plane; every ``wrong``-th sample is at the other side."""
    X = scale * np.random.default_rng(1).standard_normal((12 * m, n))
    y = (X[:, 0] > 0).astype(float)
    y[::wrong] = 1 - y[::wrong]
    return Pool(X, y, None, np.full(m, 12))


def far(data):
    """A run on steep samples from a point far away, where the full step overshoots."""
    run = Run(Newton(), Logistic(mu=1e-3), data=data, selection=All())
    run.server = run.server._replace(x=np.full(run.n, 0.3))
    return run


def test_least_squares_is_solved_in_one_round():
    run = Run(Newton(), selection=All())
    assert np.allclose(run.rounds(1)[-1], minimiser(run), rtol=1e-10)
    assert run.server.step == 1.0


def test_the_gradient_goes_down_quadratically_to_rounding_and_stays_there():
    run = Run(Newton(), Logistic(mu=0.1, regulariser="whole"), data=classes(), selection=All())
    norms = []
    for _ in range(9):
        run.rounds(1)
        norms.append(run.measure()[1] ** 0.5)
    fast = [(a, b) for a, b in pairwise(norms) if 1e-7 < a < 1e-2]
    assert len(fast) >= 2
    assert all(b < 100 * a**2 for a, b in fast)
    assert norms[-1] < 1e-14
    assert run.server.step == 1.0  # rounding in f does not hold the last steps back


def test_far_from_the_minimiser_steps_are_damped_until_f_goes_down():
    run = far(classes(scale=10.0, wrong=3))
    values, steps = [run.measure()[0]], []
    for _ in range(12):
        run.rounds(1)
        values.append(run.measure()[0])
        steps.append(run.server.step)
    assert min(steps) < 1 == steps[-1]
    assert set(steps) <= {0.5**k for k in range(20)}
    assert (np.diff(values) < 1e-15).all()
    assert run.measure()[1] < 1e-16


def test_every_trial_point_is_an_exchange_and_is_charged():
    run, charged = far(classes(scale=10.0, wrong=3)), set()
    for _ in range(6):
        before = dict(vars(run.fed.ledger))
        run.rounds(1)
        now, n = vars(run.fed.ledger), run.n
        trials = 1 + round(-np.log2(run.server.step))
        charged.add(trials)
        assert now["up"] - before["up"] == 1 + trials
        assert now["bytes_down"] - before["bytes_down"] == 8 * run.m * n * (1 + trials)
        assert now["bytes_up"] - before["bytes_up"] == 8 * run.m * (1 + n + n * (n + 1) // 2 + trials)
    assert len(charged) > 1


def test_simulated_time_counts_the_matrix():
    assert Newton().traffic(N) == (2 * N, 2 + N + N * (N + 1) // 2)
    assert Newton().work(np.ones(3)) is None


@pytest.mark.parametrize("selection", [All(), Uniform(count=1)])
def test_all_clients_take_part_whoever_is_selected(selection):
    run = Run(Newton(), selection=selection)
    assert run.rounds(2).tobytes() == Run(Newton(), selection=Uniform(count=7)).rounds(2).tobytes()
    assert run.fed.ledger.uploads == 4 * M


def test_no_client_can_be_absent_and_the_slowest_is_awaited():
    study = {"algorithm": "newton", "rounds": 3, "data": {"clients": 5}, "system": {"latency": 0.5}}
    result = mpifed.run(study)
    assert result.rounds["simulated_seconds"].tolist() == [0, 1, 2, 3]
    assert result.rounds["asked"].tolist() == [0, 5, 5, 5]
    with pytest.raises(UserError, match=r"^system\.dropout = 0\.1 is wrong: newton needs a gradient of every client"):
        mpifed.run(study, {"system.dropout": 0.1})


@pytest.mark.parametrize("kind", ["too few samples", "not convex"])
def test_a_hessian_that_is_not_positive_definite_is_told_with_what_helps(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 20 if kind == "too few samples" else 3))
    data = mpifed.arrays(X, (X[:, 0] > 0).astype(float), [6, 6])
    problem = {"name": "logistic", "mu": 0.0}
    if kind == "not convex":
        problem = {"name": "nonconvex-logistic", "mu": 1e3}
        np.savez(tmp_path / "start.npz", x=np.ones(3))
    with pytest.raises(Trouble, match=r"^newton finds no step: .* set the problem's regularisation above 0"):
        mpifed.run(
            {"algorithm": "newton", "problem": problem, "rounds": 2},
            data=data,
            **({"start": str(tmp_path / "start.npz")} if kind == "not convex" else {}),
        )


def test_the_bias_of_softmax_needs_to_go():
    """All biases may move together, which no loss notices."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    study = {"algorithm": "newton", "rounds": 30, "stop": {"gradient": 1e-24}}
    data = mpifed.arrays(X, np.arange(60) % 3.0, [30, 30])
    with pytest.raises(Trouble, match="bias = false"):
        mpifed.run(study, data=data, problem={"name": "softmax", "lam": 0.01})
    result = mpifed.run(study, data=data, problem={"name": "softmax", "lam": 0.01, "bias": False})
    assert result.attrs["stop_reason"] != "rounds"
    assert result.rounds["server_step"][-1] == 1.0


def test_a_problem_without_matrices_is_refused():
    config = experiment({"algorithm": "newton", "problem": "mlp"})
    with pytest.raises(UserError, match=r"^newton cannot run on mlp: it needs hess \(the matrices ∇²f_i\), which mlp"):
        refuse_mismatch(config.algorithm, config.problem)


@pytest.mark.parametrize(
    ("option", "value"), [("c", 0), ("c", 0.5), ("c", "half"), ("shrink", 0), ("shrink", 1), ("shrink", -0.5)]
)
def test_options_that_cannot_work_are_refused(option, value):
    with pytest.raises(UserError, match=rf"^algorithm\.{option} = .* is wrong: it must be a number"):
        build("newton", {option: value})


def test_the_direction_solves_and_refuses_what_is_singular_to_rounding():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    g = rng.standard_normal(5)
    H = Q @ np.diag([1.0, 2, 3, 4, 5]) @ Q.T
    assert np.allclose(direction(H, g, "newton"), -np.linalg.inv(H) @ g)
    for low in (-1.0, 0.0, 1e-17):
        with pytest.raises(Trouble, match=r"^fednl finds no step"):
            direction(Q @ np.diag([low, 2, 3, 4, 5]) @ Q.T, g, "fednl")


def test_backtracking_takes_the_first_step_that_goes_down_enough():
    tried = []

    def f(s):
        tried.append(s)
        return (1 - 3 * s) ** 2  # the slope at 0 is −6

    assert backtrack(f, 1.0, -6.0, 0.3, 0.5) == 0.25
    assert tried == [1.0, 0.5, 0.25]
    assert backtrack(lambda s: 1.0, 1.0, 0.0, 0.3, 0.5) == 1.0
    assert backtrack(lambda s: 1.0 + np.spacing(1.0), 1.0, -1e-20, 0.3, 0.5) == 1.0, "the same to rounding"
    assert 0 < backtrack(lambda s: 2.0, 1.0, -1.0, 0.3, 0.5) < 1e-15, "it ends where no step helps"
