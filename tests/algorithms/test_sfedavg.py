"""SFedAvg and SFedProx without noise: FedAvg and FedProx."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedprox import FedProx
from mpifed.algorithms.sfedavg import SFedAvg
from mpifed.algorithms.sfedprox import SFedProx
from mpifed.algorithms.step_sizes import Constant
from tests.helpers.algorithm_runs import Run


@pytest.mark.parametrize("kind", [SFedAvg, SFedProx])
def test_without_noise_over_the_set_that_trained_they_are_fedavg_and_fedprox(kind):
    secure, plain = (SFedAvg, FedAvg) if kind is SFedAvg else (SFedProx, FedProx)
    more = {} if kind is SFedAvg else {"mu": 0.3, "inner": 3}
    one = Run(secure(noise="none", k0=4, step=Constant(a=0.01), **more))
    other = Run(plain(k0=4, step=Constant(a=0.01), **more))
    assert np.allclose(one.rounds(6), other.rounds(6), rtol=1e-12, atol=1e-14)
