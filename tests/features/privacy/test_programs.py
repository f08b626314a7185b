"""Private means beside the classes of Flower and pfl-research, and beside a plain loop; ε beside Opacus and pfl."""

import numpy as np
import pytest

from mpifed.core.streams import stream
from tests.agreement.privacy import Trajectories, epsilons
from tests.agreement.row import CLOSE, apart
from tests.oracles.private_means import PrivateFedAvg
from tests.oracles.problems import LeastSquares
from tests.oracles.synchronous import rounds

KEYS = [
    "flower fixed",
    "flower fixed, five",
    "flower fixed, five, noise",
    "flower fixed at clients, noise",
    "flower adaptive, bit",
    "flower adaptive, noise, bit and bound",
    "flower adaptive at clients, noise, bit and bound",
    "pfl fixed, five",
    "pfl fixed, noise",
    "pfl adaptive, double",
    "pfl adaptive, noise, double",
]


@pytest.fixture
def stored(tmp_path):
    return Trajectories(tmp_path)


def loop(Z, key):
    """Return models and bounds of a plain loop over clients with the options of a trajectory."""
    ends = np.cumsum(Z["sizes"])[:-1]
    clients = [LeastSquares(a, b) for a, b in zip(np.split(Z["A"], ends), np.split(Z["b"], ends), strict=True)]
    n = Z["A"].shape[1]
    normals = [stream(Z["seed"], "noise", k, 0).standard_normal(n + 1) for k in range(1, Z["rounds"] + 1)]
    moves = {"clip": Z["first_clip"], "quantile": 0.5, "count_noise": Z["count_noise"]}
    method = PrivateFedAvg(
        clients,
        k0=Z["steps"],
        step={"name": "constant", "a": Z["rate"]},
        normals=normals,
        noise_multiplier=Z["z"] if "noise" in key else 0.0,
        **(moves if "adaptive" in key else {"clip": Z["clip"]}),
    )
    chosen = Z["five"] if "five" in key else [range(len(clients))] * Z["rounds"]
    models, shown = zip(*rounds(method, chosen), strict=True)
    return np.array(models), np.array([one["clip"] for one in shown])


@pytest.mark.parametrize("key", KEYS)
def test_models_and_bounds_are_those_of_the_program_and_of_a_plain_loop(key, stored):
    models, bounds = loop(stored.Z, key)
    assert apart(models, stored.Z[f"{key}/x"]) < CLOSE
    if "adaptive" in key:
        assert apart(bounds, stored.Z[f"{key}/clip"]) < CLOSE
    assert stored.compare(key) < CLOSE


def test_the_trajectories_are_clipped_and_noisy(stored):
    # so that agreement says something: some changes are clipped and some are not, and noise moves the model
    quiet, noisy = stored.Z["pfl fixed/x"], stored.Z["pfl fixed, noise/x"]
    steps = np.linalg.norm(np.diff(quiet, axis=0), axis=1)
    assert (steps < 0.99 * stored.Z["clip"]).all()
    assert apart(noisy, quiet) > 0.05
    assert np.ptp(stored.Z["pfl adaptive/clip"]) > 0.2


@pytest.mark.parametrize("side", ["", " at clients"])
def test_flowers_own_bound_goes_away_from_the_quantile(side, stored):
    assert np.all(np.diff(stored.Z[f"flower adaptive{side}/clip"]) > 0)
    assert np.all(np.diff(stored.Z[f"flower adaptive{side}, bit/clip"]) < 0)


def test_epsilons_are_those_of_opacus_and_pfl(stored):
    pytest.importorskip("dp_accounting")
    found = list(epsilons(stored.Z))
    assert len(found) == 10
    assert not [row for row in found if row.x > row.bound]
    assert max(row.otherwise for row in found if row.reason) < 1e-3  # as the two come
