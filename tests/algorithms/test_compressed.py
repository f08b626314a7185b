"""EF21, DIANA and MARINA: where they end, what they keep, what they cost, and which compressors they take."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.gd import GD
from mpifed.compressors.base import Compressor
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.experiment.config import experiment
from mpifed.federation.participation.selection import All, Uniform
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, minimiser

METHODS = ["ef21", "diana", "marina"]
RANDK = {"name": "randk", "k": 3}
NEEDS_UNBIASED = ["diana", "marina"]


def radius(run):
    return np.array([np.linalg.eigvalsh(A.T @ A / len(A))[-1] for A, _ in run.samples()])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("compressor", "share"), [(RANDK, 0.4), ("natural", 1.0), ({"name": "dither", "s": 2}, 0.4)])
def test_with_the_step_of_theory_they_end_at_the_minimiser(method, compressor, share):
    """Though every message has an error, on uneven clients, each with data of its own, all or some of them a round."""
    run = Run(build(method, {"compressor": compressor}), selection=Uniform(share=share))
    start = run.measure()[1]
    run.rounds(700)
    assert run.measure()[1] < 1e-5 * start


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_ef21_ends_at_the_minimiser_with_biased_messages(share):
    run = Run(build("ef21", {"compressor": {"name": "topk", "k": 2}}), selection=Uniform(share=share))
    start = run.measure()[1]
    run.rounds(700)
    assert run.measure()[1] < 1e-3 * start


@pytest.mark.parametrize("method", METHODS)
def test_with_all_numbers_sent_they_are_gradient_descent(method):
    run = Run(build(method, {"compressor": "identity", "gamma": 0.02}), selection=All())
    plain = Run(GD(gamma=0.02), selection=All())
    assert np.allclose(run.rounds(20), plain.rounds(20), rtol=1e-10, atol=1e-12)


def test_the_steps_of_theory_written_out():
    identity = {"compressor": "identity"}
    r = radius(Run(GD()))
    steps = {name: Run(build(name, identity), selection=All()) for name in METHODS}
    assert steps["ef21"].server.gamma == pytest.approx(1 / r.mean())
    assert steps["diana"].server.gamma == pytest.approx(1 / r.max())
    assert steps["marina"].server.gamma == pytest.approx(1 / np.sqrt((r**2).mean()))
    omega, p = N / 3 - 1, 3 / N
    marina = Run(build("marina", {"compressor": RANDK}), selection=All())
    expected = 1 / (np.sqrt((r**2).mean()) * (1 + np.sqrt((1 - p) * omega / (p * M))))
    assert marina.server.gamma == pytest.approx(expected)
    some = Run(build("diana", {"compressor": RANDK}), selection=Uniform(count=4))
    assert some.server.gamma == pytest.approx(1 / ((1 + 6 * ((1 + omega) * M / 4 - 1) / M) * r.max()))


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_server_keeps_the_mean_of_what_clients_keep(share):
    for method, field in (("ef21", "g"), ("diana", "h")):
        run = Run(build(method, {"compressor": RANDK, "gamma": 0.01}), selection=Uniform(share=share))
        run.rounds(15)
        kept = getattr(run.states(), field)
        assert np.linalg.norm(kept) > 1e-3
        assert np.allclose(getattr(run.server, field), kept.mean(axis=0), rtol=1e-11, atol=1e-12)


def test_what_clients_keep_becomes_their_gradient_at_the_minimiser():
    for method, field in (("ef21", "g"), ("diana", "h")):
        run = Run(build(method, {"compressor": "natural", "gamma": 0.2}), selection=All())
        run.rounds(500)
        assert np.allclose(getattr(run.states(), field), gradients(run, minimiser(run)), atol=1e-3)


def test_marina_charges_whole_gradients_when_the_coin_says_so():
    run, rounds = Run(build("marina", {"compressor": RANDK, "p": 0.4}), selection=Uniform(count=4)), 30
    run.rounds(rounds)
    whole = sum(stream(0, "server", round).random() < 0.4 for round in range(1, rounds + 1))
    assert 0 < whole < rounds
    bits = 64 * N * M * whole + (64 * 3 + 64) * 4 * (rounds - whole)
    ledger = run.fed.ledger
    assert (ledger.bits_up, ledger.bytes_up) == (bits, bits // 8)
    assert ledger.bytes_down == 8 * N * (M * whole + 2 * 4 * (rounds - whole))


@pytest.mark.parametrize("method", NEEDS_UNBIASED)
def test_biased_compressors_are_refused_where_theory_needs_unbiased_ones(method):
    with pytest.raises(UserError, match=rf'algorithm.compressor = "topk" is wrong: {method} needs an unbiased one'):
        build(method, {"compressor": {"name": "topk", "k": 2}}).verify(4)


@pytest.mark.parametrize("method", METHODS)
def test_wrong_options_are_refused(method):
    with pytest.raises(UserError, match="rank is for symmetric matrices"):
        build(method, {"compressor": "rank"}).verify(4)
    for options, sentence in [
        ({"gamma": 0}, r"algorithm.gamma = 0 is wrong"),
        ({"compressor": "zip"}, r"zip"),
        ({"compressor": {"name": "topk", "k": "half"}}, r"algorithm.compressor: k = \"half\" is wrong"),
        ({"compressor": {"name": "dither", "s": 0}}, r"algorithm.compressor.s = 0 is wrong"),
    ]:
        with pytest.raises(UserError, match=sentence):
            experiment({"algorithm": {"name": method, **options}})


def test_p_is_a_probability():
    with pytest.raises(UserError, match=r"algorithm.p = 1.5 is wrong"):
        experiment({"algorithm": {"name": "marina", "p": 1.5}})


def test_a_compressor_of_ones_own_is_refused_where_it_says_nothing_of_its_error():
    class Silent(Compressor, tag="silent"):
        def message(self, rows, rngs, symmetric):
            return rows

        def bits(self, N, itemsize, symmetric=False):
            return 1

    with pytest.raises(UserError, match="silent is neither contractive nor unbiased"):
        Silent().contraction(4)
