"""Every algorithm: it descends, keeps its promises about bits, states and traffic; and what each paper says of its own."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import combinations
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.fedadmm import FedADMM
from mpifed.algorithms.fedadmm_deep import FedADMMDeep
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.fedgia import FedGiA
from mpifed.algorithms.fedpd import FedPD
from mpifed.algorithms.fedprox import FedProx
from mpifed.algorithms.scaffold import Scaffold
from mpifed.algorithms.sfedavg import SFedAvg
from mpifed.algorithms.sfedprox import SFedProx
from mpifed.algorithms.step_sizes import Constant, Log2, SqrtSamples
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.experiment.prepare import start as check
from mpifed.federation.request import Request
from mpifed.federation.selection import Biased, Uniform
from mpifed.problems.base import Problem
from tests.helpers.algorithm_runs import SHARE, SOURCES, M, N, Run, build, gradients, minimiser, same

CHOSEN = ceil(SHARE * M)


def constant(a):
    return {"name": "constant", "a": a}


# An algorithm that is not named here runs with its defaults.
SETTINGS = {
    "fedgia": {"k0": 5},
    "fedadmm": {"k0": 5},
    "fedavg": {"step": constant(0.02)},
    "fedprox": {"step": constant(0.004), "mu": 0.1},
    "fedpd": {"eta": 0.5, "step": constant(0.05)},
    "scaffold": {"step": constant(0.01)},
    "fedepm": {"noise": "none", "step_scale": "one", "mu0": 30.0, "k0": 3, "lam": 1e-3, "eta": 2e-3},
    "sfedavg": {"noise": "none", "step": constant(0.01), "k0": 4},
    "sfedprox": {"noise": "none", "step": constant(0.004), "k0": 4},
    "feddcd": {},
    "accfeddcd": {},
    "flame": {"lam": 20.0, "lr": 0.01, "rho": 1.0, "batch_size": 0},
    "pfedme": {"lam": 5.0, "lr": 0.02, "eta": 0.2, "batch_size": 0},
    "fedadmm-deep": {"rho": 1.0, "lr": 0.02, "batch_size": 0},
}
PROBLEMS = {"feddcd": "quadratic", "accfeddcd": "quadratic"}  # what it runs on; otherwise least squares
CASES = [(name, SETTINGS.get(name, {})) for name in Algorithm.choices] + [
    ("fedgia", {"H": "gram"}),
    ("fedgia", {"H": "zero", "k0": 1, "t": 2.0}),
    ("fedadmm", {"inner_max": 1, "k0": 1}),
    ("fedavg", {"aggregate": "all", "scale": "1/m", "step": constant(0.2)}),
    ("fedavg", {"step": constant(0.01), "batch_size": 4}),
    ("fedavg", {"step": constant(0.01), "batch_size": 7, "epochs": 2, "aggregate": "all"}),
    ("fedprox", {"aggregate": "all", "inner": 2, "step": {"name": "sqrt-samples", "a": 0.002}}),
    ("fedprox", {"step": constant(0.004), "mu": 0.1, "batch_size": 5, "epochs": 1}),
    ("fedpd", {"scale": "1/m", "step": constant(0.2)}),
    ("scaffold", {"step": constant(0.004), "batch_size": 7, "epochs": 2}),
    ("scaffold", {"step": constant(0.01), "batch_size": 5, "server_lr": 0.5}),
    ("fedepm", {"noise": "none", "mu0": 400.0, "k0": 2, "lam": 1e-2, "eta": 2e-2}),
    ("fedepm", {"epsilon": 100.0, "step_scale": "one", "mu0": 30.0, "k0": 3, "lam": 1e-3, "eta": 2e-3}),
    ("fedepm", {"noise": "clipped", "clip": 50.0, "epsilon": 1e4, "step_scale": "one", "mu0": 30.0, "k0": 2}),
    ("sfedavg", {"noise": "matched", "epsilon": 100.0, "step": constant(0.01), "k0": 4}),
    ("sfedavg", {"noise": "matched", "epsilon": 100.0, "step": constant(0.01), "k0": 4, "average": "new"}),
    ("feddcd", {"solver": {"name": "gd", "steps": 5}, "eta": 0.5, "dual": True}),
    ("accfeddcd", {"solver": {"name": "gd", "delta": 0.1}, "r": 0.3, "kappa": 0.2}),
    (
        "flame",
        {"lam": 10.0, "lr": 0.02, "rho": 0.3, "epochs": 10, "batch_size": 5, "center": "local", "weight_decay": 0.01},
    ),
    ("pfedme", {"lam": 5.0, "lr": 0.02, "eta": 0.2, "batch_size": 5, "epochs": 3, "weight_decay": 0.01}),
    ("fedadmm-deep", {"rho": 5.0, "lr": 0.01, "batch_size": 5, "weight_decay": 0.01}),
]
ALL_TRAVEL = {"fedgia"}  # everyone receives and sends in every round, chosen or not
ALL_CHANGE = {"fedgia", "accfeddcd"}  # clients who are not chosen have a rule of their own
VECTORS = {"scaffold": 2}  # how many vectors go down and up together, where it is not one
EXCHANGES = {"accfeddcd": 2}  # how many exchanges a round has, where it is not one


def members(table):
    ids = [f"{name}-{k}" for k, (name, _) in enumerate(table)]
    return pytest.mark.parametrize("algorithm", [build(*case) for case in table], ids=ids)


def typed(table):
    """Every case in both precisions."""
    return [
        pytest.param(build(name, options), dtype, id=f"{name}-{k}-{dtype}")
        for k, (name, options) in enumerate(table)
        for dtype in ("float64", "float32")
    ]


def start(algorithm, **options):
    """The algorithm at work on a problem that it takes."""
    return Run(algorithm, PROBLEMS.get(algorithm.label(), "least-squares"), **options)


# what holds for all


@members(CASES)
def test_twenty_rounds_bring_f_and_its_gradient_down(algorithm):
    run = start(algorithm)
    f, g = run.measure()
    run.rounds(20)
    later_f, later_g = run.measure()
    assert later_f < f - 0.5 * (f - least_value(run))
    assert later_g < 0.2 * g


def least_value(run):
    """f at its minimiser."""
    if run.problem.label() == "quadratic":
        Q, b = (sum(parts) for parts in zip(*run.samples(), strict=True))
        return run.fed.evaluate(np.linalg.solve(Q, b))["objective"] / M
    return run.fed.evaluate(minimiser(run))["objective"] / M


@members(CASES)
def test_the_same_seed_gives_the_same_bits(algorithm):
    one, again, other = (start(algorithm, seed=seed) for seed in (7, 7, 8))
    models = one.rounds(5)
    assert models.tobytes() == again.rounds(5).tobytes()
    assert same(one.states(), again.states())
    assert models.tobytes() != other.rounds(5).tobytes()


@pytest.mark.parametrize("cuts", [(0, 6, M), (0, 1, 2, 11, M), range(M + 1)], ids=lambda cuts: f"{len(cuts) - 1} hosts")
@members(CASES)
def test_the_bits_do_not_depend_on_how_many_hosts_there_are(algorithm, cuts):
    alone, together = start(algorithm), start(algorithm, cuts=cuts)
    assert alone.rounds(5).tobytes() == together.rounds(5).tobytes()
    assert same(alone.states(), together.states())
    assert same(*(run.fed.evaluate(run.server.x).values() for run in (alone, together)))
    assert vars(alone.fed.ledger) == vars(together.fed.ledger)


@members([case for case in CASES if case[0] not in ALL_CHANGE])
def test_clients_who_are_not_chosen_keep_their_state(algorithm):
    run = start(algorithm)
    run.rounds(2)
    before = [field.copy() for field in run.states()]
    run.rounds(1)
    rest = ~run.fed.mask(run.fed.selected)
    assert rest.sum() == M - CHOSEN
    assert same([field[rest] for field in before], [field[rest] for field in run.states()])


class Guard:
    """An algorithm whose client methods get arrays that cannot be written to."""

    def __init__(self, algorithm):
        self.algorithm, self.called = algorithm, set()

    def __getattr__(self, name):
        method = getattr(self.algorithm, name)

        def guarded(f, client, *args):
            self.called.add(name)
            f.block.A.setflags(write=False)
            f.block.b.setflags(write=False)
            return method(f, type(client)(*map(frozen, client)), *map(frozen, args))

        return guarded


def frozen(value):
    if not isinstance(value, np.ndarray):
        return value
    value = value.copy()
    value.setflags(write=False)
    return value


@members(CASES)
def test_client_methods_leave_their_arguments_as_they_are(algorithm):
    free, guarded = start(algorithm), start(algorithm)
    guarded.hosts[0].algorithm = guard = Guard(algorithm)
    assert guarded.rounds(3).tobytes() == free.rounds(3).tobytes()
    assert same(guarded.states(), free.states())
    assert guard.called


@members(CASES)
def test_a_server_state_is_left_as_it_is(algorithm):
    run = start(algorithm)
    run.rounds(1)
    before, copy = run.server, [np.array(value) for value in run.server]
    run.rounds(1)
    assert same([np.asarray(value) for value in before], copy)


class Watch(Guard):
    """An algorithm that notes the types of what its client methods give back."""

    def __init__(self, algorithm):
        super().__init__(algorithm)
        self.models, self.kept = set(), True

    def __getattr__(self, name):
        method = getattr(self.algorithm, name)

        def watched(f, client, *args):
            new, reply = method(f, client, *args)
            self.kept &= all(
                a.shape == b.shape and (a.dtype == b.dtype or a.ndim == 1) for a, b in zip(client, new, strict=True)
            )
            parts = reply if isinstance(reply, tuple) else (reply,)
            self.models |= {a.dtype for a in (*new, *parts) if a is not None and a.ndim > 1}
            return new, reply

        return watched


@pytest.mark.parametrize(("algorithm", "dtype"), typed(CASES))
def test_models_and_states_keep_their_type(algorithm, dtype):
    run = start(algorithm, dtype=dtype)
    run.hosts[0].algorithm = watch = Watch(algorithm)
    run.rounds(3)
    assert run.server.x.dtype == dtype
    assert watch.models == {np.dtype(dtype)}
    assert watch.kept
    assert all(field.dtype == dtype for field in run.states() if field.ndim > 1)


@members(CASES)
def test_single_precision_is_double_precision_to_rounding(algorithm):
    single, double = (start(algorithm, dtype=dtype).rounds(3)[-1] for dtype in ("float32", "float64"))
    assert np.allclose(single, double, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(("algorithm", "dtype"), typed(CASES))
def test_the_ledger_is_the_count_by_hand(algorithm, dtype):
    run, rounds = start(algorithm, dtype=dtype), 4
    assert not any(vars(run.fed.ledger).values())  # what is told before round one is no communication
    run.measure()
    run.rounds(rounds)
    run.measure()
    exchanges = rounds * EXCHANGES.get(algorithm.label(), 1)
    clients = exchanges * (M if algorithm.label() in ALL_TRAVEL else CHOSEN)
    each = clients * VECTORS.get(algorithm.label(), 1) * N * np.dtype(dtype).itemsize
    ledger = run.fed.ledger
    assert (ledger.exchanges, ledger.uploads, ledger.downloads) == (exchanges, clients, clients)
    assert (ledger.bytes_up, ledger.bytes_down) == (each, each)


@members(CASES)
def test_every_draw_counts_who_was_chosen(algorithm):
    run, times = start(algorithm), np.zeros(M, int)
    run.rounds(6)
    for round in range(1, 7):
        for again in range(algorithm.selections):
            times += run.fed.mask(run.selector.select(round, again))
    assert np.array_equal(run.fed.times_selected, times)
    assert times.sum() == 6 * CHOSEN * algorithm.selections


@pytest.mark.parametrize("problem", ["least-squares", "svm", "mlp", "softmax"])
@members(CASES)
def test_a_problem_that_lacks_what_an_algorithm_needs_is_refused_by_name(algorithm, problem):
    config = experiment({"algorithm": algorithm.label(), "problem": problem})
    config = replace(config, algorithm=algorithm)
    lacking = [need for need in algorithm.needs() if not config.problem.has(need)]
    sentence = f"^{algorithm.label()} cannot run on {problem}: it needs {' '.join(lacking[:1])}$"
    with pytest.raises(UserError, match=sentence) if lacking else nullcontext():
        check(config, SOURCES["softmax"].load(0, "float64"), 1)


# what the papers say of one


@pytest.mark.parametrize("options", [{}, {"aggregate": "all"}, {"scale": "1/m", "k0": 1}], ids=str)
def test_fedprox_without_its_term_and_with_one_inner_step_is_fedavg_to_the_bit(options):
    fedavg, fedprox = Run(FedAvg(**options)), Run(FedProx(mu=0.0, inner=1, **options))
    assert fedavg.rounds(6).tobytes() == fedprox.rounds(6).tobytes()
    assert same(fedavg.states(), fedprox.states())


def test_fedavg_of_everyone_with_one_step_is_gradient_descent():
    run, x = Run(FedAvg(k0=1, step=Constant(a=0.1)), selection=Uniform(share=1.0)), np.zeros(N)
    for model in run.rounds(10):
        x = x - 0.1 * gradients(run, x).mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)


def test_fedavg_over_all_averages_last_models_of_those_not_chosen():
    run = Run(FedAvg(aggregate="all"))
    x = run.rounds(3)[-1]
    assert np.allclose(x, run.states().w.mean(axis=0))
    assert (run.states().w[run.fed.times_selected == 0] == 0).all()


@pytest.mark.parametrize("k0", [1, 4])
def test_fedgia_with_zero_h_is_its_formula(k0):
    """(12) with H = 0: x_i − x = −(ḡ_i + π_i)/σ, hence π_i = −ḡ_i, and from the second step on x_i = x."""
    run = Run(FedGiA(H="zero", k0=k0))
    x, pi, sigma = np.zeros(N), np.zeros((M, N)), run.server.sigma
    for _ in range(10):
        model = run.rounds(1)[-1]
        chosen = run.fed.mask(run.fed.selected)[:, None]
        g = gradients(run, x) / M
        step = -(g + pi) / sigma if k0 == 1 else np.zeros_like(g)
        z, pi = np.where(chosen, x + step - g / sigma, x - g / sigma), -g
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)
    assert np.allclose(run.states().pi, pi, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("H", ["diagonal", "gram"])
def test_fedgia_takes_its_steps_with_one_gradient(H):
    """(12)–(17), client by client."""
    run = Run(FedGiA(H=H, k0=3))
    x, pi, sigma = np.zeros(N), np.zeros((M, N)), run.server.sigma
    for _ in range(4):
        model, z = run.rounds(1)[-1], np.empty((M, N))
        for i, (A, b) in enumerate(run.samples()):
            gram, g = A.T @ A / len(A), A.T @ (A @ x - b) / len(A) / M
            pi[i], z[i] = (pi[i], 0) if i in run.fed.selected else (-g, x - g / sigma)
            for _ in range(3 * (i in run.fed.selected)):
                h = gram if H == "gram" else np.linalg.norm(gram, 2) * np.eye(N)
                xi = x - np.linalg.solve(h / M + sigma * np.eye(N), g + pi[i])
                pi[i] += sigma * (xi - x)
                z[i] = xi + pi[i] / sigma
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


def test_fedgia_takes_sigma_from_the_largest_r():
    run = Run(FedGiA(t=0.3))
    r = max(np.linalg.norm(A, 2) ** 2 / len(A) for A, _ in run.samples())
    assert np.isclose(run.server.sigma, 0.3 * r / M, rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "t"),
    [("least-squares", 0.15), ("logistic", 4 * np.log(8992) / 1024), ("nonconvex-logistic", 4 * np.log(8992) / 1024)],
)
def test_fedgia_takes_t_from_table_iii(problem, t):
    qot = SimpleNamespace(problem=Problem.build(problem, "problem"), samples=8992, n=1024)
    assert np.isclose(FedGiA().scale(qot), t)
    assert FedGiA(t=7.0).scale(qot) == 7.0
    if problem != "least-squares":
        qot.n = 10**6
        assert FedGiA().scale(qot) == 0.025


def lagrangian(run, x, X, pi, sigma):
    """(7) of fedgia."""
    f = [np.sum((A @ xi - b) ** 2) / (2 * len(A)) for (A, b), xi in zip(run.samples(), X, strict=True)]
    return np.sum(f) / M + np.vecdot(X - x, pi).sum() + sigma / 2 * np.sum((X - x) ** 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("t", [6.0, 20.0])
def test_fedgia_lemma_iv_1_the_lagrangian_never_increases(seed, t):
    """(23): with σ = t·r/m >= 6r/m and k0 = 1 it falls by at least (σ/24) Σ (‖Δx‖² + ‖Δx_i‖²)."""
    algorithm = FedGiA(k0=1, t=t, H="diagonal")
    run = Run(algorithm, seed=seed, data_seed=seed, selection=Uniform(share=0.5))
    sigma, x, last = run.server.sigma, np.zeros(N), None
    for k in range(50):
        run.fed.begin(k + 1)
        chosen = run.fed.mask(run.fed.select(x))
        z = run.fed.call(algorithm.update, x, sigma, each=chosen)
        pi = run.states().pi
        X = z - pi / sigma  # (14)
        L = lagrangian(run, x, X, pi, sigma)
        if last is not None:
            change = M * np.sum((x - last[1]) ** 2) + np.sum((X - last[2]) ** 2)
            assert L - last[0] <= -sigma / 24 * change + 1e-12 * abs(L), f"iteration {k}"
        last, x = (L, x, X), z.mean(axis=0)  # (11)


def test_fedadmm_ends_at_the_minimiser_and_its_duals_at_the_gradients():
    run = Run(FedADMM(k0=5, r0=0.5))
    x = run.rounds(800)[-1]
    assert np.allclose(x, minimiser(run), rtol=1e-6, atol=1e-8)
    assert np.allclose(run.states().pi, -gradients(run, x) / M, rtol=1e-5, atol=1e-8)


def test_fedadmm_stops_an_inner_solve_by_the_gradient_where_it_is():
    """(3.3)–(3.8) with (3.12) and the test (3.5), client by client."""
    r0, nu, most, k0 = 0.4, 0.8, 6, 2
    run = Run(FedADMM(k0=k0, r0=r0, nu=nu, eps0=1e-3, inner_max=most))
    r = [np.linalg.norm(A, 2) ** 2 / len(A) / M for A, _ in run.samples()]
    sigma = np.multiply(r0, r)
    w, pi, z, eps, taken = np.zeros(N), np.zeros((M, N)), np.zeros((M, N)), np.full(M, 1e-3), []
    for _ in range(5):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            for _ in range(k0):
                v, steps, residual, eps[i] = w, 0, np.inf, nu * eps[i]
                while steps < most and np.sum(np.square(residual)) > eps[i]:
                    g = A.T @ (A @ v - b) / len(A) / M
                    v, steps = (r[i] * v + sigma[i] * w - g - pi[i]) / (r[i] + sigma[i]), steps + 1
                    residual = A.T @ (A @ v - b) / len(A) / M + pi[i] + sigma[i] * (v - w)
                pi[i] += sigma[i] * (v - w)
                taken.append(steps)
            z[i] = sigma[i] * v + pi[i]
        w = z.sum(axis=0) / sigma.sum()
        assert np.allclose(model, w, rtol=1e-10, atol=1e-12)
    assert run.states().steps.sum() == sum(taken)
    assert len(set(taken)) >= 3


@pytest.mark.parametrize("scale", ["1", "1/m"])
def test_fedpd_descends_from_the_global_model_and_averages_everyone(scale):
    """w_i by ``inner`` steps from x on f_i(v) + ⟨λ_i, v − x⟩ + ‖v − x‖²/(2 eta);  λ_i += (w_i − x)/eta."""
    a, eta, factor = 0.05, 0.7, 1 if scale == "1" else 1 / M
    run = Run(FedPD(k0=2, inner=3, eta=eta, step=Constant(a=a), scale=scale))
    x, dual, z = np.zeros(N), np.zeros((M, N)), np.zeros((M, N))
    for _ in range(4):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            for _ in range(2):
                v = x
                for _ in range(3):
                    v = v - a * (factor * A.T @ (A @ v - b) / len(A) + dual[i] + (v - x) / eta)
                dual[i] += (v - x) / eta
            z[i] = v + eta * dual[i]
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


def test_fedprox_starts_an_iteration_where_the_last_one_ended():
    a, mu = 0.004, 0.5
    run, x = Run(FedProx(k0=3, inner=2, mu=mu, step=Constant(a=a))), np.zeros(N)
    for _ in range(3):
        model, ends = run.rounds(1)[-1], []
        for i in run.fed.selected:
            (A, b), w = run.samples()[i], x
            for _ in range(3 * 2):
                w = w - a * (A.T @ (A @ w - b) / len(A) + mu * (w - x))
            ends.append(w)
        x = np.mean(ends, axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


def test_fedavg_counts_its_steps_over_the_whole_run():
    run, x, k = Run(FedAvg(k0=2, step=Log2(a=0.05)), selection=Uniform(share=1.0)), np.zeros(N), 0
    for _ in range(4):
        model, W = run.rounds(1)[-1], np.tile(x, (M, 1))
        for _ in range(2):
            g = np.array([A.T @ (A @ w - b) / len(A) for (A, b), w in zip(run.samples(), W, strict=True)])
            W, k = W - 0.05 / np.log2(k + 2) * g, k + 1
        x = W.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_fedadmm_takes_at_most_inner_max_steps_and_fewer_where_it_is_near(most):
    run = Run(FedADMM(k0=3, inner_max=most, eps0=1e9, nu=0.5))
    run.rounds(4)
    assert run.states().steps.sum() == 4 * CHOSEN * 3  # whoever is near from the start takes one
    run = Run(FedADMM(k0=3, inner_max=most, eps0=0.0))
    run.rounds(4)
    assert run.states().steps.sum() == 4 * CHOSEN * 3 * most


def test_fedadmm_shrinks_eps_of_those_who_train_before_every_iteration():
    run = Run(FedADMM(k0=3, nu=0.9, eps0=2.0))
    run.rounds(4)
    assert np.allclose(run.states().eps, 2.0 * 0.9 ** (3 * run.fed.times_selected))


def test_scaffold_is_its_box_client_by_client():
    """Algorithm 1 of Karimireddy et al. with option II; Σγ of the round's own steps."""
    k0, lr = 3, 0.7
    run = Run(Scaffold(k0=k0, step=Log2(a=0.02), server_lr=lr))
    x, c, own, k = np.zeros(N), np.zeros(N), np.zeros((M, N)), 0
    for _ in range(5):
        model, dy, dc = run.rounds(1)[-1], [], []
        gammas = [0.02 / np.log2(k + j + 2) for j in range(k0)]
        for i in run.fed.selected:
            (A, b), y = run.samples()[i], x
            for gamma in gammas:
                y = y - gamma * (A.T @ (A @ y - b) / len(A) - own[i] + c)
            new = own[i] - c + (x - y) / sum(gammas)
            dy.append(y - x)
            dc.append(new - own[i])
            own[i] = new
        x, c, k = x + lr * np.mean(dy, axis=0), c + CHOSEN / M * np.mean(dc, axis=0), k + k0
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.server.c, c, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().c, own, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 3, "epochs": 2}], ids=str)
def test_the_control_variate_of_scaffold_is_the_mean_of_those_of_all_clients(options):
    run = Run(Scaffold(step=Constant(a=0.01), **options))
    run.rounds(12)
    assert np.allclose(run.server.c, run.states().c.mean(axis=0), rtol=1e-12, atol=1e-12)


