"""FedADMM-InSa: its fixed points, its test of inexactness, and its penalties."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedadmm import FedADMM
from mpifed.algorithms.fedadmm_insa import FedADMMInSa
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All, Uniform
from tests.helpers.algorithm_runs import Run, build, gradients, minimiser

FIXED = 1e30


def distance(run):
    x = minimiser(run)
    return np.linalg.norm(run.server.x - x) / np.linalg.norm(x)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("options", [{}, {"mu": FIXED}, {"inner_max": 1}, {"memory": 0.3}], ids=str)
def test_it_ends_at_the_minimiser(options, share):
    run = Run(FedADMMInSa(c=0.1, **options), selection=Uniform(share=share))
    run.rounds(250)
    assert distance(run) < 1e-6


def test_it_stays_at_the_minimiser_where_clients_keep_their_gradients():
    run = Run(FedADMMInSa(c=0.1))
    x, state = minimiser(run), run.hosts[0].state
    state.pi[:] = -gradients(run, x)[run.hosts[0].order]
    state.w[:] = x
    state.z[:, :-1] = state.beta * x + state.pi
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-9, atol=1e-9)


def test_with_constant_penalties_and_a_number_of_steps_it_is_fedadmm():
    """A tiny c makes the test as strict as ε = 0, so that both take all their steps."""
    own = Run(FedADMMInSa(mu=FIXED, memory=0.0, c=1e-300, inner_max=3), selection=Uniform(share=0.5))
    theirs = Run(FedADMM(k0=1, inner_max=3, eps0=0.0), selection=Uniform(share=0.5))
    assert np.allclose(own.rounds(10), theirs.rounds(10), rtol=1e-11, atol=1e-12)


def test_a_wide_test_takes_fewer_steps_than_a_strict_one():
    wide, strict = (Run(FedADMMInSa(c=c, mu=FIXED), selection=All()) for c in (1e3, 1e-6))
    wide.rounds(5), strict.rounds(5)
    assert 5 * len(wide.samples()) <= wide.states().steps.sum() < strict.states().steps.sum()


@pytest.mark.parametrize("r0", [1e-4, 1e4])
def test_penalties_come_to_a_tenth_or_two_of_r_i_from_any_start(r0):
    adaptive, held = (Run(FedADMMInSa(c=0.1, r0=r0, mu=mu), selection=All()) for mu in (5.0, FIXED))
    before = held.states().beta.copy()
    adaptive.rounds(60), held.rounds(60)
    assert np.allclose(held.states().beta, before)
    found = adaptive.states().beta / before * r0
    assert ((found > 0.05) & (found < 0.4)).all()
    assert distance(adaptive) < 1e-3 < distance(held)


@pytest.mark.parametrize(
    ("key", "value"), [("r0", 0), ("mu", 0.5), ("tau", 1), ("memory", -1), ("c", 0), ("inner_max", 0)]
)
def test_wrong_options_are_refused(key, value):
    with pytest.raises(UserError, match=rf"^algorithm\.{key} = .* is wrong: it must be a "):
        build("fedadmm-insa", {key: value})
