"""FedDCD and AccFedDCD: what their paper proves, on functions whose dual is known."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.local_solvers import GradientDescent, Newton, Solver
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.data.sources.lower_bound import LowerBound
from mpifed.data.sources.quadratic import RandomQuadratic
from mpifed.data.sources.synthetic import Synthetic
from mpifed.experiment.rounds import evaluate
from mpifed.federation.selection import All, Selection, Selector, Uniform
from mpifed.problems.logistic import Logistic
from mpifed.problems.quadratic import Quadratic
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import Run, build, local, quadratics


class Loose(Quadratic, tag="loose"):
    """A quadratic that knows but a bound ``alpha`` of its strong convexity."""

    alpha: float

    def convexity(self, block):
        return np.full(len(block), self.alpha)


class Fixed(Selection, tag="fixed"):
    """The same clients ``first`` at every first draw of a round, ``second`` at every second one."""

    first: tuple[int, ...]
    second: tuple[int, ...] = ()

    def selector(self, seed, m, rounds):
        return Selector(len(self.first), lambda round, again: np.array(self.second if again else self.first))


class Dual:
    """G(y) = Σ f_i*(y_i) of f_i = ½wᵀQ_i w − b_iᵀw, whose minimum over Σ y_i = 0 is at y_i* = ∇f_i(w*)."""

    def __init__(self, data):
        X, y = data.rows(0, data.m)
        self.data, self.Q, self.b = data, X.reshape(data.m, data.n, data.n), y.reshape(data.m, data.n)
        self.inverse = np.linalg.inv(self.Q)
        self.w = np.linalg.solve(self.Q.sum(axis=0), self.b.sum(axis=0))
        self.y = self.Q @ self.w - self.b
        eigenvalues = np.linalg.eigvalsh(self.Q)
        self.alpha, self.beta, self.m = eigenvalues.min(), eigenvalues.max(), data.m

    def gap(self, y):
        """G(y) − G*."""
        e = y - self.y
        return np.vecdot(e, np.matvec(self.inverse, e)).sum() / 2

    def value(self, y):
        return np.vecdot(y + self.b, np.matvec(self.inverse, y + self.b)).sum() / 2


def put(run, **fields):
    """Give the clients these states, in client order."""
    host = run.hosts[0]
    for name, value in fields.items():
        getattr(host.state, name)[:] = value[host.order]


def sharp(c, alpha, m=10, n=40):
    """f_i = (c/2)‖w − m_i‖², of which the algorithm knows α = alpha."""
    centres = np.random.default_rng(0).standard_normal((m, n)) * np.linspace(0.5, 2, m)[:, None]
    return Loose(alpha=alpha), quadratics(np.tile(c * np.eye(n), (m, 1, 1)), c * centres)


# the sharp test


@pytest.mark.parametrize(
    ("c", "alpha", "eta", "tau"),
    [
        (2.0, 2.0, 1.0, 4),
        (2.0, 2.0, 0.4, 4),
        (2.0, 0.5, 1.0, 4),
        (0.5, 0.2, 0.7, 2),
        (3.0, 3.0, 1.0, 10),
        (1.0, 1.0, 1.8, 3),
    ],
)
def test_the_expected_gap_ratio_is_exactly_the_formula_of_the_errata(c, alpha, eta, tau):
    """1 − (τ−1)/(N−1)·(2κ' − κ'²), κ' = ηα/c: the mean over 2,000 draws, within 1 %."""
    m, (problem, data) = 10, sharp(c, alpha)
    dual, k = Dual(data), eta * alpha / c
    run = Run(build("feddcd", {"eta": eta}), problem, data=data, selection=Uniform(count=tau))
    start, ratios = np.zeros((m, data.n)), []
    for _ in range(2000 if tau < m else 1):
        put(run, y=start, w=start)
        run.rounds(1)
        ratios.append(dual.gap(run.states().y) / dual.gap(start))
    assert np.isclose(np.mean(ratios), 1 - (tau - 1) / (m - 1) * (2 * k - k * k), rtol=0.01, atol=1e-12)


def test_and_over_all_sets_of_clients_it_is_exact_to_rounding():
    problem, data = sharp(2.0, 1.2, m=6, n=3)
    dual, y = Dual(data), np.random.default_rng(1).standard_normal((6, 3))
    y -= y.mean(axis=0)
    after = []
    for chosen in combinations(range(6), 3):
        run = Run(build("feddcd", {"eta": 0.8}), problem, data=data, selection=Fixed(first=chosen))
        put(run, y=y)
        run.rounds(1)
        after.append(dual.gap(run.states().y))
    k = 0.8 * 1.2 / 2.0
    assert np.isclose(np.mean(after) / dual.gap(y), 1 - 2 / 5 * (2 * k - k * k), rtol=1e-12)


