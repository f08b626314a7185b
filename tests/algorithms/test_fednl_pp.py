"""FedNL-PP: Newton's method where all clients send everything, and what the server knows where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fednl_pp import FedNLPP
from mpifed.algorithms.newton import Newton
from mpifed.compressors.base import Identity
from mpifed.compressors.sparse import RandK, TopK
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All, Uniform
from mpifed.problems.logistic import Logistic
from tests.algorithms.test_fednl import COMPRESSORS, classes, derivatives
from tests.helpers.algorithm_runs import Run, build, minimiser

CONVEX = Logistic(mu=0.1, regulariser="whole")


def curved(algorithm, selection=None):
    return Run(algorithm, CONVEX, data=classes(), selection=selection or Uniform(count=3))


def test_with_all_clients_and_without_compression_it_is_newton_s_method():
    newton, learned = curved(Newton(), All()), curved(FedNLPP(compressor=Identity()), All())
    for _ in range(6):
        assert np.allclose(learned.rounds(1)[-1], newton.rounds(1)[-1], rtol=1e-9, atol=1e-12)
        assert newton.server.step == 1.0


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda compressor: compressor.label())
def test_the_gradient_vanishes_with_three_clients_of_eight_a_round(compressor):
    run = curved(FedNLPP(compressor=compressor))
    run.rounds(400)
    assert run.measure()[1] < 1e-24


def test_the_server_knows_the_means_of_what_all_clients_have():
    run = curved(FedNLPP(compressor=TopK(k=4), alpha=0.7))
    run.rounds(7)
    states, server = run.states(), run.server
    for own, mean in ((states.H, server.H), (states.g, server.g), (states.l, server.l)):
        assert np.allclose(own.mean(axis=0), mean, rtol=1e-12, atol=1e-14)
    assert server.l > 0


def test_a_selected_client_keeps_what_the_box_says():
    run = curved(FedNLPP(compressor=TopK(k=4)))
    x = run.rounds(3)[-1]
    hessians = derivatives(run, x)[1]
    for i in run.fed.selected:
        H = np.zeros((6, 6))
        H[np.triu_indices(6)] = run.states().H[i]
        H = H + np.triu(H, 1).T
        l = np.linalg.norm(H - hessians[i])
        A, b = run.samples()[i]
        gradient = A.T @ (1 / (1 + np.exp(-A @ x)) - b) / len(b) + 0.1 * x
        assert run.states().l[i] == pytest.approx(l, rel=1e-10)
        assert np.allclose(run.states().g[i], H @ x + l * x - gradient, rtol=1e-10, atol=1e-13)


def test_it_stays_at_the_minimiser():
    run = Run(FedNLPP(compressor=RandK(k=5)), selection=Uniform(count=4))
    assert np.allclose(run.rounds(5), minimiser(run), rtol=1e-8)  # least squares: from the first round on


def test_the_bits_are_those_of_the_messages():
    n, N, m, k = 6, 21, 8, 12
    run = curved(FedNLPP(compressor=TopK(k="2n")))
    first = run.fed.ledger.bits_up, run.fed.ledger.bits_down
    assert first == (64 * m * (N + n), 64 * m * n)  # H_i⁰ and g_i⁰ up, x⁰ down
    run.rounds(1)
    assert run.fed.ledger.bits_up - first[0] == 3 * (64 * n + 64 * k + 5 * k + 64)
    assert run.fed.ledger.bits_down - first[1] == 3 * 64 * n


@pytest.mark.parametrize("key", ["option", "line_search"])
def test_options_of_fednl_that_it_does_not_have_are_refused(key):
    with pytest.raises(UserError, match=rf"unknown key '?(algorithm\.)?{key}"):
        build("fednl-pp", {key: "A"})
