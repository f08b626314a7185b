"""Personal models: where they end, and that they stay with their clients."""

import numpy as np
import pytest

import mpifed
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import N, Run, build, gradients, minimiser
from tests.helpers.personal_models import EVERYONE


@pytest.mark.parametrize("name", ["flame", "pfedme"])
def test_the_last_upload_of_those_not_chosen_stays_in_the_mean(name):
    run = Run(build(name, {"batch_size": 0, "lr": 0.005}))
    for _ in range(4):
        before = run.states().z
        run.rounds(1)
        rest = ~run.fed.mask(run.fed.selected)
        state = run.states()
        assert np.array_equal(state.z[rest], before[rest])
        assert not np.array_equal(state.z[~rest], before[~rest])
        assert np.allclose(run.server.x, state.z.mean(axis=0), rtol=1e-13, atol=1e-15)
    assert (run.fed.times_selected == 0).any()
    assert not run.states().z[run.fed.times_selected == 0].any()  # who never trained counts with the model of the start


def moreau(run, lam):
    """w minimising (1/m) Σ min_θ f_i(θ) + (λ/2)‖θ − w‖² of least squares, and the θ_i (m, n) there."""
    H = np.array([A.T @ A / len(A) for A, _ in run.samples()])
    g = np.array([A.T @ b / len(A) for A, b in run.samples()])
    inverse = np.linalg.inv(H + lam * np.eye(N))
    w = np.linalg.solve(np.eye(N) - lam * inverse.mean(axis=0), np.matvec(inverse, g).mean(axis=0))
    return w, np.matvec(inverse, g + lam * w)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("flame", {"rho": 1.0}),
        pytest.param("flame", {"rho": 1.0, "center": "local"}, marks=pytest.mark.slow),
        pytest.param("flame", {"rho": 2.0}, marks=pytest.mark.slow),
        ("pfedme", {"eta": 0.1}),
    ],
    ids=str,
)
def test_both_end_where_the_moreau_envelope_is_least(name, options):
    """Problem (7) of flame: w* minimises the mean of the envelopes, θ_i* = prox of f_i at w*."""
    lam = 5.0
    run = Run(build(name, {"lam": lam, "lr": 0.04, "epochs": 30, "batch_size": 0, **options}), selection=EVERYONE)
    w, theta = moreau(run, lam)
    assert np.abs(gradients(run, theta) + lam * (theta - w)).max() < 1e-12  # the test's own formula
    assert np.linalg.norm(w - minimiser(run)) > 1e-2  # another point than the minimiser of f
    run.rounds(400)
    assert np.allclose(run.server.x, w, rtol=1e-5, atol=1e-6)
    assert np.allclose(run.states().theta, theta, rtol=1e-5, atol=1e-6)


def test_personal_models_fit_their_clients_better_than_the_common_one():
    result = mpifed.run(
        {
            "data": {"name": "linreg-noniid", "clients": 10, "features": 8, "least": 6, "most": 20},
            "rounds": 30,
            "algorithm": {"name": "flame", "lr": 0.02, "lam": 1.0},
            "selection": "all",
        }
    )
    assert result.rounds["personal_objective"][0] == result.rounds["objective"][0]
    assert result.rounds["personal_objective"][-1] < 0.9 * result.rounds["objective"][-1]


@pytest.mark.parametrize("name", ["flame", "pfedme"])
def test_personal_models_are_recorded_where_they_are_asked_for(name):
    table = {
        "data": {"name": "linreg-noniid", "clients": 7, "features": 4, "least": 6, "most": 20},
        "rounds": 3,
        "algorithm": {"name": name, "lr": 0.01},
        "record": {"personal": True},
    }
    result = mpifed.run(table)
    assert result.personal.shape == (7, 4)
    assert len(np.unique(result.personal, axis=0)) > 1


@pytest.mark.parametrize("problem", [Softmax(), Softmax(start="uniform")], ids=repr)
def test_everyone_starts_at_the_common_model(problem):
    run = Run(build("flame"), problem)
    state = run.states()
    assert all((field == run.server.x).all() for field in (state.theta, state.w, state.z))
    assert not state.pi.any()
