"""FedNL: Newton's method with Hessians that are learned, its two safeguards, its line search, and its bits."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fednl import FedNL
from mpifed.compressors.base import Identity
from mpifed.compressors.rank import Rank
from mpifed.compressors.rounding import Natural
from mpifed.compressors.sparse import RandK, RandSeqK, TopK
from mpifed.core.errors import UserError
from mpifed.core.symmetric import entries, pack, unpack
from mpifed.data.pool import Pool
from mpifed.experiment.config import experiment
from mpifed.experiment.matching import refuse_mismatch
from mpifed.federation.participation.selection import Uniform
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import M, Run, build, minimiser

COMPRESSORS = [Identity(), TopK(k="1n"), Rank(r=1), RandK(k="2n"), RandSeqK(k="2n"), Natural()]


def classes(scale=1.0, wrong=5, m=8, n=6):
    """Two classes at the sides of a plane; every ``wrong``-th sample is at the other side."""
    X = scale * np.random.default_rng(1).standard_normal((12 * m, n))
    y = (X[:, 0] > 0).astype(float)
    y[::wrong] = 1 - y[::wrong]
    return Pool(X, y, None, np.full(m, 12))


class Far(Logistic, tag="far"):
    """A run begins where most samples are far from the plane and Hessians are small, so that full steps overshoot."""

    def initial(self, data, seed):
        return np.full(data.n, 0.3)


def curved(algorithm, mu=0.1, **options):
    """The algorithm at work on logistic regression."""
    return Run(algorithm, Logistic(mu=mu, regulariser="whole"), data=classes(**options))


def derivatives(run, x, mu=0.1):
    """∇f(x), and ∇²f_i(x) of every client."""
    g, hessians = np.zeros(run.n), []
    for A, b in run.samples():
        p = 1 / (1 + np.exp(-A @ x))
        g += (A.T @ (p - b) / len(b) + mu * x) / run.m
        hessians.append((A.T * (p * (1 - p))) @ A / len(b) + mu * np.eye(run.n))
    return g, hessians


@pytest.mark.parametrize("option", ["A", "B"])
def test_without_compression_it_is_newton_s_method_with_the_hessians_of_the_model_before(option):
    run = curved(FedNL(compressor=Identity(), option=option))
    x = np.zeros(run.n)
    _, known = derivatives(run, x)
    for _ in range(5):
        g, now = derivatives(run, x)
        l = np.mean([np.linalg.norm(one - other) for one, other in zip(now, known, strict=True)])
        x = x - np.linalg.solve(np.mean(known, axis=0) + (option == "B") * l * np.eye(run.n), g)
        assert np.allclose(run.rounds(1)[-1], x, rtol=1e-10, atol=1e-13)
        known = now


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda compressor: compressor.label())
def test_least_squares_is_solved_in_one_round_because_its_hessian_is_known_from_the_start(compressor):
    run = Run(FedNL(compressor=compressor), selection=Uniform(count=1))  # all clients take part, whoever is selected
    assert np.allclose(run.rounds(1)[-1], minimiser(run), rtol=1e-9)
    assert run.fed.ledger.uploads == 2 * M  # the Hessians at the start, and one round


@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda compressor: compressor.label())
def test_the_gradient_vanishes_and_the_hessian_at_the_minimiser_is_learned(compressor, option):
    run = curved(FedNL(compressor=compressor, option=option))
    x = run.rounds(200)[-1]
    assert run.measure()[1] < 1e-24
    right = np.mean(derivatives(run, x)[1], axis=0)
    assert np.allclose(unpack(run.server.H, run.n), right, atol=1e-6)
    assert np.allclose(run.states().H.mean(axis=0), run.server.H, atol=1e-12)  # the server knows their mean


def test_the_learning_rate_is_that_of_the_theorems():
    n, N = 10, 55
    rates = [FedNL(compressor=compressor).rate(n) for compressor in COMPRESSORS]
    assert rates == pytest.approx([1, 1, 1, 20 / N, 20 / N, 8 / 9])
    assert FedNL(alpha=0.3).rate(n) == 0.3


def test_a_matrix_below_mu_is_projected_and_any_other_is_left_alone():
    rng, mu = np.random.default_rng(3), 0.2
    Q, g = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.standard_normal(6)
    for least in (-0.7, 0.1, 0.3):
        values = np.array([least, 0.5, 1.0, 2.0, 0.25, 4.0])
        H = pack((Q * values) @ Q.T)
        right = -(Q / np.maximum(values, mu)) @ Q.T @ g
        assert np.allclose(FedNL().projected_step(H, g, mu), right, rtol=1e-12)


def test_far_from_the_minimiser_the_line_search_shortens_steps_until_f_falls():
    far, data = Far(mu=1e-3, regulariser="whole"), classes(scale=10.0, wrong=3)
    plain, searching = (
        Run(FedNL(line_search=search, option="A", compressor=TopK(k=6)), far, data=data) for search in (False, True)
    )
    values, steps = [searching.measure()[0]], []
    for _ in range(25):
        searching.rounds(1)
        values.append(searching.measure()[0])
        steps.append(searching.server.step)
    plain.rounds(25)
    assert min(steps) < 1 == steps[-1]
    assert (np.diff(values) < 1e-14).all()
    assert values[-1] < plain.measure()[0]
    assert searching.measure()[1] < 1e-16


@pytest.mark.parametrize("search", [False, True])
def test_the_bits_are_those_of_the_messages(search):
    n, N, m, k = 6, 21, 8, 12
    run = curved(FedNL(compressor=TopK(k="2n"), line_search=search, option="A"))
    first = run.fed.ledger.bits_up, run.fed.ledger.bits_down
    assert first == (64 * m * N, 64 * m * n)  # H_i⁰ up, x⁰ down
    run.rounds(1)
    trials = int(search)  # f falls at once
    assert run.fed.ledger.bits_up - first[0] == m * (64 * n + 64 * k + 5 * k + 64 + 2 * 64 * trials)  # ⌈log₂ 21⌉ = 5
    assert run.fed.ledger.bits_down - first[1] == 64 * m * n * (1 + trials)
    assert run.fed.ledger.exchanges == 2 + trials


def test_simulated_time_counts_the_compressed_matrix():
    assert FedNL(compressor=TopK(k=8)).traffic(10) == (10, 11 + 9)  # 8 numbers and 8 places of 6 bits each
    assert FedNL().work(np.ones(3)) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"option": "C"}, r'^algorithm\.option = "C" is wrong: it must be "A" or "B"'),
        ({"c": 0.5}, r"^algorithm\.c = 0\.5 is wrong"),
        ({"shrink": 1.0}, r"^algorithm\.shrink = 1\.0 is wrong"),
        ({"alpha": 0.0}, r"^algorithm\.alpha = 0\.0 is wrong"),
        ({"compressor": "topp"}, r"^unknown compressor 'topp'; did you mean 'topk'\?"),
        ({"compressor": {"name": "topk", "k": 0}}, r"^algorithm\.compressor: k = 0 is wrong"),
        ({"compressor": "topk"}, r"^algorithm\.compressor\.k is missing"),
    ],
)
def test_options_that_cannot_work_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        build("fednl", options)


def test_option_a_needs_strong_convexity_and_says_what_helps():
    study = {"algorithm": {"name": "fednl", "option": "A"}, "data": {"name": "gaussian", "clients": 4}, "rounds": 2}
    with pytest.raises(UserError, match=r'^algorithm\.option = "A" cannot be used: logistic .* or option = "B"$'):
        mpifed.run(study, problem={"name": "logistic", "mu": 0.0})
    assert mpifed.run(study, problem={"name": "logistic", "mu": 0.1, "regulariser": "whole"}).cr == 2


def test_a_problem_without_matrices_is_refused():
    config = experiment({"algorithm": "fednl", "problem": "mlp"})
    with pytest.raises(UserError, match=r"^fednl cannot run on mlp: it needs hess \(the matrices ∇²f_i\), which mlp"):
        refuse_mismatch(config.algorithm, config.problem)


def test_masks_have_nothing_to_save_on_a_compressed_message():
    with pytest.raises(UserError, match="masks cannot be used with fednl: it compresses its uploads"):
        mpifed.run(algorithm="fednl", data={"clients": 5}, masks={}, rounds=2)


def test_a_packed_hessian_has_an_array_of_its_own():
    """The difference is written into it."""
    run = curved(FedNL())
    before = run.states().H.copy()
    run.rounds(1)
    assert run.states().H.shape == (8, entries(6))
    assert np.array_equal(before, run.states().H)  # round one is at x⁰, where H_i is ∇²f_i already
    run.rounds(1)
    assert not np.array_equal(before, run.states().H)
