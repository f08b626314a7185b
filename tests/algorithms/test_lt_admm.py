"""LT-ADMM: EXTRA with one local step, the minimiser on any connected graph."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed import UserError
from tests.helpers.graph_studies import CHANGING, GRAPHS, M, N, best, names, run


@pytest.mark.parametrize(("graph", "degree"), [("ring", 2), ({"name": "torus", "rows": 3}, 4), ("complete", M - 1)])
def test_with_one_local_step_and_equal_weights_it_is_extra(graph, degree):
    """W = I − 2β(D − A): on a graph whose nodes have d neighbours, Metropolis weights are 1/(d + 1) = 2β."""
    found = run(40, graph, name="lt-admm", tau=1, gamma=0.05, beta=1 / (2 * (degree + 1)))
    extra = run(40, graph, name="extra", gamma=0.05)
    assert np.allclose(found.rounds["objective"], extra.rounds["objective"], rtol=1e-11)
    assert np.allclose(found.rounds["consensus"], extra.rounds["consensus"], rtol=1e-8, atol=1e-20)
    assert np.allclose(found.x, extra.x, rtol=1e-10)


@pytest.mark.parametrize("graph", [*GRAPHS, *CHANGING], ids=names)
@pytest.mark.parametrize("tau", [1, 8])
def test_nodes_end_at_the_minimiser_of_f(graph, tau):
    found = run(1200, graph, name="lt-admm", tau=tau)
    assert np.allclose(found.x, best(), rtol=1e-6)
    assert found.rounds["consensus_max"][-1] < 1e-12


def test_local_steps_cost_no_messages():
    one, many = (run(5, "ring", name="lt-admm", tau=tau).rounds for tau in (1, 10))
    assert one["bytes_up"][-1] == many["bytes_up"][-1] == 5 * 2 * M * 8 * N


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tau": 0}, "tau"), ({"gamma": -1.0}, r"gamma = -1\.0"), ({"beta": 0.0}, r"beta = 0\.0"), ({"rho": 1.0}, "rho")],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        run(1, "ring", name="lt-admm", **options)
