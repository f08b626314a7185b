"""Client methods do not know where their arrays live: they compute the same with tensors on a device as with numpy."""

import numpy as np
import pytest

from mpifed.federation.traits import required_methods
from tests.algorithms.test_every_algorithm import EVERY, cases
from tests.helpers.algorithm_cases import start

torch = pytest.importorskip("torch")
from mpifed.engine.devices.device_host import DeviceHost  # noqa: E402

pytestmark = pytest.mark.torch

SECOND = {"hess", "hessian"}  # what devices do not have
ROUNDS = 3


def on_device(setup, data, lo, hi):
    """A host whose arrays are tensors on the CPU."""
    return DeviceHost(setup, data, lo, hi, torch.device("cpu"), 8)


def near(found, right, rtol):
    """Whether numbers agree relative to the largest of them; infinite ones must be the same."""
    finite = np.isfinite(right)
    scale = np.abs(right[finite]).max(initial=0.0)
    return np.array_equal(found[~finite], right[~finite]) and np.allclose(found[finite], right[finite], 0, rtol * scale)


@cases(lambda algorithm, graph: not SECOND & {*required_methods(algorithm)}, few=True)
def test_a_method_gives_the_same_models_states_and_records_on_a_device(place):
    algorithm, graph = EVERY[place]
    here, there = (start(algorithm, graph=graph, **options) for options in ({}, {"host": on_device}))
    assert near(there.rounds(ROUNDS), here.rounds(ROUNDS), 1e-12)
    for name, right in here.states()._asdict().items():
        found = getattr(there.states(), name)
        assert found.dtype == right.dtype
        assert near(found, right, 1e-11), name
    for name, right in here.row().items():
        assert there.row()[name] == pytest.approx(right, rel=1e-9), name
