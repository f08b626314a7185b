"""Newton's method and FedNL: exact on quadratics, fast near the minimiser, damped far from it, charged to the bit."""

from itertools import product

import numpy as np
import pytest

import mpifed
from mpifed.algorithms import FedNL, Newton
from mpifed.algorithms.parts.newton_steps import backtrack
from mpifed.core.errors import RunError, UserError
from mpifed.core.symmetric import pack
from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import M, Run, build, minimiser
from tests.helpers.curved_runs import COMPRESSORS, classes, curved


class Far(Logistic, tag="far"):
    """A run begins where most samples are far from the plane and Hessians are small, so that full steps overshoot."""

    def initial(self, data, seed):
        return np.full(data.n, 0.3)


def far(method, **options):
    problem = Far(mu=1e-3, regulariser="whole")
    return Run(build(method, options), problem, data=classes(scale=10.0, wrong=3), selection=All())


def test_least_squares_is_solved_in_one_round():
    run = Run(Newton(), selection=All())
    assert np.allclose(run.rounds(1)[-1], minimiser(run), rtol=1e-10)
    assert run.server.step == 1.0


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
@pytest.mark.parametrize(("name", "uploads"), [("fednl", 2 * M), ("fednl-pp", M + 4)])
def test_fednl_whose_hessian_is_known_from_the_start_solves_least_squares_in_one_round_too(name, uploads, compressor):
    """Of FedNL all clients take part, whoever is selected; both stay at the minimiser."""
    run = Run(build(name, {"compressor": compressor}), selection=UniformSelection(count=4))
    assert np.allclose(run.rounds(1)[-1], minimiser(run), rtol=1e-8)
    assert run.fed.ledger.uploads == uploads  # the Hessians at the start, and one round
    assert np.allclose(run.rounds(4), minimiser(run), rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "options"),
    [("newton", {}), ("fednl", {"line_search": True, "option": "A", "compressor": {"name": "topk", "k": 6}})],
    ids=["newton", "fednl"],
)
def test_far_from_the_minimiser_steps_are_damped_until_f_goes_down(name, options):
    run = far(name, **options)
    values, steps = [run.measure()[0]], []
    for _ in range(25):
        run.rounds(1)
        values.append(run.measure()[0])
        steps.append(run.server.step)
    assert min(steps) < 1 == steps[-1]
    assert set(steps) <= {0.5**k for k in range(20)}
    assert (np.diff(values) < 1e-14).all()
    assert run.measure()[1] < 1e-16


def test_every_trial_point_is_an_exchange_and_is_charged():
    run, charged = far("newton"), set()
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


@pytest.mark.parametrize(
    ("name", "options", "clients", "trials"),
    [
        ("fednl", {"option": "A"}, 8, 0),
        ("fednl", {"option": "A", "line_search": True}, 8, 1),  # f falls at once
        ("fednl-pp", {}, 3, 0),
    ],
    ids=str,
)
def test_the_bits_are_those_of_the_messages(name, options, clients, trials):
    """With m = 8 and n = 6 a matrix is N = 21 numbers, of which k = 12 are sent, with places of ⌈log₂ 21⌉ = 5 bits."""
    run = curved(build(name, {"compressor": {"name": "topk", "k": "2n"}, **options}), UniformSelection(count=3))
    up, down = run.fed.ledger.bits_up, run.fed.ledger.bits_down
    assert up == 64 * 8 * (21 + 6 * (name == "fednl-pp"))  # H_i⁰, and g_i⁰ of FedNL-PP
    assert down == 64 * 8 * 6
    run.rounds(1)
    assert run.fed.ledger.bits_up - up == clients * (64 * 6 + (64 + 5) * 12 + 64 + 2 * 64 * trials)
    assert run.fed.ledger.bits_down - down == 64 * clients * 6 * (1 + trials)
    assert run.fed.ledger.exchanges == 2 + trials


def test_the_learning_rate_is_that_of_the_theorems():
    rates = [build("fednl", {"compressor": compressor}).rate(10) for compressor in COMPRESSORS]
    assert rates == pytest.approx([1, 1, 20 / 55, 20 / 55, 8 / 9, 1])
    assert FedNL(alpha=0.3).rate(10) == 0.3


def test_a_matrix_below_mu_is_projected_and_any_other_is_left_alone():
    rng, mu = np.random.default_rng(3), 0.2
    Q, g = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.standard_normal(6)
    for least in (-0.7, 0.1, 0.3):
        values = np.array([least, 0.5, 1.0, 2.0, 0.25, 4.0])
        H = pack((Q * values) @ Q.T)
        right = -(Q / np.maximum(values, mu)) @ Q.T @ g
        assert np.allclose(FedNL().projected_step(H, g, mu, g), right, rtol=1e-12)


