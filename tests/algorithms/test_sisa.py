"""SISA and PISA: fixed points, the limit that is FedGiA, and what growing penalties do."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedgia import FedGiA
from mpifed.algorithms.sisa import SISA
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All, Uniform
from tests.helpers.algorithm_runs import Run, build, gradients, minimiser

KINDS = [{}, {"preconditioner": "smoothness"}, {"rho": 0.0}]


def distance(run):
    x = minimiser(run)
    return np.linalg.norm(run.server.x - x) / np.linalg.norm(x)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_it_ends_at_the_minimiser_with_constant_penalties(options, share):
    run = Run(SISA(**options), selection=Uniform(share=share))
    run.rounds(400)
    assert distance(run) < 1e-9


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_it_stays_at_the_minimiser_where_clients_keep_their_gradients(options):
    run = Run(SISA(**options))
    x, state = minimiser(run), run.hosts[0].state
    state.pi[:] = -gradients(run, x)[run.hosts[0].order]
    state.z[:] = state.s * x + state.pi
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_growing_penalties_stop_it_before_the_minimiser(share):
    """Steps are at most |u_i|/σ_i, and σ_i grows like 1/γ^k: the path is of finite length, whatever is left to go."""
    run = Run(SISA(gamma=0.8), selection=Uniform(share=share))
    models = run.rounds(300)
    assert np.linalg.norm(models[-1] - models[-2]) < 1e-15 * np.linalg.norm(models[-1])
    assert np.isfinite(models).all()
    assert distance(run) > 1e-2


def test_one_penalty_and_no_preconditioner_is_fedgia_with_h_zero():
    """All clients, full gradients, k0 = 1; FedGiA's objective has the weight 1/m, so that its σ is sigma/m."""
    theirs = Run(FedGiA(H="zero", k0=1, t=2.0), selection=All())
    sigma = theirs.server.sigma * len(theirs.samples())
    own = Run(SISA(rho=0.0, sigma=sigma), selection=All())
    assert np.allclose(own.rounds(30), theirs.rounds(30), rtol=1e-11, atol=1e-12)


def test_mini_batches_of_all_samples_are_full_gradients():
    full, batches = (Run(SISA(batch_size=size)).rounds(4) for size in (0, 10**6))
    assert np.allclose(full, batches, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_penalties_that_have_grown_for_long_are_numbers_still(precision):
    run = Run(SISA(gamma=0.5), dtype=precision)
    assert np.isfinite(run.rounds(150)[-1]).all()
    assert all(np.isfinite(field).all() for field in run.states())


@pytest.mark.parametrize(
    ("key", "value"),
    [("sigma", 0), ("gamma", 1.5), ("rho", -1), ("beta", 1), ("batch_size", -1), ("preconditioner", "newton")],
)
def test_wrong_options_are_refused(key, value):
    with pytest.raises(UserError, match=rf"^algorithm\.{key} = .* is wrong: it must be "):
        build("sisa", {key: value})


def test_r_i_are_asked_for_only_where_they_are_used():
    assert build("sisa").needs() == ("lipschitz",)
    assert build("sisa", {"sigma": 0.1}).needs() == ()
    assert build("sisa", {"sigma": 0.1, "preconditioner": "smoothness"}).needs() == ("lipschitz",)