# the theorems, in expectation over all sets of clients: no sampling error


@cache
def duals():
    """Random quadratics and the lower-bound functions (41)–(42)."""
    sources = [RandomQuadratic(clients=5, features=4, mu=mu, L=1.0) for mu in (0.05, 0.3, 0.9)]
    sources += [LowerBound(clients=5, features=12, alpha=alpha, beta=1.0) for alpha in (0.01, 0.15)]
    return [Dual(source.load(seed, "float64")) for seed, source in enumerate(sources)]


every_dual = pytest.mark.parametrize("place", range(5))


def trajectory(name, data, rounds, keep=4):
    """The states of the clients before some of the rounds, of two runs with random draws."""
    for seed in range(2):
        run = Run(build(name), "quadratic", data=data, selection=Uniform(count=2), seed=seed)
        for k in range(rounds):
            if k % keep == 0:
                yield run.states()
            run.rounds(1)


@every_dual
@pytest.mark.parametrize("tau", [2, 3, 5])
def test_theorem_4_1_the_expected_dual_gap_falls_by_its_factor(place, tau):
    """(3) in every single step: E G(y⁺) − G* <= (1 − (τ−1)/(N−1)·α/β)(G(y) − G*)."""
    dual = duals()[place]
    rate = 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta
    sets = list(combinations(range(dual.m), tau))
    runs = [Run(build("feddcd"), "quadratic", data=dual.data, selection=Fixed(first=chosen)) for chosen in sets]
    for state in trajectory("feddcd", dual.data, 20):
        after = []
        for run in runs:
            put(run, y=state.y, w=state.w)
            run.rounds(1)
            after.append(dual.gap(run.states().y))
        assert np.mean(after) <= rate * dual.gap(state.y) * (1 + 1e-9) + 1e-14


@every_dual
def test_theorem_4_1_the_local_models_near_the_minimiser(place):
    """(4), the mean over all i and 60 runs: E‖w_i − w*‖² <= rate^T ‖y*‖²/(Nα²), and its source (38) in every run."""
    dual, tau, rounds, runs = duals()[place], 3, 8, 60
    rate = 1 - (tau - 1) / (dual.m - 1) * dual.alpha / dual.beta
    distance = np.zeros((runs, rounds + 1))
    for seed in range(runs):
        run = Run(build("feddcd"), "quadratic", data=dual.data, selection=Uniform(count=tau), seed=seed)
        for k in range(rounds + 1):
            y = run.states().y
            W = np.matvec(dual.inverse, y + dual.b)  # all of them, also of those who do not train
            distance[seed, k] = np.mean(np.sum((W - dual.w) ** 2, axis=1))
            assert distance[seed, k] <= 2 / (dual.m * dual.alpha) * dual.gap(y) * (1 + 1e-9) + 1e-12
            run.rounds(1)
    bound = rate ** np.arange(rounds + 1) * np.sum(dual.y**2) / (dual.m * dual.alpha**2)
    error = distance.std(axis=0) / math.sqrt(runs)
    assert (distance.mean(axis=0) <= bound + 5 * error + 1e-12).all()


@every_dual
@pytest.mark.parametrize("tau", [2, 4])
def test_theorem_6_1_the_lyapunov_function_contracts_by_one_minus_a(place, tau):
    """G(y) − G* + (a² + b)/(2r²α)·‖z − y*‖² (errata), in every single step and over all pairs of draws."""
    dual = duals()[place]
    sets = list(combinations(range(dual.m), tau))
    runs = [
        Run(build("accfeddcd"), "quadratic", data=dual.data, selection=Fixed(first=chosen, second=chosen))
        for chosen in sets
    ]
    server = runs[0].server
    r, kappa = (tau - 1) / (dual.m - 1), dual.alpha / dual.beta
    assert np.isclose(server.r, r)
    assert np.isclose(server.a, math.sqrt(kappa) / (1 / r + math.sqrt(kappa)), rtol=1e-9)
    assert np.isclose(server.b, kappa * server.a * r**2, rtol=1e-9)
    weight = (server.a**2 + server.b) / (2 * r**2 * dual.alpha)
    for state in trajectory("accfeddcd", dual.data, 20):
        before = dual.gap(state.y) + weight * np.sum((state.z - dual.y) ** 2)
        gaps, distances = [], []
        for run in runs:  # y⁺ depends on the first draw alone, z⁺ on the second
            put(run, y=state.y, z=state.z, w=state.w)
            run.rounds(1)
            after = run.states()
            gaps.append(dual.gap(after.y))
            distances.append(np.sum((after.z - dual.y) ** 2))
        assert np.mean(gaps) + weight * np.mean(distances) <= (1 - server.a) * before * (1 + 1e-9) + 1e-13


