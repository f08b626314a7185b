"""What the two dual methods share: invariants, traffic, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.sources.synthetic import Synthetic
from mpifed.experiment.rounds import evaluate
from mpifed.federation.selection import Uniform
from mpifed.problems.logistic import Logistic
from mpifed.problems.quadratic import Quadratic
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import Run, build
from tests.helpers.dual_methods import duals


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
@pytest.mark.parametrize("problem", ["quadratic", "softmax", "logistic"])
def test_the_dual_variables_end_at_the_gradients_and_the_model_at_the_minimiser(name, problem):
    if problem == "quadratic":
        problem, data = Quadratic(), duals()[1].data
    else:
        classes = 3 if problem == "softmax" else 2
        data = Synthetic(clients=5, features=4, classes=classes, least=8, most=11, test=0.0).load(0, "float64")
        problem = Softmax(lam=0.2, bias=False) if problem == "softmax" else Logistic(mu=0.2, regulariser="whole")
    run = Run(build(name), problem, data=data, selection=Uniform(count=3))
    before = run.measure()[1]
    run.rounds(200)
    assert run.measure()[1] < 1e-5 * before
    f = run.hosts[0]
    G = np.concatenate([problem.grad(block, run.server.x) for block in f.blocks])[f.slot]
    assert np.allclose(run.states().y, G, atol=1e-2 * np.abs(G).max())


@pytest.mark.parametrize(
    "options",
    [{}, {"eta": 0.3}, {"solver": {"name": "gd", "steps": 3}}, {"solver": {"name": "gd", "delta": 0.3}}],
    ids=str,
)
@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_dual_variables_add_up_to_zero(name, options):
    run = Run(build(name, options), "quadratic")
    for _ in range(15):
        run.rounds(1)
        state = run.states()
        for field in [state.y] if name == "feddcd" else [state.y, state.z, state.v]:
            assert np.abs(field.sum(axis=0)).max() <= 1e-12 * max(np.abs(field).max(), 1)


def test_the_recorded_dual_objective_is_the_sum_of_the_conjugates():
    dual = duals()[1]
    for name in ("feddcd", "accfeddcd"):
        run = Run(build(name, {"dual": True}), "quadratic", data=dual.data, selection=Uniform(count=3))
        for _ in range(4):
            row = evaluate(run.algorithm, run.fed, run.server)
            assert np.isclose(row["dual_objective"], dual.value(run.states().y), rtol=1e-9)
            run.rounds(1)
    plain = Run(build("feddcd"), "quadratic", data=dual.data)
    assert "dual_objective" not in evaluate(plain.algorithm, plain.fed, plain.server)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_those_who_train_solve_to_the_tolerance_of_newton(name, tol):
    data = Synthetic(clients=6, features=4, classes=3, least=8, most=11, test=0.0).load(0, "float64")
    run = Run(build(name, {"solver": {"name": "newton", "tol": tol}}), Softmax(lam=0.1, bias=False), data=data)
    for _ in range(4):
        before = run.states()
        run.rounds(1)
        at = run.states().v if name == "accfeddcd" else before.y
        f = run.hosts[0]
        G = np.concatenate(
            [run.problem.grad(block, w) for block, w in zip(f.blocks, np.split(f.state.w, f.starts[1:-1]), strict=True)]
        )[f.slot]
        chosen = run.fed.selected
        assert (np.linalg.norm(G[chosen] - at[chosen], axis=1) <= tol).all()


@pytest.mark.parametrize(("name", "exchanges"), [("feddcd", 1), ("accfeddcd", 2)])
def test_an_iteration_costs_its_exchanges_and_no_more(name, exchanges):
    """In the ledger after every round: w_i up and the mean down, of those who are drawn."""
    run = Run(build(name), "quadratic", selection=Uniform(count=5))
    for round in range(1, 5):
        run.rounds(1)
        ledger = run.fed.ledger
        assert ledger.exchanges == exchanges * round
        assert ledger.uploads == ledger.downloads == 5 * exchanges * round
        assert ledger.bytes_up == ledger.bytes_down == 8 * 10 * 5 * exchanges * round


@pytest.mark.parametrize(("name", "exchanges"), [("feddcd", 1), ("accfeddcd", 2)])
def test_and_so_they_are_in_the_record(name, exchanges):
    result = mpifed.run(
        {
            "data": {"name": "quadratic", "clients": 6, "features": 3},
            "algorithm": name,
            "rounds": 4,
            "selection": {"name": "uniform", "count": 4},
        }
    )
    assert list(result.rounds["exchanges"]) == [exchanges * k for k in range(5)]
    assert list(result.rounds["uploads"]) == list(result.rounds["downloads"]) == [4 * exchanges * k for k in range(5)]
    assert (
        list(result.rounds["bytes_up"])
        == list(result.rounds["bytes_down"])
        == [4 * 3 * 8 * exchanges * k for k in range(5)]
    )


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
@pytest.mark.parametrize(
    "problem",
    [{"name": "softmax", "lam": 0.1}, {"name": "softmax", "bias": False}, {"name": "logistic", "mu": 0.0}],
    ids=str,
)
def test_what_is_not_strongly_convex_is_refused_by_one_sentence(name, problem):
    table = {
        "data": {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9},
        "problem": problem,
        "algorithm": name,
        "rounds": 2,
    }
    with pytest.raises(UserError) as told:
        mpifed.run(table)
    sentence = str(told.value)
    assert sentence.startswith(f"{name} cannot run on {problem['name']} as it stands: it needs strongly convex f_i")
    assert "\n" not in sentence
    assert ". " not in sentence


@pytest.mark.parametrize(
    ("problem", "lacks"),
    [("least-squares", "convexity"), ("svm", "convexity"), ("mlp", "convexity"), ("nonconvex-logistic", "convexity")],
)
def test_so_is_what_does_not_know_its_convexity(problem, lacks):
    table = {
        "data": {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9},
        "problem": problem,
        "algorithm": "feddcd",
        "rounds": 2,
    }
    with pytest.raises(UserError, match=f"^feddcd cannot run on {problem}: it needs {lacks} \\("):
        mpifed.run(table)
