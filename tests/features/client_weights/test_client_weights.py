"""Weights of clients: f = Σ p_i f_i, whose minimiser with weights by samples is that of all samples together."""

import numpy as np
import pytest

import mpifed

SIZES = (5, 9, 14, 30)
N = 3
GAMMA = 0.05


def samples():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((sum(SIZES), N))
    b = A @ np.arange(1.0, N + 1) + rng.standard_normal(len(A)) + np.repeat(np.arange(4.0), SIZES)
    return A, b


def parts():
    A, b = samples()
    ends = np.cumsum(SIZES)
    return [(A[e - d : e], b[e - d : e]) for e, d in zip(ends, SIZES, strict=True)]


def data():
    A, b = samples()
    return mpifed.arrays(A, b, SIZES)


def run(algorithm, weights="samples", rounds=400, **more):
    table = {"objective": {"weights": weights}, "stop": {"gradient": 0.0}, "selection": "all"} | more
    table = {"problem": "least-squares", "data": data()} | table
    return mpifed.run(table, algorithm=algorithm, rounds=rounds)


def pooled(weights=SIZES):
    """The minimiser of Σ p_i f_i, f_i = ‖A_i x − b_i‖²/(2 d_i)."""
    H = sum(p * A.T @ A / len(A) for p, (A, _) in zip(weights, parts(), strict=True))
    return np.linalg.solve(H, sum(p * A.T @ b / len(A) for p, (A, b) in zip(weights, parts(), strict=True)))


EXACT = [
    {"name": "newton"},
    {"name": "fednl"},
    {"name": "gd", "gamma": 0.1},
    {"name": "nesterov"},
    {"name": "lbfgs"},
    {"name": "fedgia", "t": 1.0, "H": "diagonal"},
    {"name": "fedadmm", "r0": 1.0},
    {"name": "fedpd"},
    {"name": "proxskip", "p": 0.3},
    {"name": "feddyn", "alpha": 1.0, "k0": 20, "step": {"name": "constant", "a": GAMMA}},
    {"name": "ef21"},
    {"name": "diana"},
    {"name": "ad-admm"},
    {"name": "scaffold", "step": {"name": "constant", "a": GAMMA}},
]


# by default each method has weights of one kind, in turn; fedpd takes the longest
WEIGHTS = ("samples", (3.0, 1.0, 1.0, 7.0))
CASES = [
    pytest.param(one, weights, marks=() if (k + j) % 2 == 0 and one["name"] != "fedpd" else pytest.mark.slow)
    for k, one in enumerate(EXACT)
    for j, weights in enumerate(WEIGHTS)
]
CASES.append(pytest.param({"name": "fedgia", "t": 1.0, "H": "gram"}, "samples"))


@pytest.mark.parametrize(("algorithm", "weights"), CASES)
def test_the_minimiser_is_that_of_the_weighted_sum(algorithm, weights):
    found = run(algorithm, weights, 1000, stop={"gradient": 1e-14})
    wanted = pooled(SIZES if weights == "samples" else weights)
    assert np.abs(found.x - wanted).max() < 1e-5
    assert found.rounds["grad_norm_sq"][-1] < 1e-9


def test_a_dual_method_comes_to_the_same_minimiser():
    """FedDCD needs strong convexity; its local problems are those of m p_i f_i."""
    A, b = samples()
    signs = {"problem": {"name": "logistic", "mu": 1.0}, "data": mpifed.arrays(A, np.sign(b), SIZES)}
    found = [run(name, rounds=rounds, **signs).x for name, rounds in (("newton", 9), ("feddcd", 100))]
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_a_gradient_step_is_that_of_the_weighted_sum():
    x = run({"name": "gd", "gamma": GAMMA}, rounds=1).x
    p = np.array(SIZES) / sum(SIZES)
    wanted = GAMMA * sum(w * A.T @ b / len(A) for w, (A, b) in zip(p, parts(), strict=True))
    np.testing.assert_allclose(x, wanted, rtol=1e-13)


def test_f_is_the_mean_loss_of_all_samples():
    row = run("gd", rounds=3).rounds
    np.testing.assert_allclose(row["objective"], row["objective_samples"], rtol=1e-13)
    b = samples()[1]
    np.testing.assert_allclose(row["objective"][0], b @ b / (2 * len(b)), rtol=1e-13)
    unequal = run("gd", "clients", rounds=0).rounds
    assert unequal["objective_samples"][0] == pytest.approx(row["objective"][0], rel=1e-14)
    assert abs(unequal["objective"][0] - row["objective"][0]) > 0.1


@pytest.mark.parametrize("count", [4, 2])
def test_fedavg_averages_models_with_the_weights_of_those_selected(count):
    algorithm = {"name": "fedavg", "k0": 3, "step": {"name": "constant", "a": GAMMA}}
    found = run(algorithm, rounds=2, selection={"name": "uniform", "count": count})
    x = np.zeros(N)
    for k in (1, 2):
        models = []
        for i in found.selected(k):
            A, b = parts()[i]
            w = x
            for _ in range(3):
                w = w - GAMMA * A.T @ (A @ w - b) / len(A)
            models.append(w)
        x = np.average(models, axis=0, weights=np.array(SIZES)[found.selected(k)])
    np.testing.assert_allclose(found.x, x, rtol=1e-12)


def test_last_uploads_are_averaged_with_the_weights_of_all_clients():
    algorithm = {"name": "pfedme", "lam": 2.0}
    equal = run(algorithm, (1.0, 1.0, 1.0, 1.0), rounds=3, selection={"name": "uniform", "count": 2})
    plain = run(algorithm, "clients", rounds=3, selection={"name": "uniform", "count": 2})
    np.testing.assert_allclose(equal.x, plain.x, rtol=1e-12)
    heavy = run(algorithm, (1e9, 1.0, 1.0, 1.0), rounds=3, selection={"name": "uniform", "count": 2})
    alone = run(algorithm, (1e12, 1.0, 1.0, 1.0), rounds=3, selection={"name": "uniform", "count": 2})
    np.testing.assert_allclose(heavy.x, alone.x, rtol=1e-6, atol=1e-6)
    assert np.abs(heavy.x - plain.x).max() > 1e-3


def test_control_variates_of_some_clients_count_in_the_servers_what_these_clients_weigh():
    """c⁺ = c + Σ p_i (c_i⁺ − c_i) over those selected, so that it stays Σ p_i c_i."""
    algorithm = {"name": "scaffold", "k0": 2, "step": {"name": "constant", "a": GAMMA}}
    found = run(algorithm, rounds=3, selection={"name": "uniform", "count": 2})
    p, own = np.array(SIZES) / sum(SIZES), np.zeros((4, N))
    x, c = np.zeros(N), np.zeros(N)
    for k in (1, 2, 3):
        chosen, models, change = found.selected(k), [], np.zeros(N)
        for i in chosen:
            A, b = parts()[i]
            y = x
            for _ in range(2):
                y = y - GAMMA * (A.T @ (A @ y - b) / len(A) - own[i] + c)
            renewed = own[i] - c + (x - y) / (2 * GAMMA)
            models.append(y)
            change += p[i] * (renewed - own[i])
            own[i] = renewed
        x, c = np.average(models, axis=0, weights=p[chosen]), c + change
    np.testing.assert_allclose(found.x, x, rtol=1e-12)