def test_theorem_6_1_as_printed_is_false():
    """Errata: (10) drops the z-term; with everyone, α = β/10 and all error where the curvature is β: 1.066 times the bound."""
    problem, data = sharp(1.0, 0.1)
    dual, run = Dual(data), Run(build("accfeddcd"), problem, data=data, selection=All())
    first = dual.gap(run.states().y)
    run.rounds(1)
    assert np.isclose(dual.gap(run.states().y) / first / (1 - run.server.a), 1.066, rtol=1e-3)


def test_acceleration_pays_where_the_condition_is_bad():
    dual = Dual(LowerBound(clients=6, features=30, alpha=0.001, beta=1.0).load(0, "float64"))
    gaps = {}
    for name in ("feddcd", "accfeddcd"):
        run = Run(build(name), "quadratic", data=dual.data, selection=All())
        run.rounds(300)
        gaps[name] = dual.gap(run.states().y)
    assert gaps["accfeddcd"] < gaps["feddcd"] / 10


@every_dual
def test_theorem_5_2_inexact_gradients_still_contract(place):
    """(8) with δ = (1 − κ)/4, η = ¼: the mean over 40 runs, never above the bound beyond sampling error."""
    dual, tau, rounds, runs = duals()[place], 3, 15, 40
    kappa = (tau - 1) * dual.alpha / (32 * (dual.m - 1) * dual.beta)
    algorithm = build("feddcd", {"eta": 0.25, "solver": {"name": "gd", "delta": "theorem"}})
    gaps = np.zeros((runs, rounds + 1))
    for seed in range(runs):
        run = Run(algorithm, "quadratic", data=dual.data, selection=Uniform(count=tau), seed=seed)
        for k in range(rounds + 1):
            gaps[seed, k] = dual.gap(run.states().y)
            run.rounds(1)
    bound = (1 - kappa) ** np.arange(rounds + 1) * gaps[0, 0]
    assert (gaps.mean(axis=0) <= bound + 5 * gaps.std(axis=0) / math.sqrt(runs) + 1e-12).all()


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


# invariants


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


def test_feddcd_is_its_box_client_by_client():
    """(1), (2) with Λ = I/α and Algorithm 1; the model is the mean of the round's w_i."""
    eta, dual = 0.7, duals()[1]
    run = Run(build("feddcd", {"eta": eta}), "quadratic", data=dual.data, selection=Uniform(count=3))
    y, w = np.zeros_like(dual.b), np.zeros_like(dual.b)
    for _ in range(6):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        w[chosen] = np.linalg.solve(dual.Q[chosen], (dual.b + y)[chosen][..., None])[..., 0]
        mean = w[chosen].mean(axis=0)
        y[chosen] -= eta * dual.alpha * (w[chosen] - mean)
        assert np.allclose(model, mean, rtol=1e-9, atol=1e-10)
        assert np.allclose(run.states().y, y, rtol=1e-9, atol=1e-10)
        assert np.allclose(run.states().w, w, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "r", "kappa"), [({}, 0.5, None), ({"r": 0.25, "kappa": 0.6, "eta": 0.9}, 0.25, 0.6)]
)
def test_accfeddcd_is_its_box_client_by_client(options, r, kappa):
    """Algorithm 2, lines 15–41: two draws, both gradients at v."""
    dual, tau = duals()[1], 3
    run = Run(build("accfeddcd", options), "quadratic", data=dual.data, selection=Uniform(count=tau))
    kappa, scale = kappa or dual.alpha / dual.beta, options.get("eta", 1.0) * dual.alpha
    a = math.sqrt(kappa) / (1 / r + math.sqrt(kappa))
    b = kappa * a * r * r
    y, z = np.zeros((2, *dual.b.shape))
    for round in range(1, 7):
        model = run.rounds(1)[-1]
        v = (1 - a) * y + a * z
        u = (a * a * z + b * v) / (a * a + b)
        w = np.matvec(dual.inverse, v + dual.b)
        first, second = (run.selector.select(round, again) for again in (0, 1))
        y, z = v.copy(), u.copy()
        y[first] -= scale * (w[first] - w[first].mean(axis=0))
        z[second] -= a * r / (a * a + b) * scale * (w[second] - w[second].mean(axis=0))
        assert np.allclose(model, w[second].mean(axis=0), rtol=1e-8, atol=1e-10)
        assert np.allclose(run.states().y, y, rtol=1e-8, atol=1e-10)
        assert np.allclose(run.states().z, z, rtol=1e-8, atol=1e-10)


