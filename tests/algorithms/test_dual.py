"""What the two dual methods share: sums that stay 0, steps, tolerances, and what they refuse."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.sources.synthetic import Synthetic
from mpifed.federation.participation.selection import Uniform
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import Run, build, quadratics
from tests.helpers.dual_methods import Dual, begun

both = pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])


GD = {"name": "gd"}


@pytest.mark.parametrize("options", [{}, {"eta": 0.3}, {"solver": GD | {"steps": 3}}, {"solver": GD | {"delta": 0.3}}])
@both
def test_dual_variables_add_up_to_zero(name, options):
    run = Run(build(name, options), "quadratic")
    for _ in range(15):
        run.rounds(1)
        state = run.states()
        for field in [state.y] if name == "feddcd" else [state.y, state.z, state.v]:
            assert np.abs(field.sum(axis=0)).max() <= 1e-12 * max(np.abs(field).max(), 1)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@both
def test_those_who_train_solve_to_the_tolerance_of_newton(name, tol):
    data = Synthetic(clients=6, features=4, classes=3, least=8, most=11, test=0.0).load(0, "float64")
    run = Run(build(name, {"solver": {"name": "newton", "tol": tol}}), Softmax(lam=0.1, bias=False), data=data)
    for _ in range(4):
        before = run.states()
        run.rounds(1)
        at = run.states().v if name == "accfeddcd" else before.y
        f = run.hosts[0]
        parts = zip(f.blocks, np.split(f.state.w, f.starts[1:-1]), strict=True)
        G = np.concatenate([run.problem.grad(block, w) for block, w in parts])[f.slot]
        chosen = run.fed.selected
        assert (np.linalg.norm(G[chosen] - at[chosen], axis=1) <= tol).all()


@both
@pytest.mark.parametrize("options", [{"lam": 0.1}, {"bias": False}, {"mu": 0.0}], ids=str)
def test_what_is_not_strongly_convex_is_refused_by_one_sentence(name, options):
    problem = "logistic" if "mu" in options else "softmax"
    data = {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9}
    with pytest.raises(UserError) as told:
        mpifed.run(data=data, problem={"name": problem, **options}, algorithm=name, rounds=2)
    sentence = str(told.value)
    assert sentence.startswith(f"{name} cannot run on {problem} as it stands: it needs strongly convex f_i")
    assert "\n" not in sentence
    assert ". " not in sentence


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
    run, y = begun(dual, Uniform(count=3), scaling=scaling, eta=0.7), np.zeros_like(dual.b)
    for _ in range(5):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        w = np.matvec(dual.inverse, y + dual.b)[chosen]
        y[chosen] -= 0.7 * projected(w, own[chosen])
        assert np.allclose(run.states().y, y, rtol=1e-9, atol=1e-11)
        assert np.allclose(model, own[chosen] @ w / own[chosen].sum(), rtol=1e-9, atol=1e-11)


@both
def test_own_constants_are_faster_where_clients_differ(name):
    dual, _ = uneven()
    gaps = []
    for scaling in ("common", "own"):
        run = begun(dual, Uniform(count=3), name, scaling=scaling)
        run.rounds(30)
        gaps.append(dual.gap(run.states().y))
        assert np.abs(run.states().y.sum(axis=0)).max() < 1e-12
    assert gaps[1] < gaps[0] / 3


def test_with_own_constants_a_client_sends_one_number_more():
    run = begun(uneven()[0], Uniform(count=3), scaling="own")
    run.rounds(2)
    assert (run.fed.ledger.bytes_up, run.fed.ledger.bytes_down) == (2 * 3 * 3 * 8, 2 * 3 * 2 * 8)
