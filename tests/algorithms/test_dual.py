"""What the two dual methods share: invariants, traffic, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.sources.synthetic import Synthetic
from mpifed.experiment.rounds import evaluate
from mpifed.federation.participation.selection import All, Uniform
from mpifed.problems.logistic import Logistic
from mpifed.problems.quadratic import Quadratic
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import Run, build, quadratics
from tests.helpers.dual_methods import Dual, duals


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


def uneven():
    """Quadratics of very different convexity, and what is known of them."""
    Q = np.array([np.diag([0.2, 2.0]), np.diag([1.5, 3.0]), np.diag([4.0, 5.0]), np.diag([0.6, 9.0])])
    return Dual(quadratics(Q, np.random.default_rng(3).standard_normal((4, 2)))), np.array([0.2, 1.5, 4.0, 0.6])


def projected(w, own):
    """(2), proj_C^Λ(Λ⁻¹w) with Λ = diag(1/own), as the projection is written: (I − W⁻¹uuᵀ/(uᵀW⁻¹u))Λ⁻¹w."""
    n = w.shape[1]
    inverse = np.kron(np.diag(own), np.eye(n))  # Λ⁻¹
    u = np.tile(np.eye(n), (len(w), 1))
    flat = inverse @ w.ravel()
    return (flat - inverse @ u @ np.linalg.solve(u.T @ inverse @ u, u.T @ flat)).reshape(w.shape)


@pytest.mark.parametrize("scaling", ["common", "own"])
def test_a_step_is_the_projection_of_the_paper(scaling):
    """(2) with Λ = I/α and with Λ = diag(1/α_i); the model is the mean that the projection subtracts."""
    dual, own = uneven()
    own = own if scaling == "own" else np.full(4, own.min())
    run = Run(
        build("feddcd", {"scaling": scaling, "eta": 0.7}), "quadratic", data=dual.data, selection=Uniform(count=3)
    )
    y = np.zeros_like(dual.b)
    for _ in range(5):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        w = np.matvec(dual.inverse, y + dual.b)[chosen]
        y[chosen] -= 0.7 * projected(w, own[chosen])
        assert np.allclose(run.states().y, y, rtol=1e-9, atol=1e-11)
        assert np.allclose(model, own[chosen] @ w / own[chosen].sum(), rtol=1e-9, atol=1e-11)
        assert np.abs(run.states().y.sum(axis=0)).max() < 1e-12


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_own_constants_are_faster_where_clients_differ(name):
    dual, _ = uneven()
    gaps = []
    for scaling in ("common", "own"):
        run = Run(build(name, {"scaling": scaling}), "quadratic", data=dual.data, selection=Uniform(count=3))
        run.rounds(30)
        gaps.append(dual.gap(run.states().y))
        assert np.abs(run.states().y.sum(axis=0)).max() < 1e-12
    assert gaps[1] < gaps[0] / 3


def test_with_own_constants_a_client_sends_one_number_more():
    dual, _ = uneven()
    run = Run(build("feddcd", {"scaling": "own"}), "quadratic", data=dual.data, selection=Uniform(count=3))
    run.rounds(2)
    assert (run.fed.ledger.bytes_up, run.fed.ledger.bytes_down) == (2 * 3 * 3 * 8, 2 * 3 * 2 * 8)


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_a_schedule_takes_the_place_of_eta(name):
    """log2: η = a/log2(t + 2) at t = 0, 1 …, which is a in the first round; constant is eta, to the bit."""

    def after(options, rounds):
        run = Run(build(name, options), "quadratic")
        run.rounds(rounds)
        return run.states().y

    assert np.array_equal(after({"schedule": {"name": "constant", "a": 0.3}}, 4), after({"eta": 0.3}, 4))
    schedule = {"schedule": {"name": "log2", "a": 0.3}}
    assert np.array_equal(after(schedule, 1), after({"eta": 0.3}, 1))
    assert not np.allclose(after(schedule, 2), after({"eta": 0.3}, 2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"eta": 0.5, "schedule": {"name": "log2"}}, "eta and schedule exclude each other"),
        ({"schedule": {"name": "sqrt-samples"}}, "schedule = sqrt-samples is wrong: .* must be constant or log2"),
        ({"scaling": "mine"}, 'scaling = "mine" is wrong'),
    ],
)
def test_what_cannot_keep_the_sum_at_zero_is_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        build("feddcd", options)


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_the_random_model_is_that_of_a_selected_client(name):
    """Of any of them, equally often; duals and traffic are those of the mean."""
    data = duals()[1].data
    run, mean = (
        Run(build(name, {"model": model}), "quadratic", data=data, selection=Uniform(count=3))
        for model in ("random", "mean")
    )
    places = []
    for _ in range(150):
        x = run.rounds(1)[-1]
        mean.rounds(1)
        found = np.flatnonzero((run.states().w == x).all(axis=1))
        assert len(found) == 1
        places.append(run.fed.selected.tolist().index(found[0]))
        assert np.array_equal(run.states().y, mean.states().y)
    assert vars(run.fed.ledger) == vars(mean.fed.ledger)
    assert np.abs(np.bincount(places, minlength=3) - 50).max() < 5 * np.sqrt(150 * 2 / 9)


def test_the_random_model_is_random_where_all_clients_are_selected():
    run = Run(build("feddcd", {"model": "random"}), "quadratic", data=duals()[1].data, selection=All())
    owners = set()
    for _ in range(30):
        x = run.rounds(1)[-1]
        owners.update(np.flatnonzero((run.states().w == x).all(axis=1)).tolist())
    assert owners == set(range(5))


def test_theorem_4_1_speaks_of_the_random_model():
    """(4): the mean over 200 runs of ‖w^(T) − w*‖², where w^(T) is the model after round T + 1."""
    dual, tau, rounds, runs = duals()[0], 3, 6, 200
    rate = 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta
    distance = np.zeros((runs, rounds))
    for seed in range(runs):
        run = Run(
            build("feddcd", {"model": "random"}), "quadratic", data=dual.data, selection=Uniform(count=tau), seed=seed
        )
        distance[seed] = np.sum((run.rounds(rounds) - dual.w) ** 2, axis=1)
    bound = rate ** np.arange(rounds) * np.sum(dual.y**2) / (dual.m * dual.alpha**2)
    assert (distance.mean(axis=0) <= bound + 5 * distance.std(axis=0) / np.sqrt(runs)).all()