def test_the_two_draws_of_an_iteration_are_independent():
    selector = Uniform(count=5).selector(0, 20, 400)
    both = [len(np.intersect1d(selector.select(k, 0), selector.select(k, 1))) for k in range(1, 401)]
    assert abs(np.mean(both) - 5 * 5 / 20) < 5 * np.std(both) / 20


def test_feddcd_takes_alpha_and_beta_from_all_clients():
    data = quadratics(np.array([np.diag([2.0, 5.0]), np.diag([0.5, 3.0]), np.diag([1.0, 9.0])]), np.ones((3, 2)))
    server = Run(build("feddcd"), "quadratic", data=data).server
    assert np.allclose([server.alpha, server.beta], [0.5, 9.0])


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


# solvers


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


def test_the_accuracy_of_theorem_5_2_has_the_kappa_of_theorem_5_2():
    """α/β = 0.3, τ = 3 of N = 5: κ = 0.6/128, δ = 0.249, and 0.7^(2·2) is below that."""
    data, counted = quadratics(np.tile(np.diag([0.3, 1.0]), (5, 1, 1)), np.ones((5, 2))), []
    run = Run(
        build("feddcd", {"eta": 0.25, "solver": {"name": "gd", "delta": "theorem"}}),
        "quadratic",
        data=data,
        selection=Uniform(count=3),
    )
    gradient = Quadratic.value_grad

    class Counting(Quadratic, tag="counting"):
        def value_grad(self, block, X):
            counted.append(len(block))
            return gradient(self, block, X)

    run.hosts[0].setup = run.hosts[0].setup._replace(problem=Counting())
    run.rounds(1)
    kappa = 2 * 0.3 / (32 * 4)
    assert 0.7**2 > (1 - kappa) / 4 > 0.7**4
    assert sum(counted) == 3 * 2


@pytest.mark.parametrize("table", [{"name": "gd"}, {"name": "gd", "steps": 3, "delta": 0.1}])
def test_gradient_descent_wants_steps_or_delta(table):
    with pytest.raises(UserError, match=r"^algorithm\.solver: the solver gd needs either steps or delta$"):
        build("feddcd", {"solver": table})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"name": "gd", "steps": 0}, "steps = 0 is wrong"),
        ({"name": "gd", "delta": 1.5}, r"delta = 1\.5 is wrong"),
        ({"name": "gd", "delta": "theory"}, 'delta = "theory" is wrong'),
        ({"name": "newton", "tol": 0.0}, r"tol = 0\.0 is wrong"),
        ({"name": "newtom"}, "did you mean 'newton'"),
    ],
)
def test_wrong_solvers_are_refused(table, sentence):
    with pytest.raises(UserError, match=sentence):
        build("feddcd", {"solver": table})


def test_solvers_say_what_they_need():
    assert Newton().needs() == ("hessian",)
    assert GradientDescent(steps=1).needs() == ()
    assert set(build("feddcd").needs()) == {"convexity", "lipschitz", "hessian"}
    assert set(build("feddcd", {"solver": {"name": "gd", "steps": 1}}).needs()) == {"convexity", "lipschitz"}
    recorded = build("feddcd", {"solver": {"name": "gd", "steps": 1}, "dual": True})
    assert set(recorded.needs()) == {"convexity", "lipschitz", "hessian"}
    assert all(Solver.member(name, "solver").label() == name for name in Solver.choices)


# traffic and refusals


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
    with pytest.raises(UserError, match=f"^feddcd cannot run on {problem}: it needs {lacks}$"):
        mpifed.run(table)


def test_draws_do_not_depend_on_the_algorithm():
    """The first draw of AccFedDCD is that of FedDCD."""
    selector = Uniform(count=3).selector(4, 9, 5)
    assert np.array_equal(
        selector.select(2, 0), np.sort(stream(4, "selection", 2, 0).choice(9, 3, replace=False, shuffle=False))
    )
