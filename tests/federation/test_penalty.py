"""F = f + l1 ‖x‖₁ + (l2/2) ‖x‖²: its minimiser, by every method whose server takes proximal steps."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.core.errors import UserError
from mpifed.features.penalty.proximal import ElasticNetPenalty
from tests.helpers.meters import traced

SIZES = (40, 25, 60, 31, 44)
D, N = sum(SIZES), 8
RNG = np.random.default_rng(5)
A = np.column_stack([RNG.standard_normal((D, N - 1)), np.ones(D)])
TRUE = np.array([1.0, -0.5, 0.0, 0.0, 0.02, 0.0, 0.3, 2.0])
NUMBERS = A @ TRUE + 0.5 * RNG.standard_normal(D)
CLASSES = (RNG.random(D) < 1 / (1 + np.exp(-A @ TRUE))).astype(float)
DATA = {name: mpifed.arrays(A, b, SIZES) for name, b in (("numbers", NUMBERS), ("classes", CLASSES))}
LOGISTIC = {"problem": {"name": "logistic", "mu": 0.0}, "data": DATA["classes"]}
METHODS = [
    {"name": "gd"},
    {"name": "nesterov"},
    {"name": "ad-admm"},
    {"name": "ad-admm", "gamma": 3.0},
    {"name": "fedadmm", "r0": 1.0},
]
LASSO = {"l1": 0.1}
NET = {"l1": 0.05, "l2": 0.2}
OPEN = {"l1": 0.05, "unpenalised": ["x7"]}
# coef_ of scikit-learn 1.9.1 on the pooled samples, with tol = 1e-14: Lasso(alpha=0.1), ElasticNet(alpha=0.25,
# l1_ratio=0.2), Lasso(alpha=0.05) with intercept; LogisticRegression(l1_ratio=1, C=1/(0.1 d)), (l1_ratio=0.2,
# C=1/(0.25 d)) and (l1_ratio=1, C=1/(0.05 d)) with intercept
LEARNT = {
    ("least-squares", "lasso"): [
        *(0.862971743828675, -0.319725036227336, 0, 0, 0, 0),
        *(0.165349506935799, 1.882214408353408),
    ],
    ("least-squares", "net"): [
        *(0.779683159263099, -0.287637592916934, 0, 0.020093524449531, 0.024965759325239, 0),
        *(0.161509350844941, 1.615075856128055),
    ],
    ("least-squares", "open"): [
        *(0.915197860141304, -0.386268977125522, 0.017010327272639, 0, 0.025593026333209, 0),
        *(0.218407687859309, 1.9820964756878052),
    ],
    ("logistic", "lasso"): [0, 0, 0, 0, 0, 0, 0, 1.125459538704287],
    ("logistic", "net"): [0.102262076549018, 0, 0, 0, 0, 0, 0, 0.686121824041864],
    ("logistic", "open"): [0.145131270715174, 0, 0, 0, 0, 0, 0.027131100010354, 1.763070099560308],
}
PENALTIES = {"lasso": LASSO, "net": NET, "open": OPEN}


def run(algorithm, objective, rounds=3000, path=None, **more):
    table = {"problem": "least-squares", "data": DATA["numbers"], "selection": "all", "stop": {"gradient": 1e-22}}
    weighted = {"weights": "samples"} | objective
    return mpifed.run(table | more | {"objective": weighted}, algorithm=algorithm, rounds=rounds, path=path)


def gradient(problem, x):
    """∇f at x of the pooled samples."""
    z = A @ x
    return A.T @ (z - NUMBERS if problem == "least-squares" else 1 / (1 + np.exp(-z)) - CLASSES) / D


@given(v=st.floats(-50, 50), step=st.floats(1e-3, 10), l1=st.floats(0, 10), l2=st.floats(0, 10))
def test_the_proximal_step_meets_its_optimality_condition(v, step, l1, l2):
    """0 ∈ u − v + step (l1 ∂|u| + l2 u)."""
    u = float(ElasticNetPenalty.of(l1, l2, np.array([True])).prox(np.array([v]), step)[0])
    rest = v - u - step * l2 * u
    tolerance = 1e-12 * (abs(v) + step * l1 + 1)
    assert abs(rest) <= step * l1 + tolerance
    if u:
        assert rest == pytest.approx(step * l1 * np.sign(u), abs=tolerance)


def test_the_residual_is_zero_exactly_where_the_subgradient_has_zero():
    penalty = ElasticNetPenalty.of(0.5, 0.0, np.array([True] * 4 + [False]))
    x = np.array([2.0, -2.0, 0.0, 0.0, 3.0])
    assert not penalty.residual(x, np.array([-0.5, 0.5, 0.5, -0.3, 0.0])).any()
    np.testing.assert_allclose(penalty.residual(x, np.array([-0.4, 0.5, 0.7, 0.3, 0.2])), [0.1, 0, 0.2, 0, 0.2])
    smooth = ElasticNetPenalty.of(0.0, 2.0, np.array([True] * 5))
    np.testing.assert_allclose(smooth.residual(x, np.ones(5)), 1 + 2 * x)


DEFAULT = [("gd", ("logistic", "open"))] + [(one["name"], ("least-squares", "lasso")) for one in METHODS]
ALL = [
    pytest.param(one, *case, marks=() if (one["name"], case) in DEFAULT else pytest.mark.slow)
    for one in METHODS
    for case in LEARNT
]


@pytest.mark.parametrize(("algorithm", "problem", "penalty"), ALL)
def test_the_minimiser_is_that_of_scikit_learn_and_meets_its_conditions(algorithm, problem, penalty):
    objective = PENALTIES[penalty]
    found = run(algorithm, objective, **(LOGISTIC if problem == "logistic" else {}))
    assert found.stop_reason.startswith("gradient")
    np.testing.assert_allclose(found.x, LEARNT[problem, penalty], atol=2e-9)
    assert (found.x != 0).tolist() == [value != 0 for value in LEARNT[problem, penalty]]
    slope = gradient(problem, found.x) + objective.get("l2", 0) * found.x
    l1 = objective["l1"] * np.array([f"x{j}" not in objective.get("unpenalised", ()) for j in range(N)])
    zero = found.x == 0
    assert (np.abs(slope[zero]) <= l1[zero]).all()
    np.testing.assert_allclose(slope[~zero], -(l1 * np.sign(found.x))[~zero], atol=1e-9)


def test_columns_are_those_of_what_is_minimised():
    found = run("gd", NET, rounds=3, stop={})
    x = found.x
    f = np.sum((A @ x - NUMBERS) ** 2) / (2 * D)
    h = 0.05 * np.abs(x).sum() + 0.1 * x @ x
    assert found.rounds["objective"][-1] == pytest.approx(f + h, rel=1e-14)
    assert found.rounds["objective_samples"][-1] == pytest.approx(f + h, rel=1e-14)
    v = x - gradient("least-squares", x) - 0.2 * x
    residual = x - np.sign(v) * np.maximum(np.abs(v) - 0.05, 0)
    assert found.rounds["grad_norm_sq"][-1] == pytest.approx(residual @ residual, rel=1e-12)
    assert "objective is f with its penalty, F" in found.attrs["notes"]
    rounds = run({"name": "fedadmm", "r0": 1.0, "lagrangian": True}, LASSO).rounds
    assert rounds["lagrangian"][-1] == pytest.approx(rounds["objective"][-1], rel=1e-9)


def test_a_round_of_gd_is_a_proximal_gradient_step_and_without_weights_clients_count_the_same():
    gamma = 0.2
    v = gamma * A.T @ NUMBERS / D
    found = run({"name": "gd", "gamma": gamma}, NET, rounds=1).x
    np.testing.assert_allclose(
        found, np.sign(v) * np.maximum(np.abs(v) - gamma * 0.05, 0) / (1 + gamma * 0.2), rtol=1e-13
    )
    found = run("gd", LASSO | {"weights": "clients"})
    heavy = np.repeat(D / len(SIZES) / np.array(SIZES), SIZES)
    slope = A.T @ (heavy * (A @ found.x - NUMBERS)) / D
    assert (np.abs(slope) <= 0.1 + 1e-9).all()
    np.testing.assert_allclose(slope[found.x != 0], -0.1 * np.sign(found.x[found.x != 0]), atol=1e-9)


SLOW = {"speed": {"name": "uniform", "low": 1.0, "high": 4.0}, "passes": 1.0}
SETTINGS = [
    ({"name": "fedadmm", "r0": 1.0}, {"selection": {"name": "uniform", "count": 2}}),
    ({"name": "ad-admm"}, {"selection": {"name": "cyclic", "count": 2}}),
    ({"name": "ad-admm", "gamma": 3.0}, {"system": SLOW, "asynchronous": {"arrivals": 2}, "selection": None}),
    ({"name": "gd"}, {"masks": {}}),
    ({"name": "ad-admm"}, {"compress": {"up": {"name": "topk", "k": 3}}}),
    ({"name": "gd"}, {"start": "start.npz"}),
    pytest.param({"name": "gd"}, {"kernels": "torch"}, marks=pytest.mark.torch),
    ({"name": "gd"}, {"dtype": "float32", "rounds": 150}),
]


@pytest.mark.parametrize(("algorithm", "more"), SETTINGS, ids=str)
def test_the_minimiser_stays_the_same_with_other_rounds(algorithm, more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("start.npz", x=np.arange(8.0))
    table = {"selection": "all"} | more
    found = run(algorithm, LASSO, **{key: value for key, value in table.items() if value is not None})
    assert found.x.dtype == table.get("dtype", "float64")
    np.testing.assert_allclose(found.x, LEARNT["least-squares", "lasso"], atol=2e-6 if "dtype" in table else 1e-6)


def test_the_model_that_a_run_starts_from_is_recorded_as_it_is(tmp_path):
    x = np.arange(8.0) / 4
    np.savez(tmp_path / "start.npz", x=x)
    warm = run("gd", LASSO, rounds=0, start=str(tmp_path / "start.npz"))
    assert warm.x.tolist() == x.tolist()
    objective = np.sum((A @ x - NUMBERS) ** 2) / (2 * D) + 0.1 * x.sum()
    assert warm.rounds["objective"][0] == pytest.approx(objective, rel=1e-14)


@pytest.mark.slow
def test_local_solvers_with_mini_batches_come_near_the_minimiser():
    solver = {"name": "svrg", "batch_size": 5, "epochs": 3, "lr": 0.05}
    found = run({"name": "ad-admm", "solver": solver}, LASSO, rounds=200)
    np.testing.assert_allclose(found.x, LEARNT["least-squares", "lasso"], atol=1e-2)
    assert (found.x[[2, 3, 5]] == 0).all()


def test_biases_have_no_penalty():
    """With a large l1 all weights are 0, and the biases give the shares of the classes."""
    found = run("gd", {"l1": 50.0}, problem="softmax", data=DATA["classes"], rounds=2000)
    assert not found.x[:-2].any()
    share = 1 / (1 + np.exp(found.x[-2] - found.x[-1]))
    assert share == pytest.approx(CLASSES.mean(), abs=1e-9)


def test_a_column_of_ones_has_no_penalty_unless_all_coefficients_have_one(tmp_path):
    lines = [
        ",".join(map(str, (*row[:3], b, i))) for row, b, i in zip(A, NUMBERS, np.repeat(range(5), SIZES), strict=True)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["u,v,w,b,site", *lines]))
    data = {"name": "file", "path": str(tmp_path / "table.csv"), "client": "site", "target": "b", "ones": True}
    found = run("gd", {"l1": 50.0}, data=data)
    np.testing.assert_allclose(found.x, [0, 0, 0, NUMBERS.mean()], atol=1e-9)
    assert not run("gd", {"l1": 50.0, "unpenalised": []}, data=data).x.any()
    names = run("gd", {"l1": 50.0, "unpenalised": ["v", "intercept"]}, data=data).x
    assert (names != 0).tolist() == [False, True, False, True]
    with pytest.raises(UserError, match=r"unknown coefficient in objective\.unpenalised 'y'; the choices are u, v, w,"):
        run("gd", {"l1": 1.0, "unpenalised": ["y"]}, data=data)


def test_without_a_penalty_nothing_of_it_is_called():
    def bits(objective):
        codes = set()
        with traced(codes):
            found = run("ad-admm", objective, rounds=5)
        files = {code.co_filename.rpartition("/")[2] for code in codes}
        columns = {name: values.tobytes() for name, values in found.rounds.items() if "seconds" not in name}
        return columns | {"x": found.x.tobytes()}, files

    plain, called = bits({})
    assert not called & {"penalty.py", "proximal.py"}
    assert bits({"l1": 0.0, "l2": 0.0})[0] == plain
    assert "proximal.py" in bits(LASSO)[1]
    assert sys.getprofile() is None


class Careless(mpifed.algorithms.GD):
    """GD with a round of its own."""

    def round(self, fed, server):
        return server


class Again(Careless):
    """Another round of its own beside the step of GD."""

    def proximal_step(self, server, m):
        return 0.5


class Wrong(Again):
    """The same with a step that is none."""

    def proximal_step(self, server, m):
        return -1.0


class Later(Wrong):
    """A round about which the step says nothing."""

    def round(self, fed, server):
        return server


def test_a_round_of_ones_own_needs_a_proximal_step_of_its_own():
    for method in (Careless, Later):
        with pytest.raises(UserError, match=f"{method.__name__} cannot take a penalty into account, because mpifed ha"):
            run(method(), LASSO, rounds=1)
    assert not run(Again(), LASSO, rounds=1).x.any()
    with pytest.raises(UserError, match=r"proximal_step of .* returns the number -1\.0: it must return a number"):
        run(Wrong(), LASSO, rounds=1)


SLOWER = [pytest.param(name, marks=pytest.mark.slow) for name in ("ad-admm", "fedadmm")]


@pytest.mark.parametrize("algorithm", ["gd", *SLOWER])
def test_interruptions_change_no_bit(algorithm, tmp_path):
    selected = {"name": "uniform", "count": 2}
    whole, _ = (
        run(algorithm, NET, rounds, selection=selected, path=path)
        for rounds, path in ((4, None), (2, tmp_path / "2.h5"))
    )
    again = mpifed.resume(tmp_path / "2.h5", {"rounds": 4})
    assert again.x.tobytes() == whole.x.tobytes()
    for name in ("objective", "grad_norm_sq"):
        assert again.rounds[name].tobytes() == whole.rounds[name].tobytes()