def test_option_a_needs_strong_convexity_and_says_what_helps():
    study = {"algorithm": {"name": "fednl", "option": "A"}, "data": {"name": "gaussian", "clients": 4}, "rounds": 2}
    with pytest.raises(UserError, match=r'^algorithm\.option = "A" cannot be used: logistic .* or option = "B"$'):
        mpifed.run(study, problem={"name": "logistic", "mu": 0.0})
    assert mpifed.run(study, problem={"name": "logistic", "mu": 0.1, "regulariser": "whole"}).cr == 2


def test_no_client_can_be_absent_and_the_slowest_is_awaited():
    study = {"algorithm": "newton", "rounds": 3, "data": {"clients": 5}, "system": {"latency": 0.5}}
    result = mpifed.run(study)
    assert result.rounds["simulated_seconds"].tolist() == [0, 1, 2, 3]
    assert result.rounds["selected"].tolist() == [0, 5, 5, 5]
    with pytest.raises(UserError, match=r"^system\.dropout = 0\.1 is wrong: newton needs a gradient of every client"):
        mpifed.run(study, {"system.dropout": 0.1})


RNG = np.random.default_rng(0)
FEW = RNG.standard_normal((12, 20))
MANY = np.column_stack([RNG.standard_normal((200, 2)), np.ones(200)])
ILL = (RNG.random(200) < 1 / (1 + np.exp(-MANY[:, 0]))).astype(float)
RARE = (np.arange(200) % 10 == 0).astype(float)  # a category, which has no event in the test below
SINGULAR = {  # samples, labels, the advice, and samples and options that follow it
    "too few samples": (FEW, ILL[:12], "fewer samples than coefficients, .*regularisation above 0", FEW, 1e-3),
    "given twice": (MANY[:, [0, 1, 0]], ILL, "the coefficients 0, 2 .* leave out a column", MANY[:, :2], 0.0),
    "only zeros": (MANY * [1, 0, 1], ILL, r"row 1 \(counted from 0\).* leave it out", MANY[:, [0, 2]], 0.0),
    "of other sizes": (MANY * [1e9, 1, 1], ILL, r'1, counted.*coefficient 0.* data\.standardise = "pooled"', MANY, 0.0),
    "without events": (
        np.column_stack([MANY, RARE]),
        ILL * (1 - RARE),
        r"\(coefficient 3, .*category without events.*leave it out",
        MANY,
        0.0,
    ),
}
TOLD = [*product(SINGULAR, ["newton", "fednl"])]
TOLD.remove(("without events", "fednl"))  # whose shift l > 0 keeps the Hessian regular
SLOW = [("given twice", "fednl"), ("only zeros", "fednl"), ("of other sizes", "fednl")]


@pytest.mark.parametrize(
    ("kind", "method"), [pytest.param(*case, marks=[pytest.mark.slow] * (case in SLOW)) for case in TOLD]
)
def test_a_hessian_that_is_singular_is_told_with_what_helps_and_that_helps(kind, method):
    samples, labels, advice, better, mu = SINGULAR[kind]
    halves = [len(labels) // 2] * 2
    study = {"algorithm": {"name": method}, "rounds": 60}
    if method == "fednl":
        study["algorithm"]["line_search"] = True
    data = mpifed.arrays(samples, labels, halves)
    with pytest.raises(RunError, match=f"^{method} finds no step: .*{advice}"):
        mpifed.run(study, data=data, problem={"name": "logistic", "mu": 0.0})
    data = mpifed.arrays(better, labels, halves)
    result = mpifed.run(study, data=data, problem={"name": "logistic", "mu": mu})
    assert result.rounds["grad_norm_sq"][-1] < 1e-16


def test_a_hessian_that_is_not_convex_is_told_with_what_helps(tmp_path):
    data = mpifed.arrays(FEW[:, :3], ILL[:12], [6, 6])
    np.savez(tmp_path / "start.npz", x=np.ones(3))
    study = {"algorithm": "newton", "rounds": 2, "problem": {"name": "nonconvex-logistic", "mu": 1e3}}
    with pytest.raises(RunError, match=r"not convex at this model, so lower a regularisation .* or begin elsewhere"):
        mpifed.run(study, data=data, start=str(tmp_path / "start.npz"))
    mpifed.run(study, data=data)


def test_the_bias_of_softmax_needs_to_go():
    """All biases may move together, which no loss notices."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    study = {"algorithm": "newton", "rounds": 30, "stop": {"gradient": 1e-24}}
    data = mpifed.arrays(X, np.arange(60) % 3.0, [30, 30])
    with pytest.raises(RunError, match="bias = false"):
        mpifed.run(study, data=data, problem={"name": "softmax", "lam": 0.01})
    result = mpifed.run(study, data=data, problem={"name": "softmax", "lam": 0.01, "bias": False})
    assert result.attrs["stop_reason"] != "rounds"
    assert result.rounds["server_step"][-1] == 1.0


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
