"""Clients on simulated devices."""

import numpy as np

from mpifed.algorithms.fedavg import FedAvg
from mpifed.federation.setup import Setup
from mpifed.federation.timing.devices import Devices
from mpifed.federation.timing.system import System


def devices(sizes, seed=0, algorithm=None, **table):
    """The devices of ``table`` for clients of these sizes, for FedAvg with one local step and 10 parameters."""
    setup = Setup(None, algorithm or FedAvg(k0=1), seed, len(sizes), np.zeros(10))
    return Devices(System.build(table, "system"), setup, np.array(sizes))