def test_scaffold_with_everyone_ends_at_the_minimiser_where_fedavg_does_not():
    everyone = Uniform(share=1.0)
    scaffold = Run(Scaffold(k0=5, step=Constant(a=0.02)), selection=everyone)
    fedavg = Run(FedAvg(k0=5, step=Constant(a=0.02)), selection=everyone)
    assert np.allclose(scaffold.rounds(400)[-1], minimiser(scaffold), rtol=1e-6, atol=1e-8)
    assert np.linalg.norm(fedavg.rounds(400)[-1] - minimiser(fedavg)) > 1e-3


def test_scaffold_stays_where_its_control_variates_are_the_gradients():
    run = Run(Scaffold(step=Constant(a=0.02)))
    x = minimiser(run)
    run.hosts[0].state.c[:] = gradients(run, x)[run.hosts[0].order]
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-11)
    assert np.allclose(run.states().c, gradients(run, x), atol=1e-10)


@pytest.mark.parametrize("rho", [0.5, 3.0])
def test_deep_fedadmm_is_its_box_client_by_client(rho):
    """θ_i by gradient steps from w on the augmented Lagrangian; π_i += ρ(θ_i − w); the mean of all θ_i + π_i/ρ."""
    lr, epochs, decay = 0.02, 4, 0.01
    run = Run(FedADMMDeep(rho=rho, lr=lr, epochs=epochs, batch_size=0, weight_decay=decay))
    w, pi, z = np.zeros(N), np.zeros((M, N)), np.zeros((M, N))
    for _ in range(5):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            theta, dual = w, pi[i].copy()
            A, b = run.samples()[i]
            for _ in range(epochs):
                g = A.T @ (A @ theta - b) / len(A)
                theta = theta - lr * (g + dual + rho * (theta - w) + decay * theta)
            pi[i] += rho * (theta - w)
            z[i] = theta + pi[i] / rho
        w = z.mean(axis=0)
        assert np.allclose(model, w, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().pi, pi, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rho", [0.5, 3.0])
def test_deep_fedadmm_stays_at_the_minimiser_with_the_gradients_as_duals_and_ends_there(rho):
    run = Run(FedADMMDeep(rho=rho, lr=0.02, epochs=5, batch_size=0))
    x, host = minimiser(run), run.hosts[0]
    host.state.pi[:] = -gradients(run, x)[host.order]
    host.state.z[:] = x + host.state.pi / rho
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-11)
    run = Run(FedADMMDeep(rho=rho, lr=0.02, epochs=5, batch_size=0), selection=Uniform(share=1.0))
    assert np.allclose(run.rounds(600)[-1], x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"average": "new"}, {"noise": "matched", "epsilon": 50.0}, {"k0": 1}], ids=str)
