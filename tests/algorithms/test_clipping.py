"""Clipped gradients of local steps: client by client, and in every method that has them."""

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms import FedAvg
from mpifed.algorithms.parts import local_solvers
from mpifed.algorithms.parts.optimizers import SGD, clip_gradients
from tests.algorithms.test_optimizers import TAKES
from tests.helpers.algorithm_cases import SETTINGS
from tests.helpers.algorithm_runs import Run, build


def test_a_client_is_clipped_by_its_own_norm_alone():
    g = np.random.default_rng(1).standard_normal((5, 40)) * np.array([[0.01], [1], [5], [0], [100]])
    together = clip_gradients(g, 2.0)
    assert together.tobytes() == np.concatenate([clip_gradients(g[i : i + 1].copy(), 2.0) for i in range(5)]).tobytes()
    assert np.array_equal(together[[0, 3]], g[[0, 3]])
    assert np.allclose(np.linalg.norm(together[[1, 2, 4]], axis=1), 2.0, rtol=1e-6)
    assert clip_gradients(g.astype(np.float32), 2.0).dtype == np.float32


@pytest.mark.parametrize("name", [name for name in TAKES if name != "fednova"])
def test_every_method_with_an_optimizer_clips(name):
    both = ({"name": "sgd", "clip": clip} for clip in (0.0, 1e-3))
    plain, cut = (Run(build(name, SETTINGS.get(name, {}) | {"optimizer": one})).rounds(2)[-1] for one in both)
    assert not np.array_equal(plain, cut)


@pytest.mark.parametrize("kind", [local_solvers.SGDSolver, local_solvers.AdamSolver])
def test_stochastic_solvers_of_dual_methods_clip_too(kind):
    assert kind(clip=0.3).rule().clip == 0.3


def test_a_bound_that_no_gradient_reaches_changes_no_bit():
    some, none = (Run(FedAvg(optimizer=SGD(clip=clip))).rounds(3)[-1] for clip in (1e9, 0.0))
    assert some.tobytes() == none.tobytes()


def test_fednova_refuses_it_and_no_theorem_covers_it():
    with pytest.raises(UserError, match=r"^algorithm: optimizer = sgd is wrong: fednova .*, and without clip$"):
        build("fednova", {"optimizer": {"name": "sgd", "clip": 1.0}})
    study = {"algorithm": {"name": "fedavg", "k0": 1, "step": 0.01, "certify": True, "optimizer": {"clip": 1.0}}}
    assert not mpifed.run(study, rounds=2, selection="all", progress=False).certificate.bounds