def test_sfedprox_without_its_term_and_with_one_inner_step_is_sfedavg_to_the_bit(options):
    options = {"noise": "none", "step": Constant(a=0.01), "k0": 3, **options}
    sfedavg, sfedprox = Run(SFedAvg(**options)), Run(SFedProx(mu=0.0, inner=1, **options))
    assert sfedavg.rounds(6).tobytes() == sfedprox.rounds(6).tobytes()
    assert same(sfedavg.states(), sfedprox.states())


@pytest.mark.parametrize("kind", [SFedAvg, SFedProx])
def test_without_noise_over_the_set_that_trained_they_are_fedavg_and_fedprox(kind):
    secure, plain = (SFedAvg, FedAvg) if kind is SFedAvg else (SFedProx, FedProx)
    more = {} if kind is SFedAvg else {"mu": 0.3, "inner": 3}
    one = Run(secure(noise="none", k0=4, step=Constant(a=0.01), **more))
    other = Run(plain(k0=4, step=Constant(a=0.01), **more))
    assert np.allclose(one.rounds(6), other.rounds(6), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("average", ["trained", "new"])
def test_sfedprox_is_its_box_client_by_client(average):
    """(34)–(38) with Algorithm 4: "new" averages the old uploads of the set that is going to train."""
    k0, a, mu, inner = 2, 0.0005, 0.4, 3
    step = Constant(a=0.01) if average == "trained" else SqrtSamples(a=a)
    run = Run(SFedProx(noise="none", average=average, k0=k0, mu=mu, inner=inner, step=step))
    x, z, k = np.zeros(N), np.zeros((M, N)), 0
    for _ in range(5):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        if average == "new":
            x = z[chosen].mean(axis=0)
            assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        for i in chosen:
            w, (A, b) = x, run.samples()[i]
            for j in range(k0):
                gamma = 0.01 if average == "trained" else a * len(A) / np.sqrt(2 * k0 + (k + j) // k0)
                for _ in range(inner):
                    w = w - gamma * (A.T @ (A @ w - b) / len(A) + mu * (w - x))
            z[i] = w
        k += k0
        if average == "trained":
            x = z[chosen].mean(axis=0)
            assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().z, z, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("step_scale", ["samples", "one"])
def test_fedepm_is_its_box_client_by_client(step_scale):
    """(19)–(22) with one gradient a round at x; μ_i grows with k over the whole run and with ‖w_i − x‖²."""
    k0, mu0, alpha, c, lam, eta = 3, 200.0 if step_scale == "samples" else 25.0, 1.02, 0.1, 0.05, 0.2
    run = Run(FedEPM(k0=k0, mu0=mu0, alpha=alpha, c=c, lam=lam, eta=eta, step_scale=step_scale, noise="none"))
    w, z, x, k = np.zeros((M, N)), np.zeros((M, N)), np.zeros(N), 0
    for _ in range(6):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            g = A.T @ (A @ x - b) / len(A)
            for j in range(k0):
                mu = (
                    mu0
                    * (1 + c * np.sum((w[i] - x) ** 2))
                    * alpha ** (k + j + 1)
                    / (len(A) if step_scale == "samples" else 1)
                )
                v = mu * (w[i] - x) - g
                w[i] = x + np.sign(v) * np.maximum(abs(v) - lam, 0) / (eta + mu)
            z[i] = w[i]
        k += k0
        s = lam / eta * (2 * np.arange(M + 1)[:, None] - M) / M
        x = np.median(np.concatenate([z, z.mean(axis=0) + s]), axis=0)  # errata to (15)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().w, w, rtol=1e-10, atol=1e-12)


def test_fedepm_takes_lambda_and_eta_from_m_and_the_share():
    run = Run(FedEPM(noise="none"))
    assert np.isclose(run.server.eta, (0.02 * M + 1) * (CHOSEN / M + 0.1) * 1e-5, rtol=1e-12)
    assert np.isclose(run.server.lam, run.server.eta / 2, rtol=1e-12)


class Still(Problem, tag="still"):
    """f_i = 0, with a start model that is not 0."""

    def initial(self, data, seed):
        return np.linspace(-1, 2, data.n)

    def value_grad(self, block, X):
        return np.zeros(len(block), block.b.dtype), np.zeros((len(block), block.n), block.b.dtype)

    def lipschitz(self, block):
        return np.ones(len(block))

    def majorizer_inverse(self, block, scale, shift):
        return lambda V: V / (scale + shift)

    def clipped_grad(self, block, X, bound):
        return self.grad(block, X)


@members(
    [
        case
        for case in CASES
        if case[0] not in PROBLEMS
        and not case[1].get("weight_decay")
        and case[1].get("noise", "none") == "none"
        and "epsilon" not in case[1]
    ]
)
def test_where_nothing_pulls_the_model_of_the_start_stays(algorithm):
    """Also for the share of those who have not trained yet."""
    run = Run(algorithm, Still(), data=SOURCES["least-squares"].load(0, "float64"))
    assert np.allclose(run.server.x, np.linspace(-1, 2, N), rtol=1e-14)
    assert np.allclose(run.rounds(4), np.linspace(-1, 2, N), rtol=1e-12)


# biased selection


@pytest.mark.parametrize("batch_size", [0, 4])
@pytest.mark.parametrize("name", ["fedavg", "fedadmm", "flame", "scaffold", "feddcd", "accfeddcd"])
def test_biased_selection_has_the_same_bits_on_any_number_of_hosts(name, batch_size):
    algorithm = build(name, SETTINGS[name])
    if name in PROBLEMS and batch_size:
        pytest.skip("a quadratic has no mini-batches")
    biased = Biased(count=4, candidates=9, batch_size=batch_size)
    runs = [start(algorithm, selection=biased, cuts=cuts) for cuts in (None, (0, 6, M), (0, 1, 2, 11, M), range(M + 1))]
    models = [run.rounds(4).tobytes() for run in runs]
    assert len(set(models)) == 1
    assert all(same(run.states(), runs[0].states()) for run in runs)
    assert all(vars(run.fed.ledger) == vars(runs[0].fed.ledger) for run in runs)
    assert all(np.array_equal(run.fed.times_selected, runs[0].fed.times_selected) for run in runs)


@pytest.mark.parametrize("name", ["fedavg", "flame"])
def test_biased_selection_takes_the_largest_gradients_among_the_candidates(name):
    """With all samples: ‖∇f_i(x)‖, of FLAME that of its local objective, ‖∇f_i(θ_i) + λ(θ_i − w)‖."""
    run = start(build(name, SETTINGS[name]), selection=Biased(count=3, candidates=7, batch_size=0))
    for round in range(1, 7):
        x, state = run.server.x, run.states()
        theta = state.theta if name == "flame" else np.tile(x, (M, 1))
        norms = np.linalg.norm(gradients(run, theta) + 20.0 * (theta - x), axis=1)
        run.rounds(1)
        pool = run.selector.select(round, 0)
        assert len(pool) == 7
        assert np.array_equal(run.fed.selected, np.sort(pool[np.argsort(-norms[pool])[:3]]))


def test_ties_of_biased_selection_go_to_the_first_client():
    run = Run(
        build("fedavg"),
        Still(),
        data=SOURCES["least-squares"].load(0, "float64"),
        selection=Biased(count=3, candidates=7),
    )
    for round in range(1, 5):
        run.rounds(1)
        assert np.array_equal(run.fed.selected, run.selector.select(round, 0)[:3])


def test_biased_selection_asks_a_random_mini_batch_of_each_candidate():
    """The norm of the mean of 4 samples' gradients: one of the values that 4 of d_i samples can give."""
    run = Run(build("fedavg", SETTINGS["fedavg"]), selection=Biased(count=M, batch_size=4))
    host = run.hosts[0]
    found = [host.handle(Request("score", (run.server.x, 4), key=(1, k)))[0].rows[:, 0] for k in range(3)]
    assert all(len(set(values)) > 1 for values in zip(*found, strict=True))  # drawn anew at every call
    i = int(np.argmin(run.data.sizes))
    A, b = run.samples()[i]
    possible = [np.linalg.norm(A[list(rows)].T @ -b[list(rows)]) / 4 for rows in combinations(range(len(A)), 4)]
    assert all(np.isclose(possible, values[i], rtol=1e-12).any() for values in found)


@pytest.mark.parametrize("name", ["fedavg", "flame", "scaffold"])
def test_candidates_are_charged_the_model_and_one_number(name):
    rounds, count, pool = 3, 4, 9
    run = start(build(name, SETTINGS[name]), selection=Biased(count=count, candidates=pool))
    run.rounds(rounds)
    ledger, vectors = run.fed.ledger, VECTORS.get(name, 1)
    assert ledger.exchanges == 2 * rounds
    assert ledger.uploads == ledger.downloads == rounds * (pool + count)
    assert ledger.bytes_down == 8 * rounds * (pool * N + count * N * vectors)
    assert ledger.bytes_up == 8 * rounds * (pool + count * N * vectors)
    assert run.fed.times_selected.sum() == rounds * count


def test_without_candidates_everyone_is_one():
    run = start(build("fedavg", SETTINGS["fedavg"]), selection=Biased(count=4))
    run.rounds(1)
    assert run.fed.ledger.uploads == M + 4
    norms = np.linalg.norm(gradients(run, np.zeros(N)), axis=1)
    assert np.array_equal(
        run.fed.selected, np.sort(np.argsort(-norms)[:4])
    )  # at most 25 samples: a batch is all of them


def test_biased_selection_ranks_pfedme_by_its_local_objective():
    run = start(build("pfedme", SETTINGS["pfedme"]), selection=Biased(count=3, batch_size=0))
    run.rounds(3)
    x, theta = run.server.x, run.states().theta
    norms = np.linalg.norm(gradients(run, theta) + 5.0 * (theta - x), axis=1)
    run.rounds(1)
    assert np.array_equal(run.fed.selected, np.sort(np.argsort(-norms)[:3]))
